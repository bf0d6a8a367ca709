"""A console on a scripted session, for tests that wait for states and never for time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from console.fakes import NOW, FakeSession
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen

from ddtui.app import DdtuiApp
from ddtui.screens.tune import TuneScreen

S = TypeVar("S", bound=Screen)


def make_app(session: FakeSession, **changes: object) -> DdtuiApp:
    given: dict[str, object] = {"open_session": lambda profile: session, "now": lambda: NOW}
    return DdtuiApp(session.profile, **{**given, **changes})  # type: ignore[arg-type]


async def until(pilot: Pilot[int], state: Callable[[], object], what: str = "") -> None:
    """Wait for a state. The deadline is for a test that hangs, not a measure; the failure shows the screen."""
    __tracebackhide__ = True
    try:
        async with asyncio.timeout(20):
            while not state():
                await pilot.pause()
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"{what or 'a state'} did not come; the screen:\n{text_of(pilot.app)}") from None


def text_of(app: App[int]) -> str:
    """What the screen shows, as lines."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


@dataclass
class Desk:
    """A running console on a scripted session."""

    app: DdtuiApp
    pilot: Pilot[int]
    session: FakeSession

    @property
    def tune(self) -> TuneScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, TuneScreen)
        return screen

    def top(self, kind: type[S]) -> S:
        assert isinstance(self.app.screen, kind), self.app.screen
        return self.app.screen

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        names = {
            "/": "slash",
            ">": "greater_than_sign",
            "=": "equals_sign",
            "!": "exclamation_mark",
            " ": "space",
        }
        await self.pilot.press(*(names.get(c, "minus" if c == "-" else c) for c in text))

    async def until(self, state: Callable[[], object]) -> None:
        await until(self.pilot, state)

    async def dialog(self, kind: type[S]) -> S:
        """Wait for a dialog of this kind."""
        await self.until(lambda: isinstance(self.app.screen, kind) and self.app.screen.is_mounted)
        await self.pilot.pause()
        return self.top(kind)

    async def back_at(self, kind: type[Screen]) -> None:
        await self.until(lambda: isinstance(self.app.screen, kind))

    def told(self) -> str:
        """The toasts that are there, a line each."""
        return "\n".join(notification.message for notification in self.app._notifications)

    def text(self) -> str:
        return text_of(self.app)


@asynccontextmanager
async def console(
    session: FakeSession | None = None,
    size: tuple[int, int] = (160, 45),
    *,
    wait: bool = True,
    **changes: object,
) -> AsyncIterator[Desk]:
    """A console that is connected and shows the tune screen."""
    session = session or FakeSession()
    app = make_app(session, **changes)
    async with app.run_test(size=size) as pilot:
        desk = Desk(app, pilot, session)
        if wait:
            await desk.until(lambda: isinstance(app.screen, TuneScreen) and app.screen._composed)
            await desk.until(lambda: app.desk.view.tune.surveyed)
            await pilot.pause()
        yield desk
