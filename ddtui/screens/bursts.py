"""Every burst with its numbers: value, 95 % interval, sample count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets.option_list import Option

from ddtui.actions.action import Where
from ddtui.bench.model import Burst, BurstState
from ddtui.desk import Desk
from ddtui.screens.base import ConsoleScreen
from ddtui.view import View
from ddtui.widgets.choices import Choices
from ddtui.widgets.pane import Pane
from ddtui.widgets.pane_tabs import PaneRow
from ddtui.widgets.point_words import point_lines
from ddtui.widgets.words_view import Words
from ddtui.words import time_of_day

STATE_LOOK: dict[BurstState, tuple[str, str]] = {
    BurstState.DONE: ("✓", "$success"),
    BurstState.FAILED: ("✗", "$error"),
    BurstState.CANCELLED: ("–", "$muted"),
}


class BurstList(Pane):
    """All bursts, newest first."""

    DEFAULT_CSS = """
    BurstList Choices { height: 1fr; }
    BurstList #no-bursts { height: auto; }
    """

    def __init__(self) -> None:
        super().__init__("Bursts", id="burst-list")

    def compose(self) -> ComposeResult:
        yield Words(id="no-bursts")
        yield Choices()

    def show(self, bursts: Sequence[Burst]) -> None:
        """The list; where it is empty, why, and what fills it."""
        self.query_one(Choices).set_options(Option(summary(burst)) for burst in bursts)
        none = self.query_one("#no-bursts", Words)
        none.display = not bursts
        none.show(Content.styled("none of this service yet: x measures the step in force", "$muted"))


class PointTable(Pane):
    """The points of one burst."""

    def __init__(self) -> None:
        super().__init__("Points", id="points")

        self._burst: Burst | None = None

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Words(id="point-lines")

    def show(self, burst: Burst | None) -> None:
        self._burst = burst
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        burst, lines = self._burst, self.query_one("#point-lines", Words)
        if burst is None:
            lines.show(Content.styled("a burst's points, cell by cell", "$muted"))
            return
        self.set_title(f"Burst {burst.id}")
        self.set_state("simulated" if burst.simulated else "")
        lines.show(point_lines(burst, max(30, self.content_size.width - 1)))


class BurstsScreen(ConsoleScreen):
    """The list on the left, the chosen burst's points on the right."""

    PLACE: ClassVar[Where] = Where.BURSTS
    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "app.switch_mode('tune')", "back"),
    ]
    DEFAULT_CSS = """
    BurstsScreen {
        #burst-list { width: 38; }
        #points { width: 1fr; }
        .-stacked > Horizontal { layout: vertical; }
        .-stacked #burst-list { width: 1fr; height: 7; }
    }
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.list = BurstList()
        self.points = PointTable()
        self._bursts: tuple[Burst, ...] | None = None

    def body(self) -> ComposeResult:
        yield PaneRow(self.list, self.points, id="burst-row")

    def on_mount(self) -> None:
        self.call_after_refresh(self.list.focus_first)  # its list is composed after this

    @property
    def options(self) -> Choices:
        return self.list.query_one(Choices)

    def show_view(self, view: View) -> None:
        if view.bursts != self._bursts:
            before = self._bursts or ()
            self._bursts = view.bursts
            chosen = self.options.highlighted
            at_top = chosen in (None, 0) or not before
            if not at_top and chosen is not None and before[0].id != view.bursts[0].id:
                chosen += 1
            self.list.show(view.bursts)
            if view.bursts:
                self.options.highlighted = 0 if at_top else min(chosen or 0, len(view.bursts) - 1)
            self._draw_points()

    def on_option_list_option_highlighted(self) -> None:
        self._draw_points()

    def on_resize(self) -> None:
        self.query_one(PaneRow).set_class(self.size.width < 110, "-stacked")

    def _draw_points(self) -> None:
        index = self.options.highlighted
        bursts = self._bursts or ()
        self.points.show(bursts[index] if index is not None and index < len(bursts) else None)


def summary(burst: Burst) -> Content:
    """A burst in the list: state, step, when, and its greatest rate."""
    glyph, colour = STATE_LOOK.get(burst.state, ("▶", "$primary"))
    at = burst.points[0].started_at if burst.points else None
    rates = [point.output_rate.value for point in burst.points if point.output_rate is not None]
    step = f"step {burst.step}" if burst.step is not None else "no step"
    best = f"{max(rates):,.0f} tok/s" if rates else str(burst.state)
    return Content.assemble(
        (f"{glyph} ", f"bold {colour}"),
        (f"{step:<9}", "bold"),
        (f"{time_of_day(at) if at else '':<9}", "$muted"),
        f"{best:>14}",
    )
