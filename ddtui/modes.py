"""The screens of one host: each is a mode of the app, and keeps its state while another one is shown."""

from __future__ import annotations

import asyncio
import gc
import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

from textual.screen import Screen

from ddtui.desk import Desk

DECISIONS = {"compare": "CompareScreen", "sweep": "SweepScreen", "history": "HistoryScreen"}


def mode(name: str, profile: str) -> str:
    """Textual's name of a screen of one host."""
    return f"{name}@{profile}"


def screens(desk: Desk) -> dict[str, Callable[[], Screen[Any]]]:
    """What makes each screen of this host, by mode."""
    from ddtui.screens.bursts import BurstsScreen
    from ddtui.screens.connect import ConnectScreen
    from ddtui.screens.logs import LogsScreen
    from ddtui.screens.tune import TuneScreen

    made: dict[str, Callable[[], Screen[Any]]] = {
        "connect": lambda: ConnectScreen(desk),
        "tune": lambda: TuneScreen(desk),
        "logs": lambda: LogsScreen(desk),
        "bursts": lambda: BurstsScreen(desk),
    }
    made |= {name: partial(_decision_screen, name, desk) for name in DECISIONS}
    return {mode(name, desk.view.profile.name): make for name, make in made.items()}


def _decision_screen(name: str, desk: Desk) -> Screen[Any]:
    """The screens that look back and ahead: loaded when they are first opened."""
    made: Screen[Any] = getattr(importlib.import_module(f"ddtui.screens.{name}"), DECISIONS[name])(desk)
    return made


async def load_decision_screens() -> None:
    """So that their keys are answered at once: their modules, in a thread."""
    for name in (*(f"ddtui.screens.{screen}" for screen in DECISIONS), "numpy"):
        await asyncio.to_thread(importlib.import_module, name)


def settle_memory() -> None:
    """What has been loaded stays: do not walk it again and again, which stalls the loop 50 to 90 ms."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 250)  # the young ones often, while they are few; all of them seldom
