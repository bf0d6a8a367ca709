"""Every screen and dialog in a real terminal: its keys open it, escape leads back, any size does it no harm."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from console.test_terminal import given_back
from pty_terminal import Terminal

PROGRAM = [sys.executable, str(Path(__file__).with_name("program.py"))]
SIZE = (120, 36)

pytestmark = pytest.mark.terminal

# From each screen, by its key and words of it: what opens on it, by which keys, and words of that
WALK: dict[tuple[str, str], list[tuple[list[str], str]]] = {
    ("1", "─ Service ─"): [
        (["H"], "─ Hosts ─"),
        (["L"], "─ Layers ─"),
        (["C"], "─ Commands on the host"),
        (["?"], "─ Keys: tune ─"),
        (["ctrl+p"], "Search for commands"),
        (["T"], "Search for themes"),
        (["b"], "presets  "),
        (["f"], "─ Any flag ─"),
        (["r"], "─ Restart ─"),
        (["u"], "─ Roll back ─"),
        (["x"], "─ Burst on step 7 ─"),
        (["O"], "─ Check the output? ─"),
        (["O", "y"], "─ Output check ─"),
        (["+", "enter"], "─ Review"),
        (["A"], "─ Quick A/B"),
        (["]", "]", "o"], "─ Journal of this start of "),
    ],
    ("2", "─ Journal of "): [
        (["/"], "text  /regex/"),
        (["@"], "go to 12:01"),
        (["P"], "│ pin "),
        (["M"], "│ mark "),
        (["S"], "│ save as "),
        (["?"], "─ Keys: journal ─"),
    ],
    ("3", "─ Burst b7 ─"): [(["?"], "─ Keys: bursts ─"), (["x"], "─ Burst on step 7 ─")],
    ("4", "─ Answer ─"): [(["?"], "─ Keys: compare ─")],
    ("5", "─ Sweep: what to try ─"): [(["K"], "─ Calibrate"), (["?"], "─ Keys: sweep ─")],
    ("6", "─ What to try next"): [
        (["n"], "─ Note"),
        (["d"], "─ Delete"),
        (["e"], "─ Export"),
        (["i"], "─ Import"),
        (["?"], "─ Keys: history ─"),
    ],
}


def test_every_screen_opens_by_its_keys_and_escape_leads_back() -> None:
    with Terminal([*PROGRAM, "pick"], *SIZE) as terminal:
        terminal.wait_for("n makes a profile")
        terminal.press("n")
        terminal.wait_for("─ A profile for your host ─")
        leave(terminal, "─ A profile for your host ─")
        terminal.press("enter")
        terminal.wait_for("─ Unknown host key ─")
        terminal.press("y")
        terminal.wait_for("─ Password for sudo ─")
        terminal.press("secret", "enter")
        terminal.wait_for("review & apply")
        for (home, shows), opened in WALK.items():
            terminal.press(home)
            terminal.wait_for(shows)
            for keys, words in opened:
                open_by(terminal, keys, words)
                leave(terminal, words)
                terminal.wait_for(shows)
            if home != "1":
                terminal.press("escape")
                terminal.wait_for("─ Service ─")
        terminal.press("q")
        assert terminal.wait_end() == 0
        given_back(terminal)


def open_by(terminal: Terminal, keys: list[str], words: str) -> None:
    *first, last = keys
    for key in first:
        terminal.press(key)
        terminal.settle(0.2)
    terminal.press(last)
    terminal.wait_for(words, 10)


def leave(terminal: Terminal, words: str) -> None:
    terminal.press("escape")
    terminal.wait_for(gone(words), 10)


def gone(words: str) -> Callable[[str], bool]:
    def is_gone(screen: str) -> bool:
        return words not in screen

    is_gone.__qualname__ = f"a screen without {words!r}"
    return is_gone


STORM = ((80, 24), (300, 100), (40, 10), (60, 15), (100, 30), (1, 1), (160, 50), (79, 23), (200, 60))
OPEN = [
    *(([], home) for home in WALK),
    *(
        ([key], ("1", words))
        for (key, *_), words in WALK["1", "─ Service ─"]
        if key in ("H", "?", "ctrl+p", "b", "x")
    ),
]


def test_after_a_storm_of_sizes_every_screen_is_drawn_as_before() -> None:
    with Terminal(PROGRAM, *SIZE) as terminal:
        terminal.wait_for("review & apply")
        for keys, (home, shows) in OPEN:
            terminal.press(home)
            if keys:
                terminal.settle(0.2)
                terminal.press(*keys)
            terminal.wait_for(shows)
            terminal.settle(0.3)
            before = terminal.text
            for size in STORM:
                terminal.resize(*size)
                terminal.pump(0.01)
            terminal.resize(*SIZE)
            terminal.wait_for(the_same_as(before), 10)
            terminal.resize(40, 10)
            terminal.wait_for(one_sentence, 10)
            terminal.resize(*SIZE)
            terminal.wait_for(the_same_as(before), 10)
            if keys:
                leave(terminal, shows)
        terminal.press("q")
        assert terminal.wait_end() == 0


def the_same_as(before: str) -> Callable[[str], bool]:
    def is_same(screen: str) -> bool:
        return screen == before

    is_same.__qualname__ = f"this screen:\n{before}\n"
    return is_same


def one_sentence(screen: str) -> bool:
    return " ".join(screen.split()) == "This terminal is 40x10; ddtui needs 60x15 or more."
