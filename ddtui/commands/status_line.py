"""Progress on stderr: on a terminal one line that is drawn over, and a bar to stand in it."""

from __future__ import annotations

import sys

WIDTH = 20


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
