"""Progress on stderr: on a terminal one line that is drawn over, and a bar to stand in it."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Self

from ddtui.words import clock

WIDTH = 20
SOON, OFTEN = 1.0, 0.5  # seconds before a wait is shown, and between two looks at it
MOST = 0.95  # of the bar, while it is not over


def filled(fraction: float) -> str:
    """A bar: `▓▓▓▓▓▓▓▓▓▓▓▓▓▓░░░░░░  71%`"""
    full = round(WIDTH * fraction)
    return "▓" * full + "░" * (WIDTH - full) + f" {fraction:4.0%}"


class StatusLine:
    """Elsewhere than on a terminal it shows nothing."""

    def __init__(self) -> None:
        self.live = sys.stderr.isatty()
        self._drawn = False

    def show(self, text: str) -> None:
        if self.live:
            sys.stderr.write("\r\x1b[2K" + text)
            sys.stderr.flush()
            self._drawn = True

    def end(self, *, keep: bool = False) -> None:
        """Take the line away, or leave it and go on below."""
        if self._drawn:
            sys.stderr.write("\n" if keep else "\r\x1b[2K")
            sys.stderr.flush()
            self._drawn = False


class Waiting:
    """While it is entered, and once that takes a moment: what is waited for, and how far that is by what it
    usually takes (seconds). Ctrl-C ends the wait.
    """

    def __init__(self, what: str, usual: float | None = None) -> None:
        self._what, self._usual = what, usual
        self._line = StatusLine()
        self._drawing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if self._line.live:
            self._drawing = asyncio.create_task(self._draw())
        return self

    async def __aexit__(self, *failure: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take it away: something else is to stand there."""
        if self._drawing is not None:
            self._drawing.cancel()
        self._line.end()

    async def _draw(self) -> None:
        began = time.monotonic()
        await asyncio.sleep(SOON)
        while True:
            self._line.show(waited(self._what, time.monotonic() - began, self._usual))
            await asyncio.sleep(OFTEN)


def waited(what: str, passed: float, usual: float | None = None, part: float | None = None) -> str:
    """`reading every layer ▓▓▓▓▓░░░░░░░░░░░░░░░  25%  eta 0:06`; `part`: how much is done, if known."""
    if part:
        usual = passed / part
    if not usual:
        return f"{what} … {clock(passed)}"
    left = usual - passed
    return (
        f"{what} {filled(min(MOST, passed / usual))}  {f'eta {clock(left)}' if left > 0 else clock(passed)}"
    )


class Part:
    """How far a piece of work is that tells it by itself, once it takes a moment."""

    def __init__(self, what: str) -> None:
        self._what, self._line = what, StatusLine()
        self._began = self._shown = time.monotonic()

    def __call__(self, part: float | None) -> None:
        now = time.monotonic()
        if now - self._began >= SOON and now - self._shown >= OFTEN:
            self._shown = now
            self._line.show(waited(self._what, now - self._began, part=part))

    def end(self) -> None:
        self._line.end()
