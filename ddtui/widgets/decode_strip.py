"""The newest `Decode batch` line as numbers, with what went before as a small curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from textual.content import Content
from textual.widget import Widget

from ddtui.view import Decode
from ddtui.widgets.journal_store import JournalStore
from ddtui.widgets.sparkline import sparkline
from ddtui.words import number, time_of_day

SHORTEST, LONGEST = 4, 24  # cells of a curve


class DecodeStrip(Widget):
    """One line over the journal; hidden until the server has decoded something."""

    DEFAULT_CSS = """
    DecodeStrip { height: 1; display: none; }
    DecodeStrip.-live { display: block; }
    """

    def __init__(self, store: JournalStore, now: Callable[[], float]) -> None:
        super().__init__()
        self._store, self._now = store, now
        self._shown: object = None

    def on_mount(self) -> None:
        self.set_interval(2.0, self.sync)  # what was so is so no longer

    def sync(self) -> None:
        """Take in what is new."""
        if self._store.decodes and self.screen in self.app.screen_stack and self._shown != self._wanted():
            self.add_class("-live")
            self.refresh()

    def _wanted(self) -> tuple[Decode, bool]:
        return self._store.decodes[-1], self._store.decoding(self._now()) is not None

    def render(self) -> Content:
        if not self._store.decodes:
            return Content("")
        self._shown = _, now = self._wanted()
        return strip(self._store.decodes, self.size.width, now=now)


def strip(decodes: Sequence[Decode], width: int, *, now: bool = True) -> Content:
    """The strip in `width` cells; curves where there is room. Not `now`: when it was so is said."""
    if not decodes:
        return Content("")
    newest = decodes[-1]
    parts: list[tuple[str, str, Sequence[float | None]]] = [
        ("tok/s", _number(newest.rate), [d.rate for d in decodes]),
        ("accept", _number(newest.accept_length), [d.accept_length for d in decodes]),
        ("run", _count(newest.running), [d.running for d in decodes]),
        ("queue", _count(newest.queued), [d.queued for d in decodes]),
    ]
    look = "bold" if now else "$muted"
    words = [Content.assemble((f"{label} ", "$muted"), (value, look)) for label, value, _ in parts]
    since = Content("") if now else Content.styled(f"{time_of_day(newest.at)}   ", "$muted")
    between = 3
    while (spare := width - since.cell_length - _length(words, between)) < 0 and len(words) > 1:
        if between == 3:
            between = 2  # closer, before one is left out
        else:
            words.pop()
    parts = parts[: len(words)]
    curves = len(parts) if spare >= len(parts) * (SHORTEST + 1) else 2  # the first two matter most
    curve = min(LONGEST, spare // curves - 1)
    shown: list[Content] = []
    for place, (word, (_, _, values)) in enumerate(zip(words, parts, strict=True)):
        if curve >= SHORTEST and place < curves:
            known = [math.nan if value is None else value for value in values]
            line = sparkline(known, curve, bottom=0.0 if place > 1 else None)[0]  # counts from zero
            if not any(values):
                line = "⣀" * curve
            word = Content.assemble(word, " ", (line, "$series-b" if now else "$muted"))
        shown.append(word)
    return (since + Content(" " * between).join(shown)).truncate(width, ellipsis=True)


def _length(words: Sequence[Content], between: int) -> int:
    return sum(word.cell_length for word in words) + between * (len(words) - 1)


def _number(value: float | None) -> str:
    return "–" if value is None else number(value)


def _count(value: int | None) -> str:
    return "–" if value is None else str(value)
