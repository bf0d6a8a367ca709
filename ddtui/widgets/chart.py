"""Charts: plotext builds them in a thread, under one lock, at most twice a second; the newest data wins."""

from __future__ import annotations

import asyncio
import math
import threading
from dataclasses import dataclass
from typing import ClassVar

from rich.color import Color as RichColor
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.color import Color, ColorParseError
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from ddtui.widgets.cells import cut
from ddtui.widgets.chart_data import ChartData, Series, nice_ticks, read_out
from ddtui.words import tokens

PACE = 0.5  # seconds between two builds
MARKERS = ("○", "●")  # of series A and B: told apart without colour
_plotext = threading.Lock()  # plotext draws into one global figure


@dataclass(frozen=True, slots=True)
class Job:
    """All that a build depends on."""

    data: ChartData
    width: int
    height: int
    colours: tuple[tuple[int, int, int], tuple[int, int, int]]
    faint: tuple[int, int, int]
    cursor: float | None


class Chart(Widget, can_focus=True):
    """One chart. `show` gives it data; the rest is its own."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"chart--empty"}
    DEFAULT_CSS = """
    Chart {
        background: transparent;
        & > .chart--empty { color: $muted; }
    }
    """

    class Read(Message):
        """The read-out moved: the values at the cursor, in words."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, empty: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.empty_text = empty
        self.data: ChartData | None = None
        self.cursor: float | None = None  # the x that is read out
        self.builds = 0
        self._lines: list[Strip] = []
        self._built: Job | None = None
        self._wanted = asyncio.Event()

    def show(self, data: ChartData) -> None:
        """Draw this as soon as its turn comes."""
        if data == self.data:
            return
        self.data = data
        if self.cursor not in self._xs():
            self.cursor = None
        if data.empty:
            self._lines, self._built = [], None
            self.refresh()
        self._wanted.set()

    def on_mount(self) -> None:
        self.run_worker(self._build_forever(), name="chart", group="chart", exit_on_error=False)
        self.app.theme_changed_signal.subscribe(self, lambda _: self._wanted.set())

    def on_resize(self, event: events.Resize) -> None:
        self._wanted.set()

    async def _build_forever(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            job = self._job()
            if job is None or job == self._built:
                continue
            self._lines = await asyncio.to_thread(build, job)
            self._built = job
            self.builds += 1
            self.refresh()
            await asyncio.sleep(PACE)

    def _job(self) -> Job | None:
        width, height = self.size
        if self.data is None or self.data.empty or width < 16 or height < 4:
            return None
        variables = self.app.theme_variables
        colours = (_rgb(variables["series-a"]), _rgb(variables["series-b"]))
        return Job(self.data, width, height, colours, _rgb(variables["muted"]), self.cursor)

    # reading values

    def _xs(self) -> list[float]:
        if self.data is None:
            return []
        return sorted({mark.x for series in self.data.series for mark in series.marks})

    def read(self, by: int) -> None:
        """Move the read-out to the next (+1) or previous (-1) point."""
        xs = self._xs()
        if not xs:
            return
        if self.cursor is None or self.cursor not in xs:
            index = 0 if by > 0 else len(xs) - 1
        else:
            index = max(0, min(len(xs) - 1, xs.index(self.cursor) + by))
        self.cursor = xs[index]
        self._wanted.set()
        self.post_message(self.Read(self.reading))

    @property
    def reading(self) -> str:
        """The values at the cursor, in words."""
        return read_out(self.data, self.cursor) if self.data is not None and self.cursor is not None else ""

    def on_click(self, event: events.Click) -> None:
        """Read the point nearest to the mouse."""
        offset = event.get_content_offset(self)
        xs = self._xs()
        if offset is None or not xs:
            return
        left, right = math.log2(xs[0]), math.log2(xs[-1])
        at = left + (right - left) * (offset.x - LEFT) / max(1, self.size.width - LEFT)
        self.cursor = min(xs, key=lambda x: abs(math.log2(x) - at))
        self.read(0)

    # drawing

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        base = self.rich_style
        if self.data is None or self.data.empty:
            return self._empty_line(y)
        if y >= len(self._lines):
            return Strip.blank(width, base)
        return self._lines[y].apply_style(base).adjust_cell_length(width, base)

    def _empty_line(self, y: int) -> Strip:
        width, height = self.size
        words = self.empty_text.split("\n")
        index = y - max(0, (height - len(words)) // 2)
        if not 0 <= index < len(words):
            return Strip.blank(width, self.rich_style)
        style = self.rich_style + self.get_component_rich_style("chart--empty", partial=True)
        return Strip([Segment(cut(words[index], width).center(width), style)], width)


LEFT = 8  # about where the plot begins, in cells


def _rgb(variable: str) -> tuple[int, int, int]:
    """A theme variable as red, green, blue; its opacity does not matter here."""
    try:
        colour = Color.parse(variable.split(" ")[0])
    except ColorParseError:
        return (128, 128, 128)
    return (colour.r, colour.g, colour.b)


def build(job: Job) -> list[Strip]:
    """Draw one chart. Runs in a thread; one at a time. The legend is the first line."""
    data = job.data
    labelled = job.height >= 12
    with _plotext:
        drawn = _plot(job, job.height - (2 if labelled else 1))
    lines = [_legend(job)]
    lines += [Strip(list(line.render(_console))).simplify() for line in Text.from_ansi(drawn).split("\n")]
    if labelled:
        faint = Style(color=RichColor.from_rgb(*job.faint))
        lines = [*lines[: job.height - 1], Strip([Segment(data.x_label.rjust(job.width - 1), faint)])]
    return lines


_console = Console(width=10_000, color_system="truecolor", force_terminal=True, legacy_windows=False)


def _look(job: Job) -> list[tuple[Series, str, tuple[int, int, int]]]:
    """Each series with its marker and colour. A lone series looks like B, the newest."""
    count = len(job.data.series)
    first = max(0, len(MARKERS) - count)
    return [
        (series, MARKERS[(first + i) % 2], job.colours[(first + i) % 2])
        for i, series in enumerate(job.data.series)
    ]


def _legend(job: Job) -> Strip:
    faint = Style(color=RichColor.from_rgb(*job.faint))
    segments = [Segment(f"{job.data.y_label}  ", faint)]
    for series, marker, colour in _look(job):
        if series.marks:
            segments.append(Segment(f"{marker} {series.name}  ", Style(color=RichColor.from_rgb(*colour))))
    return Strip(segments)


def _plot(job: Job, height: int) -> str:
    import plotext

    data = job.data
    marks = [mark for series in data.series for mark in series.marks]
    ys = [value for mark in marks for value in (mark.y, mark.low, mark.high) if value is not None]
    xs = sorted({mark.x for mark in marks})
    bottom, top = _bounds(min(ys), max(ys))
    ticks = [tick for tick in nice_ticks(bottom, top, max(3, height // 3) + 1) if bottom <= tick <= top]
    left, right = math.log2(xs[0]), math.log2(xs[-1])
    edge = (right - left) * 0.06 or 0.5
    plotext.clear_figure()
    plotext.limit_size(False, False)
    plotext.plotsize(job.width, height)
    plotext.theme("clear")
    plotext.ticks_color(job.faint)
    plotext.axes_color("default")
    plotext.xaxes(True, False)
    plotext.yaxes(True, False)
    plotext.xlim(left - edge, right + edge)
    plotext.ylim(bottom, top)
    plotext.yticks(ticks, [f"{tick:,g}" for tick in ticks])
    labels = [tokens(int(x)) if data.x_tokens else f"{x:g}" for x in xs]
    shown = _apart(xs, labels, left - edge, right + edge, job.width - LEFT)
    plotext.xticks([math.log2(xs[i]) for i in shown], [labels[i] for i in shown])
    if job.cursor is not None:
        at = math.log2(job.cursor)
        plotext.plot([at, at], [bottom, top], marker="┊", color=job.faint)
    drawn = [
        ([(math.log2(mark.x), mark) for mark in series.marks], marker, colour)
        for series, marker, colour in _look(job)
        if series.marks
    ]
    for points, _, colour in drawn:
        for x, mark in points:
            if mark.low is not None and mark.high is not None and mark.high > mark.low:
                plotext.plot([x, x], [mark.low, mark.high], marker="│", color=colour)
    for points, _, colour in drawn:
        if len(points) > 1:
            plotext.plot([x for x, _ in points], [m.y for _, m in points], marker="braille", color=colour)
    for points, marker, colour in drawn:
        plotext.scatter([x for x, _ in points], [m.y for _, m in points], marker=marker, color=colour)
    return str(plotext.build()).rstrip("\n")


def _bounds(low: float, high: float) -> tuple[float, float]:
    """The y range: a little more than the data; from zero when the data are not far from it."""
    if 0 <= low < high * 0.5:
        low = 0.0
    pad = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return (low if low == 0.0 else low - pad), high + pad


def _apart(xs: list[float], labels: list[str], left: float, right: float, width: int) -> list[int]:
    """Which labels to write so that none touches the next; the last one always."""
    kept: list[int] = []
    free = width + 1
    for index in reversed(range(len(xs))):
        middle = round((math.log2(xs[index]) - left) / (right - left) * width)
        if middle + len(labels[index]) / 2 + 1 < free or not kept:
            kept.insert(0, index)
            free = middle - len(labels[index]) // 2
    return kept
