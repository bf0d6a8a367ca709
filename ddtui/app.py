"""The console: wires the desk, where the work is, to the screens, where the looks are."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual import events
from textual.actions import ActionParseResult
from textual.app import App
from textual.binding import BindingType
from textual.command import CommandPalette, Provider
from textual.dom import DOMNode
from textual.driver import Driver
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import AwaitMount
from textual.worker import Worker, WorkerState

from ddtui import alerts, leaving, modes, terminal, themes
from ddtui.actions.action import Needs, Where
from ddtui.actions.keymap import overlaps
from ddtui.actions.table import BY_ID
from ddtui.ascii import InAscii
from ddtui.bindings import bindings, checked
from ddtui.desk import Desk, Event, said
from ddtui.host.base import HostError
from ddtui.messages import EarlierStopped, EarlierWanted, MarkWanted
from ddtui.profile import Profile, ProfileError
from ddtui.screens.base import ConsoleScreen, Dialog, Work
from ddtui.screens.connect import ConnectScreen
from ddtui.screens.flows import Flows, OperatorAsker
from ddtui.screens.palette import Actions, Themes
from ddtui.screens.pick import Offer, PickScreen
from ddtui.screens.too_small import TooSmall, fits
from ddtui.screens.trials import EXPERIMENT, TrialFlows
from ddtui.session import Session
from ddtui.settings import Settings, SettingsError, keep_theme
from ddtui.view import ChangeKind, View
from ddtui.widgets.colours import Colours, fit
from ddtui.widgets.inert import Inert

if TYPE_CHECKING:
    from ddtui.bench.experiment import ExperimentPlan

T = TypeVar("T")
log = logging.getLogger(__name__)


class DdtuiApp(App[int]):
    """The console on one profile, or on the one that is picked from `offers`.

    `open_session` makes the session, in a thread, after the first paint. `now` is the clock (unix time).
    `disk_closed`: why nothing may be written on the machine that this runs on.
    """

    TITLE = "ddtui"
    # the decision screens' too: a sheet of a screen's own makes all be parsed again when it is first opened
    CSS_PATH: ClassVar[list[str | PurePath]] = [
        "app.tcss", "screens/compare.tcss", "screens/history.tcss", "screens/sweep.tcss"
    ]  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.EVERYWHERE)
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {Actions}
    ENABLE_COMMAND_PALETTE = False  # its key is one of our own actions

    def __init__(
        self,
        profile: Profile | None,
        *,
        open_session: Callable[[Profile], Session],
        offers: Sequence[Offer] = (),
        find_offers: Callable[[], Sequence[Offer]] | None = None,
        load_profile: Callable[[str], Profile] | None = None,
        now: Callable[[], float] = time.time,
        keymap: Mapping[str, str] | None = None,
        settings: Settings | None = None,
        colours: Colours = Colours.ALL,
        disk_closed: str | None = None,
    ) -> None:
        self.settings = settings or Settings()
        super().__init__()
        self._filters.append(Inert())
        self.colours, self._disk_closed = colours, disk_closed
        self._open_session = open_session
        self._offers, self._load_profile = offers, load_profile
        self._find_offers = find_offers or (lambda: self._offers)
        self._now = now
        self._desk: Desk | None = None  # the one that is shown
        self._desks: dict[str, Desk] = {}  # by profile: every one that was opened works on
        self._flows: dict[str, tuple[Flows, TrialFlows]] = {}
        self._left: dict[str, str] = {}  # the mode that a host was left in, by profile
        self._cut: dict[str, str] = {}  # the cut change that was asked about, by profile
        for theme in themes.THEMES:
            self.register_theme(theme)
        self.theme = self.settings.theme
        fit(self, colours)
        self._own_keys = checked({**self.settings.keys, **(keymap or {})})
        self.set_keymap(self._own_keys)
        if profile is not None:
            self._set_up(profile)

    # set-up

    def _set_up(self, profile: Profile) -> None:
        desk = self._desk = Desk(profile, now=self._now, keep_lines=self.settings.journal_lines)
        desk.changed = partial(self._view_changed, desk)
        desk.happened = partial(self._event, desk)
        desk.keymap, desk.disk_closed = self._own_keys, self._disk_closed
        if self._disk_closed:
            desk.memory.path = None
        name = profile.name
        ask, spawn = partial(self._ask_of, desk), partial(self._spawn_of, desk)
        self._desks[name] = desk
        self._flows[name] = Flows(desk, ask, spawn), TrialFlows(desk, ask, spawn)
        for mode, make in modes.screens(desk).items():
            self.add_mode(mode, make)
        self.title = f"ddtui {name}"

    @property
    def flows(self) -> Flows:
        return self._flows[self.desk.view.profile.name][0]

    @property
    def trials(self) -> TrialFlows:
        return self._flows[self.desk.view.profile.name][1]

    def switch_mode(self, mode: str) -> AwaitMount:
        """To a screen of the host that is shown."""
        known = modes.mode(mode, self._desk.view.profile.name) if self._desk is not None else mode
        switched = super().switch_mode(known if known in self._modes else mode)
        self.call_later(lambda: self._cover(self.size))
        return switched

    def on_resize(self, event: events.Resize) -> None:
        self._cover(event.size)

    def _cover(self, size: Size) -> None:
        """Cover everything while the terminal is too small for it."""
        if not fits(size) and not isinstance(self.screen, TooSmall):
            self.push_screen(TooSmall())

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
        for closed in asyncio.as_completed([desk.close() for desk in self._desks.values()]):
            with suppress(Exception):  # leaving: a link that does not close in time is left to the system
                await closed

    # workers: each named and grouped, no error lost

    def spawn(self, group: str, work: Work, *, exclusive: bool = False) -> None:
        """Run this in the background, for the host that is shown."""
        self._spawn_of(self._desk, group, work, exclusive=exclusive)

    def _spawn_of(self, desk: Desk | None, group: str, work: Work, *, exclusive: bool = False) -> None:
        named = _group(group, desk)
        self.run_worker(work, name=group, group=named, exit_on_error=False, exclusive=exclusive)

    def _cancel(self, group: str) -> None:
        """What runs in this group for the host that is shown."""
        self.workers.cancel_group(self, _group(group, self._desk))

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            error = event.worker.error
            log.error("worker %s failed", event.worker.name, exc_info=error)
            desk = self._desks.get(event.worker.group.partition("@")[2], self._desk)
            if desk is not None:
                desk.tell("error", event.worker.name, said(error))
            else:
                self.notify(said(error), title=event.worker.name, severity="error", markup=False)

    async def _ask_of(self, desk: Desk, dialog: Dialog[T]) -> T | None:
        """Ask on the host that it is about."""
        if self._desk is not desk:
            await self._show(desk)
        return await self.ask(dialog)

    async def ask(self, dialog: Dialog[T]) -> T | None:
        """Show a dialog and wait for its answer. From any task of the loop; None when it was cancelled."""
        if dialog.WRITES_HERE and self._disk_closed:
            self.notify(self._disk_closed, severity="warning", markup=False)
            return None
        answer: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()

        def answered(result: T | None) -> None:
            if not answer.done():
                answer.set_result(result)

        self.call_later(self.push_screen, dialog, answered)
        try:
            return await answer
        except asyncio.CancelledError:
            self.call_later(self._take_away, dialog)  # after it was pushed, for these come in their order
            raise

    def _take_away(self, dialog: Dialog[T]) -> None:
        if dialog in self.screen_stack:
            dialog.dismiss(None)

    # the way to the host

    async def on_pick_screen_picked(self, event: PickScreen.Picked) -> None:
        await self._open(event.name)

    async def _open(self, name: str) -> None:
        """The host of this profile: as it was left, or from its first connection on."""
        if name in self._desks:
            await self._show(self._desks[name])
        elif self._load_profile is not None:
            try:
                profile = self._load_profile(name)
            except ProfileError as error:
                self.notify(str(error), title=name, severity="error", markup=False)
                return
            self._set_up(profile)
            await self.switch_mode("connect")
            self.reconnect()

    async def _show(self, desk: Desk) -> None:
        """A host that is open, on the screen where it was left."""
        name = desk.view.profile.name
        self._left[self.desk.view.profile.name] = self.current_mode
        self._desk, self.title = desk, f"ddtui {name}"
        await super().switch_mode(self._left.get(name) or modes.mode("connect", name))
        self._view_changed(desk, desk.view)

    def action_hosts(self) -> None:
        if self._desk is not None:
            self._spawn_of(None, "hosts", self._choose_host(), exclusive=True)

    async def _choose_host(self) -> None:
        from ddtui.screens.first_run import FirstRun
        from ddtui.screens.hosts import NEW, HostsDialog

        here = self.desk.view.profile.name
        offers = await asyncio.to_thread(self._find_offers)
        name: str | None = await self.ask(HostsDialog(offers, self._desks, here))
        if name == NEW:
            name = await self.ask(FirstRun())
        if name and name != here:
            self._left[here] = self.current_mode
            await self._open(name)

    def reconnect(self) -> None:
        """Connect, from the first try to the first survey."""
        self.spawn("ssh", self._connect(), exclusive=True)

    def give_up(self) -> None:
        """Stop connecting."""
        self._cancel("ssh")

    async def _connect(self) -> None:
        desk, screen = self.desk, self.screen_stack[0]
        assert isinstance(screen, ConnectScreen)
        screen.fail(None)
        for problem in overlaps(desk.keymap, desk.view.profile.knobs):
            desk.tell("warning", "keys", f"{problem.removeprefix('keymap: ')}: the knob has none")
        try:
            if not desk.attached:
                desk.attach(await asyncio.to_thread(self._open_session, desk.view.profile))
            await desk.connect(OperatorAsker(partial(self._ask_of, desk)))
        except asyncio.CancelledError:
            if screen.is_attached:  # stopped by the operator, not by leaving
                stopped = HostError("stopped before there was a connection")
                desk.refused(stopped)
                screen.fail(stopped)
            raise
        except Exception as error:
            log.warning("no connection", exc_info=error)
            desk.refused(error)
            screen.fail(error)
            return
        self._spawn_of(desk, "probe", desk.watch())
        self._spawn_of(desk, "journal", desk.follow_journal())
        self._spawn_of(desk, "history", desk.load_bursts())
        self._left[desk.view.profile.name] = modes.mode("tune", desk.view.profile.name)
        if self._desk is desk:
            await self.switch_mode("tune")
        self.spawn("load", modes.load_decision_screens)
        self.call_after_refresh(modes.settle_memory)

    # what comes from the desk

    def _view_changed(self, desk: Desk, view: View) -> None:
        if desk is not self._desk:
            return
        screen = self.screen_stack[0] if self._screen_stacks[self._current_mode] else None
        if isinstance(screen, ConsoleScreen):
            screen.present(view)
        name = view.profile.name
        if view.tune.cut is not None and self._cut.get(name) != view.tune.cut and not view.changing:
            self._cut[name] = view.tune.cut
            if view.tune.read_only is None:
                self.spawn("resume", self.flows.resume(), exclusive=True)

    def _event(self, desk: Desk, event: Event) -> None:
        if desk is not self._desk:
            event = replace(event, title=f"{desk.view.profile.name}: {event.title}")
        log.info("%s: %s", event.title, event.text)
        timeout = 10 if event.severity == "error" else 5
        wish = self.settings.notify
        if alerts.wanted(wish.toast, event):
            self.notify(event.text, title=event.title, severity=event.severity, timeout=timeout, markup=False)
        if event.alert and alerts.wanted(wish.bell, event):
            self.bell()
        if event.alert and alerts.wanted(wish.osc9, event) and self._driver is not None:
            self._driver.write(alerts.osc9(f"{self.title}: {event.title}: {event.text}"))

    def copy_to_clipboard(self, text: str) -> None:
        """By OSC 52, also through tmux and screen."""
        self._clipboard = text
        if self._driver is not None:
            self._driver.write(terminal.clipboard(text))
        self._spawn_of(None, "clipboard", terminal.to_program(text), exclusive=True)

    def on_earlier_wanted(self, event: EarlierWanted) -> None:
        event.stop()
        self.spawn("earlier", self.desk.load_earlier(event.until))

    def on_earlier_stopped(self, event: EarlierStopped) -> None:
        event.stop()
        self._cancel("earlier")

    def on_mark_wanted(self, event: MarkWanted) -> None:
        event.stop()
        self.spawn("mark", self.desk.mark_by_hand(event.text))

    # actions of everywhere

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        if isinstance(action, str) and self._kept_off(action.rpartition(".")[2].replace("_", "-")):
            return True
        return await super().run_action(action, default_namespace, namespaces)

    def _kept_off(self, action: str) -> bool:
        """Whether it would write where nothing may be written; says so."""
        if not self._disk_closed or action not in BY_ID or Needs.DISK not in BY_ID[action].needs:
            return False
        self.notify(self._disk_closed, title=BY_ID[action].label, severity="warning", markup=False)
        return True

    def act(self, action: str) -> None:
        """Do a named action where the focus is, as its key would."""
        if self._kept_off(action):
            return
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
        self.spawn("refresh", self.flows.read_again(), exclusive=True)

    def _may(self, action: str) -> bool:
        screen = self.screen_stack[0]
        return isinstance(screen, ConsoleScreen) and screen.may(action)

    def action_burst(self) -> None:
        self.measure()

    def measure(self, contexts: Sequence[int] = ()) -> None:
        if self._may("burst"):
            self.spawn("edit", self.flows.burst(contexts), exclusive=True)

    def action_check_output(self) -> None:
        if self._may("check-output"):
            self.spawn("edit", self.flows.check_output(), exclusive=True)

    def action_stop(self) -> None:
        if not self._may("stop"):
            return
        view = self.desk.view
        if view.trying:
            self.spawn("plan", self._stop(EXPERIMENT, self.trials.may_stop), exclusive=True)
        elif view.burst is not None:
            self._cancel("burst")
        else:
            self.spawn("plan", self._stop("change", self.flows.may_stop), exclusive=True)

    async def _stop(self, group: str, may_stop: Callable[[], Awaitable[bool]]) -> None:
        if await may_stop():
            self._cancel(group)

    def go(self, mode: str) -> None:
        if self._desk is None or not self._desk.attached:
            return
        reading = mode == "logs" and not isinstance(self.screen_stack[0], ConnectScreen)
        if reading or self._desk.view.tune.surveyed:  # the journal comes before the first reading is over
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

    def action_layers(self) -> None:
        from ddtui.screens.layers import LayersDialog

        if self._desk is not None:
            self.push_screen(LayersDialog(self._desk))

    def action_help(self) -> None:
        from ddtui.screens.help import Help, groups_for

        screen = self.screen
        if isinstance(screen, ConsoleScreen):
            name = screen.PLACE.value
            self.push_screen(Help(name, groups_for(screen.PLACE, screen.knob_actions, screen.PARTS)))

    def action_palette(self) -> None:
        self.push_screen(CommandPalette(id="--command-palette"))

    def action_theme(self) -> None:
        if self.colours is Colours.NONE:
            self.notify("there is no colour here, so that a theme makes no difference", markup=False)
        else:
            self.push_screen(CommandPalette(providers=[Themes], placeholder="Search for themes…"))

    def choose_theme(self, name: str) -> None:
        """This theme from now on, in later sessions too."""
        self.theme = name
        if os.environ.get("DDTUI_THEME"):
            self.notify("for this session: DDTUI_THEME is set", title=name, markup=False)
        elif self._disk_closed:
            self.notify(f"for this session: {self._disk_closed}", title=name, markup=False)
        else:
            self._spawn_of(None, "theme", partial(self._keep_theme, name), exclusive=True)

    async def _keep_theme(self, name: str) -> None:
        try:
            await asyncio.to_thread(keep_theme, name)
        except SettingsError as error:
            self.notify(f"for this session: {error}", title=name, severity="warning", markup=False)

    def quick_ab(self) -> None:
        self.spawn("plan", self.trials.ab(), exclusive=True)

    def calibrate(self) -> None:
        self.spawn("plan", self.trials.calibrate(), exclusive=True)

    async def other_profiles(self) -> Mapping[str, Profile]:
        def load() -> dict[str, Profile]:
            names = [one.name for one in self._find_offers() if not one.problem]
            return {name: self._load_profile(name) for name in names} if self._load_profile else {}

        known = {name: desk.view.profile for name, desk in self._desks.items()}
        found = await asyncio.to_thread(load) | known
        here = self.desk.view.profile.connection.host
        return {name: one for name, one in found.items() if one.connection.host != here}

    def try_out(self, what: ExperimentPlan | str, also: Sequence[Profile] = ()) -> None:
        self.spawn("plan", self.trials.try_out(what, also), exclusive=True)

    async def action_quit(self) -> None:
        views = [desk.view for desk in self._desks.values()]
        if not any(view.changing or view.burst or view.trying for view in views):
            self.exit(0)
            return
        self._spawn_of(None, "quit", self._quit(), exclusive=True)

    async def _quit(self) -> None:
        """Each host where something runs is asked about."""
        for flows, _ in self._flows.values():
            if not await flows.may_quit():
                return
        for desk in self._desks.values():
            for group in ("burst", EXPERIMENT):
                self.workers.cancel_group(self, _group(group, desk))
        self.exit(0)


def _group(group: str, desk: Desk | None) -> str:
    """The worker group of one host."""
    return f"{group}@{desk.view.profile.name}" if desk is not None else group
