"""Two steps side by side: the answer in a sentence, the table per cell, the heat map, the output check."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content

from ddtui.actions.action import Action, Where
from ddtui.bench.compare import METRICS, CellComparison, Comparison, NotComparable
from ddtui.bench.model import Cell
from ddtui.bindings import bindings
from ddtui.desk import Desk, said
from ddtui.past import Past
from ddtui.screens.paned import PanedScreen
from ddtui.store.listing import StepRow
from ddtui.store.model import HistoryError
from ddtui.view import View
from ddtui.widgets import compare_words, row_words
from ddtui.widgets.cells import cut
from ddtui.widgets.heat_map import HeatMap
from ddtui.widgets.pane import Pane
from ddtui.widgets.pane_tabs import PaneRow
from ddtui.widgets.row_view import RowView
from ddtui.widgets.search_list import SearchList
from ddtui.widgets.words_view import Words

NARROW = 100  # columns under which panes become tabs
WIDE = 180


class AnswerPane(Pane):
    """The two sides, the sentence, the output check, the table."""

    def __init__(self) -> None:
        super().__init__("Answer", id="compare-answer")
        self.found: Comparison | None = None
        self.metric = 0
        self._sides: tuple[str, str] = ("", "")
        self.table: RowView[CellComparison] = RowView(self._row, lambda cell: cell.cell, id="compare-table")

    def compose(self) -> ComposeResult:
        yield Words(id="sides")
        with VerticalScroll(classes="answer-text", can_focus=False):
            yield Words(id="sentence")
            yield Words(id="outputs")
        yield Words(id="table-head")
        yield self.table

    def show(self, found: Comparison | None, text: Content) -> None:
        """A comparison; without one only the text, which says why there is none."""
        self.found = found
        self.query_one("#sentence", Words).show(text if found is None else compare_words.sentence(found))
        words = Content("") if found is None else compare_words.outputs(found)
        outputs = self.query_one("#outputs", Words)
        outputs.display = bool(words.plain)
        outputs.show(words)
        self.set_state("a preview" if found is not None and found.preview else "")
        self.table.show(found.cells if found is not None else ())
        self._draw_head()

    def show_sides(self, a: str, b: str) -> None:
        """Which steps A and B are, in words."""
        self._sides = (a, b)
        self._draw_head()

    def turn(self, metric: int) -> None:
        self.metric = metric
        self.table.redraw()
        self._draw_head()

    def on_resize(self) -> None:
        self._draw_head()

    @property
    def _width(self) -> int:
        return max(20, self.content_size.width - 1)

    def _draw_head(self) -> None:
        cells = self.found.cells if self.found is not None else ()
        width = self._width
        head = compare_words.head(cells, width, self.metric) if cells else Content("")
        self.query_one("#table-head", Words).show(head)
        self.query_one("#sides", Words).show(
            Content("\n").join(
                Content.assemble((f"{letter}  ", f"bold {style}"), cut(words, width - 3))
                for letter, style, words in zip("AB", ("$series-a", "$series-b"), self._sides, strict=True)
            )
        )

    def _row(self, cell: CellComparison, width: int) -> Content:
        assert self.found is not None
        return compare_words.row(cell, self.found.cells, self._width, self.metric)


class HeatPane(Pane):
    """The heat map, and the cell under its cursor whole."""

    def __init__(self) -> None:
        super().__init__("Heat map", id="compare-heat", tab="Heat map")
        self.map = HeatMap()
        self._cell: CellComparison | None = None

    def compose(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            yield self.map
            yield Words(id="cell-whole")
            yield Words(id="heat-legend")

    def show(self, found: Comparison | None, metric: int) -> None:
        self.set_title(f"{METRICS[metric].label}, B against A")
        self.map.show(compare_words.heats(found.cells, METRICS[metric]) if found is not None else ())
        self.query_one("#heat-legend", Words).show(compare_words.legend(METRICS[metric]))

    def show_cell(self, cell: CellComparison | None) -> None:
        self._cell = cell
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        cell = self._cell
        width = max(20, self.content_size.width - 1)
        nothing = Content.styled(
            "nothing to compare yet: a shade for each cell that both steps measured", "$muted"
        )
        words = compare_words.whole(cell, width) if cell is not None else nothing
        self.query_one("#cell-whole", Words).show(words)


class CompareScreen(PanedScreen):
    """The steps on the left: enter makes one B, `a` makes one A."""

    PLACE: ClassVar[Where] = Where.COMPARE
    PARTS: ClassVar[tuple[Where, ...]] = (Where.STEPS, Where.PANES)
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Where.COMPARE),
        *bindings(Where.STEPS),
        Binding("slash", "filter", "search", id="filter", key_display="/"),
    ]

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.order = [knob.name for knob in desk.view.profile.knobs]
        self.steps: SearchList[StepRow] = SearchList(
            "Steps", self._line, lambda row: row.id, hint="budget=16 …", id="compare-steps"
        )
        self.answer, self.heat = AnswerPane(), HeatPane()
        self.row = PaneRow(self.steps, self.answer, self.heat, id="compare-row")
        self.rows = (self.row,)
        self.everywhere = False
        self.found: Comparison | None = None
        self.refusal: NotComparable | None = None
        self._known: dict[int, StepRow] = {}

    def body(self) -> ComposeResult:
        self._arrange(self.app.size.width)
        yield self.row

    def on_mount(self) -> None:
        self.steps.view.focus()

    def on_resize(self, event: events.Resize) -> None:
        self._arrange(event.size.width)

    def _arrange(self, width: int) -> None:
        self.row.set_class(width < NARROW, "-tabbed")
        self.set_class(width >= WIDE, "-wide")

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        self.console.spawn("compare-steps", self._read, exclusive=True)

    def show_view(self, view: View) -> None:
        pass

    # the steps

    @property
    def past(self) -> Past | None:
        return self.desk.session.past

    def _line(self, row: StepRow, width: int) -> Content:
        a, b = self.desk.pair
        mark = ("A" if row.id == a else "") + ("B" if row.id == b else "")
        return row_words.line(row, width, self.order, hosts=self.everywhere, mark=mark)

    async def _read(self) -> None:
        """The list of steps; and the first time what is compared by itself: the newest with the baseline."""
        past = self.past
        if past is None:
            self.answer.show(None, Content("there is no history to compare in; a notice says why"))
            return
        try:
            rows = await past.steps(search=self.steps.text, everywhere=self.everywhere)
            if None in self.desk.pair:
                a, b = await past.newest_pair()
                self.desk.pair = (self.desk.pair[0] or a, self.desk.pair[1] or b)
        except HistoryError as error:
            self.answer.show(None, Content.styled(said(error), "$error"))
            return
        self._known |= {row.id: row for row in rows}
        await self._compare(knowingly=False)  # before the list is shown: both come in one frame
        empty = "nothing is found" if self.steps.text else "no step was measured yet: x measures one"
        self.steps.view.show(rows, empty=empty)
        self.steps.set_title(f"Steps ({len(rows):,})  {' '.join(self.order)}")
        if self.steps.text == "":
            self.steps.view.select(self.desk.pair[1])

    def on_search_list_searched(self, event: SearchList.Searched) -> None:
        event.stop()
        self.console.spawn("compare-steps", self._read, exclusive=True)

    # the comparison

    def _put(self, a: int | None, b: int | None, *, knowingly: bool = False) -> None:
        self.desk.pair = (a, b)
        self.steps.view.redraw()
        self.console.spawn("compare", partial(self._compare, knowingly=knowingly), exclusive=True)

    async def _compare(self, *, knowingly: bool) -> None:
        past, (a, b) = self.past, self.desk.pair
        self.found = self.refusal = None
        text = Content("")
        if past is None or a is None or b is None:
            text = Content("two measured steps are needed: x measures the one in force")
        elif a == b:
            text = Content(
                "A and B are the same step. Choose another: enter makes the step under the cursor B, "
                "a makes it A."
            )
        else:
            try:
                self.found = await past.compare(a, b, knowingly=knowingly)
            except NotComparable as refusal:
                self.refusal = refusal
                words = str(refusal).partition("; compare them knowingly")[0]
                hint = (
                    "\nY compares them knowingly: what differs stays on the screen." if _may(refusal) else ""
                )
                text = Content.assemble(("✗ ", "bold $error"), (words, "bold"), (hint, "$muted"))
            except HistoryError as error:
                text = Content.styled(said(error), "$error")
        self.answer.show_sides(self._side(a), self._side(b))
        self.answer.show(self.found, text)
        self.heat.show(self.found, self.answer.metric)
        self._show_cell()
        self.refresh_bindings()

    def _side(self, id: int | None) -> str:
        row = self._known.get(id) if id is not None else None
        if row is None:
            return "no step" if id is None else "a step that is not in the list"
        knobs = ", ".join(f"{name} {row_words.values({name: v}, ())}" for name, v in row.knobs.items())
        return f"step {row.number}   {knobs}" + (f"   {row.host}" if self.everywhere else "")

    # the cell under the cursor: of the table and of the heat map at once

    @on(RowView.Moved, "#compare-table")
    def _row_moved(self) -> None:
        cell = self.answer.table.row
        if cell is not None and self.heat.map.cursor != cell.cell:
            self.heat.map.cursor = cell.cell
        self._show_cell()

    def on_heat_map_moved(self, event: HeatMap.Moved) -> None:
        event.stop()
        self._select(event.cell)

    def _select(self, cell: Cell) -> None:
        self.answer.table.select(cell)
        self._show_cell()

    def _show_cell(self) -> None:
        self.heat.show_cell(self.answer.table.row if self.found is not None else None)

    # actions

    @on(RowView.Chosen, "#compare-steps-rows")
    def _chosen(self) -> None:
        self.action_pick_b()

    def action_pick_b(self) -> None:
        row = self.steps.view.row
        if row is not None:
            self._put(self.desk.pair[0], row.id)
            if self.row.tabbed:
                self.show_pane(self.answer, focus=True)

    def action_pick_a(self) -> None:
        row = self.steps.view.row
        if row is not None:
            self._put(row.id, self.desk.pair[1])

    def action_swap(self) -> None:
        a, b = self.desk.pair
        self._put(b, a)

    def action_baseline_as_a(self) -> None:
        self.console.spawn("compare", self._against_baseline, exclusive=True)

    async def _against_baseline(self) -> None:
        base = await self.past.baseline() if self.past is not None else None
        if base is None:
            self.notify("nothing was measured yet", severity="warning", markup=False)
            return
        self.desk.pair = (base, self.desk.pair[1])
        self.steps.view.redraw()
        await self._compare(knowingly=False)

    def action_metric(self) -> None:
        metric = (self.answer.metric + 1) % len(METRICS)
        self.answer.turn(metric)
        self.heat.show(self.found, metric)

    def why_not(self, action: Action) -> str | None:
        if action.id == "knowingly" and (self.refusal is None or not _may(self.refusal)):
            return "nothing is refused here that could be compared knowingly"
        return super().why_not(action)

    def action_knowingly(self) -> None:
        if self.may("knowingly"):
            self._put(*self.desk.pair, knowingly=True)

    def action_all_hosts(self) -> None:
        self.everywhere = not self.everywhere
        self.console.spawn("compare-steps", self._read, exclusive=True)

    def action_filter(self) -> None:
        self.show_pane(self.steps)
        self.steps.start()


def _may(refusal: NotComparable) -> bool:
    """Whether a comparison that was refused can be had knowingly."""
    return "knowingly" in str(refusal)
