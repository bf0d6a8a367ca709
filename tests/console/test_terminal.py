"""The console in a real terminal: it gives the terminal back as it was, however it ends, and fits any size."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pty_terminal import Terminal

PROGRAM = [sys.executable, str(Path(__file__).with_name("program.py"))]

pytestmark = pytest.mark.terminal


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with Terminal(PROGRAM, 120, 36, {"TERM": "xterm-256color"}) as running:
        running.wait_for("review & apply")
        yield running


def given_back(terminal: Terminal) -> None:
    """The alternate screen is left, the cursor shown, the mouse let go, the line settings as before."""
    tail = terminal.raw[-4000:]
    assert b"\x1b[?1049l" in tail
    assert tail.rfind(b"\x1b[?25h") > tail.rfind(b"\x1b[?25l")
    assert b"\x1b[?1000l" in tail and b"\x1b[?1003l" in tail
    assert terminal.settings() == terminal.settings_before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_and_the_terminal_is_as_before(terminal: Terminal, number: signal.Signals) -> None:
    os.kill(terminal.process.pid, number)
    code = terminal.wait_end()
    if number is not signal.SIGINT:
        assert code == 128 + number
    given_back(terminal)


def test_a_terminal_that_goes_away_takes_it_with_it(terminal: Terminal) -> None:
    os.close(terminal.slave)
    os.close(terminal.master)
    terminal.slave, terminal.master = (os.open(os.devnull, os.O_RDWR) for _ in range(2))
    terminal.process.wait(timeout=30)


def test_quitting_ends_it_with_nothing_left_behind(terminal: Terminal) -> None:
    terminal.press("q")
    assert terminal.wait_end() == 0
    given_back(terminal)


def test_it_survives_any_size(terminal: Terminal) -> None:
    for columns, rows in ((200, 60), (80, 24), (40, 10), (10, 3), (1, 1), (300, 100), (80, 24)):
        terminal.resize(columns, rows)
        terminal.pump(0.05)
    terminal.wait_for("[Service]")
    terminal.wait_for("budget")


def test_copying_a_line_reaches_the_clipboard_of_the_terminal(terminal: Terminal) -> None:
    terminal.press("2")
    terminal.wait_for("Journal of")
    terminal.settle()
    terminal.press("y")
    terminal.wait_for("line copied")
    assert b"\x1b]52;c;" in terminal.raw
