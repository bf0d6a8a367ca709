"""Where things stand in a chart: the ranges, the ticks, and which cell is which value. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ddtui.report.ticks import nice_ticks
from ddtui.widgets.chart_data import ChartData, Mark
from ddtui.words import tokens

EDGE = 0.06  # of the width, left free on both sides


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame of one chart of `width` x `height` cells: the plot with its axes, without legend and label.

    `left` and `right` are on the x axis as it is drawn: logarithms (base 2) where `log`.
    """

    log: bool
    left: float
    right: float
    bottom: float
    top: float
    width: int
    height: int
    x_ticks: tuple[tuple[float, str], ...]  # on the drawn axis
    y_ticks: tuple[tuple[float, str], ...]

    @classmethod
    def of(cls, data: ChartData, width: int, height: int) -> Frame:
        """The frame of a chart that is not empty."""
        marks = [mark for series in data.series for mark in series.marks]
        ys = [value for mark in marks for value in (mark.y, mark.low, mark.high) if value is not None]
        bottom, top = _bounds(min(ys), max(ys))
        y_ticks = [tick for tick in nice_ticks(bottom, top, max(3, height // 3) + 1) if bottom <= tick <= top]
        labels = tuple((tick, f"{tick:,g}") for tick in y_ticks)
        xs = sorted({math.log2(mark.x) if data.x_log else mark.x for mark in marks})
        low, high = xs[0], xs[-1]
        if not data.x_log and 0 < low < high * 0.5:
            low = 0.0
        edge = (high - low) * EDGE or (0.5 if data.x_log else abs(high) * 0.1 or 1.0)
        left, right = (low if low == 0 and not data.x_log else low - edge), high + edge
        margin = max((len(label) for _, label in labels), default=0) + 1
        plot = max(1, width - margin)
        if data.x_log:
            named = [(x, _name(data, round(2**x, 6))) for x in xs]
        else:
            named = [
                (x, f"{x:,g}") for x in nice_ticks(left, right, max(3, plot // 10)) if left <= x <= right
            ]
        return cls(
            data.x_log, left, right, bottom, top, width, height, _apart(named, left, right, plot), labels
        )

    @property
    def margin(self) -> int:
        """Cells of the y axis with its labels."""
        return max((len(label) for _, label in self.y_ticks), default=0) + 1

    def x(self, value: float) -> float:
        """A value on the axis as it is drawn."""
        return math.log2(value) if self.log else value

    def column(self, value: float) -> float:
        """The cell in which this x is, from the chart's left."""
        share = (self.x(value) - self.left) / ((self.right - self.left) or 1)
        return self.margin + share * (self.width - self.margin - 1)

    def row(self, value: float) -> float:
        """The cell in which this y is, from the plot's top."""
        share = (self.top - value) / ((self.top - self.bottom) or 1)
        return share * (self.height - 2)

    def nearest(self, data: ChartData, column: float, row: float | None) -> Mark | None:
        """The mark nearest to a cell; a cell is twice as high as wide. `row` None: by x alone."""
        marks = [mark for series in data.series for mark in series.marks]
        if not marks:
            return None

        def distance(mark: Mark) -> float:
            down = 2 * (self.row(mark.y) - row) if row is not None else 0.0
            return math.hypot(self.column(mark.x) - column, down)

        return min(marks, key=distance)


def _name(data: ChartData, x: float) -> str:
    return tokens(int(x)) if data.x_tokens else f"{x:g}"


def _bounds(low: float, high: float) -> tuple[float, float]:
    """The y range: a little more than the data; from zero when the data are not far from it."""
    if 0 <= low < high * 0.5:
        low = 0.0
    pad = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return (low if low == 0.0 else low - pad), high + pad


def _apart(
    named: list[tuple[float, str]], left: float, right: float, width: int
) -> tuple[tuple[float, str], ...]:
    """The labels to write so that none touches the next; the last one always."""
    kept: list[tuple[float, str]] = []
    free = width + 1
    for x, label in reversed(named):
        middle = round((x - left) / (right - left) * width)
        if middle + len(label) / 2 + 1 < free or not kept:
            kept.insert(0, (x, label))
            free = middle - len(label) // 2
    return tuple(kept)
