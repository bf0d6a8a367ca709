"""Several hosts in one console: each that is open goes on and keeps its state."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from console.fakes import FakeSession, make_burst, make_profile
from console.harness import Desk, console

from ddtui.profile import Connection, Profile
from ddtui.screens.bursts import BurstsScreen
from ddtui.screens.hosts import HostsDialog
from ddtui.screens.logs import LogsScreen
from ddtui.screens.pick import Offer
from ddtui.screens.tune import TuneScreen
from ddtui.tuning.model import Op, Turn

ONE = make_profile()
TWO = make_profile(name="ct201", connection=Connection(host="ct201"), production=True)


@asynccontextmanager
async def two_hosts() -> AsyncIterator[tuple[Desk, dict[str, FakeSession]]]:
    sessions = {profile.name: FakeSession(profile) for profile in (ONE, TWO)}

    def load(name: str) -> Profile:
        return sessions[name].profile

    async with console(
        sessions["ct200"],
        open_session=lambda profile: sessions[profile.name],
        load_profile=load,
        find_offers=lambda: [Offer("ct200", "ct200", "one"), Offer("ct201", "ct201", "two")],
    ) as desk:
        yield desk, sessions


async def go_to(desk: Desk, name: str, key: str) -> None:
    await desk.press("H")
    await desk.dialog(HostsDialog)
    await desk.press(*([key] if key else []), "enter")
    await desk.until(lambda: desk.app.desk.view.profile.name == name and desk.app.desk.view.tune.surveyed)
    await desk.until(lambda: not isinstance(desk.app.screen, HostsDialog))


async def test_each_host_keeps_its_screen_its_turns_and_its_filter() -> None:
    async with two_hosts() as (desk, _):
        desk.app.desk.turn(Turn("budget", Op.SET, "16"))
        await desk.press("2")
        await desk.back_at(LogsScreen)
        await desk.press("slash")
        await desk.type("decode")
        await desk.press("enter")
        logs = desk.app.screen
        await go_to(desk, "ct201", "j")
        await desk.back_at(TuneScreen)
        await desk.pilot.pause()
        assert " PROD " in desk.text() and "ct201" in desk.text()
        assert not desk.app.desk.view.turns
        await desk.press("3")
        await desk.back_at(BurstsScreen)
        await go_to(desk, "ct200", "k")
        await desk.pilot.pause()
        assert desk.app.screen is logs and "decode" in desk.text()
        assert " PROD " not in desk.text()
        assert set(desk.app.desk.view.turns) == {"budget"}
        await go_to(desk, "ct201", "j")
        await desk.back_at(BurstsScreen)


async def test_what_runs_on_the_other_host_goes_on_and_tells_by_its_name() -> None:
    async with two_hosts() as (desk, sessions):
        await desk.press("x")
        await desk.until(lambda: type(desk.app.screen).__name__ == "BurstDialog")
        await desk.press("enter")
        first = desk.app.desk
        await go_to(desk, "ct201", "j")
        sessions["ct200"].bursts.put_nowait(make_burst("b1", 7))
        sessions["ct200"].bursts.put_nowait(None)
        await desk.until(lambda: first.view.bursts)
        await desk.until(lambda: any(n.title == "ct200: burst" for n in desk.app._notifications))
        assert not desk.app.desk.view.bursts


async def test_the_picker_shows_which_hosts_are_open() -> None:
    async with two_hosts() as (desk, _):
        await desk.press("H")
        await desk.dialog(HostsDialog)
        (one,) = (line for line in desk.text().splitlines() if "one" in line and "ct200" in line)
        (two,) = (line for line in desk.text().splitlines() if "two" in line)
        assert "●" in one and "●" not in two
        await desk.press("escape")
        await desk.back_at(TuneScreen)
        assert desk.app.desk.view.profile.name == "ct200"
