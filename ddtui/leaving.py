"""Leaving when told to from outside: by a signal, or because the terminal is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress


def on_signals(loop: asyncio.AbstractEventLoop, leave: Callable[[int], None]) -> None:
    """Call `leave` with the exit status on SIGTERM and SIGHUP: Textual restores the terminal on neither."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None:
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, _told, 128 + number, leave)


def _told(status: int, leave: Callable[[int], None]) -> None:
    if not _terminal_is_there():
        # Textual's writer thread ends at the first failed write, and whoever waits for it then waits for ever
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None:
                os.dup2(nowhere, stream.fileno())
    leave(status)


def _terminal_is_there() -> bool:
    try:
        os.get_terminal_size(sys.__stderr__.fileno() if sys.__stderr__ is not None else 2)
    except (OSError, ValueError):
        return False
    return True
