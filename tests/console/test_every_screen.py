"""Every screen and dialog in a real terminal: its keys open it, escape leads back, any size does it no harm."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from console.test_terminal import given_back
from pty_terminal import Terminal
from textual.command import CommandPalette
from textual.screen import Screen

from ddtui import screens
from ddtui.screens.ab import ABDialog, CalibrateDialog
from ddtui.screens.ask_text import AskText, ExportDialog
from ddtui.screens.burst import BurstDialog
from ddtui.screens.bursts import BurstsScreen
from ddtui.screens.commands import CommandLog
from ddtui.screens.compare import CompareScreen
from ddtui.screens.connect import ConnectScreen
from ddtui.screens.dialogs import Confirm, Problem, Secret, Trust
from ddtui.screens.first_run import FirstRun
from ddtui.screens.flag import FlagDialog
from ddtui.screens.help import Help
from ddtui.screens.history import HistoryScreen
from ddtui.screens.hosts import HostsDialog
from ddtui.screens.knob import KnobDialog
from ddtui.screens.layers import LayersDialog
from ddtui.screens.logs import LogsScreen
from ddtui.screens.output import OutputCheck
from ddtui.screens.pick import PickScreen
from ddtui.screens.review import Review
from ddtui.screens.sweep import SweepScreen
from ddtui.screens.text import TextDialog
from ddtui.screens.too_small import TooSmall
from ddtui.screens.tune import TuneScreen
from ddtui.screens.waiting import Waiting

PROGRAM = [sys.executable, str(Path(__file__).with_name("program.py"))]
SIZE = (120, 36)
SMALL = "This terminal is 40x10"

pytestmark = pytest.mark.terminal

# What is open: its class, and words of it that are nowhere else. How it is opened: by these keys
Shown = tuple[type[Screen[Any]], str]
Opened = tuple[list[str], type[Screen[Any]], str]

BEFORE: list[Opened] = [
    ([], PickScreen, "n makes a profile"),
    (["n"], FirstRun, "─ A profile for your host ─"),
    (["escape"], PickScreen, "n makes a profile"),
    (["enter"], Trust, "─ Unknown host key ─"),
    (["y"], Secret, "─ Password for sudo ─"),
    (["secret", "enter"], TuneScreen, "review & apply"),
]

# From each screen, by its key: what opens on it, and closes by escape
WALK: dict[tuple[str, Shown], list[Opened]] = {
    ("1", (TuneScreen, "─ Service ─")): [
        (["H"], HostsDialog, "─ Hosts ─"),
        (["L"], LayersDialog, "─ Layers ─"),
        (["C"], CommandLog, "─ Commands on the host"),
        (["?"], Help, "─ Keys: tune ─"),
        (["ctrl+p"], CommandPalette, "Search for commands"),
        (["T"], CommandPalette, "Search for themes"),
        (["b"], KnobDialog, "presets  "),
        (["f"], FlagDialog, "─ Any flag ─"),
        (["r"], Confirm, "─ Restart ─"),
        (["u"], Review, "─ Roll back ─"),
        (["x"], BurstDialog, "─ Burst on step 7 ─"),
        (["O"], Confirm, "─ Check the output? ─"),
        (["O", "y"], OutputCheck, "─ Output check ─"),
        (["+", "enter"], Review, "─ Review"),
        (["A"], ABDialog, "─ Quick A/B"),
        (["]", "]", "o"], TextDialog, "─ Journal of this start of "),
    ],
    ("2", (LogsScreen, "─ Journal of ")): [
        (["/"], LogsScreen, "text  /regex/"),
        (["@"], LogsScreen, "go to 12:01"),
        (["P"], LogsScreen, "│ pin "),
        (["M"], LogsScreen, "│ mark "),
        (["S"], LogsScreen, "│ save as "),
        (["?"], Help, "─ Keys: journal ─"),
    ],
    ("3", (BurstsScreen, "─ Burst b7 ─")): [
        (["?"], Help, "─ Keys: bursts ─"),
        (["x"], BurstDialog, "─ Burst on step 7 ─"),
    ],
    ("4", (CompareScreen, "─ Answer ─")): [(["?"], Help, "─ Keys: compare ─")],
    ("5", (SweepScreen, "─ Sweep: what to try ─")): [
        (["K"], CalibrateDialog, "─ Calibrate"),
        (["i"], AskText, "─ Open a plan ─"),
        (["?"], Help, "─ Keys: sweep ─"),
    ],
    ("6", (HistoryScreen, "─ What to try next")): [
        (["n"], AskText, "─ Note"),
        (["d"], Confirm, "─ Delete ─"),
        (["e"], ExportDialog, "─ Export"),
        (["i"], AskText, "─ Import"),
        (["?"], Help, "─ Keys: history ─"),
    ],
}

# On a host where all goes wrong that asks something, one after the other
TROUBLE: list[Opened] = [
    ([], ConnectScreen, "connection refused"),
    (["r"], Confirm, "─ A change was cut ─"),
    (["n"], Confirm, "Undo it then"),
    (["n"], TuneScreen, "─ Service ─"),
    (["ctrl+r"], Waiting, "─ Reading every layer ─"),
    (["escape"], TuneScreen, "─ Service ─"),
    (["r"], Confirm, "─ A lock was left behind ─"),
    (["y"], Confirm, "─ Restart ─"),
    (["ct200", "enter"], Confirm, "─ The server does not stop ─"),
    (["n"], TuneScreen, "capturing CUDA graphs"),
    (["q"], Confirm, "─ A change is running ─"),
    (["escape"], TuneScreen, "capturing CUDA graphs"),
    (["X"], Confirm, "─ Stop the change? ─"),
    (["y"], TuneScreen, "stopped here"),
    (["+", "enter"], Confirm, "─ A lock was left behind ─"),
    (["y"], Problem, "the unit cannot be read"),
    (["escape"], TuneScreen, "─ Service ─"),
    (["A"], ABDialog, "2 trials of 6 cells"),
    (["ctrl+s"], Confirm, "─ A/B ─"),
    (["escape"], TuneScreen, "─ Service ─"),
    (["x"], BurstDialog, "─ Burst on step 7 ─"),
    (["enter"], Confirm, "─ Run it? ─"),
    (["ct200", "enter"], TuneScreen, "▶ burst 30%"),
    (["q"], Confirm, "─ A burst is running ─"),
    (["escape"], TuneScreen, "▶ burst 30%"),
    (["X"], TuneScreen, "burst cancelled"),
    (["5"], SweepScreen, "─ Sweep: what to try ─"),
    (["K"], CalibrateDialog, "trials of 6 cells"),
    (["ctrl+s"], Confirm, "─ calibration ─"),
    (["escape"], SweepScreen, "─ Sweep: what to try ─"),
    ([" ", "e"], AskText, "─ Save the plan ─"),
    (["enter"], SweepScreen, "saved"),
    (["e"], AskText, "─ Save the plan ─"),
    (["enter"], Confirm, "Write over it"),
    (["escape"], SweepScreen, "─ What it takes ─"),
    (["ctrl+g"], Confirm, "─ Go on ─"),
    (["escape"], SweepScreen, "─ What it takes ─"),
    (["ctrl+s"], Confirm, "─ Run the sweep? ─"),
    (["ct200", "enter"], SweepScreen, "3/6 trials"),
    (["X"], Confirm, "─ Stop it? ─"),
    (["n"], SweepScreen, "3/6 trials"),
    (["q"], Confirm, "─ A sweep is running ─"),
]

WALKED: list[Shown] = [
    (TooSmall, SMALL),
    *(home for _, home in WALK),
    *(
        (kind, words)
        for _, kind, words in (*BEFORE, *TROUBLE, *(one for ways in WALK.values() for one in ways))
    ),
]


def test_the_walk_leaves_out_no_screen_and_no_question() -> None:
    assert walkable(Screen) - {kind for kind, _ in WALKED} == set()
    titles = {words.strip("─ ") for kind, words in WALKED if kind is Confirm}
    assert set(questions()) - titles == {"Save the plan"}  # whose words are those of the field before it


def walkable(kind: type[Screen[Any]]) -> set[type[Screen[Any]]]:
    """The screens of the console that are made, not only built upon; all modules are imported."""
    for module in pkgutil.iter_modules(screens.__path__, "ddtui.screens."):
        importlib.import_module(module.name)
    below = {found for one in kind.__subclasses__() for found in walkable(one)}
    return below or ({kind} if kind.__module__.startswith("ddtui.") else set())


def questions() -> Iterator[str]:
    """The title of every question that is written in the console."""
    for path in Path(screens.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Confirm", "self._really"):
                title = node.args[0]
                if isinstance(title, ast.Constant):
                    yield title.value


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    return tmp_path / "seen"


def test_every_screen_opens_by_its_keys_and_escape_leads_back(seen: Path) -> None:
    with Terminal([*PROGRAM, "pick"], *SIZE, {"SCREENS_SEEN": str(seen)}) as terminal:
        for opened in BEFORE:
            open_by(terminal, seen, *opened)
        for (key, home), ways in WALK.items():
            open_by(terminal, seen, [key], *home)
            for opened in ways:
                open_by(terminal, seen, *opened)
                leave(terminal, opened[2])
                terminal.wait_for(home[1])
            if key != "1":
                open_by(terminal, seen, ["escape"], TuneScreen, "─ Service ─")
        terminal.press("q")
        assert terminal.wait_end() == 0
        given_back(terminal)


def test_what_is_asked_when_things_go_wrong_can_be_answered(seen: Path) -> None:
    with Terminal([*PROGRAM, "trouble"], *SIZE, {"SCREENS_SEEN": str(seen)}) as terminal:
        for opened in TROUBLE:
            open_by(terminal, seen, *opened)
        terminal.press("y")
        assert terminal.wait_end() == 0
        given_back(terminal)


def open_by(terminal: Terminal, seen: Path, keys: list[str], kind: type[Screen[Any]], words: str) -> None:
    for key in keys[:-1]:
        terminal.press(key)
        terminal.settle(0.2)
    terminal.press(*keys[-1:])
    terminal.wait_for(on_top(seen, kind, words))


def on_top(seen: Path, kind: type[Screen[Any]], words: str) -> Callable[[str], bool]:
    def is_on_top(screen: str) -> bool:
        return words in screen and seen.exists() and seen.read_text().endswith(f"{kind.__name__}\n")

    is_on_top.__qualname__ = f"{kind.__name__} with {words!r}"
    return is_on_top


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
    *(([], (key, words)) for key, (_, words) in WALK),
    *(
        ([key], ("1", words))
        for (key, *_), _, words in WALK["1", (TuneScreen, "─ Service ─")]
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
    return " ".join(screen.split()) == f"{SMALL}; ddtui needs 60x15 or more."
