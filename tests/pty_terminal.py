"""A real terminal for tests: a program on a pty, its screen kept by a terminal emulator."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from typing import Any

import pyte

KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "backspace": "\x7f",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "ctrl+c": "\x03",
    "ctrl+g": "\x07",
    "ctrl+p": "\x10",
    "ctrl+q": "\x11",
    "ctrl+r": "\x12",
    "ctrl+s": "\x13",
}


class Terminal:
    """A program in a terminal of `columns` by `rows`. Everything it wrote is in `raw`."""

    def __init__(
        self, argv: Sequence[str], columns: int, rows: int, env: dict[str, str] | None = None
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.master, slave = pty.openpty()
        self.resize(columns, rows)
        self.settings_before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_own_the_terminal,
            env={**_environment(), "TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})},
        )
        self.slave = slave

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)
        self._text: str | None = None
        if hasattr(self, "process"):
            os.killpg(self.process.pid, signal.SIGWINCH)

    def pump(self, seconds: float) -> bool:
        """Take what the program writes within that time; False once it has closed the terminal."""
        pieces: list[bytes] = []
        while len(pieces) < 64 and select.select([self.master], [], [], 0 if pieces else seconds)[0]:
            try:
                pieces.append(os.read(self.master, 65536))
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                if not pieces:
                    return False
                break
        if data := b"".join(pieces):
            self.raw += data
            # pyte takes private CSI like `ESC[>4;1m` for SGR, and does not know DECRQM: a terminal would be silent
            self.stream.feed(_without_what_pyte_cannot_read(data))
            self._text = None
        return True

    def settle(self, quiet: float = 0.6, timeout: float = 5.0) -> None:
        """Read until the screen has not changed for `quiet` seconds (or `timeout` is over)."""
        end = time.monotonic() + timeout
        since, before = time.monotonic(), self.text
        while time.monotonic() < min(end, since + quiet):
            self.pump(0.1)
            if self.text != before:
                since, before = time.monotonic(), self.text

    @property
    def text(self) -> str:
        """The screen as it is now, a line per row, without trailing blanks."""
        if self._text is None:
            self._text = "\n".join(line.rstrip() for line in self.screen.display)
        return self._text

    def wait_for(self, what: str | Callable[[str], Any], timeout: float = 30.0) -> str:
        """Read until the screen holds the text (or the predicate is true of it); the screen. Fails with it."""
        __tracebackhide__ = True
        wanted = (lambda screen: what in screen) if isinstance(what, str) else what
        end = time.monotonic() + timeout
        while not wanted(self.text):
            if time.monotonic() > end:
                raise AssertionError(
                    f"{what!r} did not appear within {timeout:g} s; the screen:\n{self.text}"
                )
            if not self.pump(0.1) or (self.process.poll() is not None and not self.pump(0)):
                raise AssertionError(f"the program ended before {what!r} appeared; the screen:\n{self.text}")
        return self.text

    def press(self, *keys: str) -> None:
        """Type keys: names from KEYS, anything else as it stands."""
        for key in keys:
            os.write(self.master, KEYS.get(key, key).encode())

    def wait_end(self, timeout: float = 30.0) -> int:
        """Read until the program has ended; its exit status."""
        end = time.monotonic() + timeout
        while self.process.poll() is None:
            if time.monotonic() > end:
                raise AssertionError(
                    f"the program did not end within {timeout:g} s; the screen:\n{self.text}"
                )
            self.pump(0.05)
        while select.select([self.master], [], [], 0)[0] and self.pump(0):
            pass
        return self.process.returncode

    def settings(self) -> list[Any]:
        """The terminal's settings now (termios); compare with `settings_before`."""
        return termios.tcgetattr(self.slave)

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.slave)
        os.close(self.master)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _environment() -> dict[str, str]:
    """Ours without COLUMNS and LINES, which would be believed before the terminal's own size."""
    return {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}


def _own_the_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _without_what_pyte_cannot_read(data: bytes) -> bytes:
    import re

    return re.sub(
        rb"\x1b\[[>=<][0-9;]*[A-Za-z]|\x1b\[\?[0-9;]*\$p|\x1bP.*?\x1b\\", b"", data, flags=re.DOTALL
    )
