"""Ticks that people read, for charts in the terminal and in reports. Pure."""

from __future__ import annotations

import math


def nice_ticks(low: float, high: float, most: int) -> list[float]:
    """At most `most` (at least 2) round values that cover low..high."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return []
    if high - low <= 1e-6 * max(1.0, abs(low)):  # no range to speak of
        high = low + max(abs(low), 1e-3)
    most = max(2, most)
    rough = (high - low) / max(1, most - 1)
    magnitude = 10.0 ** math.floor(math.log10(rough))
    for factor in (1, 2, 2.5, 5, 10, 20, 25, 50, 100):
        step = factor * magnitude
        first, last = math.floor(low / step), math.ceil(high / step)
        if last - first + 1 <= most:
            return [round(step * i, 10) for i in range(first, last + 1)]
    return [low, high]
