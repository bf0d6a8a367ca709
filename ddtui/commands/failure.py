"""Expected failures as one sentence and an exit code; anything else is a fault of ddtui's and raised."""

from __future__ import annotations

import sys

from ddtui.host.base import (
    HostError,
    HostKeyRefused,
    LinkLost,
    NotAuthenticated,
    NotPermitted,
    Unreachable,
)
from ddtui.profile import ProfileError

USAGE, UNREACHABLE, NOT_PERMITTED = 2, 3, 4


class InputError(Exception):
    """Something the user gave is wrong: one sentence."""


def report(error: Exception) -> int:
    """Print the sentence on stderr; the exit code. Raises what is not an expected failure."""
    match error:
        case ProfileError() | InputError():
            code = USAGE
        case Unreachable() | NotAuthenticated() | HostKeyRefused() | LinkLost():
            code = UNREACHABLE
        case NotPermitted():
            code = NOT_PERMITTED
        case HostError():
            code = 1
        case _:
            raise error
    print(f"ddtui: {error}", file=sys.stderr)
    hint = getattr(error, "hint", "")
    if hint:
        print(f"  {hint}", file=sys.stderr)
    return code
