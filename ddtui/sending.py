"""What is sent to the terminal: only what it does not show already.

Textual sends every widget that was painted whole, and the whole screen after each layout. Here each row is
compared with what the terminal shows, and only what differs is sent. Rows that have moved together, as when a
line comes in the journal, are moved by the terminal itself: margins (DECSTBM), line feeds and reverse indexes
are what every terminal since the VT100 has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from rich.cells import cell_len
from rich.console import Console
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.geometry import Size
from textual.strip import Strip

Row = Mapping[int, Strip]  # what stands in a row, by column
FEWEST = 4  # rows that are worth to be moved together
MOVING = 24  # cells that could be sent for what it takes to have rows moved


class Sent(CompositorUpdate):
    """An update of Textual's, of which only the news are sent."""

    def __init__(self, shown: Shown, update: ChopsUpdate | LayoutUpdate) -> None:
        self._shown, self._update = shown, update

    def render_segments(self, console: Console) -> str:
        return self._shown.news(self._update, console)


class Shown:
    """What a terminal shows, by what was sent to it."""

    def __init__(self) -> None:
        self._size = Size(0, 0)
        self._rows: list[Row] = []

    def forget(self) -> None:
        """What the terminal shows is not known any more: the next layout is sent whole."""
        self._size, self._rows = Size(0, 0), []

    def news(self, update: ChopsUpdate | LayoutUpdate, console: Console) -> str:
        """What is to be sent, so that the terminal shows this; from now on it does."""
        if isinstance(update, LayoutUpdate):
            wanted = {y: _row(strips) for y, strips in enumerate(update.strips, update.region.y)}
            if update.region.size != self._size:
                self._size, self._rows = update.region.size, [{} for _ in wanted]
        elif len(update.chops) != len(self._rows):  # nothing is known: the layout that comes is sent whole
            return update.render_segments(console)
        else:
            wanted = self._patched(update)
        changed = {y: row for y, row in wanted.items() if row != self._rows[y]}
        sent = [self._move(changed)]
        for y in sorted(changed):
            sent.append(_difference(y, self._rows[y], changed[y], console))
            self._rows[y] = changed[y]
        return "".join(sent)

    def _patched(self, update: ChopsUpdate) -> dict[int, Row]:
        """The rows that a partial update touches, whole."""
        wanted: dict[int, Row] = {}
        for y, left, right in update.spans:
            chops, ends = update.chops[y], update.chop_ends[y]
            fresh = {
                x: strip
                for end, (x, strip) in zip(ends, chops.items(), strict=True)
                if strip is not None and x < right and end > left
            }
            wanted[y] = {**(wanted.get(y) or _cut(self._rows[y], chops, ends)), **fresh}
        return wanted

    def _move(self, changed: dict[int, Row]) -> str:
        """Have the terminal move rows that stand elsewhere now, if that is less than to send them."""
        if len(changed) < FEWEST:
            return ""
        top, bottom, by = _moved(self._rows, changed)
        if not by:
            return ""
        rows, height = self._rows, bottom - top + 1
        after = [rows[y + by] if top <= y + by <= bottom else {} for y in range(top, bottom + 1)]
        wanted = [changed.get(y, rows[y]) for y in range(top, bottom + 1)]
        stay = sum(map(_distance, rows[top : bottom + 1], wanted))
        go = sum(map(_distance, after, wanted))
        if height <= abs(by) or go + MOVING >= stay:
            return ""
        changed.update(zip(range(top, bottom + 1), wanted, strict=True))
        self._rows[top : bottom + 1] = after
        step = f"\x1b[{bottom + 1};1H" + "\n" * by if by > 0 else f"\x1b[{top + 1};1H" + "\x1bM" * -by
        return f"\x1b[{top + 1};{bottom + 1}r{step}\x1b[r"


def _row(strips: Iterable[Strip]) -> Row:
    strips = list(strips)
    return dict(zip(accumulate((strip.cell_length for strip in strips), initial=0), strips, strict=False))


def _cut(row: Row, columns: Iterable[int], ends: Sequence[int]) -> Row:
    """A row cut at these columns."""
    columns = list(columns)
    if list(row) == columns or not row:
        return row
    return dict(zip(columns, Strip.join(row.values()).divide(ends), strict=False))


def _moved(rows: Sequence[Row], changed: Mapping[int, Row]) -> tuple[int, int, int]:
    """The first and the last of the rows that have moved together, and how many rows up they went (down: less
    than 0; 0: none have)."""
    stood: dict[str, int] = {}
    for y, row in enumerate(rows):
        stood.setdefault(_words(row), y)
    ways = {y: stood[words] - y for y, row in changed.items() if (words := _words(row)) in stood and words}
    ways = {y: way for y, way in ways.items() if way}
    if not ways:
        return 0, 0, 0
    by = Counter(ways.values()).most_common(1)[0][0]
    together = [y for y, way in ways.items() if way == by]
    return min(together) + min(0, by), max(together) + max(0, by), by


def _words(row: Row) -> str:
    """What a row is known by: the text of its widest part."""
    return max(row.values(), key=_width).text.rstrip() if row else ""


def _width(strip: Strip) -> int:
    return strip.cell_length


def _distance(row: Row, wanted: Row) -> int:
    """How many cells are to be sent, so that a row shows what is wanted."""
    return sum(strip.cell_length for x, strip in wanted.items() if row.get(x) != strip)


def _difference(y: int, row: Row, wanted: Row, console: Console) -> str:
    """What is to be sent for one row."""
    sent, at = "", -1
    for x, strip in wanted.items():
        before = row.get(x)
        if before == strip:
            continue
        if before is not None and before.cell_length == strip.cell_length:
            skipped, strip = _inner(before, strip)
            x += skipped
        sent += strip.render(console) if x == at else f"\x1b[{y + 1};{x + 1}H{strip.render(console)}"
        at = x + strip.cell_length
    return sent


def _inner(before: Strip, strip: Strip) -> tuple[int, Strip]:
    """The part of a strip between the first and the last segment that differ, and how many cells are before
    it. A text whose width terminals disagree on is not skipped: what follows it may stand elsewhere."""
    old, new = list(before), list(strip)
    first = last = skipped = 0
    while first < min(len(old), len(new)) and old[first] == new[first] and _certain(new[first].text):
        skipped += len(new[first].text)
        first += 1
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    if not all(_certain(segment.text) for segment in (*old[first:], *new[first:])):
        last = 0
    part = new[first : len(new) - last]
    return skipped, Strip(part, sum(cell_len(segment.text) for segment in part))


def _certain(text: str) -> bool:
    """Whether every terminal shows it in as many cells as it has characters."""
    return text.isascii() or all(ord(one) < 0x300 or 0x2190 <= ord(one) < 0x2900 for one in text)
