"""Expected failures as one sentence and an exit code; anything else is a fault of ddtui's and raised."""

from __future__ import annotations

import sys

USAGE, UNREACHABLE, NOT_PERMITTED, FAILED = 2, 3, 4, 1

# by module and class, so that reporting a failure loads nothing that the command did not load itself;
# the first match counts, a class before those it derives from
CODES: tuple[tuple[str, str, int], ...] = (
    ("ddtui.profile", "ProfileError", USAGE),
    ("ddtui.settings", "SettingsError", USAGE),
    ("ddtui.commands.failure", "InputError", USAGE),
    ("ddtui.tuning.plan", "PlanError", USAGE),
    ("ddtui.bench.target", "BenchError", USAGE),
    ("ddtui.report.files", "MissingPackage", USAGE),
    ("ddtui.host.unit.read", "UnitError", USAGE),
    ("ddtui.engine.drafter", "DrafterError", USAGE),
    ("ddtui.store.model", "HistoryError", USAGE),
    ("ddtui.host.base", "ConfigError", USAGE),
    ("ddtui.host.base", "Unreachable", UNREACHABLE),
    ("ddtui.host.base", "NotAuthenticated", UNREACHABLE),
    ("ddtui.host.base", "HostKeyRefused", UNREACHABLE),
    ("ddtui.host.base", "LinkLost", UNREACHABLE),
    ("ddtui.host.base", "NotPermitted", NOT_PERMITTED),
    ("ddtui.host.base", "HostError", FAILED),
    ("ddtui.engine.api", "ApiError", FAILED),
    ("ddtui.demo.launch", "DemoError", FAILED),
)


class InputError(Exception):
    """Something the user gave is wrong: one sentence."""


def report(error: Exception) -> int:
    """Print the sentence on stderr; the exit code. Raises what is not an expected failure."""
    code = code_of(error)
    if code is None:
        raise error
    print(f"ddtui: {error}", file=sys.stderr)
    hint = getattr(error, "hint", "")
    if hint:
        print(f"  {hint}", file=sys.stderr)
    return code


def code_of(error: Exception) -> int | None:
    """The exit code of an expected failure; None for any other."""
    for module, name, code in CODES:
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(error, kind):
            return code
    return None
