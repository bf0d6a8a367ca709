"""The console: wires the desk, where the work is, to the screens, where the looks are."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual.app import App
from textual.binding import BindingType
from textual.command import CommandPalette, Provider
from textual.driver import Driver
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from ddtui import alerts, leaving, themes
from ddtui.actions import BY_ID, Where
from ddtui.ascii import InAscii
from ddtui.bindings import bindings, checked
from ddtui.desk import Desk, Event, said
from ddtui.messages import EarlierWanted
from ddtui.profile import Profile, ProfileError
from ddtui.screens.base import ConsoleScreen, Dialog, Work
from ddtui.screens.connect import ConnectScreen
from ddtui.screens.flows import Flows, OperatorAsker
from ddtui.screens.palette import Actions
from ddtui.screens.pick import Offer, PickScreen
from ddtui.screens.trials import EXPERIMENT, TrialFlows
from ddtui.session import Session
from ddtui.settings import Settings
from ddtui.view import ChangeKind, View

if TYPE_CHECKING:
    from ddtui.bench.experiment import ExperimentPlan

T = TypeVar("T")
log = logging.getLogger(__name__)


class DdtuiApp(App[int]):
    """The console on one profile, or on the one that is picked from `offers`.

    `open_session` makes the session, in a thread, after the first paint. `now` is the clock (unix time).
    """

    TITLE = "ddtui"
    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.EVERYWHERE)
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {Actions}
    ENABLE_COMMAND_PALETTE = False  # its key is one of our own actions

    def __init__(
        self,
        profile: Profile | None,
        *,
        open_session: Callable[[Profile], Session],
        offers: Sequence[Offer] = (),
        load_profile: Callable[[str], Profile] | None = None,
        now: Callable[[], float] = time.time,
        keymap: Mapping[str, str] | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.settings = settings or Settings()
        super().__init__()
        self._open_session = open_session
        self._offers, self._load_profile = offers, load_profile
        self._now = now
        self._desk: Desk | None = None
        self._cut: str | None = None  # the cut change that was asked about
        for theme in themes.THEMES:
            self.register_theme(theme)
        self.theme = self.settings.theme
        keymap = {**self.settings.keys, **(keymap or {})}
        if keymap:
            self.set_keymap(checked(keymap))
        if profile is not None:
            self._set_up(profile)

    # set-up

    def _set_up(self, profile: Profile) -> None:
        desk = self._desk = Desk(profile, now=self._now, keep_lines=self.settings.journal_lines)
        desk.changed = self._view_changed
        desk.happened = self._event
        self.flows = Flows(desk, self.ask, self.spawn)
        self.trials = TrialFlows(desk, self.ask, self.spawn)
        from ddtui.screens.bursts import BurstsScreen
        from ddtui.screens.logs import LogsScreen
        from ddtui.screens.tune import TuneScreen

        self.add_mode("connect", lambda: ConnectScreen(desk))
        self.add_mode("tune", lambda: TuneScreen(desk))
        self.add_mode("logs", lambda: LogsScreen(desk))
        self.add_mode("bursts", lambda: BurstsScreen(desk))
        for name in ("compare", "sweep", "history"):
            self.add_mode(name, partial(_decision_screen, name, desk))
        self.title = f"ddtui {profile.name}"

    @property
    def desk(self) -> Desk:
        if self._desk is None:
            raise RuntimeError("no profile has been picked yet")
        return self._desk

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.variable_defaults(self.current_theme)

    def _build_driver(
        self, headless: bool, inline: bool, mouse: bool, size: tuple[int, int] | None
    ) -> Driver:
        driver = super()._build_driver(headless, inline, mouse, size)
        if hasattr(driver, "_file"):  # drivers of real terminals
            driver._file = leaving.Forgiving(driver._file)
            if self.settings.ascii:
                driver._file = InAscii(driver._file)
        return driver

    def get_default_screen(self) -> Screen[Any]:
        if self._desk is not None:
            return ConnectScreen(self._desk)
        return PickScreen(self._offers)

    def on_mount(self) -> None:
        leaving.on_signals(asyncio.get_running_loop(), lambda status: self.exit(return_code=status))
        if self._desk is not None:
            self.call_after_refresh(self.reconnect)

    async def on_unmount(self) -> None:
        self.workers.cancel_all()
        if self._desk is not None:
            with suppress(Exception):  # leaving: a link that does not close in time is left to the system
                await self._desk.close()

    # workers: each named and grouped, no error lost

    def spawn(self, group: str, work: Work, *, exclusive: bool = False) -> None:
        """Run this in the background."""
        self.run_worker(work, name=group, group=group, exit_on_error=False, exclusive=exclusive)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            error = event.worker.error
            log.error("worker %s failed", event.worker.name, exc_info=error)
            if self._desk is not None:
                self._desk.tell("error", event.worker.name, said(error))
            else:
                self.notify(said(error), title=event.worker.name, severity="error", markup=False)

    async def ask(self, dialog: Dialog[T]) -> T | None:
        """Show a dialog and wait for its answer. From any task of the loop; None when it was cancelled."""
        answer: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()

        def answered(result: T | None) -> None:
            if not answer.done():
                answer.set_result(result)

        self.call_later(self.push_screen, dialog, answered)
        try:
            return await answer
        except asyncio.CancelledError:
            if dialog.is_attached:
                self.call_later(dialog.dismiss, None)
            raise

    # the way to the host

    def on_pick_screen_picked(self, event: PickScreen.Picked) -> None:
        if self._load_profile is not None:
            try:
                profile = self._load_profile(event.name)
            except ProfileError as error:
                self.notify(str(error), title=event.name, severity="error", markup=False)
                return
            self._set_up(profile)
            self.switch_mode("connect")
            self.reconnect()

    def reconnect(self) -> None:
        """Connect, from the first try to the first survey."""
        self.spawn("ssh", self._connect(), exclusive=True)

    async def _connect(self) -> None:
        desk, screen = self.desk, self.screen_stack[0]
        assert isinstance(screen, ConnectScreen)
        screen.fail(None)
        try:
            if not desk.attached:
                desk.attach(await asyncio.to_thread(self._open_session, desk.view.profile))
            await desk.connect(OperatorAsker(self.ask))
        except Exception as error:
            log.warning("no connection", exc_info=error)
            desk.refused(error)
            screen.fail(error)
            return
        self.spawn("probe", desk.watch())
        self.spawn("journal", desk.follow_journal())
        self.spawn("history", desk.load_bursts())
        await self.switch_mode("tune")
        self.call_after_refresh(_settle_memory)

    # what comes from the desk

    def _view_changed(self, view: View) -> None:
        screen = self.screen_stack[0] if self._screen_stacks[self._current_mode] else None
        if isinstance(screen, ConsoleScreen):
            screen.present(view)
        if view.tune.cut is not None and self._cut != view.tune.cut and not view.changing:
            self._cut = view.tune.cut
            if view.tune.read_only is None:
                self.spawn("resume", self.flows.resume(), exclusive=True)

    def _event(self, event: Event) -> None:
        log.info("%s: %s", event.title, event.text)
        timeout = 10 if event.severity == "error" else 5
        wish = self.settings.notify
        if alerts.wanted(wish.toast, event):
            self.notify(event.text, title=event.title, severity=event.severity, timeout=timeout, markup=False)
        if event.alert and alerts.wanted(wish.bell, event):
            self.bell()
        if event.alert and alerts.wanted(wish.osc9, event) and self._driver is not None:
            self._driver.write(alerts.osc9(f"{self.title}: {event.title}: {event.text}"))

    def on_earlier_wanted(self, event: EarlierWanted) -> None:
        event.stop()
        self.spawn("earlier", self.desk.load_earlier(event.until))

    # actions of everywhere

    def act(self, action: str) -> None:
        """Do a named action where the focus is, as its key would."""
        method = f"action_{BY_ID[action].call}" if action in BY_ID else ""
        if action.startswith("knob-"):
            if self._may(action):
                self.edit(action.removeprefix("knob-"))
            return
        focused = self.screen.focused
        for node in [*(focused.ancestors_with_self if focused is not None else [self.screen]), self]:
            if hasattr(node, method):
                self.call_later(getattr(node, method))
                return
        for node in self.screen.query("*"):  # the focus is elsewhere: a pane that knows the action
            if hasattr(node, method):
                self.call_later(getattr(node, method))
                return

    def review(self) -> None:
        self.spawn("plan", self.flows.review(), exclusive=True)

    def change(self, kind: ChangeKind) -> None:
        flow = self.flows.roll_back if kind == "roll back" else self.flows.restart
        self.spawn("plan", flow(), exclusive=True)

    def look(self, place: str, arguments: Mapping[str, str]) -> None:
        self.spawn("look", self.flows.look(place, arguments), exclusive=True)

    def edit(self, knob: str | None) -> None:
        self.spawn("edit", self.flows.edit(knob), exclusive=True)

    def refresh_layers(self) -> None:
        self.spawn("refresh", self.desk.session.refresh(), exclusive=True)

    def _may(self, action: str) -> bool:
        screen = self.screen_stack[0]
        return isinstance(screen, ConsoleScreen) and screen.may(action)

    def action_burst(self) -> None:
        if self._may("burst"):
            self.spawn("edit", self.flows.burst(), exclusive=True)

    def action_check_output(self) -> None:
        if self._may("check-output"):
            self.spawn("edit", self.flows.check_output(), exclusive=True)

    def action_stop(self) -> None:
        if not self._may("stop"):
            return
        if self.desk.view.trying:
            self.spawn("plan", self._stop_trying(), exclusive=True)
        else:
            self.workers.cancel_group(self, "burst")

    async def _stop_trying(self) -> None:
        if await self.trials.may_stop():
            self.workers.cancel_group(self, EXPERIMENT)

    def go(self, mode: str) -> None:
        if self._desk is not None and self._desk.attached and self._desk.view.tune.surveyed:
            self.switch_mode(mode)

    def action_tune(self) -> None:
        self.go("tune")

    def action_logs(self) -> None:
        self.go("logs")

    def action_bursts(self) -> None:
        self.go("bursts")

    def action_compare(self) -> None:
        self.go("compare")

    def action_sweep(self) -> None:
        self.go("sweep")

    def action_history(self) -> None:
        self.go("history")

    def action_filter(self) -> None:
        """From a screen without a journal: on the one that has it."""
        self.go("logs")
        self.call_after_refresh(self.act, "filter")

    def action_commands(self) -> None:
        from ddtui.screens.commands import CommandLog

        if self._desk is not None:
            self.push_screen(CommandLog(self._desk))

    def action_help(self) -> None:
        from ddtui.screens.help import Help, groups_for

        screen = self.screen
        if isinstance(screen, ConsoleScreen):
            name = screen.PLACE.value
            self.push_screen(Help(name, groups_for(screen.PLACE, screen.knob_actions, screen.PARTS)))

    def action_palette(self) -> None:
        self.push_screen(CommandPalette(id="--command-palette"))

    def action_theme(self) -> None:
        self.search_themes()

    def quick_ab(self) -> None:
        self.spawn("plan", self.trials.ab(), exclusive=True)

    def calibrate(self) -> None:
        self.spawn("plan", self.trials.calibrate(), exclusive=True)

    def try_out(self, what: ExperimentPlan | str) -> None:
        self.spawn("plan", self.trials.try_out(what), exclusive=True)

    async def action_quit(self) -> None:
        view = self._desk.view if self._desk is not None else None
        if view is None or not (view.changing or view.burst or view.trying):
            self.exit(0)
            return
        self.spawn("quit", self._quit(), exclusive=True)

    async def _quit(self) -> None:
        if await self.flows.may_quit():
            self.workers.cancel_group(self, "burst")
            self.workers.cancel_group(self, EXPERIMENT)
            self.exit(0)


def _decision_screen(name: str, desk: Desk) -> Screen[Any]:
    """The screens that look back and ahead: loaded when they are first opened."""
    if name == "compare":
        from ddtui.screens.compare import CompareScreen

        return CompareScreen(desk)
    if name == "sweep":
        from ddtui.screens.sweep import SweepScreen

        return SweepScreen(desk)
    from ddtui.screens.history import HistoryScreen

    return HistoryScreen(desk)


def _settle_memory() -> None:
    """What has been loaded stays: do not walk it again and again, which stalls the loop 50 to 90 ms."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)
