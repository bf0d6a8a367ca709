"""A chart in a pane, cut at one context length or one concurrency; the burst that runs below it."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from ddtui.actions.action import Where
from ddtui.bench.model import Burst, BurstState
from ddtui.bindings import bindings
from ddtui.view import RUNNING, View
from ddtui.widgets import chart_data
from ddtui.widgets.cells import cut
from ddtui.widgets.chart import Chart
from ddtui.widgets.pane import Pane
from ddtui.widgets.progress_bar import bar
from ddtui.widgets.words_view import Words
from ddtui.words import tokens

Kind = Literal["rate", "accept"]
TITLES: dict[Kind, str] = {"rate": "tok/s by concurrency", "accept": "accept length by context"}
TABS: dict[Kind, str] = {"rate": "tok/s", "accept": "accept length"}


class ChartPane(Pane):
    """`rate`: tok/s over concurrency at one context. `accept`: accept length over context."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.CHART)
    DEFAULT_CSS = """
    ChartPane {
        Chart { height: 1fr; }
        .burst-line { height: 1; display: none; }
        .burst-line.-shown { display: block; }
    }
    """

    def __init__(self, kind: Kind) -> None:
        super().__init__(TITLES[kind], id=f"chart-{kind}", tab=TABS[kind])
        self.kind = kind
        self._view: View | None = None
        self._slice: int | None = None  # chosen by hand; None: where the newest burst has most points

    def compose(self) -> ComposeResult:
        yield Chart("no burst yet\nx measures this step")
        yield Words(classes="burst-line")

    def show(self, view: View) -> None:
        self._view = view
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    @property
    def slices(self) -> list[int]:
        if self._view is None:
            return []
        measured = chart_data.contexts if self.kind == "rate" else chart_data.concurrencies
        return measured(self._view.overlay)

    @property
    def slice(self) -> int | None:
        slices = self.slices
        if self._slice in slices:
            return self._slice
        newest = self._view.overlay[1] if self._view is not None else None
        if newest is None:
            return None
        cells = [point.cell for point in newest.points]
        measured = Counter(cell.context if self.kind == "rate" else cell.concurrency for cell in cells)
        return max(measured, key=lambda at: (measured[at], at))

    def _draw(self) -> None:
        view = self._view
        if view is None:
            return
        before, newest = view.overlay
        make = chart_data.rate_by_concurrency if self.kind == "rate" else chart_data.accept_by_context
        chart = self.query_one(Chart)
        chart.show(make(before, newest, self.slice))
        at = self.slice
        title = TITLES[self.kind] if self.size.width >= 48 else TABS[self.kind]
        if at is not None:
            title = f"{title}, " + (f"ctx {tokens(at)}" if self.kind == "rate" else f"C = {at}")
            if len(self.slices) > 1:
                title += f"  {self.slices.index(at) + 1}/{len(self.slices)} ↑↓"
        self.set_title(title)
        self.set_state(chart.reading)
        self._draw_burst(view.bursts[0] if view.bursts else None)

    def _draw_burst(self, burst: Burst | None) -> None:
        line = self.query_one(".burst-line", Words)
        shown = (
            self.kind == "rate" and burst is not None and (burst.state in RUNNING or burst.state in FAILED)
        )
        line.set_class(shown, "-shown")
        if shown and burst is not None:
            line.show(burst_line(burst, max(10, self.content_size.width)))

    def on_chart_read(self, event: Chart.Read) -> None:
        event.stop()
        self.set_state(event.text)

    def action_read_next(self) -> None:
        self.query_one(Chart).read(1)

    def action_read_previous(self) -> None:
        self.query_one(Chart).read(-1)

    def action_next_slice(self) -> None:
        self._move_slice(1)

    def action_previous_slice(self) -> None:
        self._move_slice(-1)

    def _move_slice(self, by: int) -> None:
        slices, at = self.slices, self.slice
        if slices and at is not None:
            self._slice = slices[(slices.index(at) + by) % len(slices)]
            self._draw()


FAILED = frozenset({BurstState.FAILED, BurstState.CANCELLED})


def burst_line(burst: Burst, width: int) -> Content:
    """The burst in one line: what is measured, how far it is, or why it ended."""
    if burst.state in FAILED:
        glyph, colour = ("✗", "$error") if burst.state is BurstState.FAILED else ("–", "$muted")
        why = f": {burst.text}" if burst.text and burst.text != burst.state else ""
        return Content.assemble((f"{glyph} ", colour), cut(f"burst {burst.state}{why}", width - 2))
    if burst.cell is None or burst.state is not BurstState.RUNNING:
        return bar(width, burst.fraction, burst.eta_seconds, label=cut(burst.text or burst.state, width // 2))
    label = f"C={burst.cell.concurrency} ctx={tokens(burst.cell.context)}"
    return bar(width, burst.fraction, burst.eta_seconds, label=label)
