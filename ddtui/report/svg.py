"""A figure as inline SVG: readable in light, in dark and on paper, without any script or network.

Its colours are those of page.css: the classes s0 to s6 of series, `quiet` of what is behind, `grid`, `front`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape

from ddtui.report.figures import Dot, Figure, Line
from ddtui.report.ticks import nice_ticks

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 28, 16, 50
MOST_TICKS = 7
SERIES = 7  # colours that the page has; more lines than that stand back behind those of the front
SHAPES = ("circle", "square", "diamond", "triangle")
LETTER, ROW = 7.0, 18  # of the small text: the width of a letter, the height of a row
TEXT = 12  # a label's height
APART = 34  # least distance of ticks along x

Box = tuple[float, float, float, float]  # left, top, right, bottom


def draw(figure: Figure) -> str:
    """The chart with its legend."""
    drawn = _Drawing(figure)
    legend = list(drawn.legend())
    height = HEIGHT + ROW * drawn.rows + 2
    head = f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(figure.title)}">'
    return "\n".join([head, *drawn.axes(), *drawn.lines(), *drawn.labels(), *legend, "</svg>"])


class _Drawing:
    def __init__(self, figure: Figure) -> None:
        self.figure = figure
        dots = [dot for line in figure.lines for dot in line.dots]
        self.x = _doubling(dots) if figure.doubling else _even(dots)
        heights = [y for dot in dots for y in (dot.y, dot.low, dot.high) if y is not None]
        self.y_ticks = nice_ticks(0, max(heights), MOST_TICKS)
        many = len(figure.lines) > SERIES
        loud = [line for line in figure.lines if not many or any(dot.marked for dot in line.dots)][:SERIES]
        self.loud = loud or list(figure.lines[:SERIES])
        self.quiet = [line for line in figure.lines if line not in self.loud]
        self.entries = [_said(line) for line in self.loud]
        if self.quiet:
            self.entries.append(f"{len(self.quiet)} more, behind")
        widest = 30 + LETTER * max(map(len, self.entries), default=0)
        self.columns = max(1, min(4, int((WIDTH - LEFT) / widest)))
        self.rows = math.ceil(len(self.entries) / self.columns)

    def at(self, dot: Dot) -> tuple[float, float]:
        return self.x[1](dot.x), self.height(dot.y)

    def height(self, value: float) -> float:
        low, high = self.y_ticks[0], self.y_ticks[-1]
        return HEIGHT - BOTTOM - (value - low) * (HEIGHT - TOP - BOTTOM) / ((high - low) or 1)

    def axes(self) -> Iterator[str]:
        bottom = HEIGHT - BOTTOM
        for x in self.x[0]:
            at = self.x[1](x)
            yield f'<line class="grid" x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{bottom}"/>'
            yield f'<text x="{at:.1f}" y="{bottom + 17}" text-anchor="middle">{_label(x)}</text>'
        for y in self.y_ticks:
            at = self.height(y)
            yield f'<line class="grid" x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}"/>'
            yield f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{_label(y)}</text>'
        middle, half = (LEFT + WIDTH - RIGHT) / 2, (TOP + bottom) / 2
        yield f'<text x="{middle}" y="{HEIGHT - 12}" text-anchor="middle">{escape(self.figure.x)}</text>'
        yield (
            f'<text x="14" y="{half}" text-anchor="middle" transform="rotate(-90 14 {half})">'
            f"{escape(self.figure.y)}</text>"
        )

    def lines(self) -> Iterator[str]:
        for line in self.quiet:
            yield from self.line(line, "quiet", "circle", 2.5)
        for number, line in enumerate(self.loud):
            yield from self.line(line, f"s{number}", SHAPES[number % len(SHAPES)], 4)

    def line(self, line: Line, style: str, shape: str, size: float) -> Iterator[str]:
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(self.at, line.dots))
        yield f'<g class="{style}"><polyline points="{points}" fill="none" stroke-width="1.5" opacity="0.7"/>'
        for dot in line.dots:
            x, y = self.at(dot)
            if dot.low is not None and dot.high is not None and style != "quiet":
                low, high = self.height(dot.low), self.height(dot.high)
                bar = f"M{x:.1f},{low:.1f}V{high:.1f}"
                if abs(low - high) > 2 * size:
                    bar += f"M{x - 3:.1f},{low:.1f}h6M{x - 3:.1f},{high:.1f}h6"
                yield f'<path d="{bar}"/>'
            ring = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="8" class="front"/>' if dot.marked else ""
            words = escape(_about(line, dot))
            yield f"<g><title>{words}</title>{ring}{_shape(shape, x, y, size)}</g>"
        yield "</g>"

    def labels(self) -> Iterator[str]:
        """What a dot is, said once for those that are the same: at one of the front, else at the highest."""
        dots = [dot for line in (*self.loud, *self.quiet) for dot in line.dots]
        taken = [_around(*self.at(dot), 9 if dot.marked else 5) for dot in dots]
        best: dict[str, Dot] = {}
        for dot in sorted(dots, key=lambda dot: (not dot.marked, -dot.y)):
            if dot.label.startswith("C="):
                best.setdefault(dot.label, dot)
        for label, dot in best.items():
            place = _room(*self.at(dot), LETTER * len(label) + 5, taken)
            if place is not None:
                taken.append(place)
                yield f'<text x="{place[0]:.1f}" y="{place[3] - 2:.1f}" class="small">{escape(label)}</text>'

    def legend(self) -> Iterator[str]:
        for number, words in enumerate(self.entries):
            x = LEFT + number % self.columns * (WIDTH - LEFT) / self.columns
            y = HEIGHT + ROW * (number // self.columns) + 4
            loud = number < len(self.loud)
            style = f"s{number}" if loud else "quiet"
            shape = _shape(SHAPES[number % len(SHAPES)] if loud else "circle", x, y, 4 if loud else 2.5)
            yield f'<g class="{style}">{shape}</g>'
            yield f'<text x="{x + 10:.1f}" y="{y + 4}" class="small">{escape(words)}</text>'


Across = tuple[Sequence[float], Callable[[float], float]]  # ticks, and where a value is


def _even(dots: Sequence[Dot]) -> Across:
    xs = [dot.x for dot in dots]
    ticks = nice_ticks(0 if min(xs) < max(xs) / 3 else min(xs), max(xs), MOST_TICKS)
    return ticks, _between(ticks[0], ticks[-1], float)


def _doubling(dots: Sequence[Dot]) -> Across:
    values = sorted({dot.x for dot in dots})
    if values[0] <= 0:
        return _even(dots)
    edge = values[-1] / values[0]
    margin = edge**0.06 if edge > 1 else 1.5
    place = _between(values[0] / margin, values[-1] * margin, math.log2)
    ticks: list[float] = []
    for value in values:
        if not ticks or place(value) - place(ticks[-1]) >= APART:
            ticks.append(value)
    return ticks, place


def _between(left: float, right: float, scale: Callable[[float], float]) -> Callable[[float], float]:
    start, width = scale(left), (scale(right) - scale(left)) or 1
    return lambda value: LEFT + (scale(value) - start) * (WIDTH - LEFT - RIGHT) / width


def _around(x: float, y: float, size: float) -> Box:
    return x - size, y - size, x + size, y + size


def _room(x: float, y: float, width: float, taken: Sequence[Box]) -> Box | None:
    """Where a label of that width stands beside a dot, inside the plot and on nothing else."""
    right, left_of, over, level = x + 9, x - 9 - width, y - TEXT - 3, y - TEXT / 2
    for left, top in (
        (right, over), (left_of, over), (right + 2, level), (left_of - 2, level),
        (x - width / 2, over - 7), (right, y + 4), (left_of, y + 4), (x - width / 2, y + 10),
    ):  # fmt: skip
        box = (left, top, left + width, top + TEXT)
        inside = left >= LEFT and box[2] <= WIDTH - 2 and top >= 2 and box[3] <= HEIGHT - BOTTOM
        if inside and not any(_touch(box, other) for other in taken):
            return box
    return None


def _touch(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _said(line: Line) -> str:
    return f"{line.name.partition(' (')[0]}: {line.about}" if line.about else line.name


def _about(line: Line, dot: Dot) -> str:
    said = f"{_said(line)}; {dot.label}: {_label(dot.x)}, {_label(dot.y)}"
    if dot.low is not None and dot.high is not None:
        said += f" [{_label(dot.low)}, {_label(dot.high)}]"
    return said + (", on the front" if dot.marked else "")


def _shape(shape: str, x: float, y: float, size: float) -> str:
    match shape:
        case "circle":
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}"/>'
        case "square":
            return f'<rect x="{x - size:.1f}" y="{y - size:.1f}" width="{2 * size}" height="{2 * size}"/>'
        case "diamond":
            up = 1.3 * size
            points = f"{x:.1f},{y - up:.1f} {x + up:.1f},{y:.1f} {x:.1f},{y + up:.1f} {x - up:.1f},{y:.1f}"
        case _:
            up, wide = 1.2 * size, 1.25 * size
            points = f"{x:.1f},{y - up:.1f} {x + wide:.1f},{y + size:.1f} {x - wide:.1f},{y + size:.1f}"
    return f'<polygon points="{points}"/>'


def _label(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
