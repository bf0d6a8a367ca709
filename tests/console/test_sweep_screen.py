"""Sweep, A/B and calibration from the console: what it takes before it starts, then watched, stopped, gone on with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from console.fakes import FakeSession, make_forecast, make_profile
from console.harness import Desk, console
from console.histories import PLAN, ended_sweep, make_past, running_sweep

from ddtui.bench import grid
from ddtui.bench.experiment import ExperimentPlan, Order
from ddtui.bench.target import BenchError
from ddtui.host.base import HostError
from ddtui.profile import Profile
from ddtui.screens.ab import ABDialog, CalibrateDialog
from ddtui.screens.ask_text import AskText
from ddtui.screens.dialogs import Confirm
from ddtui.screens.sweep import SweepScreen
from ddtui.tuning.model import Op, Turn


@asynccontextmanager
async def sweep(
    session: FakeSession | None = None, size: tuple[int, int] = (160, 45)
) -> AsyncIterator[tuple[Desk, SweepScreen]]:
    async with console(session or FakeSession(), size) as desk:
        await desk.press("5")
        await desk.until(lambda: isinstance(desk.app.screen, SweepScreen))
        screen = desk.app.screen
        assert isinstance(screen, SweepScreen)
        await desk.until(lambda: screen.focused is not None)
        yield desk, screen


def asked(session: FakeSession, what: str) -> list[object]:
    return [call[1] for call in session.calls if isinstance(call, tuple) and call[0] == what]


async def test_the_grid_is_picked_and_what_it_takes_is_shown_before_it_starts() -> None:
    skipped = (((("budget", "32"),), "budget 32 needs topk 2 or more"),)
    session = FakeSession()
    async with sweep(session) as (desk, _screen):
        wanted = replace(PLAN, skipped=skipped)
        session.forecasts = [make_forecast(wanted)]
        await desk.press("space", "right", "space", "right", "space")  # budget 4, 8, 16
        await desk.until(lambda: "skipped" in desk.text())
        text = desk.text()
        assert "6 restarts of the server" in text and "about 39 min" in text
        assert "starts of 4 min 31 s by the last ones" in text
        assert "– budget 32: budget 32 needs topk 2 or more" in text
        plan = asked(session, "forecast")[-1]
        assert isinstance(plan, ExperimentPlan)
        assert [dict(one)["budget"] for one in plan.settings] == ["4", "8", "16"]
        assert not asked(session, "experiment")


async def test_order_and_what_happens_at_the_end_are_chosen_beforehand() -> None:
    async with sweep() as (desk, screen):
        await desk.press("a")
        screen.query_one("#order").focus()
        await desk.press("right")
        screen.query_one("#finish").focus()
        await desk.press("right")
        screen.query_one("#flags").value = "--attention-backend=triton,fa3"  # type: ignore[attr-defined]
        plan = screen.form.plan()
        assert (plan.order, plan.finish) == (Order.HALVING, "first")
        assert len(plan.settings) == 12 and dict(plan.settings[0])["--attention-backend"] == "triton"
        assert len(plan.cells) == 6  # the profile's


async def test_what_cannot_be_is_said_while_it_is_picked() -> None:
    session = FakeSession()
    async with sweep(session) as (desk, _screen):
        await desk.until(lambda: "pick values of a knob" in desk.text())
        session.forecasts = [BenchError("128 requests at once are more than the 64 that the profile allows")]
        await desk.press("a")
        await desk.until(lambda: "more than the 64" in desk.text())


async def test_it_runs_unattended_with_its_results_growing_and_tells_how_it_ended(tmp_path: Path) -> None:
    session = FakeSession()
    session.past = make_past(tmp_path)
    async with sweep(session) as (desk, _screen):
        await desk.press("a", "ctrl+s")
        await desk.dialog(Confirm)
        assert "6 restarts of the server" in desk.text()
        await desk.press("y")
        await desk.until(lambda: asked(session, "experiment"))
        session.states.put_nowait(running_sweep())
        await desk.until(lambda: "sweep  3/6 trials" in desk.text())
        text = desk.text()
        assert "⇄ sweep 3/6" in text  # in the strip, so on every screen
        assert "▲121" in text and "failed: the server ra" in text and "C=32 ctx=512" in text
        await desk.press("1")  # elsewhere meanwhile, changes are not possible
        await desk.press("r")
        await desk.until(lambda: "a sweep is running; X stops it" in desk.told())
        session.states.put_nowait(ended_sweep())
        session.states.put_nowait(None)
        await desk.until(lambda: not desk.app.desk.view.trying)
        await desk.press("5")
        await desk.until(lambda: "budget 16, topk 4 is in force (step 6)" in desk.text())
        assert "best throughput over 6 cells: budget 16, topk 4" in desk.text()


async def test_stopping_asks_and_closes_it() -> None:
    session = FakeSession()
    async with sweep(session) as (desk, _screen):
        await desk.press("a", "ctrl+s")
        await desk.dialog(Confirm)
        await desk.press("y")
        session.states.put_nowait(running_sweep())
        await desk.until(lambda: desk.app.desk.view.trying)
        await desk.press("X")
        await desk.dialog(Confirm)
        assert "3 of 6 trials are done, about 14 min before its end" in desk.text()
        await desk.press("escape")
        await desk.back_at(SweepScreen)
        assert not session.experiment_closed
        await desk.press("X")
        await desk.dialog(Confirm)
        await desk.press("y")
        await desk.until(lambda: session.experiment_closed and not desk.app.desk.view.trying)
        await desk.until(lambda: "stopped: stopped by the operator" in desk.text())
        assert desk.app.desk.view.burst is None  # its burst runs no more


async def test_an_earlier_one_is_read_whole_and_gone_on_with(tmp_path: Path) -> None:
    session = FakeSession()
    session.past = make_past(tmp_path)
    async with sweep(session) as (desk, screen):
        await desk.until(lambda: len(screen.earlier.list.rows) == 2)
        screen.earlier.focus_first()
        await desk.press("down")
        await desk.until(lambda: "best throughput over 6 cells: budget 16" in desk.text())
        await desk.press("ctrl+g")
        await desk.until(lambda: "this one is done" in desk.told())
        await desk.press("up", "ctrl+g")
        await desk.dialog(Confirm)
        await desk.press("y")
        await desk.until(lambda: asked(session, "experiment") == ["20260528-080000-ee02"])


async def test_a_production_host_asks_for_its_name() -> None:
    session = FakeSession(make_profile(production=True))
    async with sweep(session) as (desk, _screen):
        await desk.press("a", "ctrl+s")
        await desk.dialog(Confirm)
        await desk.press("y")
        await desk.pilot.pause()
        assert not asked(session, "experiment")
        await desk.press("ctrl+u")
        await desk.type("ct200")
        await desk.press("enter")
        await desk.until(lambda: asked(session, "experiment"))


async def test_read_only_starts_nothing() -> None:
    session = FakeSession()
    session.view = replace(session.view, read_only="no sudo rights")
    async with sweep(session) as (desk, _screen):
        await desk.press("a", "ctrl+s")
        await desk.until(lambda: "read-only: no sudo rights" in desk.told())
        assert not asked(session, "experiment")


async def test_one_key_measures_the_turned_knobs_against_what_is_in_force() -> None:
    session = FakeSession()
    async with console(session) as desk:
        desk.app.desk.turn(Turn("budget", Op.SET, "16"))
        await desk.press("A")
        dialog = await desk.dialog(ABDialog)
        await desk.until(lambda: "2 restarts of the server" in desk.text())
        text = desk.text()
        assert "A  in force now: budget 8" in text and "B  budget 16" in text
        assert "a preview: 0 of 3 A/A runs are known" in text
        assert dialog.focused is not None and dialog.focused.id == "no"
        dialog.query_one("#order").focus()
        await desk.press("right")  # A B B A
        await desk.until(lambda: "4 restarts of the server" in desk.text())
        await desk.press("ctrl+s")
        await desk.until(lambda: asked(session, "experiment"))
        (plan,) = asked(session, "experiment")
        assert isinstance(plan, ExperimentPlan)
        assert (plan.order, plan.settings, plan.requests) == (Order.ABBA, ((("budget", "16"),),), 96)


@pytest.mark.parametrize(("left", "turned"), [((("budget", "16"),), False), ((), True)])
async def test_a_wish_that_won_is_no_wish_any_more(left: tuple[tuple[str, str], ...], turned: bool) -> None:
    session = FakeSession()
    async with console(session) as desk:
        desk.app.desk.turn(Turn("budget", Op.SET, "16"))
        end = ended_sweep()
        assert end.outcome is not None
        session.states.put_nowait(replace(end, outcome=replace(end.outcome, left=left)))
        session.states.put_nowait(None)
        await desk.app.desk.experiment("A/B", session.experiment(PLAN))
        assert bool(desk.app.desk.view.turns) is turned


async def test_calibrating_says_what_it_takes_and_runs() -> None:
    session = FakeSession()
    async with sweep(session) as (desk, _screen):
        await desk.press("K")
        await desk.dialog(CalibrateDialog)
        await desk.until(lambda: "3 restarts of the server" in desk.text())
        await desk.press("ctrl+s")
        await desk.until(lambda: asked(session, "experiment"))
        (plan,) = asked(session, "experiment")
        assert isinstance(plan, ExperimentPlan) and (plan.order, plan.trials) == (Order.CALIBRATE, 3)


async def test_one_that_cannot_begin_says_why() -> None:
    session = FakeSession()
    async with sweep(session) as (desk, _screen):
        await desk.press("a", "ctrl+s")
        await desk.dialog(Confirm)
        session.states.put_nowait(HostError("bea@other:77 holds the lock"))
        await desk.press("y")
        await desk.until(lambda: "bea@other:77 holds the lock" in desk.told())
        assert not desk.app.desk.view.trying


async def test_in_80_columns_everything_is_reached() -> None:
    async with sweep(size=(80, 24)) as (desk, _screen):
        for name in ("[What it takes]", "[Earlier]", "[Trials]", "[Set up]"):
            await desk.press("right_square_bracket")
            await desk.until(lambda name=name: name in desk.text())  # type: ignore[misc]


async def test_values_are_picked_with_the_mouse() -> None:
    async with sweep() as (desk, screen):
        await desk.pilot.click("#knob-budget", offset=(4, 0))
        assert screen.query_one("#knob-budget").chosen == ("8",)  # type: ignore[attr-defined]
        await desk.pilot.click("#finish")
        assert screen.form.query_one("#finish").value == "first"  # type: ignore[attr-defined]


async def test_a_plan_is_opened_changed_saved_and_opened_again(tmp_path: Path) -> None:
    first, saved = tmp_path / "first.yaml", tmp_path / "saved.yaml"
    first.write_text(
        "grid: {budget: [4, 12], window: [off, 2048], --attention-backend: [fa3, triton]}\n"
        "concurrency: [3, 8]\ncontext: [1k, 3000]\nworkload: chat\norder: halving\nfinish: first\nseed: 7\n"
        "check: false\nrequests: 64\nwhy: long contexts\n"
    )
    async with sweep() as (desk, screen):
        await desk.press("i")
        await desk.dialog(AskText)
        await desk.type(str(first))
        await desk.press("enter")
        await desk.until(lambda: "Sweep: first.yaml" in desk.text())
        text = desk.text()
        assert (
            "[4]" in text and "[3000]" in text and "[3]" in text and "--attention-backend=fa3,triton" in text
        )
        bench = desk.app.desk.view.profile.bench
        plan = grid.read(first.read_text(), "first.yaml", bench)
        assert set(screen.form.plan().settings) == set(plan.settings)
        assert replace(screen.form.plan(), settings=plan.settings, cells=plan.cells) == plan
        assert set(screen.form.plan().cells) == set(plan.cells)
        screen.query_one("#finish").focus()
        await desk.press("right", "e")
        dialog = await desk.dialog(AskText)
        dialog.query_one("#text").value = str(saved)  # type: ignore[attr-defined]
        await desk.press("enter")
        await desk.until(saved.exists)
        assert grid.read(saved.read_text(), "saved.yaml", bench) == screen.form.plan()
        assert screen.form.plan().finish == "stay"


async def test_listed_settings_are_meant_until_a_value_is_picked(tmp_path: Path) -> None:
    file = tmp_path / "listed.yaml"
    file.write_text("settings: [{budget: 8}, {budget: 16, topk: 2}]")
    async with sweep() as (desk, screen):
        await desk.press("i")
        await desk.dialog(AskText)
        await desk.type(str(file))
        await desk.press("enter")
        await desk.until(lambda: "2 listed settings" in desk.text())
        assert screen.form.plan().settings == ((("budget", "8"),), (("budget", "16"), ("topk", "2")))
        screen.query_one("#knob-budget").focus()
        await desk.press("space")
        await desk.until(lambda: "2 listed settings" not in desk.text())
        assert len(screen.form.plan().settings) == 1


async def test_a_plan_that_is_none_or_is_there_already_is_said(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text("grdi: {budget: [4]}")
    async with sweep() as (desk, _screen):
        for path, words in ((file, "grdi: is no key of a plan"), (tmp_path / "no.yaml", "cannot be read")):
            await desk.press("i")
            dialog = await desk.dialog(AskText)
            dialog.query_one("#text").value = str(path)  # type: ignore[attr-defined]
            await desk.press("enter")
            await desk.until(lambda words=words: words in desk.told())  # type: ignore[misc]
        await desk.press("a", "e")
        dialog = await desk.dialog(AskText)
        dialog.query_one("#text").value = str(file)  # type: ignore[attr-defined]
        await desk.press("enter")
        await desk.dialog(Confirm)
        await desk.press("escape")
        await desk.back_at(SweepScreen)
        assert file.read_text() == "grdi: {budget: [4]}"


async def test_other_hosts_are_chosen_to_share_it() -> None:
    session = FakeSession()
    others = {name: make_profile(name=name, production=name == "gpu-c") for name in ("gpu-b", "gpu-c")}

    async def found() -> dict[str, Profile]:
        return others

    async with console(session) as desk:
        desk.app.other_profiles = found
        await desk.press("5")
        await desk.until(lambda: "hosts too" in desk.text())
        screen = desk.app.screen
        await desk.press("a")
        screen.query_one("#hosts").focus()
        await desk.press("space", "right", "space", "ctrl+s")
        await desk.dialog(Confirm)
        assert "Shared with gpu-b, gpu-c." in desk.text()
        await desk.type(others["gpu-c"].connection.host)  # one of them is production
        await desk.press("enter")
        await desk.until(lambda: asked(session, "experiment"))
        assert session.shared == ["gpu-b", "gpu-c"]
