"""The hosts that are open in the console, one of them shown; each works on behind the others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ddtui import modes
from ddtui.actions.keymap import overlaps
from ddtui.desk import Desk
from ddtui.host.base import HostError
from ddtui.profile import Profile, ProfileError
from ddtui.screens.base import Dialog
from ddtui.screens.connect import ConnectScreen
from ddtui.screens.flows import Flows, OperatorAsker
from ddtui.screens.pick import Offer
from ddtui.screens.trials import TrialFlows
from ddtui.session import Session

if TYPE_CHECKING:
    from ddtui.app import DdtuiApp

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(slots=True)
class OpenHost:
    """One host with what the operator has on it."""

    desk: Desk
    flows: Flows
    trials: TrialFlows
    left: str | None = None  # the mode that it was left in
    cut: str | None = None  # the cut change that was asked about

    @property
    def profile(self) -> Profile:
        return self.desk.view.profile


class OpenHosts:
    """By profile. `open_session` makes a session, in a thread; `load_profile` gives one of those offered."""

    def __init__(
        self,
        app: DdtuiApp,
        *,
        open_session: Callable[[Profile], Session],
        find_offers: Callable[[], Sequence[Offer]],
        load_profile: Callable[[str], Profile] | None,
    ) -> None:
        self._app = app
        self._open_session = open_session
        self._find_offers, self._load_profile = find_offers, load_profile
        self._hosts: dict[str, OpenHost] = {}
        self.shown: OpenHost | None = None

    @property
    def all(self) -> tuple[OpenHost, ...]:
        return tuple(self._hosts.values())

    def named(self, profile: str) -> OpenHost | None:
        return self._hosts.get(profile)

    def add(self, profile: Profile) -> None:
        """A host to be connected; it is shown from now on."""
        app = self._app
        desk = app.new_desk(profile)
        ask, spawn = partial(self.ask, desk), partial(app.spawn_of, desk)
        self.shown = OpenHost(desk, Flows(desk, ask, spawn), TrialFlows(desk, ask, spawn))
        self._hosts[profile.name] = self.shown
        for mode, make in modes.screens(desk).items():
            app.add_mode(mode, make)
        app.title = f"ddtui {profile.name}"

    async def open(self, name: str) -> None:
        """The host of this profile: as it was left, or from its first connection on."""
        if name in self._hosts:
            await self.show(self._hosts[name])
        elif self._load_profile is not None:
            try:
                profile = self._load_profile(name)
            except ProfileError as error:
                self._app.notify(str(error), title=name, severity="error", markup=False)
                return
            self.add(profile)
            await self._app.switch_mode("connect")
            self._app.reconnect()

    async def show(self, host: OpenHost) -> None:
        """A host that is open, on the screen where it was left."""
        name = host.profile.name
        if self.shown is not None:
            self.shown.left = self._app.current_mode
        self.shown, self._app.title = host, f"ddtui {name}"
        await self._app.switch_mode(host.left or modes.mode("connect", name))
        self._app.view_changed(host.desk, host.desk.view)

    async def ask(self, desk: Desk, dialog: Dialog[T]) -> T | None:
        """Ask on the host that it is about."""
        if self.shown is None or self.shown.desk is not desk:
            await self.show(self._hosts[desk.view.profile.name])
        return await self._app.ask(dialog)

    async def choose(self) -> None:
        """Ask which host to go to, and go there."""
        from ddtui.screens.first_run import FirstRun
        from ddtui.screens.hosts import NEW, HostsDialog

        assert self.shown is not None
        left, here = self.shown, self.shown.profile.name
        offers = await asyncio.to_thread(self._find_offers)
        desks = {name: host.desk for name, host in self._hosts.items()}
        name: str | None = await self._app.ask(HostsDialog(offers, desks, here))
        if name == NEW:
            name = await self._app.ask(FirstRun())
        if name and name != here:
            left.left = self._app.current_mode
            await self.open(name)

    async def connect(self) -> None:
        """Connect the one that is shown, from the first try to its first screen."""
        app, host, screen = self._app, self.shown, self._app.screen_stack[0]
        assert host is not None and isinstance(screen, ConnectScreen)
        desk = host.desk
        screen.fail(None)
        for problem in overlaps(desk.keymap, host.profile.knobs):
            desk.tell("warning", "keys", f"{problem.removeprefix('keymap: ')}: the knob has none")
        try:
            if not desk.attached:
                desk.attach(await asyncio.to_thread(self._open_session, host.profile))
            await desk.connect(OperatorAsker(partial(self.ask, desk)))
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
        app.spawn_of(desk, "probe", desk.watch())
        app.spawn_of(desk, "journal", desk.follow_journal())
        app.spawn_of(desk, "history", desk.load_bursts())
        host.left = modes.mode("tune", host.profile.name)
        if self.shown is host:
            await app.switch_mode("tune")
        app.spawn("load", modes.load_decision_screens)
        app.call_after_refresh(modes.settle_memory)

    async def others(self) -> Mapping[str, Profile]:
        """The profiles of other hosts than the one that is shown, open or not."""

        def load() -> dict[str, Profile]:
            names = [one.name for one in self._find_offers() if not one.problem]
            return {name: self._load_profile(name) for name in names} if self._load_profile else {}

        assert self.shown is not None
        known = {name: host.profile for name, host in self._hosts.items()}
        found = await asyncio.to_thread(load) | known
        here = self.shown.profile.connection.host
        return {name: one for name, one in found.items() if one.connection.host != here}
