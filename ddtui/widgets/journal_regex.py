"""A regular expression that cannot hang the console: where a line takes it too long, it gives up for good."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")
REACH = 2000  # characters of a line that are looked at
PATIENCE = 0.05  # seconds for one line


class _TooLong(Exception):
    pass


def _ring(number: int, frame: object) -> None:
    raise _TooLong


@dataclass(slots=True)
class Regex:
    """Making one raises re.error, RecursionError and OverflowError. Two of the same pattern are equal."""

    pattern: str
    folded: bool  # case does not matter
    gave_up: bool = field(default=False, compare=False)  # since then nothing is found
    _compiled: re.Pattern[str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._compiled = re.compile(self.pattern, re.IGNORECASE if self.folded else 0)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGALRM, _ring)

    def found(self, text: str) -> bool:
        """Whether it is somewhere in the text."""
        return self._in_time(lambda: self._compiled.search(text[:REACH]) is not None, False)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Every place where it is found, as (start, end); none of them is empty."""
        return self._in_time(
            lambda: [place.span() for place in self._compiled.finditer(text[:REACH]) if place[0]], []
        )

    def _in_time(self, look: Callable[[], T], nothing: T) -> T:
        """`re` looks at signals while it searches: an alarm ends it. In another thread it takes its time."""
        if self.gave_up:
            return nothing
        if threading.current_thread() is not threading.main_thread():
            return look()
        try:
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)
            try:
                return look()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except _TooLong:
            self.gave_up = True
            return nothing
