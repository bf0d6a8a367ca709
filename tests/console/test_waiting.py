"""Waits that take longer than a moment are shown, estimated and can be stopped."""

from __future__ import annotations

import asyncio

import pytest
from console.fakes import FakeSession
from console.harness import console

from ddtui.screens.connect import ConnectScreen
from ddtui.screens.dialogs import Problem
from ddtui.screens.review import Review
from ddtui.screens.tune import TuneScreen
from ddtui.screens.waiting import Waiting, how_far
from ddtui.tuning.model import Op, Plan, Turn


class Slow(FakeSession):
    """A host that takes its time to make a plan."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.given_up = False

    async def plan(self, turns: tuple[Turn, ...]) -> Plan:  # type: ignore[override]
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.given_up = True
            raise
        return await super().plan(turns)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ddtui.screens.waiting.SOON", 0.01)


async def test_a_slow_plan_shows_that_it_is_being_made_and_then_itself() -> None:
    session = Slow()
    async with console(session) as desk:
        desk.app.desk.turn(Turn("budget", Op.SET, "16"))
        await desk.press("a")
        await desk.dialog(Waiting)
        assert "Making the plan" in desk.text() and "esc stop" in desk.text()
        session.go.set()
        await desk.dialog(Review)
        await desk.press("escape")
        await desk.back_at(TuneScreen)


async def test_escape_stops_the_wait_and_the_work_behind_it() -> None:
    session = Slow()
    async with console(session) as desk:
        desk.app.desk.turn(Turn("budget", Op.SET, "16"))
        await desk.press("a")
        await desk.dialog(Waiting)
        await desk.press("escape")
        await desk.back_at(TuneScreen)
        await desk.until(lambda: session.given_up)
        assert not isinstance(desk.app.screen, Problem)
        assert "budget" in desk.app.desk.view.turns


async def test_connecting_can_be_stopped_and_tried_again() -> None:
    session = FakeSession()
    session.gate = asyncio.Event()
    async with console(session, wait=False) as desk:
        await desk.until(lambda: "connect" in session.calls)
        await desk.press("escape")
        await desk.until(lambda: "stopped before there was a connection" in desk.text())
        assert isinstance(desk.app.screen, ConnectScreen)
        session.gate.set()
        await desk.press("r")
        await desk.back_at(TuneScreen)


def test_the_estimate_is_what_it_took_the_last_time_and_never_full_before_the_end() -> None:
    assert "50%" in how_far(40, 2.0, 4.0).plain and "eta 0:02" in how_far(40, 2.0, 4.0).plain
    assert "95%" in how_far(40, 9.0, 4.0).plain and "0:09" in how_far(40, 9.0, 4.0).plain
    assert "%" not in how_far(40, 3.0, None).plain
