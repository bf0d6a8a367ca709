"""The burst dialog: where the load runs, what a long link does, and production asked for once more."""

from __future__ import annotations

from dataclasses import replace

from console.fakes import FakeSession, make_profile
from console.harness import console

from ddtui.screens.burst import BurstDialog
from ddtui.screens.dialogs import Confirm
from ddtui.screens.tune import TuneScreen


async def test_a_burst_on_production_is_asked_for_once_more() -> None:
    session = FakeSession(make_profile(production=True))
    async with console(session) as desk:
        await desk.press("x")
        await desk.dialog(BurstDialog)
        await desk.press("enter")
        await desk.dialog(Confirm)
        assert "a burst slows its users down" in desk.text()
        await desk.press("escape")
        await desk.back_at(TuneScreen)
        assert not any(isinstance(call, tuple) and call[0] == "burst" for call in session.calls)


async def test_where_the_load_runs_is_chosen_and_a_long_link_is_warned_of() -> None:
    session = FakeSession()
    async with console(session) as desk:
        session.show(link=replace(session.view.link, rtt_ms=84.0))
        await desk.until(lambda: "84 ms" in desk.text())
        await desk.press("x")
        dialog = await desk.dialog(BurstDialog)
        await desk.until(lambda: "84.0 ms are in every TTFT" in desk.text())
        dialog.query_one("#at").focus()
        await desk.press("right")
        await desk.until(lambda: "‹ on the host" in desk.text() and "in every TTFT" not in desk.text())
        await desk.press("ctrl+s")
        await desk.until(lambda: any(call[0] == "burst" for call in session.calls if isinstance(call, tuple)))
    (spec,) = [call[1] for call in session.calls if isinstance(call, tuple) and call[0] == "burst"]
    assert spec.at == "host"
