"""`ddtui demo [COMMAND …]`: the same commands, on the embedded demo host."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from ddtui.commands import COMMANDS, ON_PROFILE
from ddtui.profile import Profile, load


def run(rest: list[str], command: Callable[[list[str], Callable[[str], Profile]], int]) -> int:
    """Start the demo host and run `command` (the command line's own `run`) on its profile."""
    from ddtui.demo import launch

    words = rest or ["console"]
    if words[0] in ON_PROFILE:
        words = [words[0], "demo", *words[1:]]
    elif words[0] not in COMMANDS:
        words = ["console", "demo", *words]

    starting = launch.Starting(keep=bool(rest))
    try:
        if words[0] == "console":
            for needed in ("ddtui.app", "ddtui.live"):  # while the demo host starts
                importlib.import_module(needed)
        host = starting.ready()

        def find(name: str) -> Profile:
            return host.profile if name == "demo" else load(name)

        return command(words, find)
    finally:
        starting.end()
