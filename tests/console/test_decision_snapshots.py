"""How compare, history and sweep look. After a wanted change: `pytest … --snapshot-update`, and look at it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from console.fakes import FakeSession, make_burst
from console.harness import make_app, until
from console.histories import PLAN, ended_sweep, make_past, running_sweep
from console.test_snapshots import Steps, drawn
from textual.pilot import Pilot

from ddtui.screens.ab import ABDialog
from ddtui.screens.tune import TuneScreen
from ddtui.tuning.model import Op, Turn
from ddtui.widgets.colours import Colours

SnapCompare = Callable[..., bool]
SIZES = [(80, 24), (160, 45), (200, 60)]
IDS = ["80x24", "160x45", "200x60"]


def looking_back(folder: Path) -> FakeSession:
    session = FakeSession()
    session.past = make_past(folder)
    session.earlier = [make_burst("b7", 7)]
    return session


def at(
    key: str, ready: Callable[[object], object], then: Steps | None = None, before: Steps | None = None
) -> Steps:
    """Go to a screen by its key, wait until it shows what it has, then do `then`."""

    async def run(pilot: Pilot[int]) -> None:
        app = pilot.app
        await until(pilot, lambda: isinstance(app.screen, TuneScreen) and app.screen._composed)
        await until(pilot, lambda: app.desk.view.tune.surveyed)  # type: ignore[attr-defined]
        if before is not None:
            await before(pilot)
        await pilot.press(key)
        await until(pilot, lambda: not isinstance(app.screen, TuneScreen) and ready(app.screen))
        if then is not None:
            await then(pilot)
        await drawn(pilot)

    return run


def compared(screen: object) -> object:
    return getattr(screen, "found", None)


def read(screen: object) -> object:
    return screen.sheet.sheet and screen.advice.advice and screen.focused  # type: ignore[attr-defined]


def set_up(screen: object) -> object:
    earlier = screen.earlier.list.rows  # type: ignore[attr-defined]
    return earlier and screen.focused and "pick values" in screen.plan.query_one("#plan-words").render().plain  # type: ignore[attr-defined]


def trying(session: FakeSession, state: object, *, ended: bool) -> Steps:
    async def run(pilot: Pilot[int]) -> None:
        app = pilot.app
        app.spawn("experiment", app.desk.experiment("sweep", session.experiment(PLAN)))  # type: ignore[attr-defined]
        session.states.put_nowait(state)  # type: ignore[arg-type]
        if ended:
            session.states.put_nowait(None)
        desk = app.desk  # type: ignore[attr-defined]
        await until(pilot, lambda: desk.view.experiment and desk.view.trying is not ended)
        app.clear_notifications()

    return run


@pytest.mark.parametrize("size", SIZES, ids=IDS)
def test_compare(snap_compare: SnapCompare, tmp_path: Path, size: tuple[int, int]) -> None:
    session = looking_back(tmp_path)
    then = None
    if size[0] < 100:

        async def then(pilot: Pilot[int]) -> None:
            await pilot.press("down", "enter")
            await until(pilot, lambda: pilot.app.screen.row.current == 1 and compared(pilot.app.screen))  # type: ignore[attr-defined]

    assert snap_compare(make_app(session), terminal_size=size, run_before=at("4", compared, then))


def test_compare_without_colour(snap_compare: SnapCompare, tmp_path: Path) -> None:
    session = looking_back(tmp_path)
    assert snap_compare(
        make_app(session, colours=Colours.NONE), terminal_size=(160, 45), run_before=at("4", compared)
    )


@pytest.mark.parametrize("size", SIZES, ids=IDS)
def test_history(snap_compare: SnapCompare, tmp_path: Path, size: tuple[int, int]) -> None:
    session = looking_back(tmp_path)
    assert snap_compare(make_app(session), terminal_size=size, run_before=at("6", read))


def test_history_in_light(snap_compare: SnapCompare, tmp_path: Path) -> None:
    app = make_app(looking_back(tmp_path))
    app.theme = "ddtui-light"
    assert snap_compare(app, terminal_size=(160, 45), run_before=at("6", read))


@pytest.mark.parametrize("size", SIZES, ids=IDS)
def test_sweep_set_up(snap_compare: SnapCompare, tmp_path: Path, size: tuple[int, int]) -> None:
    session = looking_back(tmp_path)

    async def pick(pilot: Pilot[int]) -> None:
        await pilot.press("space", "right", "space", "right", "space")
        words = pilot.app.screen.plan.query_one("#plan-words")  # type: ignore[attr-defined]
        await until(pilot, lambda: "3 settings to try" in words.render().plain)

    assert snap_compare(make_app(session), terminal_size=size, run_before=at("5", set_up, pick))


def test_sweep_running(snap_compare: SnapCompare, tmp_path: Path) -> None:
    session = looking_back(tmp_path)
    run = at("5", set_up, before=trying(session, running_sweep(), ended=False))
    assert snap_compare(make_app(session), terminal_size=(160, 45), run_before=run)


def test_sweep_ended(snap_compare: SnapCompare, tmp_path: Path) -> None:
    session = looking_back(tmp_path)
    run = at("5", set_up, before=trying(session, ended_sweep(), ended=True))
    assert snap_compare(make_app(session), terminal_size=(160, 45), run_before=run)


def test_quick_ab(snap_compare: SnapCompare, tmp_path: Path) -> None:
    session = looking_back(tmp_path)

    async def turn(pilot: Pilot[int]) -> None:
        pilot.app.desk.turn(Turn("budget", Op.SET, "16"))  # type: ignore[attr-defined]

    def ready(screen: object) -> object:
        return isinstance(screen, ABDialog) and screen.is_mounted and screen._made

    assert snap_compare(make_app(session), terminal_size=(100, 30), run_before=at("A", ready, before=turn))
