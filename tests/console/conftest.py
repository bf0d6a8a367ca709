"""What all of the console's tests stand on: a fixed clock's zone and no blinking cursor."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from textual import _wait, screen
from textual.widgets import Input

# Textual paints 60 times a second, and its pilot waits after every key and pause until the process was idle for
# longer than that. Here both go four times as fast.
screen.UPDATE_PERIOD /= 4  # type: ignore[misc]
_wait.SLEEP_GRANULARITY /= 4
_wait.SLEEP_IDLE /= 4


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What would differ from run to run: the cursor's blink and the time zone."""
    monkeypatch.setattr(Input, "_toggle_cursor", lambda self: None)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
