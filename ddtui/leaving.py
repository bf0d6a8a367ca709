"""Leaving when told to from outside: by a signal, or because the terminal is gone."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO


def on_signals(loop: asyncio.AbstractEventLoop, leave: Callable[[int], None]) -> None:
    """Call `leave` with the exit status on SIGTERM and SIGHUP: Textual restores the terminal on neither."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None:
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, leave, 128 + number)


class Forgiving:
    """A terminal's stream that may go away: what is written to it then goes nowhere.

    Textual's writer thread ends at the first write that fails, and whoever waits for it then waits for ever.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
