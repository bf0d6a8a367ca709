"""The history: steps, bursts, changes, sweeps and notes; each whole beside it; charts and advice from all."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ddtui.actions.action import Where
from ddtui.actions.table import BY_ID
from ddtui.bench.advice import Advice
from ddtui.bindings import bindings
from ddtui.desk import Desk, said
from ddtui.past import KINDS, Kind, Past, Row, Sheet
from ddtui.screens.ask_text import AskText, ExportDialog
from ddtui.screens.dialogs import Confirm
from ddtui.screens.paned import PanedScreen
from ddtui.screens.waiting import Patience, Stopped
from ddtui.store.exchange import Tell
from ddtui.store.listing import BurstRow, NoteRow, StepRow, SweepRow
from ddtui.store.model import HistoryError
from ddtui.tuning.model import Op, Turn
from ddtui.widgets import row_words, sheet_words
from ddtui.widgets.choices import Choices
from ddtui.widgets.figure_pane import FigurePane
from ddtui.widgets.pane import Pane
from ddtui.widgets.pane_tabs import PaneRow
from ddtui.widgets.row_view import RowView
from ddtui.widgets.search_list import SearchList
from ddtui.widgets.words_view import Words
from ddtui.words import plural

NARROW = 110  # columns under which panes become tabs
MEDIUM = 180  # columns under which charts and advice stand one below the other
HINTS: dict[Kind, str] = {
    "steps": "budget=16, --flag, version, note …",
    "bursts": "id, state, workload, note …",
    "changes": "knob, file, result …",
    "sweeps": "order, knob, outcome …",
    "notes": "text …",
}


class SheetPane(Pane):
    """What is under the cursor, whole."""

    def __init__(self) -> None:
        super().__init__("Step", id="history-sheet", tab="Detail")
        self.sheet: Sheet | None = None

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Words(id="sheet-words")

    def show(self, sheet: Sheet | None) -> None:
        self.sheet = sheet
        self.set_title(sheet_words.title(sheet) if sheet is not None else "Detail")
        self.query_one(VerticalScroll).scroll_home(animate=False)
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        width = max(30, self.content_size.width - 2)
        words = sheet_words.words(self.sheet, width) if self.sheet is not None else Content("")
        self.query_one("#sheet-words", Words).show(words)


class AdvicePane(Pane):
    """What to try next and why; enter turns the knob."""

    def __init__(self) -> None:
        super().__init__("What to try next", id="history-advice", tab="Advice")
        self.advice: tuple[Advice, ...] = ()

    def compose(self) -> ComposeResult:
        yield Choices(id="advice")

    def show(self, advice: tuple[Advice, ...]) -> None:
        self.advice = advice
        self.query_one(Choices).set_options([Option(advice_words(one)) for one in advice] or [NO_ADVICE])
        self.query_one(Choices).highlighted = 0 if advice else None
        self.set_title(f"What to try next ({len(advice)})" if advice else "What to try next")


NO_ADVICE = Option(
    Content.styled(
        "none yet: it takes two settings that differ in one knob alone, measured beyond a preview", "$muted"
    ),
    disabled=True,
)


def advice_words(one: Advice) -> Content:
    """The advice and its evidence, line by line."""
    lines = [Content.assemble(("→ ", "bold $primary"), (one.text, "bold"))]
    lines += [Content.styled(f"   {line}", "$muted") for line in one.evidence]
    return Content("\n").join(lines)


class HistoryScreen(PanedScreen):
    """`v` changes what is listed, `/` searches it."""

    PLACE: ClassVar[Where] = Where.HISTORY
    PARTS: ClassVar[tuple[Where, ...]] = (Where.STEPS, Where.CHART, Where.PANES)
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Where.HISTORY),
        *bindings(Where.STEPS),
        Binding("slash", "filter", "search", id="filter", key_display="/"),
    ]

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.order = [knob.name for knob in desk.view.profile.knobs]
        self.kind: Kind = "steps"
        self.list: SearchList[Row] = SearchList(
            "Steps",
            self._line,
            lambda row: (type(row), row.id),
            hint=HINTS["steps"],
            id="history-list",
            tab="List",
        )
        self._patience = Patience(lambda dialog: self.console.ask(dialog))
        self.sheet, self.advice = SheetPane(), AdvicePane()
        self.figures = FigurePane(id="history-figures")
        self.row = PaneRow(self.list, self.sheet, self.figures, self.advice, id="history-row")
        self.rows = (self.row,)
        self.everywhere = False

    def body(self) -> ComposeResult:
        self._arrange(self.app.size.width)
        yield self.row

    def on_mount(self) -> None:
        self.list.view.focus()

    def on_resize(self, event: events.Resize) -> None:
        self._arrange(event.size.width)

    def _arrange(self, width: int) -> None:
        self.row.set_class(width < NARROW, "-tabbed")
        self.set_class(NARROW <= width < MEDIUM, "-medium")

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        self._reload()

    @property
    def past(self) -> Past | None:
        return self.desk.session.past

    # reading

    def _reload(self) -> None:
        self.console.spawn("history-list", self._read_all, exclusive=True)

    async def _read_all(self) -> None:
        """The list first; what is drawn from all steps together takes longer and comes after it."""
        await self._read()
        self.call_after_refresh(self.console.spawn, "history-overview", self._read_overview, exclusive=True)

    async def _read(self) -> None:
        past, kind = self.past, self.kind
        if past is None:
            self.list.view.show((), empty="there is no history; a notice says why")
            return
        try:
            rows = await past.rows(kind, search=self.list.text, everywhere=self.everywhere)
        except HistoryError as error:
            self.list.view.show((), empty=said(error))
            return
        if kind != self.kind:
            return
        nothing = "nothing is found" if self.list.text else f"no {kind} yet"
        self.list.view.show(rows, empty=nothing)
        where = ", all hosts" if self.everywhere else ""
        knobs = f"  {' '.join(self.order)}" if kind == "steps" else ""
        self.list.set_title(f"{kind.capitalize()} ({len(rows):,}){where}{knobs}")
        if not rows:
            self.sheet.show(None)

    async def _read_overview(self) -> None:
        if self.past is None:
            return
        try:
            overview = await self.past.overview()
        except HistoryError as error:
            self.notify(said(error), severity="warning", markup=False)
            return
        self.figures.show(overview.figures)
        self.advice.show(overview.advice)

    def _line(self, row: Row, width: int) -> Content:
        return row_words.line(row, width, self.order, hosts=self.everywhere)

    def on_search_list_searched(self, event: SearchList.Searched) -> None:
        event.stop()
        self.console.spawn("history-list", self._read, exclusive=True)

    @on(RowView.Moved, "#history-list-rows")
    def _moved(self) -> None:
        self.console.spawn("history-sheet", self._read_sheet, exclusive=True)

    async def _read_sheet(self) -> None:
        past, row = self.past, self.list.view.row
        if past is None or row is None:
            return
        try:
            self.sheet.show(await past.sheet(row))
        except (HistoryError, ValueError) as error:
            self.notify(said(error), title="history", severity="warning", markup=False)

    # actions

    def action_kind(self) -> None:
        self.kind = KINDS[(KINDS.index(self.kind) + 1) % len(KINDS)]
        self.list.search.placeholder = HINTS[self.kind]
        self.list.view.show((), empty="reading …")
        self.console.spawn("history-list", self._read, exclusive=True)

    def action_all_hosts(self) -> None:
        self.everywhere = not self.everywhere
        self.console.spawn("history-list", self._read, exclusive=True)

    def action_filter(self) -> None:
        self.show_pane(self.list)
        self.list.start()

    @on(RowView.Chosen, "#history-list-rows")
    def _chosen(self) -> None:
        self.action_compare_this()

    def action_compare_this(self) -> None:
        """A step is compared; a note leads to its step; a burst, change or sweep is read whole."""
        row, sheet = self.list.view.row, self.sheet.sheet
        if isinstance(row, StepRow):
            self.desk.pair = (self.desk.pair[0], row.id)
            self.console.go("compare")
        elif isinstance(row, SweepRow):
            self.console.go("sweep")
        elif sheet is not None:
            self.show_pane(self.sheet, focus=True)

    def action_note(self) -> None:
        row = self.list.view.row
        if row is None or isinstance(row, SweepRow):
            self.notify("a note goes on a step, a burst or a change", severity="warning", markup=False)
            return
        self.console.spawn("history-write", partial(self._note, row), exclusive=True)

    async def _note(self, row: Row) -> None:
        text = await self.console.ask(AskText("Note", f"on {_name(row)}", hint="what you saw", yes="Add"))
        if text and self.past is not None:
            await self._write(self.past.add_note(row, text), "noted")

    def action_mark_baseline(self) -> None:
        row = self.list.view.row
        if isinstance(row, StepRow) and self.past is not None:
            work = self.past.add_note(row, "baseline")
            self.console.spawn("history-write", self._write(work, f"step {row.number} is the baseline"))

    def action_delete(self) -> None:
        row = self.list.view.row
        if not isinstance(row, (StepRow, BurstRow)):
            self.notify("steps and bursts can be deleted", severity="warning", markup=False)
            return
        self.console.spawn("history-write", partial(self._delete, row), exclusive=True)

    async def _delete(self, row: StepRow | BurstRow) -> None:
        what = _name(row)
        if isinstance(row, StepRow):
            what += f" of {row.host} with {plural(row.bursts, 'burst')}"
        text = f"Delete {what} and the raw records for good? Nothing on the host changes."
        if not await self.console.ask(Confirm("Delete", text, yes="Delete", danger=True)):
            return
        if isinstance(row, StepRow) and row.id in self.desk.pair:
            self.desk.pair = (None, None)
        if self.past is not None:
            await self._write(self.past.delete(row), f"deleted {what}")

    def action_export(self) -> None:
        self.console.spawn("history-write", self._export, exclusive=True)

    async def _export(self) -> None:
        past = self.past
        if past is None:
            return
        name = f"ddtui-history-{time.strftime('%Y%m%d-%H%M%S', time.localtime(self.desk.now()))}.jsonl"
        wish = await self.console.ask(ExportDialog(str(Path.cwd() / name), past.host))
        if wish is not None:
            try:
                counts = await self._waiting(
                    "Exporting",
                    lambda tell: past.export(
                        wish.path, everywhere=wish.everywhere, records=wish.records, tell=tell
                    ),
                )
            except Stopped:
                return
            except HistoryError as error:
                self.notify(said(error), title="export", severity="error", markup=False)
                return
            words = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in counts.items())
            self.notify(f"{wish.path}: {words or 'nothing'}", title="exported", markup=False)

    async def _waiting(self, what: str, act: Callable[[Tell], Awaitable[Counter[str]]]) -> Counter[str]:
        """What it gives; with a bar, and a way out, once it takes a moment. Raises Stopped."""
        done: list[float | None] = [None]

        def tell(part: float | None) -> None:
            done[0] = part

        return await self._patience.wait(what, act(tell), lambda: done[0])

    def action_import(self) -> None:
        self.console.spawn("history-write", self._import, exclusive=True)

    async def _import(self) -> None:
        past = self.past
        dialog = AskText(
            "Import", "An exported history; what is there stays as it is.", hint="FILE", yes="Import"
        )
        path = await self.console.ask(dialog)
        if path and past is not None:
            try:
                counts = await self._waiting("Importing", lambda tell: past.take_in(path, tell))
            except Stopped:
                return
            except HistoryError as error:
                self.notify(said(error), title="import", severity="error", markup=False)
                return
            words = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in counts.items())
            self.notify(f"new: {words or 'nothing'}", title="imported", markup=False)
            self._reload()

    async def _write(self, work: object, done: str) -> None:
        try:
            await work  # type: ignore[misc]
        except HistoryError as error:
            self.notify(said(error), title="history", severity="error", markup=False)
            return
        self.notify(done, timeout=3, markup=False)
        self._reload()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """The operator takes an advice: the knob is turned, and reviewed on the tune screen."""
        event.stop()
        advice = self.advice.advice[event.option_index]
        why = self.desk.why_not(BY_ID["edit"])
        if advice.value is None:
            self.notify("there is nothing to set, only to know", timeout=4, markup=False)
        elif why is not None:
            self.notify(why, title="turn", severity="warning", markup=False)
        else:
            off = advice.value == "off"
            turn = Turn(advice.knob, Op.UNSET) if off else Turn(advice.knob, Op.SET, advice.value)
            self.desk.turn(turn)
            self.notify("turned; ↵ reviews and applies, A measures it against what is in force", markup=False)
            self.console.go("tune")


def _name(row: Row) -> str:
    match row:
        case StepRow():
            return f"step {row.number}"
        case BurstRow():
            return f"burst {row.id}"
        case NoteRow():
            return row.on
        case _:
            return row.id
