"""A small braille renderer for live strips: two columns of dots a cell, four heights a row. Pure."""

from __future__ import annotations

from collections.abc import Sequence

# dots of the left and right column of a braille cell, lowest first
_LEFT = (0x40, 0x04, 0x02, 0x01)
_RIGHT = (0x80, 0x20, 0x10, 0x08)


def sparkline(values: Sequence[float], width: int, rows: int = 1, top: float | None = None) -> list[str]:
    """The newest `2 * width` values as bars from zero to `top` (the greatest value), `rows` lines of text."""
    if width <= 0 or rows <= 0:
        return []
    newest = list(values)[-2 * width :]
    highest = top if top is not None else max(newest, default=0.0)
    steps = 4 * rows
    heights = [0] * (2 * width - len(newest))
    for value in newest:
        share = value / highest if highest > 0 else 0.0
        heights.append(min(steps, max(1, round(share * steps))) if value >= 0 else 0)
    lines: list[str] = []
    for row in reversed(range(rows)):
        cells = []
        for column in range(width):
            dots = 0
            for bits, height in ((_LEFT, heights[2 * column]), (_RIGHT, heights[2 * column + 1])):
                for level in range(max(0, min(4, height - 4 * row))):
                    dots |= bits[level]
            cells.append(chr(0x2800 + dots))
        lines.append("".join(cells))
    return lines
