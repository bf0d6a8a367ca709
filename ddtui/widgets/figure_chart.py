"""The figures of a report as charts in the terminal. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ddtui.report.figures import Dot, Figure, Line
from ddtui.widgets.chart_data import ChartData, Mark, Series, clean
from ddtui.words import plural

MOST_LINES = 6  # that can be told apart


def chart(figure: Figure) -> ChartData:
    """The figure as a chart draws it: the front against the rest, or a line for each of its lines."""
    if any(dot.marked for line in figure.lines for dot in line.dots):
        return _front(figure)
    lines = sorted(figure.lines, key=lambda line: -len(line.dots))[:MOST_LINES]
    kept = [line for line in figure.lines if line in lines]
    series = [Series(line.name, clean(_marks(line))) for line in kept]
    title = figure.title
    if len(figure.lines) > len(kept):
        title += f", {plural(len(figure.lines) - len(kept), 'line')} left out"
    return ChartData(title, figure.x, figure.y, tuple(series))


def _front(figure: Figure) -> ChartData:
    """Two series: what no other beats in both, joined; and all the rest, without intervals."""
    front: list[Mark] = []
    rest: list[Mark] = []
    for line in figure.lines:
        for dot in line.dots:
            if not (math.isfinite(dot.x) and math.isfinite(dot.y)):
                continue
            label = f"{line.name} {dot.label}"
            if dot.marked:
                front.append(Mark(dot.x, dot.y, dot.low, dot.high, label=label))
            else:
                rest.append(Mark(dot.x, dot.y, label=label))
    return ChartData(
        figure.title,
        figure.x,
        figure.y,
        (
            Series(f"the rest ({len(rest)})", tuple(sorted(rest, key=_place)), joined=False),
            Series(f"front ({len(front)})", tuple(sorted(front, key=_place))),
        ),
        x_log=False,
    )


def _marks(line: Line) -> Iterable[Mark]:
    return (_mark(dot) for dot in line.dots)


def _mark(dot: Dot) -> Mark:
    return Mark(dot.x, dot.y, dot.low, dot.high)


def _place(mark: Mark) -> tuple[float, float]:
    return mark.x, mark.y
