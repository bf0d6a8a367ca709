"""The tune screen: every layer side by side, the knobs, the verdicts, and what was measured."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.geometry import Size

from ddtui.actions.action import Where
from ddtui.actions.table import BY_ID
from ddtui.bindings import bindings
from ddtui.desk import Desk
from ddtui.messages import KnobEdit, KnobNudge, NextStepChosen
from ddtui.screens.paned import PanedScreen
from ddtui.tuning.model import Op, Turn
from ddtui.view import View
from ddtui.widgets.chart_pane import ChartPane
from ddtui.widgets.checks_pane import ChecksPane
from ddtui.widgets.drafter_pane import DrafterPane
from ddtui.widgets.gpu_strip import GpuStrip
from ddtui.widgets.journal_pane import JournalPane
from ddtui.widgets.knob_table import KnobTable
from ddtui.widgets.pane_tabs import PaneRow
from ddtui.widgets.service_pane import ServicePane

NARROW = 100  # columns under which panes become tabs
MEDIUM = 130  # columns under which the service gets the room first


class TuneScreen(PanedScreen):
    """Drafter, service and journal above; checks and the two charts below."""

    PLACE: ClassVar[Where] = Where.TUNE
    KNOB_KEYS: ClassVar[bool] = True
    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.TUNE)
    CSS_PATH = "tune.tcss"

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.drafter, self.service = DrafterPane(), ServicePane()
        self.journal = JournalPane(desk.store, memory=desk.memory, now=desk.now)
        self.checks = ChecksPane(desk.now)
        self.charts = (ChartPane("rate"), ChartPane("accept"))
        self.upper = PaneRow(self.drafter, self.service, self.journal, id="upper")
        self.lower = PaneRow(self.checks, *self.charts, id="lower")
        self.rows = (self.upper, self.lower)
        self.gpus = GpuStrip(id="gpus")

    def body(self) -> ComposeResult:
        yield self.upper
        yield self.lower
        yield self.gpus

    def on_mount(self) -> None:
        self._arrange(self.app.size)
        self.upper.show_pane(1)
        self.service.query_one(KnobTable).focus()

    def on_resize(self, event: events.Resize) -> None:
        self._arrange(event.size)

    def _arrange(self, size: Size) -> None:
        self.set_class(size.width < MEDIUM, "-medium")
        for row in (self.upper, self.lower):
            row.set_class(size.width < NARROW, "-tabbed")

    def show_view(self, view: View) -> None:
        self.drafter.show(view.tune.drafter)
        self.service.show(view)
        self.checks.show(view)
        for chart in self.charts:
            chart.show(view)
        self.journal.show_link(view.connected)
        self.gpus.known = (
            (view.tune.gpus, view.tune.gpus_unknown) if view.connected else ((), "not known without the link")
        )

    # panes

    def action_filter(self) -> None:
        self.upper.show_pane(2)
        self.journal.start_filter()

    # knobs

    def action_knob(self, name: str) -> None:
        """The key of a knob."""
        if not self.may(f"knob-{name}"):
            return
        self.upper.show_pane(1)
        table = self.service.query_one(KnobTable)
        table.select(name)
        table.focus()  # enter reviews from there
        self.console.edit(name)

    def on_knob_edit(self, event: KnobEdit) -> None:
        event.stop()
        if self.may("edit"):
            self.console.edit(event.knob)

    def on_knob_nudge(self, event: KnobNudge) -> None:
        event.stop()
        if self.may("raise"):
            why = self.desk.nudge(event.knob, event.by)
            if why is not None:
                self.notify(why, severity="warning", timeout=3, markup=False)

    def action_undo(self) -> None:
        if self.may("undo"):
            self.desk.undo_turns()

    def action_flag(self) -> None:
        if self.may("flag"):
            self.console.edit(None)

    # the server

    def action_review(self) -> None:
        table = self.service.query_one(KnobTable)
        if not self.desk.view.turns and table.has_focus and self.desk.why_not(BY_ID["edit"]) is None:
            table.action_edit()
        elif self.may("review"):
            self.console.review()

    def action_ab(self) -> None:
        if self.may("ab"):
            self.console.quick_ab()

    def action_restart(self) -> None:
        if self.may("restart"):
            self.console.change("restart")

    def action_rollback(self) -> None:
        if self.may("rollback"):
            self.console.change("roll back")

    def action_refresh(self) -> None:
        if self.may("refresh"):
            self.console.refresh_layers()

    def action_progress(self) -> None:
        self.change_hidden = not self.change_hidden

    def on_next_step_chosen(self, event: NextStepChosen) -> None:
        """A check's next step: turn a knob, restart, burst, or look at a place."""
        event.stop()
        step = event.step
        match step.action:
            case "turn":
                if not self.may("raise"):
                    return
                knob = step.arguments.get("knob") or step.arguments.get("flag") or event.verdict.subject
                value = step.arguments.get("value")
                op = Op.UNSET if step.arguments.get("op") == Op.UNSET else Op.SET
                self.desk.turn(Turn(knob, op, value if op is Op.SET else None))
                self.upper.show_pane(1)
                self.service.query_one(KnobTable).select(knob)
                self.call_after_refresh(self.service.query_one(KnobTable).focus)
                self.notify("turned; ↵ reviews and applies", title=step.label, timeout=4, markup=False)
            case "restart" | "reload":
                self.action_restart()
            case "burst":
                self.console.measure([int(n) for n in step.arguments.get("context", "").split(",") if n])
            case "open-log" | "open-unit":
                self.console.look(step.action, step.arguments)
            case "rebase":
                if self.may("restart"):
                    self.console.review()
            case "refresh":
                self.action_refresh()
            case other:
                self.console.act(other)
