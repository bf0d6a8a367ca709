"""How the console looks: one picture for each state that has a look of its own.

After a wanted change: `pytest tests/console/test_snapshots.py --snapshot-update`, and look at the report.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from console.fakes import FAILED, NOW, STARTING, FakeSession, journal, make_burst, make_profile, make_view
from console.harness import make_app, until
from textual.pilot import Pilot

from ddtui.bench.model import BurstState, Cell
from ddtui.host.base import HostKey, HostKeyRefused, Link, LinkState
from ddtui.screens.bursts import BurstsScreen
from ddtui.screens.dialogs import Secret, Trust
from ddtui.screens.help import Help
from ddtui.screens.knob import KnobDialog
from ddtui.screens.logs import LogsScreen
from ddtui.screens.review import Review
from ddtui.screens.tune import TuneScreen
from ddtui.widgets.chart import Chart
from ddtui.widgets.colours import Colours
from ddtui.widgets.journal_view import JournalView

SnapCompare = Callable[..., bool]
Steps = Callable[[Pilot[int]], Awaitable[None]]
SIZES = [(80, 24), (160, 45), (200, 60)]


def busy(**view: object) -> FakeSession:
    """A host with a history and a journal."""
    session = FakeSession(view=make_view(**view))
    session.earlier = [make_burst("b7", 7, 1.15), make_burst("b6", 6)]
    session.lines.put_nowait(journal())
    return session


def after(session: FakeSession, then: Steps | None = None) -> Steps:
    """Wait until the tune screen shows everything, then do `then`, and wait until that is drawn."""

    async def run(pilot: Pilot[int]) -> None:
        app = pilot.app
        await until(pilot, lambda: isinstance(app.screen, TuneScreen) and app.screen._composed)
        desk = app.desk  # type: ignore[attr-defined]
        await until(pilot, lambda: desk.view.tune.surveyed and len(desk.view.bursts) >= 2 and len(desk.store))
        if then is not None:
            await then(pilot)
        before = ""
        async with asyncio.timeout(20):
            while (now := pilot.app.export_screenshot()) != before:  # until nothing moves any more
                before = now
                await drawn(pilot)
                await asyncio.sleep(0.05)

    return run


async def drawn(pilot: Pilot[int]) -> None:
    """Charts and journals of the screen show the newest there is, at their present size."""
    await pilot.pause()
    screen = pilot.app.screen_stack[0]
    for chart in screen.query(Chart):
        await until(pilot, lambda chart=chart: chart._job() is None or chart._built == chart._job())
    if pilot.app.screen is screen:
        for view in screen.query(JournalView):
            shown = [view] if view.size.width else []
            await until(pilot, lambda shown=shown: all(v._version == v.store.version for v in shown))
    await pilot.pause()
    await pilot.pause()


def keys(*pressed: str, shows: type | None = None) -> Steps:
    async def run(pilot: Pilot[int]) -> None:
        await pilot.press(*pressed)
        if shows is not None:
            await until(pilot, lambda: isinstance(pilot.app.screen, shows) and pilot.app.screen.is_mounted)

    return run


async def review(pilot: Pilot[int]) -> None:
    await pilot.press("w")
    await until(pilot, lambda: isinstance(pilot.app.screen, KnobDialog))
    await pilot.press(*"2048", "enter")
    await until(pilot, lambda: isinstance(pilot.app.screen, TuneScreen))
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(pilot.app.screen, Review) and pilot.app.screen.is_mounted)


def change(session: FakeSession, *progress: object) -> Steps:
    async def run(pilot: Pilot[int]) -> None:
        await review(pilot)
        await pilot.press("y")
        for one in progress:
            session.progress.put_nowait(one)  # type: ignore[arg-type]
        desk = pilot.app.desk  # type: ignore[attr-defined]
        await until(pilot, lambda: session.progress.empty() and desk.view.change is not None)
        await until(pilot, lambda: progress[-1] is not None or desk.view.change.done)

    return run


@pytest.mark.parametrize("size", SIZES, ids=["80x24", "160x45", "200x60"])
def test_tune(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    session = busy()
    assert snap_compare(make_app(session), terminal_size=size, run_before=after(session))


def test_tune_in_light(snap_compare: SnapCompare) -> None:
    session = busy()
    app = make_app(session)
    app.theme = "ddtui-light"
    assert snap_compare(app, terminal_size=(160, 45), run_before=after(session))


def test_tune_without_colour(snap_compare: SnapCompare) -> None:
    session = busy()
    assert snap_compare(
        make_app(session, colours=Colours.NONE), terminal_size=(160, 45), run_before=after(session)
    )


def test_tune_of_a_production_host(snap_compare: SnapCompare) -> None:
    session = busy()
    session.profile = make_profile(production=True)
    assert snap_compare(make_app(session), terminal_size=(120, 36), run_before=after(session))


def test_tune_read_only_and_simulated(snap_compare: SnapCompare) -> None:
    session = busy(read_only="no sudo rights", simulated=True)
    assert snap_compare(make_app(session), terminal_size=(120, 36), run_before=after(session))


def test_tune_disconnected(snap_compare: SnapCompare) -> None:
    lost = Link(LinkState.RETRYING, "root@ct200:22", since=NOW, attempt=2, retry_at=NOW + 4)
    session = busy()

    async def lose(pilot: Pilot[int]) -> None:
        session.show(link=lost)

    assert snap_compare(make_app(session), terminal_size=(120, 36), run_before=after(session, lose))


def test_knob(snap_compare: SnapCompare) -> None:
    session = busy()
    then = keys("b", shows=KnobDialog)
    assert snap_compare(make_app(session), terminal_size=(100, 30), run_before=after(session, then))


@pytest.mark.parametrize("size", [(80, 24), (160, 45)], ids=["80x24", "160x45"])
def test_review(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    session = busy()
    assert snap_compare(make_app(session), terminal_size=size, run_before=after(session, review))


@pytest.mark.parametrize("size", [(80, 24), (160, 45)], ids=["80x24", "160x45"])
def test_progress(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    session = busy()
    then = change(session, STARTING)
    assert snap_compare(make_app(session), terminal_size=size, run_before=after(session, then))


@pytest.mark.parametrize("size", [(80, 24), (160, 45)], ids=["80x24", "160x45"])
def test_failure(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    session = busy()
    then = change(session, FAILED, None)
    assert snap_compare(make_app(session), terminal_size=size, run_before=after(session, then))


def test_burst(snap_compare: SnapCompare) -> None:
    session = busy()
    burst = make_burst("b8", 8, 1.3)
    running = replace(
        burst,
        points=burst.points[:5],
        state=BurstState.RUNNING,
        cell=Cell(8, 8192),
        fraction=0.71,
        eta_seconds=12,
    )

    async def run(pilot: Pilot[int]) -> None:
        await pilot.press("x")
        await until(pilot, lambda: type(pilot.app.screen).__name__ == "BurstDialog")
        await pilot.press("enter")
        session.bursts.put_nowait(running)
        await until(pilot, lambda: pilot.app.desk.view.burst is not None)  # type: ignore[attr-defined]

    assert snap_compare(make_app(session), terminal_size=(160, 45), run_before=after(session, run))


def test_logs_filtered(snap_compare: SnapCompare) -> None:
    session = busy()

    async def run(pilot: Pilot[int]) -> None:
        await pilot.press("2")
        await until(pilot, lambda: isinstance(pilot.app.screen, LogsScreen))
        await pilot.press("slash", *"accept", "enter", "m")

    assert snap_compare(make_app(session), terminal_size=(120, 30), run_before=after(session, run))


def test_bursts(snap_compare: SnapCompare) -> None:
    session = busy()
    then = keys("3", shows=BurstsScreen)
    assert snap_compare(make_app(session), terminal_size=(160, 30), run_before=after(session, then))


def test_help(snap_compare: SnapCompare) -> None:
    session = busy()
    then = keys("question_mark", shows=Help)
    assert snap_compare(make_app(session), terminal_size=(110, 40), run_before=after(session, then))


def connecting(session: FakeSession, state: Callable[[Pilot[int]], object]) -> Steps:
    async def run(pilot: Pilot[int]) -> None:
        await until(pilot, lambda: state(pilot))
        await pilot.pause()

    return run


def test_an_unknown_host_key(snap_compare: SnapCompare) -> None:
    session = FakeSession()
    session.key = HostKey("ct200", 22, "ssh-ed25519", "SHA256:8dNfzZ0P1b0o2y8kQ4tq0c4iY6wQbKq1Vn3m4X5y6z7")
    session.gate = asyncio.Event()
    session.gate.set()
    run = connecting(
        session, lambda pilot: isinstance(pilot.app.screen, Trust) and pilot.app.screen.is_mounted
    )
    app = make_app(session)
    app.animation_level = "none"
    assert snap_compare(app, terminal_size=(100, 30), run_before=run)


def test_a_password(snap_compare: SnapCompare) -> None:
    session = FakeSession()
    session.secret = ("root@ct200's password:", "password")
    run = connecting(
        session, lambda pilot: isinstance(pilot.app.screen, Secret) and pilot.app.screen.is_mounted
    )
    app = make_app(session)
    app.animation_level = "none"
    assert snap_compare(app, terminal_size=(80, 24), run_before=run)


def test_a_refused_key(snap_compare: SnapCompare) -> None:
    session = FakeSession()
    session.connect_error = HostKeyRefused(
        "the host key of ct200 has changed since it was trusted",
        "compare the new fingerprint with the host itself; if it is right: ssh-keygen -R ct200",
    )
    run = connecting(
        session, lambda pilot: "connect" in session.calls and pilot.app.screen.failure is not None
    )  # type: ignore[attr-defined]
    assert snap_compare(make_app(session), terminal_size=(100, 30), run_before=run)
