"""Rows of the journal as segments: cut to the screen, with colours, highlights and numbers picked out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.errors import StyleSyntaxError
from rich.segment import Segment
from rich.style import Style

from ddtui.sanitize import Span

LONGEST = 4096  # characters of a line that are drawn
MOST_SPANS = 200  # colours of a line that are drawn
_VALUE = re.compile(r": (-?[\d.]+)")  # of a batch line: `gen throughput (token/s): 738.18`

Layer = tuple[int, int, Style]  # start, end, style on top


def painted(shown: str, skipped: int, base: Style, layers: Iterable[Layer]) -> list[Segment]:
    """What is shown of a text, from its character `skipped` on, with styles laid over each other."""
    inside = [
        (max(0, start - skipped), min(len(shown), end - skipped), style)
        for start, end, style in layers
        if end > skipped and start - skipped < len(shown)
    ]
    if not inside:
        return [Segment(shown, base)]
    if all(one[1] <= other[0] for one, other in pairwise(inside)):  # side by side, as most are
        segments, at = [], 0
        for start, end, over in inside:
            if start > at:
                segments.append(Segment(shown[at:start], base))
            segments.append(Segment(shown[start:end], base + over))
            at = end
        if at < len(shown):
            segments.append(Segment(shown[at:], base))
        return segments
    cuts = sorted({0, len(shown), *(at for layer in inside for at in layer[:2])})
    segments = []
    for start, end in pairwise(cuts):
        style = base
        for first, last, over in inside:
            if first <= start and end <= last:
                style += over
        segments.append(Segment(shown[start:end], style))
    return segments


def values(text: str, style: Style) -> list[Layer]:
    """The numbers of a `Decode batch` or `Prefill batch` line."""
    return [(*found.span(1), style) for found in _VALUE.finditer(text)]


def colours(spans: Sequence[Span]) -> list[Layer]:
    """A line's own colours."""
    return [(span.start, span.end, _style(span.style)) for span in spans[:MOST_SPANS]]


@lru_cache(512)
def _style(words: str) -> Style:
    try:
        return Style.parse(words)
    except StyleSyntaxError:
        return Style.null()


def crop(text: str, x: int, room: int) -> tuple[str, int]:
    """The text in `room` cells from cell `x`, and how many characters are before it."""
    if text.isascii():
        return text[x : x + room], x
    before = set_cell_size(text, x) if x else ""
    skipped = len(before.rstrip(" ")) if x and not text.startswith(before) else len(before)
    rest = text[skipped:]
    return (rest if cell_len(rest) <= room else set_cell_size(rest, room)), skipped


def height(text: str, room: int) -> int:
    """How many rows of `room` cells the text takes."""
    if text.isascii():
        return max(1, -(-min(len(text), LONGEST) // room))
    return len(pieces(text[:LONGEST], room))


def pieces(text: str, room: int) -> list[str]:
    """The text cut into rows of at most `room` cells; at least one."""
    if text.isascii():
        return [text[i : i + room] for i in range(0, len(text), room)] or [""]
    rows = chop_cells(text, room)
    if sum(map(len, rows)) == len(text):
        return rows
    rows, used = [""], 0  # Rich loses characters that have no place of their own: by the character then
    for character in text:
        cells = 1 if character == "\ufe0f" else cell_len(character)
        if used + cells > room:
            rows.append("")
            used = 0
        rows[-1] += character
        used += cells
    return rows
