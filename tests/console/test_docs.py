"""docs/: a page for each screen. Its keys are the action table's and its picture is the look that the tests keep.

`make screenshots` writes both anew.
"""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path
from typing import Any

import pytest
from console.test_every_look import LOOKS
from textual.screen import Screen

from ddtui.actions.action import Action, Where
from ddtui.actions.table import ACTIONS
from ddtui.screens.ab import ABDialog
from ddtui.screens.base import written_key
from ddtui.screens.burst import BurstDialog
from ddtui.screens.commands import CommandLog
from ddtui.screens.first_run import FirstRun
from ddtui.screens.flag import FlagDialog
from ddtui.screens.hosts import HostsDialog
from ddtui.screens.knob import KnobDialog
from ddtui.screens.layers import LayersDialog
from ddtui.screens.output import OutputCheck
from ddtui.screens.review import Review

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
KEPT = Path(__file__).parent / "__snapshots__" / "test_snapshots"

DECISIONS = KEPT.with_name("test_decision_snapshots")
Keys = tuple[Where, ...] | type[Screen[Any]]

# each page: the places whose keys answer there, or the dialog; and the picture that the tests keep of it
PAGES: dict[str, tuple[Keys, Path]] = {
    "tune": (
        (Where.TUNE, Where.KNOBS, Where.CHECKS, Where.CHART, Where.PANES),
        LOOKS / "tune-dark-160x45.svgz",
    ),
    "logs": ((Where.JOURNAL,), LOOKS / "logs-dark-120x36.svgz"),
    "bursts": ((Where.BURSTS,), LOOKS / "bursts-dark-120x36.svgz"),
    "compare": ((Where.COMPARE, Where.STEPS), LOOKS / "compare-dark-120x36.svgz"),
    "sweep": ((Where.SWEEP,), LOOKS / "sweep-dark-120x36.svgz"),
    "history": ((Where.HISTORY, Where.STEPS), LOOKS / "history-dark-120x36.svgz"),
    "connect": ((Where.CONNECT,), KEPT / "test_an_unknown_host_key.svg"),
    "first-run": (FirstRun, LOOKS / "first-run-dark-120x36.svgz"),
    "knob": (KnobDialog, LOOKS / "knob-dark-120x36.svgz"),
    "flag": (FlagDialog, LOOKS / "flag-dark-120x36.svgz"),
    "review": (Review, KEPT / "test_review[160x45].svg"),
    "burst": (BurstDialog, LOOKS / "burst-dark-120x36.svgz"),
    "ab": (ABDialog, DECISIONS / "test_quick_ab.svg"),
    "layers": (LayersDialog, LOOKS / "layers-dark-120x36.svgz"),
    "hosts": (HostsDialog, LOOKS / "hosts-dark-120x36.svgz"),
    "output": (OutputCheck, LOOKS / "output-dark-120x36.svgz"),
    "command-log": (CommandLog, LOOKS / "commands-dark-120x36.svgz"),
    "help": ((Where.EVERYWHERE,), LOOKS / "help-dark-120x36.svgz"),
}
KEYS = re.compile(r"(<!-- keys -->\n).*?(<!-- end of keys -->)", re.S)


def table(places: Keys) -> str:
    """The keys of these places, as Markdown."""
    if not isinstance(places, tuple):
        return dialog_table(places)
    rows = [action for place in places for action in ACTIONS if action.where is place]
    if not rows:
        return "Only the keys that answer everywhere ([help](help.md)).\n"
    lines = ["| key | does | about |", "| --- | --- | --- |"]
    return "\n".join([*lines, *(line(action) for action in rows)]) + "\n"


def dialog_table(dialog: type[Screen[Any]]) -> str:
    """The keys of a dialog, which has all of them to itself."""
    keys: dict[str, list[str]] = {}
    for key, bindings in dialog._merged_bindings.key_to_bindings.items():
        for binding in bindings:
            if binding.show and binding.description:
                keys.setdefault(binding.description, []).append(f"`{written_key(key)}`")
    lines = ["| key | does |", "| --- | --- |"]
    return (
        "\n".join([*lines, *(f"| {' '.join(written)} | {does} |" for does, written in keys.items())]) + "\n"
    )


def line(action: Action) -> str:
    keys = " ".join(f"`{written_key(key)}`" for key in action.key_names)
    return f"| {keys or 'palette'} | {action.label} | {action.about} |".replace("`|`", "`\\|`")


def picture(kept: Path) -> str:
    return gzip.decompress(kept.read_bytes()).decode() if kept.suffix == ".svgz" else kept.read_text("utf-8")


def made(text: str, places: Keys) -> str:
    return KEYS.sub(lambda found: found[1] + table(places) + found[2], text)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_the_keys_and_the_picture_of_today(page: str) -> None:
    places, kept = PAGES[page]
    file, svg = DOCS / f"{page}.md", DOCS / f"screen-{page}.svg"
    if os.environ.get("DDTUI_SCREENSHOTS"):
        file.write_text(made(file.read_text("utf-8"), places), encoding="utf-8")
        svg.write_text(picture(kept), encoding="utf-8")
    text = file.read_text("utf-8")
    assert KEYS.search(text) and f"(screen-{page}.svg)" in text
    assert text == made(text, places), "the keys have changed: make screenshots"
    assert svg.read_text("utf-8") == picture(kept), "the screen looks different now: make screenshots"


def test_every_action_stands_on_a_page() -> None:
    shown = {place for places, _ in PAGES.values() if isinstance(places, tuple) for place in places}
    assert {action.where for action in ACTIONS} - shown == set()


def test_every_page_is_linked_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    pages = {file.stem for file in DOCS.glob("*.md")}
    assert set(PAGES) <= pages
    assert [page for page in sorted(pages) if f"(docs/{page}.md)" not in readme] == []
