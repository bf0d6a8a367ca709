"""Sweeps: set up here, what they take shown before they start, then watched; earlier ones gone on with."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content

from ddtui.actions.action import Where
from ddtui.bench import experiment, grid
from ddtui.bench.experiment import Trial
from ddtui.bench.target import BenchError
from ddtui.bindings import bindings
from ddtui.desk import Desk, said
from ddtui.past import SweepSheet
from ddtui.profile import Profile
from ddtui.screens.ask_text import AskText
from ddtui.screens.dialogs import Confirm
from ddtui.screens.paned import PanedScreen
from ddtui.screens.waiting import InPlace, Stopped
from ddtui.store.listing import SweepRow
from ddtui.store.model import HistoryError
from ddtui.tuning import telling
from ddtui.tuning.experiments import ExperimentState
from ddtui.tuning.forecast import Forecast
from ddtui.tuning.ledger import DONE
from ddtui.view import View
from ddtui.widgets import row_words, sheet_words, trial_words
from ddtui.widgets.pane import Pane
from ddtui.widgets.pane_tabs import PaneRow
from ddtui.widgets.row_view import RowView
from ddtui.widgets.sweep_form import SweepForm
from ddtui.widgets.words_view import Words
from ddtui.words import plural

NARROW = 110
WIDE = 180
TAKES = "What it takes"
SETTLED = 0.3  # seconds without a change, before what it takes is worked out
LISTED = 200  # settings that are listed


class PlanPane(Pane):
    """What it takes, and what is skipped and why; or an earlier sweep whole."""

    def __init__(self) -> None:
        super().__init__("What it takes", id="sweep-plan", tab="What it takes")
        self._content = Content("")

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Words(id="plan-words")

    def show(self, title: str, content: Content) -> None:
        self.set_title(title)
        self.query_one("#plan-words", Words).show(content)
        self.query_one(VerticalScroll).scroll_home(animate=False)


class TrialsPane(Pane):
    """What runs, the trials so far, and how it ended."""

    def __init__(self) -> None:
        super().__init__("Trials", id="sweep-trials")
        self.state: ExperimentState | None = None
        self.table: RowView[Trial] = RowView(self._row, lambda trial: trial.number, id="trial-table")

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="trial-text", can_focus=False):
            yield Words(id="trial-words")
        yield Words(id="trial-head")
        yield self.table

    def show(self, state: ExperimentState | None) -> None:
        if state is self.state and state is not None:
            return
        before, self.state = self.state, state
        if state is not None and (before is None or before.trials != state.trials or before.id != state.id):
            follow = before is None or self.table.cursor >= len(before.trials) - 1
            self.table.show(state.trials)
            if follow:
                self.table.cursor = len(state.trials) - 1
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    @property
    def _width(self) -> int:
        return max(30, self.content_size.width - 2)

    def _draw(self) -> None:
        state, words = self.state, self.query_one("#trial-words", Words)
        width = self._width
        if state is None:
            words.show(
                Content.styled(
                    "nothing runs: ^s starts what is set up, ^g goes on with an earlier one", "$muted"
                )
            )
            return
        kind = telling.NAMES[state.plan.order]
        self.set_title(f"{kind[:1].upper()}{kind[1:]} {state.id}")
        lines = trial_words.outcome_lines(state, width)
        if state.state == "running":
            lines = [trial_words.head_line(state, width), *trial_words.doing_lines(state, width)]
        words.show(Content("\n").join(lines))
        self.query_one("#trial-head", Words).show(trial_words.table_head(state.plan, width))

    def _row(self, trial: Trial, width: int) -> Content:
        assert self.state is not None
        trials = self.state.trials
        best, shared = trial_words.best_of(trials), len({one.host for one in trials}) > 1
        return trial_words.table_row(trial, self.state.plan, best, min(width, self._width), shared=shared)


class EarlierPane(Pane):
    """Sweeps, A/Bs and calibrations of before."""

    def __init__(self) -> None:
        super().__init__("Earlier", id="sweep-earlier")
        self.list: RowView[SweepRow] = RowView(row_line, lambda row: row.id, empty="reading …", id="earlier")

    def compose(self) -> ComposeResult:
        yield self.list


def row_line(row: SweepRow, width: int) -> Content:
    return row_words.line(row, width, ())


class SweepScreen(PanedScreen):
    """Set up on the left; what it takes and what comes out on the right."""

    PLACE: ClassVar[Where] = Where.SWEEP
    PARTS: ClassVar[tuple[Where, ...]] = (Where.PANES,)
    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.SWEEP)

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        profile = desk.view.profile
        self.form = SweepForm(profile.knobs, profile.bench)
        self.plan, self.trials, self.earlier = PlanPane(), TrialsPane(), EarlierPane()
        self.row = PaneRow(self.form, self.plan, self.earlier, self.trials, id="sweep-row")
        self.rows = (self.row,)
        self._others: Mapping[str, Profile] = {}  # those that may share it
        self._waiting = InPlace(partial(self.plan.show, TAKES), lambda: self.plan.content_size.width - 2)
        self._file = ""  # where the plan was read from or written to
        self._listed = (False, 0)  # whether one runs, and its trials, when the earlier ones were read

    def body(self) -> ComposeResult:
        self._arrange(self.app.size.width)
        yield self.row

    def on_mount(self) -> None:
        self.form.focus_first()
        if self.desk.view.trying:
            self.show_pane(self.trials, focus=True)

    def on_resize(self, event: events.Resize) -> None:
        self._arrange(event.size.width)

    def _arrange(self, width: int) -> None:
        self.row.set_class(width < NARROW, "-tabbed")
        self.set_class(width >= WIDE, "-wide")

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        self.console.spawn("sweep-earlier", self._read_earlier, exclusive=True)
        self.console.spawn("sweep-hosts", self._offer_hosts, exclusive=True)
        self._work_out()

    async def _offer_hosts(self) -> None:
        self._others = await self.console.other_profiles()
        self.form.offer_hosts(list(self._others))

    def show_view(self, view: View) -> None:
        self.form.offer(view.tune.knobs)
        self.trials.show(view.experiment)
        begun = len(view.experiment.trials) if view.experiment is not None else 0
        if self._listed != (view.trying, begun):
            started = view.trying and not self._listed[0]
            self._listed = view.trying, begun
            if started:
                self.show_pane(self.trials, focus=True)
            self.console.spawn("sweep-earlier", self._read_earlier, exclusive=True)

    # what it takes

    def on_sweep_form_changed(self, event: SweepForm.Changed) -> None:
        event.stop()
        self._work_out()

    def _work_out(self) -> None:
        """Show what it takes; an earlier sweep that is read meanwhile takes its place."""
        self.console.spawn("sweep-plan", self._forecast, exclusive=True)

    async def _forecast(self) -> None:
        await asyncio.sleep(SETTLED)
        if not self.form.children or not self.plan.children:
            return  # the console is being left
        try:
            wanted = self.form.plan()
            work = self.desk.session.forecast(wanted, hosts=1 + len(self.form.hosts))
            made = await self._waiting.wait(
                f"{plural(len(wanted.settings), 'setting')}: working it out", work
            )
        except Stopped:
            self.plan.show(TAKES, Content.styled("stopped; any change of the form works it out", "$muted"))
            return
        except Exception as error:
            self.plan.show(TAKES, Content.styled(said(error), "$warning"))
            return
        self.plan.show(TAKES, forecast_words(made))

    def action_back(self) -> None:
        """What is being worked out is stopped first."""
        if self._waiting.busy:
            self._waiting.stop()
        else:
            super().action_back()

    # earlier ones

    async def _read_earlier(self) -> None:
        past = self.desk.session.past
        try:
            rows = await past.rows("sweeps") if past is not None else []
        except HistoryError as error:
            self.earlier.list.show((), empty=said(error))
            return
        found = [row for row in rows if isinstance(row, SweepRow)]
        self.earlier.list.show(found, empty="no sweep yet")
        self.earlier.set_title(f"Earlier ({len(found)})")

    @on(RowView.Moved, "#earlier")
    def _moved(self) -> None:
        if self.earlier.list.has_focus:
            self.console.spawn("sweep-plan", self._read_sheet, exclusive=True)

    async def _read_sheet(self) -> None:
        past, row = self.desk.session.past, self.earlier.list.row
        if past is None or row is None:
            return
        try:
            sheet = await past.sheet(row)
        except HistoryError as error:
            self.plan.show("Earlier", Content.styled(said(error), "$error"))
            return
        if isinstance(sheet, SweepSheet):
            width = max(30, self.plan.content_size.width - 2)
            self.plan.show(sheet_words.title(sheet), sheet_words.words(sheet, width))

    @on(RowView.Chosen, "#earlier")
    def _chosen(self) -> None:
        row = self.earlier.list.row
        if row is not None and row.state != DONE:
            self.action_continue()
        else:
            self.console.spawn("sweep-plan", self._read_sheet, exclusive=True)
            self.show_pane(self.plan)

    # actions

    def action_start(self) -> None:
        if not self.may("start"):
            return
        try:
            wanted = self.form.plan()
        except Exception as error:
            self.notify(said(error), title="sweep", severity="warning", markup=False)
            return
        self.console.try_out(wanted, self._also())

    def _also(self) -> list[Profile]:
        return [self._others[name] for name in self.form.hosts]

    def action_continue(self) -> None:
        row = self.earlier.list.row
        if row is None or row.state == DONE:
            self.notify(
                "this one is done" if row else "there is no earlier one", severity="warning", markup=False
            )
        elif self.may("continue"):
            self.console.try_out(row.id, self._also())

    def action_open_plan(self) -> None:
        self.console.spawn("plan-file", self._open_plan, exclusive=True)

    async def _open_plan(self) -> None:
        about = "The sweep of a YAML file, as `ddtui sweep --plan` takes it."
        path = await self.console.ask(
            AskText("Open a plan", about, value=self._file, hint="FILE", yes="Open")
        )
        if path is None:
            return
        try:
            text = await asyncio.to_thread(_read, path)
            self.form.take(grid.read(text, path, self.desk.view.profile.bench))
        except (OSError, UnicodeDecodeError, BenchError) as error:
            self.notify(_why(path, "read", error), title="plan", severity="error", markup=False)
            return
        self._file = path
        self.form.set_title(f"Sweep: {Path(path).name}")
        self.form.focus_first()

    def action_save_plan(self) -> None:
        if self.may("save-plan"):
            self.console.spawn("plan-file", self._save_plan, exclusive=True)

    async def _save_plan(self) -> None:
        try:
            text = grid.write(self.form.plan())
        except (ValueError, BenchError) as error:
            self.notify(said(error), title="plan", severity="warning", markup=False)
            return
        about = "What is set up here as YAML, which `ddtui sweep --plan` and i here take."
        where = self._file or str(Path.cwd() / "sweep.yaml")
        path = await self.console.ask(AskText("Save the plan", about, value=where, hint="FILE", yes="Save"))
        if path is None:
            return
        over = Confirm("Save the plan", f"{path} is there already. Write over it?", yes="Write over it")
        try:
            if not await asyncio.to_thread(_write, path, text):
                if not await self.console.ask(over):
                    return
                await asyncio.to_thread(_write, path, text, over=True)
        except OSError as error:
            self.notify(_why(path, "written", error), title="plan", severity="error", markup=False)
            return
        self._file = path
        self.notify(path, title="saved", markup=False)

    def action_calibrate(self) -> None:
        if self.may("calibrate"):
            self.console.calibrate()


def _read(path: str) -> str:
    return Path(path).expanduser().read_text("utf-8")


def _write(path: str, text: str, *, over: bool = False) -> bool:
    """Whether it was written; a file that is there is, where that was said, written over."""
    try:
        with Path(path).expanduser().open("w" if over else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True


def _why(path: str, done: str, error: Exception) -> str:
    """Why a plan could not be read or written."""
    if isinstance(error, OSError):
        return f"{path} cannot be {done}: {error.strerror}"
    return f"{path}: it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)


def forecast_words(made: Forecast) -> Content:
    """What it takes, then what is skipped with its reason, then what will be tried."""
    plan = made.plan
    lines = [Content.styled(line, "bold" if at < 2 else "") for at, line in enumerate(telling.forecast(made))]
    if plan.skipped:
        lines += [
            Content(""),
            Content.styled(f"{plural(len(plan.skipped), 'setting')} skipped", "bold $warning"),
        ]
        lines += [
            Content.assemble((f"– {experiment.name(one)}: ", "$warning"), why)
            for one, why in plan.skipped[:LISTED]
        ]
    lines += [Content(""), Content.styled(f"{plural(len(plan.settings), 'setting')} to try", "$muted")]
    lines += [Content.styled(f"  {experiment.name(one)}", "$muted") for one in plan.settings[:LISTED]]
    return Content("\n").join(lines)
