"""Charts: plotext builds them in a thread, under one lock, at most twice a second; the newest data wins."""

from __future__ import annotations

import asyncio
import threading
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
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
from ddtui.widgets.chart_data import ChartData, Series, read_out
from ddtui.widgets.chart_frame import Frame

PACE = 0.5  # seconds between two builds
MARKERS = ("○", "●")  # of series A and B: told apart without colour
MANY_MARKERS = ("●", "○", "◆", "◇", "■", "□", "▲", "△")  # of more series than two
_plotext = threading.Lock()  # plotext draws into one global figure


RGB = tuple[int, int, int]
COLOURS = ("series-a", "series-b", "accent", "success", "error", "warning", "secondary", "foreground")


@dataclass(frozen=True, slots=True)
class Job:
    """All that a build depends on."""

    data: ChartData
    width: int
    height: int
    colours: tuple[RGB, ...]  # of A, of B, and of further series
    faint: RGB
    cursor: float | None

    @property
    def labelled(self) -> bool:
        """Whether there is room for the name of the x axis."""
        return self.height >= 12

    @property
    def frame(self) -> Frame:
        return Frame.of(self.data, self.width, self.height - (2 if self.labelled else 1))


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
        if not any(mark.x == self.cursor for series in data.series for mark in series.marks):
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
        colours = tuple(_rgb(variables[name]) for name in COLOURS)
        return Job(self.data, width, height, colours, _rgb(variables["muted"]), self.cursor)

    # reading values

    def _xs(self) -> list[float]:
        """Where the read-out stops: at every point that is on a line, else at every point."""
        if self.data is None:
            return []
        lines = [series for series in self.data.series if series.joined and series.marks]
        return sorted({mark.x for series in lines or self.data.series for mark in series.marks})

    def read(self, by: int) -> None:
        """Move the read-out to the next (+1) or previous (-1) point."""
        xs = self._xs()
        if not xs:
            return
        if self.cursor is None:
            index = 0 if by > 0 else len(xs) - 1
        elif by > 0:
            index = min(len(xs) - 1, bisect_right(xs, self.cursor))
        else:
            index = max(0, bisect_left(xs, self.cursor) - 1)
        self._put_cursor(xs[index])

    def _put_cursor(self, x: float) -> None:
        if x != self.cursor:
            self.cursor = x
            self._wanted.set()
        self.post_message(self.Read(self.reading))

    @property
    def reading(self) -> str:
        """The values at the cursor, in words."""
        return read_out(self.data, self.cursor) if self.data is not None and self.cursor is not None else ""

    def on_click(self, event: events.Click) -> None:
        """Read the point nearest to the mouse."""
        self._read_at(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """The same while the mouse goes over the chart."""
        self._read_at(event)

    def _read_at(self, event: events.MouseEvent) -> None:
        offset, built = event.get_content_offset(self), self._built
        if offset is None or built is None or self.data is None or built.data is not self.data:
            return
        lines = all(series.joined for series in self.data.series)
        mark = built.frame.nearest(self.data, offset.x, None if lines else offset.y - 1)
        if mark is not None and mark.x != self.cursor:
            self._put_cursor(mark.x)

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


def _rgb(variable: str) -> RGB:
    """A theme variable as red, green, blue; its opacity does not matter here."""
    try:
        colour = Color.parse(variable.split(" ")[0])
    except ColorParseError:
        return (128, 128, 128)
    return (colour.r, colour.g, colour.b)


def build(job: Job) -> list[Strip]:
    """Draw one chart. Runs in a thread; one at a time. The legend is the first line."""
    data = job.data
    with _plotext:
        drawn = _plot(job, job.frame)
    lines = [_legend(job)]
    lines += [Strip(list(line.render(_console))).simplify() for line in Text.from_ansi(drawn).split("\n")]
    if job.labelled:
        faint = Style(color=RichColor.from_rgb(*job.faint))
        lines = [*lines[: job.height - 1], Strip([Segment(data.x_label.rjust(job.width - 1), faint)])]
    return lines


_console = Console(width=10_000, color_system="truecolor", force_terminal=True, legacy_windows=False)


def _look(job: Job) -> list[tuple[Series, str, RGB]]:
    """Each series with its marker and colour. A lone series looks like B, the newest."""
    count = len(job.data.series)
    if count > len(MARKERS):
        return [
            (series, MANY_MARKERS[i % len(MANY_MARKERS)], job.colours[(i + 1) % len(job.colours)])
            for i, series in enumerate(job.data.series)
        ]
    first = len(MARKERS) - count
    return [(series, MARKERS[first + i], job.colours[first + i]) for i, series in enumerate(job.data.series)]


def _legend(job: Job) -> Strip:
    """The unit and the series. Where they do not fit the letters go, then the unit, which the title tells."""
    known = [(series.name, marker, colour) for series, marker, colour in _look(job) if series.marks]
    unit = f"{job.data.y_label}  "

    def fits() -> bool:
        return cell_len(unit + "  ".join(f"{marker} {name}" for name, marker, _ in known)) <= job.width

    if not fits():
        known = [(name.rpartition(" = ")[2], marker, colour) for name, marker, colour in known]
    if not fits() and known:
        unit = ""
    faint = Style(color=RichColor.from_rgb(*job.faint))
    return Strip(
        [Segment(unit, faint)]
        + [
            Segment(f"{marker} {name}  ", Style(color=RichColor.from_rgb(*colour)))
            for name, marker, colour in known
        ]
    )


def _plot(job: Job, frame: Frame) -> str:
    import plotext

    plotext.clear_figure()
    plotext.limit_size(False, False)
    plotext.plotsize(frame.width, frame.height)
    plotext.theme("clear")
    plotext.ticks_color(job.faint)
    plotext.axes_color("default")
    plotext.xaxes(True, False)
    plotext.yaxes(True, False)
    plotext.xlim(frame.left, frame.right)
    plotext.ylim(frame.bottom, frame.top)
    plotext.yticks([at for at, _ in frame.y_ticks], [label for _, label in frame.y_ticks])
    plotext.xticks([at for at, _ in frame.x_ticks], [label for _, label in frame.x_ticks])
    if job.cursor is not None:
        at = frame.x(job.cursor)
        plotext.plot([at, at], [frame.bottom, frame.top], marker="┊", color=job.faint)
    drawn = [
        (series.joined, [(frame.x(mark.x), mark) for mark in series.marks], marker, colour)
        for series, marker, colour in _look(job)
        if series.marks
    ]
    for _, points, _, colour in drawn:
        for x, mark in points:
            if mark.low is not None and mark.high is not None and mark.high > mark.low:
                plotext.plot([x, x], [mark.low, mark.high], marker="│", color=colour)
    for joined, points, _, colour in drawn:
        if joined and len(points) > 1:
            plotext.plot([x for x, _ in points], [m.y for _, m in points], marker="braille", color=colour)
    for _, points, marker, colour in drawn:
        plotext.scatter([x for x, _ in points], [m.y for _, m in points], marker=marker, color=colour)
    return str(plotext.build()).rstrip("\n")
