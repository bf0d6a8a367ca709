"""The figures of the history in a pane, one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from ddtui.actions.action import Where
from ddtui.bindings import bindings
from ddtui.report.figures import Figure
from ddtui.widgets import figure_chart
from ddtui.widgets.cells import cut
from ddtui.widgets.chart import Chart
from ddtui.widgets.pane import Pane


class FigurePane(Pane):
    """Up and down change the figure, left and right read its points."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.CHART)
    DEFAULT_CSS = """
    FigurePane Chart { height: 1fr; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__("Charts", id=id, tab="Charts")
        self._figures: Sequence[Figure] = ()
        self._at = 0
        self.chart = Chart("nothing to draw yet\nx measures the step in force")

    def compose(self) -> ComposeResult:
        yield self.chart

    def show(self, figures: Sequence[Figure]) -> None:
        self._figures = figures
        self._at = min(self._at, max(0, len(figures) - 1))
        self._draw()

    def on_resize(self) -> None:
        self._draw_title()

    def _draw(self) -> None:
        if self._figures:
            self.chart.show(figure_chart.chart(self._figures[self._at]))
        self.set_state(self.chart.reading)
        self._draw_title()

    def _draw_title(self) -> None:
        if not self._figures:
            return
        place = f"  {self._at + 1}/{len(self._figures)} ↑↓" if len(self._figures) > 1 else ""
        title = self.chart.data.title if self.chart.data is not None else ""
        self.set_title(cut(title, max(8, self.size.width - 8 - len(place))) + place)

    def on_chart_read(self, event: Chart.Read) -> None:
        event.stop()
        self.set_state(cut(event.text, max(8, self.size.width - 6)))

    def action_read_next(self) -> None:
        self.chart.read(1)

    def action_read_previous(self) -> None:
        self.chart.read(-1)

    def action_next_slice(self) -> None:
        self._turn(1)

    def action_previous_slice(self) -> None:
        self._turn(-1)

    def _turn(self, by: int) -> None:
        if self._figures:
            self._at = (self._at + by) % len(self._figures)
            self._draw()
