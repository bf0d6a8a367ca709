"""`ddtui demo` in a real terminal, from the first screen to a clean end, at the smallest and at a large size."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pty_terminal import Terminal
from quick_demo import QUICK

DDTUI = str(Path(sys.executable).with_name("ddtui"))

pytestmark = pytest.mark.terminal

SIZES = [pytest.param(80, 24, id="80x24"), pytest.param(200, 60, id="200x60")]


def open_console(columns: int, rows: int) -> Terminal:
    return Terminal([DDTUI, "demo"], columns, rows, QUICK)


def has(*texts: str) -> object:
    """A predicate: the screen holds all of these."""

    def all_there(screen: str) -> bool:
        return all(text in screen for text in texts)

    all_there.__qualname__ = f"{texts!r}"
    return all_there


def left_clean(terminal: Terminal) -> None:
    """The alternate screen, mouse and bracketed paste are off, the cursor is shown, the settings are as before."""
    assert terminal.settings() == terminal.settings_before
    for mode in ("1049", "1000", "1003", "1006", "2004"):
        switched = re.findall(rb"\x1b\[\?%s([hl])" % mode.encode(), terminal.raw)
        assert not switched or switched[-1] == b"l", mode
    assert re.findall(rb"\x1b\[\?25([hl])", terminal.raw)[-1] == b"h"


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_from_the_first_finding_to_a_measured_step_and_back(columns: int, rows: int) -> None:
    with open_console(columns, rows) as console:
        # the first thing a new user sees is a real finding, labelled as simulated
        console.wait_for(has("SIMULATED", "not in force", "budget", "window", "2048"), 60)
        # turn the window
        console.press("w")
        console.wait_for("--speculative-dflash-draft-window-size")
        console.wait_for("presets")
        console.press("2048", "enter")
        console.wait_for("[ 2048 ]")
        # review: the exact file, then apply
        console.press("enter")
        console.wait_for(has("Review", "zzz-ddtui.conf", "Apply and restart"))
        console.press("y")
        console.wait_for("apply: window 2048")
        # ready, verified, and the verdict has turned
        console.wait_for(has("verified after", "draft window: the engine's flag 2048: in force"), 90)
        assert re.search(r"window +2048 +2048 +2048", console.text)
        # a burst, and its chart
        console.press("x")
        console.wait_for(has("concurrency", "context", "output"))
        console.press("enter")
        console.wait_for("burst 1")  # under way, with its percentage, in the status line
        for _ in range(6):  # on a small terminal the panes are tabs
            if "tok/s by concurrency" in console.text:
                break
            console.press("]")
            console.settle()
        console.wait_for(has("tok/s by concurrency", "●", "└"), 90)
        # back to where it was, then out
        console.press("X")
        console.press("u")
        console.wait_for(has("Roll back", "Apply and restart"))
        console.press("y")
        console.wait_for(has("roll back", "verified after", "step 1"), 90)
        console.press("q")
        assert console.wait_end() == 0
        left_clean(console)


@pytest.fixture
def shown() -> Iterator[Terminal]:
    with open_console(100, 30) as console:
        console.wait_for("not in force", 60)
        yield console


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_console_and_leaves_the_terminal_clean(
    shown: Terminal, number: signal.Signals
) -> None:
    shown.process.send_signal(number)
    assert shown.wait_end() == 128 + number
    left_clean(shown)


def test_every_screen_can_be_reached_and_left(shown: Terminal) -> None:
    shown.press("2")
    shown.wait_for(has("Journal of", "Decode batch"))
    shown.press("3")
    shown.wait_for("─ Bursts ─")
    shown.press("1")
    shown.wait_for("─ Drafter ─")
    shown.press("?")
    shown.wait_for("─ Keys: tune ─")
    shown.press("escape")
    shown.wait_for(lambda screen: "─ Keys: tune ─" not in screen)


def test_any_size_is_survived_and_the_screen_comes_back(shown: Terminal) -> None:
    for columns, rows in ((200, 60), (30, 8), (10, 3), (80, 24), (300, 100), (100, 30)):
        shown.resize(columns, rows)
        shown.pump(0.3)
    shown.wait_for("not in force")
    assert shown.process.poll() is None
