"""docs/: a page for each screen. Its keys are the action table's and its picture is the look that the tests keep.

`make screenshots` writes both anew.
"""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import pytest
from console.test_every_look import LOOKS

from ddtui.actions import ACTIONS, Action, Where
from ddtui.screens.base import written_key

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
KEPT = Path(__file__).parent / "__snapshots__" / "test_snapshots"

# each page: the places whose keys answer there, and the picture that the tests keep of it
PAGES: dict[str, tuple[tuple[Where, ...], Path]] = {
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
    "command-log": ((), LOOKS / "commands-dark-120x36.svgz"),
    "help": ((Where.EVERYWHERE,), LOOKS / "help-dark-120x36.svgz"),
}
KEYS = re.compile(r"(<!-- keys -->\n).*?(<!-- end of keys -->)", re.S)


def table(places: tuple[Where, ...]) -> str:
    """The keys of these places, as Markdown."""
    rows = [action for place in places for action in ACTIONS if action.where is place]
    if not rows:
        return "Only the keys that answer everywhere ([help](help.md)).\n"
    lines = ["| key | does | about |", "| --- | --- | --- |"]
    return "\n".join([*lines, *(line(action) for action in rows)]) + "\n"


def line(action: Action) -> str:
    keys = " ".join(f"`{written_key(key)}`" for key in action.key_names)
    return f"| {keys or 'palette'} | {action.label} | {action.about} |".replace("`|`", "`\\|`")


def picture(kept: Path) -> str:
    return gzip.decompress(kept.read_bytes()).decode() if kept.suffix == ".svgz" else kept.read_text("utf-8")


def made(text: str, places: tuple[Where, ...]) -> str:
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
    shown = {place for places, _ in PAGES.values() for place in places}
    assert {action.where for action in ACTIONS} - shown == set()


def test_every_page_is_linked_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [page for page in PAGES if f"(docs/{page}.md)" not in readme] == []
    assert {file.stem for file in DOCS.glob("*.md")} == set(PAGES)
