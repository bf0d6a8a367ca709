"""The command log: every command that is run on the host is reported to whoever wants to know, redacted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ddtui import redact, sanitize
from ddtui.host import shell
from ddtui.host.base import Command, Completed, LoggedCommand


class Report:
    """Reports to the command log: a command that ended at its end, the others when the context is left."""

    def __init__(
        self, commands: tuple[Command, ...], callbacks: Sequence[Callable[[LoggedCommand], None]]
    ) -> None:
        self.commands = commands
        self.title = title(commands[0].argv) + (f" and {len(commands) - 1} more" if len(commands) > 1 else "")
        self._callbacks = callbacks
        self._at = time.time()
        self._began = time.monotonic()
        self._reported = 0

    def __enter__(self) -> Report:
        return self

    def __exit__(self, *_: object) -> None:
        while self._reported < len(self.commands):
            self._report(None)

    def done(self, at: int, code: int, stdout: bytes, stderr: bytes) -> Completed:
        self._report(code)
        return Completed(self.commands[at].argv, code, stdout, stderr, time.monotonic() - self._began)

    def not_run(self) -> None:
        """The commands that did not end were not begun either."""
        self.commands = self.commands[: self._reported]

    def _report(self, code: int | None) -> None:
        command = self.commands[self._reported]
        self._reported += 1
        line = LoggedCommand(
            self._at, redact.argv(command.argv), command.sudo, code, time.monotonic() - self._began
        )
        for callback in list(self._callbacks):
            callback(line)


def title(argv: Sequence[str]) -> str:
    """A command in a message: redacted, inert, not too long."""
    text = sanitize.sanitize(shell.join(redact.argv(argv)))
    return text if len(text) <= 120 else text[:117] + "…"


def last_words(data: bytes) -> str:
    """The last line that was printed, for a message."""
    lines = [line for line in sanitize.decode(data).splitlines() if line.strip()]
    return sanitize.line(redact.redact(lines[-1]))[:200].strip() if lines else "(nothing)"
