"""`ddtui demo [COMMAND …]`: the same commands, on the embedded demo host."""

from __future__ import annotations

from ddtui.profile import Profile, load


def run(rest: list[str]) -> int:
    from ddtui import cli
    from ddtui.demo import launch

    words = rest or ["console"]
    if words[0] in cli.ON_PROFILE:
        words = [words[0], "demo", *words[1:]]
    elif words[0] not in cli.COMMANDS:
        words = ["console", "demo", *words]

    with launch.start(keep=bool(rest)) as host:

        def find(name: str) -> Profile:
            return host.profile if name == "demo" else load(name)

        return cli.run(words, find)
