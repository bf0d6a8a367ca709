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

from rich.console import RenderableType
from textual import events
from textual._compositor import ChopsUpdate, LayoutUpdate
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
from ddtui.actions.table import BY_ID
from ddtui.ascii import InAscii
from ddtui.bindings import bindings, checked
from ddtui.desk import Desk, Event, said
from ddtui.messages import EarlierStopped, EarlierWanted, MarkWanted, SaveWanted
from ddtui.open_hosts import OpenHost, OpenHosts
from ddtui.profile import Profile
from ddtui.screens.base import ConsoleScreen, Dialog, Work
from ddtui.screens.connect import ConnectScreen
from ddtui.screens.flows import Flows
from ddtui.screens.palette import Actions, Themes
from ddtui.screens.pick import Offer, PickScreen
from ddtui.screens.too_small import TooSmall, fits
from ddtui.screens.trials import EXPERIMENT, TrialFlows
from ddtui.sending import Sent, Shown
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
        self._shown = Shown()
        self._offers, self._now = offers, now
        self._hosts = OpenHosts(
            self,
            open_session=open_session,
            find_offers=find_offers or (lambda: offers),
            load_profile=load_profile,
        )
        for theme in themes.THEMES:
            self.register_theme(theme)
        self.theme = self.settings.theme
        fit(self, colours)
        self._own_keys = checked({**self.settings.keys, **(keymap or {})})
        self.set_keymap(self._own_keys)
        if profile is not None:
            self._hosts.add(profile)

    # set-up

    def new_desk(self, profile: Profile) -> Desk:
        """A desk whose news are shown here."""
        desk = Desk(profile, now=self._now, keep_lines=self.settings.journal_lines)
        desk.changed = partial(self.view_changed, desk)
        desk.happened = partial(self._event, desk)
        desk.keymap, desk.disk_closed = self._own_keys, self._disk_closed
        if self._disk_closed:
            desk.memory.path = None
        return desk

    @property
    def _host(self) -> OpenHost:
        """The one that is shown."""
        if self._hosts.shown is None:
            raise RuntimeError("no profile has been picked yet")
        return self._hosts.shown

    @property
    def _desk(self) -> Desk | None:
        return self._hosts.shown.desk if self._hosts.shown is not None else None

    @property
    def desk(self) -> Desk:
        return self._host.desk

    @property
    def flows(self) -> Flows:
        return self._host.flows

    @property
    def trials(self) -> TrialFlows:
        return self._host.trials

    def switch_mode(self, mode: str) -> AwaitMount:
        """To a screen of the host that is shown."""
        known = modes.mode(mode, self._desk.view.profile.name) if self._desk is not None else mode
        switched = super().switch_mode(known if known in self._modes else mode)
        self.call_later(lambda: self._cover(self.size))
        return switched

    def on_resize(self, event: events.Resize) -> None:
        self._shown.forget()
        self._cover(event.size)

    def _cover(self, size: Size) -> None:
        """Cover everything while the terminal is too small for it."""
        if not fits(size) and not isinstance(self.screen, TooSmall):
            self.push_screen(TooSmall())

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

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        sent: Any = renderable
        if isinstance(renderable, (ChopsUpdate, LayoutUpdate)):
            sent = Sent(self._shown, renderable)
        super()._display(screen, sent)

    def action_repaint(self) -> None:
        """Paint everything anew: something else has written to the terminal."""
        self._shown.forget()
        self.screen.refresh()

    def get_default_screen(self) -> Screen[Any]:
        if self._desk is not None:
            return ConnectScreen(self._desk)
        return PickScreen(self._offers)

    def on_mount(self) -> None:
        self.app_resume_signal.subscribe(self, lambda _: self.action_repaint())
        leaving.on_signals(asyncio.get_running_loop(), lambda status: self.exit(return_code=status))
        if self._desk is not None:
            self.call_after_refresh(self.reconnect)

    async def on_unmount(self) -> None:
        self.workers.cancel_all()
        for closed in asyncio.as_completed([host.desk.close() for host in self._hosts.all]):
            with suppress(Exception):  # leaving: a link that does not close in time is left to the system
                await closed

    # workers: each named and grouped, no error lost

    def spawn(self, group: str, work: Work, *, exclusive: bool = False) -> None:
        """Run this in the background, for the host that is shown."""
        self.spawn_of(self._desk, group, work, exclusive=exclusive)

    def spawn_of(self, desk: Desk | None, group: str, work: Work, *, exclusive: bool = False) -> None:
        """Run this in the background, for this host, or for none."""
        named = _group(group, desk)
        self.run_worker(work, name=group, group=named, exit_on_error=False, exclusive=exclusive)

    def _cancel(self, group: str) -> None:
        """What runs in this group for the host that is shown."""
        self.workers.cancel_group(self, _group(group, self._desk))

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            error = event.worker.error
            log.error("worker %s failed", event.worker.name, exc_info=error)
            host = self._hosts.named(event.worker.group.partition("@")[2])
            desk = host.desk if host is not None else self._desk
            if desk is not None:
                desk.tell("error", event.worker.name, said(error))
            else:
                self.notify(said(error), title=event.worker.name, severity="error", markup=False)

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
        await self._hosts.open(event.name)

    def action_hosts(self) -> None:
        if self._desk is not None:
            self.spawn_of(None, "hosts", self._hosts.choose(), exclusive=True)

    def reconnect(self) -> None:
        """Connect, from the first try to the first survey."""
        self.spawn("ssh", self._hosts.connect(), exclusive=True)

    def give_up(self) -> None:
        """Stop connecting."""
        self._cancel("ssh")

    # what comes from the desk

    def view_changed(self, desk: Desk, view: View) -> None:
        """Show what a host is like now, if it is the one that is shown."""
        if desk is not self._desk:
            return
        screen = self.screen_stack[0] if self._screen_stacks[self._current_mode] else None
        if isinstance(screen, ConsoleScreen):
            screen.present(view)
        if view.tune.cut is not None and self._host.cut != view.tune.cut and not view.changing:
            self._host.cut = view.tune.cut
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
        self.spawn_of(None, "clipboard", terminal.to_program(text), exclusive=True)

    def on_earlier_wanted(self, event: EarlierWanted) -> None:
        event.stop()
        self.spawn("earlier", self.desk.load_earlier(event.until))

    def on_earlier_stopped(self, event: EarlierStopped) -> None:
        event.stop()
        self._cancel("earlier")

    def on_mark_wanted(self, event: MarkWanted) -> None:
        event.stop()
        self.spawn("mark", self.flows.mark(event.text))

    def on_save_wanted(self, event: SaveWanted) -> None:
        event.stop()
        self.spawn("save", self.flows.save(event.path, event.rows, event.what))

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
            groups = groups_for(screen.PLACE, screen.knob_actions, screen.PARTS)
            self.push_screen(Help(name, groups, screen.desk.keymap))

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
            self.spawn_of(None, "theme", partial(self._keep_theme, name), exclusive=True)

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
        return await self._hosts.others()

    def try_out(self, what: ExperimentPlan | str, also: Sequence[Profile] = ()) -> None:
        self.spawn("plan", self.trials.try_out(what, also), exclusive=True)

    async def action_quit(self) -> None:
        views = [host.desk.view for host in self._hosts.all]
        if not any(view.changing or view.burst or view.trying for view in views):
            self.exit(0)
            return
        self.spawn_of(None, "quit", self._quit(), exclusive=True)

    async def _quit(self) -> None:
        """Each host where something runs is asked about."""
        for host in self._hosts.all:
            if not await host.flows.may_quit():
                return
        for host in self._hosts.all:
            for group in ("burst", EXPERIMENT):
                self.workers.cancel_group(self, _group(group, host.desk))
        self.exit(0)


def _group(group: str, desk: Desk | None) -> str:
    """The worker group of one host."""
    return f"{group}@{desk.view.profile.name}" if desk is not None else group
