"""What a chart draws: cleaned, finite, no more points than columns; ticks that people read. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ddtui.bench.model import Burst, Estimate, Point
from ddtui.words import number, tokens


@dataclass(frozen=True, slots=True)
class Mark:
    """One measured point: value with its interval, where there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    final: bool = True
    preview: bool = False
    label: str = ""  # what it is, where the series does not say it


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart, ascending in x; or, not joined, a cloud of points."""

    name: str
    marks: tuple[Mark, ...]
    joined: bool = True  # by a line


@dataclass(frozen=True, slots=True)
class ChartData:
    """Everything that one chart shows."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...] = ()
    x_tokens: bool = False  # x values are token counts: 8k
    x_log: bool = True

    @property
    def empty(self) -> bool:
        return not any(series.marks for series in self.series)


def clean(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """Marks with finite x > 0 and finite y, ascending, the last of equal x; senseless intervals go."""
    by_x: dict[float, Mark] = {}
    for mark in marks:
        if not (math.isfinite(mark.x) and math.isfinite(mark.y) and mark.x > 0):
            continue
        low, high = mark.low, mark.high
        sane = (
            low is not None
            and high is not None
            and math.isfinite(low)
            and math.isfinite(high)
            and low <= mark.y <= high
        )
        by_x[mark.x] = mark if sane else replace(mark, low=None, high=None)
    return tuple(by_x[x] for x in sorted(by_x))


def decimate(values: Sequence[float], width: int) -> list[float]:
    """At most `2 * width` of the values: each column's least and greatest, in order. Keeps every peak."""
    if width <= 0 or len(values) <= 2 * width:
        return list(values)
    kept: list[float] = []
    for column in range(width):
        part = values[column * len(values) // width : (column + 1) * len(values) // width]
        low, high = min(part), max(part)
        kept += [low, high] if part.index(low) <= part.index(high) else [high, low]
    return kept


def _mark(x: float, estimate: Estimate | None, point: Point) -> Mark | None:
    if estimate is None:
        return None
    return Mark(x, estimate.value, estimate.low, estimate.high, estimate.n, point.final, point.preview)


def _named(before: Burst | None, newest: Burst | None) -> list[tuple[str, Burst]]:
    """The bursts that there are, as A and B where there are both."""
    both = before is not None and newest is not None
    return [
        (
            (f"{letter} = " if both else "")
            + (f"step {burst.step}" if burst.step is not None else "no step"),
            burst,
        )
        for letter, burst in (("A", before), ("B", newest))
        if burst is not None
    ]


def contexts(bursts: Iterable[Burst | None]) -> list[int]:
    """Context lengths that were measured, ascending."""
    return sorted({point.cell.context for burst in bursts if burst is not None for point in burst.points})


def concurrencies(bursts: Iterable[Burst | None]) -> list[int]:
    return sorted({point.cell.concurrency for burst in bursts if burst is not None for point in burst.points})


def rate_by_concurrency(before: Burst | None, newest: Burst | None, context: int | None) -> ChartData:
    """tok/s over concurrency at one context length, the step before overlaid with the newest."""
    series: list[Series] = []
    for name, burst in _named(before, newest):
        marks = (
            _mark(point.cell.concurrency, point.output_rate, point)
            for point in burst.points
            if point.cell.context == context
        )
        series.append(Series(name, clean(mark for mark in marks if mark is not None)))
    return ChartData("tok/s by concurrency", "concurrency", "tok/s", tuple(series))


def accept_by_context(before: Burst | None, newest: Burst | None, concurrency: int | None) -> ChartData:
    """Accept length over context at one concurrency, the step before overlaid with the newest."""
    series: list[Series] = []
    for name, burst in _named(before, newest):
        marks = (
            _mark(point.cell.context, point.accept_length, point)
            for point in burst.points
            if point.cell.concurrency == concurrency
        )
        series.append(Series(name, clean(mark for mark in marks if mark is not None)))
    return ChartData("accept length by context", "context", "tokens/step", tuple(series), x_tokens=True)


def read_out(data: ChartData, x: float) -> str:
    """The values of all series at x, in words: for the read-out line under a chart."""
    where = tokens(int(x)) if data.x_tokens else f"{x:g}" if data.x_log else number(x)
    parts: list[str] = []
    for series in data.series:
        for mark in [mark for mark in series.marks if mark.x == x][:2]:
            name = series.name.partition(" = ")[0]
            text = f"{mark.label or name + ':' * (' ' in name)} {number(mark.y)}"
            if mark.low is not None and mark.high is not None:
                text += f" [{number(mark.low)}–{number(mark.high)}]"
            if mark.n is not None:
                text += f" n={mark.n}"
            if not mark.final:
                text += " …"
            elif mark.preview:
                text += " preview"
            parts.append(text)
    return f"{data.x_label} {where}:  " + "   ".join(parts) if parts else ""
