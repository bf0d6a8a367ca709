"""The newest `Decode batch` line as numbers, with what went before as a small curve."""

from __future__ import annotations

import math
from collections.abc import Sequence

from textual.content import Content
from textual.widget import Widget

from ddtui.view import Decode
from ddtui.widgets.journal_store import JournalStore
from ddtui.widgets.sparkline import sparkline
from ddtui.words import number


class DecodeStrip(Widget):
    """One line over the journal; hidden until the server has decoded something."""

    DEFAULT_CSS = """
    DecodeStrip { height: 1; display: none; }
    DecodeStrip.-live { display: block; }
    """

    def __init__(self, store: JournalStore) -> None:
        super().__init__()
        self._store = store

    def sync(self) -> None:
        """Take in what is new."""
        self.set_class(bool(self._store.decodes), "-live")
        self.refresh()

    def render(self) -> Content:
        return strip(self._store.decodes, self.size.width)


def strip(decodes: Sequence[Decode], width: int) -> Content:
    """The strip in `width` cells; curves where there is room."""
    if not decodes:
        return Content("")
    newest = decodes[-1]
    parts = [
        ("tok/s", newest.rate, [d.rate for d in decodes]),
        ("accept", newest.accept_length, [d.accept_length for d in decodes]),
    ]
    words = [Content.assemble((f"{label} ", "$muted"), (_number(value), "bold")) for label, value, _ in parts]
    counts = Content.assemble(
        ("run ", "$muted"), _count(newest.running), ("  queue ", "$muted"), _count(newest.queued)
    )
    used = sum(word.cell_length for word in words) + counts.cell_length + 3 * len(words)
    curve = min(24, (width - used) // len(parts) - 1)
    shown: list[Content] = []
    for word, (_, _, values) in zip(words, parts, strict=True):
        if curve >= 4:
            line = sparkline([math.nan if value is None else value for value in values], curve)[0]
            word = Content.assemble(word, " ", (line, "$series-b"))
        shown.append(word)
    return Content("   ").join([*shown, counts]).truncate(width, ellipsis=True)


def _number(value: float | None) -> str:
    return "–" if value is None else number(value)


def _count(value: int | None) -> str:
    return "–" if value is None else str(value)
