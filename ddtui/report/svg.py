"""A figure as inline SVG: readable in light and dark, without any script or network."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from ddtui.report.figures import Figure
from ddtui.report.ticks import nice_ticks

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 16, 48
MOST_TICKS = 7
# colours that people with any kind of sight tell apart (Okabe and Ito), and shapes beside them
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999")
SHAPES = ("circle", "square", "diamond", "triangle")


def draw(figure: Figure) -> str:
    """The chart with its legend."""
    xs = [dot.x for line in figure.lines for dot in line.dots]
    ys = [
        y for line in figure.lines for dot in line.dots for y in (dot.y, dot.low, dot.high) if y is not None
    ]
    x_ticks = nice_ticks(0 if min(xs) < max(xs) / 3 else min(xs), max(xs), MOST_TICKS)
    y_ticks = nice_ticks(0, max(ys), MOST_TICKS)
    plot = _Plot(x_ticks[0], x_ticks[-1], y_ticks[0], y_ticks[-1])
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT + 18 * _rows(figure)}" role="img"'
        f' aria-label="{escape(figure.title)}">'
    ]
    for x in x_ticks:
        at = plot.x(x)
        parts.append(f'<line class="grid" x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{_label(x)}</text>')
    for y in y_ticks:
        at = plot.y(y)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{_label(y)}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 12}" text-anchor="middle">{escape(figure.x)}</text>')
    parts.append(
        f'<text x="14" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 14 {HEIGHT / 2})">'
        f"{escape(figure.y)}</text>"
    )
    for number, line in enumerate(figure.lines):
        parts += _line(plot, number, line)
    parts += _legend(figure)
    parts.append("</svg>")
    return "\n".join(parts)


class _Plot:
    def __init__(self, left: float, right: float, low: float, high: float) -> None:
        self._left, self._low = left, low
        self._x = (WIDTH - LEFT - RIGHT) / ((right - left) or 1)
        self._y = (HEIGHT - TOP - BOTTOM) / ((high - low) or 1)

    def x(self, value: float) -> float:
        return LEFT + (value - self._left) * self._x

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (value - self._low) * self._y


def _line(plot: _Plot, number: int, line: object) -> Iterator[str]:
    from ddtui.report.figures import Line

    assert isinstance(line, Line)
    colour = COLOURS[number % len(COLOURS)]
    points = " ".join(f"{plot.x(dot.x):.1f},{plot.y(dot.y):.1f}" for dot in line.dots)
    yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5" opacity="0.7"/>'
    for dot in line.dots:
        x, y = plot.x(dot.x), plot.y(dot.y)
        if dot.low is not None and dot.high is not None:
            yield (
                f'<line x1="{x:.1f}" y1="{plot.y(dot.low):.1f}" x2="{x:.1f}" y2="{plot.y(dot.high):.1f}"'
                f' stroke="{colour}"/>'
            )
        said = f"{line.name} {dot.label}: {_label(dot.x)}, {_label(dot.y)}"
        if dot.low is not None and dot.high is not None:
            said += f" [{_label(dot.low)}, {_label(dot.high)}]"
        ring = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="8" class="front"/>' if dot.marked else ""
        said += ", on the front" if dot.marked else ""
        yield f"<g><title>{escape(said)}</title>{ring}{_shape(number, x, y, colour)}</g>"
        if dot.label.startswith("C="):
            yield f'<text x="{x + 9:.1f}" y="{y - 6:.1f}" class="small">{escape(dot.label)}</text>'


def _shape(number: int, x: float, y: float, colour: str) -> str:
    match (
        SHAPES[number // len(COLOURS) % len(SHAPES)]
        if number >= len(COLOURS)
        else SHAPES[number % len(SHAPES)]
    ):
        case "circle":
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
        case "square":
            return f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="{colour}"/>'
        case "diamond":
            points = f"{x:.1f},{y - 5:.1f} {x + 5:.1f},{y:.1f} {x:.1f},{y + 5:.1f} {x - 5:.1f},{y:.1f}"
        case _:
            points = f"{x:.1f},{y - 5:.1f} {x + 5:.1f},{y + 4:.1f} {x - 5:.1f},{y + 4:.1f}"
    return f'<polygon points="{points}" fill="{colour}"/>'


def _rows(figure: Figure) -> int:
    return math.ceil(len(figure.lines) / 3)


def _legend(figure: Figure) -> Iterator[str]:
    for number, line in enumerate(figure.lines):
        x = LEFT + number % 3 * (WIDTH - LEFT) / 3
        y = HEIGHT + 18 * (number // 3) + 4
        yield _shape(number, x, y, COLOURS[number % len(COLOURS)])
        yield f'<text x="{x + 10:.1f}" y="{y + 4}" class="small">{escape(line.name)}</text>'


def _label(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
