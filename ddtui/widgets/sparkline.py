"""A small braille renderer for live strips: two columns of dots a cell, four heights a row. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

# dots of the left and right column of a braille cell, lowest first
_LEFT = (0x40, 0x04, 0x02, 0x01)
_RIGHT = (0x80, 0x20, 0x10, 0x08)
LARGEST = 1e300  # the span of two values stays a number


def sparkline(values: Sequence[float], width: int, rows: int = 1, bottom: float | None = None) -> list[str]:
    """The newest `2 * width` values as bars from `bottom` to their greatest, `rows` lines of text.

    `bottom` None: a little under the least value, so that the shape is seen. Not finite values leave a gap.
    """
    if width <= 0 or rows <= 0:
        return []
    newest = list(values)[-2 * width :]
    newest = [max(-LARGEST, min(LARGEST, value)) if math.isfinite(value) else value for value in newest]
    finite = [value for value in newest if math.isfinite(value)]
    high, low = max(finite, default=0.0), min(finite, default=0.0)
    floor = bottom if bottom is not None else low - 0.35 * (high - low)
    steps = 4 * rows
    heights = [0] * (2 * width - len(newest))
    for value in newest:
        share = (value - floor) / (high - floor) if high > floor else 0.5
        heights.append(min(steps, max(1, round(share * steps))) if math.isfinite(value) else 0)
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
