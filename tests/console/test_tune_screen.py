"""The tune screen: keys turn knobs, enter reviews, the change shows, checks are acted on, panes are reached."""

from __future__ import annotations

from dataclasses import replace

import pytest
from console.fakes import FAILED, NOW, STARTING, FakeSession, make_burst, make_profile, make_view
from console.harness import Desk, console

from ddtui.bench.model import BurstState, Cell
from ddtui.bench.quality import Quality, Verdict
from ddtui.bench.target import BenchError
from ddtui.host.base import CommandFailed, Link, LinkState
from ddtui.screens.burst import BurstDialog
from ddtui.screens.dialogs import Confirm, Problem
from ddtui.screens.flag import FlagDialog
from ddtui.screens.knob import KnobDialog
from ddtui.screens.output import OutputCheck
from ddtui.screens.review import Review
from ddtui.screens.text import TextDialog
from ddtui.screens.tune import TuneScreen
from ddtui.tuning.model import Evidence, Layer, NextAction, Op, Phase, Progress, Turn
from ddtui.view import LayerView, ServiceView
from ddtui.widgets.change_panel import ChangePanel
from ddtui.widgets.checks_pane import CheckList, ages
from ddtui.widgets.choices import Choices
from ddtui.widgets.knob_table import KnobTable
from ddtui.widgets.pane_tabs import PaneRow

SIZES = [(80, 24), (160, 45), (200, 60)]
WINDOW = Turn("window", Op.SET, "2048")


async def turn_window(desk: Desk) -> None:
    await desk.press("w")
    await desk.dialog(KnobDialog)
    await desk.type("2048")
    await desk.press("enter")
    await desk.back_at(TuneScreen)


async def apply_window(desk: Desk) -> None:
    await turn_window(desk)
    await desk.press("enter")
    await desk.dialog(Review)
    await desk.press("y")
    await desk.until(lambda: ("apply", (WINDOW,)) in desk.session.calls)


@pytest.mark.parametrize("size", SIZES)
async def test_the_whole_way_from_a_knob_to_a_chart_and_back(size: tuple[int, int]) -> None:
    session = FakeSession()
    async with console(session, size) as desk:
        await apply_window(desk)
        session.progress.put_nowait(STARTING)
        await desk.until(lambda: "62%" in desk.text())
        session.progress.put_nowait(Progress(Phase.VERIFIED, "window 2048 is in force", 1.0, elapsed=41.0))
        session.progress.put_nowait(None)
        await desk.until(lambda: not desk.app.desk.view.changing)
        assert not desk.app.desk.view.turns
        await desk.until(lambda: "verified after 0:41" in desk.text())
        session.show(
            verdicts=tuple(replace(v, status=type(v.status).IN_FORCE) for v in session.view.verdicts)
        )
        await desk.until(lambda: "all 4 in force" in desk.text())

        await desk.press("x")
        await desk.dialog(BurstDialog)
        await desk.press("enter")
        await desk.until(lambda: any(call[0] == "burst" for call in session.calls if isinstance(call, tuple)))
        session.bursts.put_nowait(
            make_burst("b8", 8, state=BurstState.RUNNING, cell=Cell(8, 8192), fraction=0.71, eta_seconds=12.0)
        )
        await desk.until(lambda: "burst 71%" in desk.text())
        session.bursts.put_nowait(make_burst("b8", 8))
        session.bursts.put_nowait(None)
        await desk.until(lambda: desk.app.desk.view.burst is None)
        if size[0] < 100:
            while desk.tune.lower.current != 1:
                await desk.press("right_square_bracket")
                await desk.pilot.pause()
        await desk.until(lambda: "● step 8" in desk.text())

        await desk.press("u")
        await desk.dialog(Review)
        await desk.press("y")
        await desk.until(lambda: ("apply", (Turn("window", Op.UNSET),)) in session.calls)
        session.progress.put_nowait(Progress(Phase.VERIFIED, "", 1.0, elapsed=40.0))
        session.progress.put_nowait(None)
        await desk.until(lambda: not desk.app.desk.view.changing)
        await desk.press("q")
        await desk.until(lambda: desk.app.return_code == 0 and not desk.app.is_running)
    assert session.closed


async def test_a_value_outside_the_range_is_refused_in_the_dialog() -> None:
    async with console() as desk:
        await desk.press("b")
        await desk.dialog(KnobDialog)
        await desk.type("999")
        await desk.press("enter")
        await desk.until(lambda: "budget is at most 256" in desk.text())
        await desk.press("ctrl+u")
        await desk.type("x")
        await desk.press("enter")
        await desk.until(lambda: "is no whole number" in desk.text())
        await desk.press("escape")
        await desk.back_at(TuneScreen)
        assert not desk.app.desk.view.turns


async def test_presets_are_walked_with_the_arrows_and_unset_takes_the_flag_away() -> None:
    async with console() as desk:
        await desk.press("b")
        await desk.dialog(KnobDialog)
        await desk.press("up", "enter")
        await desk.back_at(TuneScreen)
        assert desk.app.desk.view.turns["budget"] == Turn("budget", Op.SET, "16")
        await desk.press("t")
        await desk.dialog(KnobDialog)
        await desk.press("ctrl+t")
        await desk.back_at(TuneScreen)
        assert desk.app.desk.view.turns["topk"] == Turn("topk", Op.UNSET)
        await desk.press("U")
        assert not desk.app.desk.view.turns


async def test_plus_and_minus_walk_the_presets_of_the_knob_under_the_cursor() -> None:
    async with console() as desk:
        assert desk.tune.query_one(KnobTable).has_focus
        await desk.press("plus", "plus")
        assert desk.app.desk.view.turns["budget"].value == "32"
        await desk.press("minus", "minus")
        assert not desk.app.desk.view.turns  # back at what the unit says: no wish
        await desk.press("down", "down", "plus")
        assert desk.app.desk.view.turns["window"].value == "512"


async def test_enter_on_a_knob_edits_it_while_nothing_is_turned() -> None:
    async with console() as desk:
        await desk.press("enter")
        await desk.dialog(KnobDialog)
        await desk.press("escape")
        await desk.back_at(TuneScreen)
        await desk.press("space")
        await desk.dialog(KnobDialog)


async def test_the_review_has_the_focus_on_the_safe_button() -> None:
    async with console() as desk:
        await turn_window(desk)
        await desk.press("enter")
        review = await desk.dialog(Review)
        assert review.focused is not None and review.focused.id == "no"
        await desk.press("enter")
        await desk.back_at(TuneScreen)
        assert not [call for call in desk.session.calls if isinstance(call, tuple) and call[0] == "apply"]
        assert desk.app.desk.view.turns  # the wish is still there


async def test_a_plan_with_problems_cannot_be_applied() -> None:
    session = FakeSession()
    session.plan_changes = {"problems": ("the unit was changed by hand",)}
    async with console(session) as desk:
        await turn_window(desk)
        await desk.press("a")
        review = await desk.dialog(Review)
        assert not review.query("#yes")
        await desk.press("y")
        await desk.pilot.pause()
        assert isinstance(desk.app.screen, Review)


async def test_production_asks_for_the_name_of_the_host() -> None:
    session = FakeSession(make_profile(production=True))
    async with console(session) as desk:
        assert "PROD" in desk.text()
        await desk.press("r")
        await desk.dialog(Confirm)
        await desk.type("other")
        await desk.press("enter")
        await desk.pilot.pause()
        assert isinstance(desk.app.screen, Confirm)
        await desk.press("ctrl+u")
        await desk.type("ct200")
        await desk.press("enter")
        await desk.until(lambda: "restart" in session.calls)


async def test_a_plan_that_cannot_be_made_says_why() -> None:
    session = FakeSession()

    async def no_plan(turns: object) -> None:
        raise CommandFailed("the unit cannot be read", "look at systemctl cat")

    session.plan = no_plan  # type: ignore[assignment, method-assign]
    async with console(session) as desk:
        await turn_window(desk)
        await desk.press("a")
        await desk.dialog(Problem)
        text = desk.text()
        assert "the unit cannot be read" in text and "look at systemctl cat" in text
        await desk.press("enter")
        await desk.back_at(TuneScreen)


async def test_a_failed_start_shows_cause_evidence_and_advice_until_it_is_hidden() -> None:
    async with console() as desk:
        await apply_window(desk)
        desk.session.progress.put_nowait(FAILED)
        desk.session.progress.put_nowait(None)
        await desk.until(lambda: not desk.app.desk.view.changing)
        await desk.pilot.pause()
        text = desk.text()
        assert "The draft window must be at least the block size" in text
        assert "set the window to 16 or more" in text
        assert "Main process exited" in text
        assert desk.app.desk.view.turns == {"window": WINDOW}  # to be corrected, not typed again
        await desk.press("p")
        await desk.until(lambda: not desk.tune.query_one(ChangePanel).display)


async def test_a_change_that_breaks_off_is_told_and_the_console_goes_on() -> None:
    async with console() as desk:
        await apply_window(desk)
        desk.session.progress.put_nowait(CommandFailed("systemctl failed", "ask doctor"))
        await desk.until(lambda: not desk.app.desk.view.changing)
        assert desk.app.desk.view.change is not None
        assert desk.app.desk.view.change.progress.failure == "systemctl failed"
        assert desk.app.desk.events[-1].severity == "error"


async def test_nothing_else_is_changed_while_a_change_runs_and_keys_still_answer() -> None:
    async with console() as desk:
        await apply_window(desk)
        desk.session.progress.put_nowait(STARTING)
        await desk.until(lambda: desk.app.desk.view.changing)
        await desk.press("r", "u", "x", "plus")
        await desk.pilot.pause()
        assert isinstance(desk.app.screen, TuneScreen)
        await desk.press("2")
        await desk.until(lambda: "Journal of sglang" in desk.text())
        await desk.press("escape")
        await desk.back_at(TuneScreen)


async def test_read_only_greys_what_changes_and_says_why() -> None:
    async with console(FakeSession(view=make_view(read_only="no sudo rights"))) as desk:
        assert "READ-ONLY" in desk.text()
        await desk.press("w")
        await desk.pilot.pause()
        assert isinstance(desk.app.screen, TuneScreen)
        await desk.press("r", "u", "f", "enter")
        await desk.pilot.pause()
        assert isinstance(desk.app.screen, TuneScreen)
        assert desk.session.calls == ["connect"]


async def test_a_lost_link_is_shown_at_once_and_marked_in_the_journal() -> None:
    async with console() as desk:
        desk.session.show(link=Link(LinkState.RETRYING, "root@ct200", since=NOW, attempt=1, retry_at=NOW + 4))
        await desk.until(lambda: "link lost, again in 0:04" in desk.text())
        assert "── link lost ──" in desk.app.desk.store.texts
        desk.session.show(link=Link(LinkState.CONNECTED, "root@ct200", rtt_ms=9.0, since=NOW))
        await desk.until(lambda: "9 ms" in desk.text())
        assert "── link is back ──" in desk.app.desk.store.texts


async def test_a_checks_next_step_turns_the_knob() -> None:
    async with console() as desk:
        desk.tune.query_one(CheckList).focus()
        await desk.until(lambda: desk.tune.query_one(CheckList).has_focus)
        await desk.press("enter")
        await desk.until(lambda: desk.app.desk.view.turns == {"window": WINDOW})
        await desk.until(lambda: desk.tune.query_one(KnobTable).has_focus)
        assert desk.tune.query_one(KnobTable).knob == "window"


async def test_o_opens_the_line_of_the_journal_that_a_check_rests_on() -> None:
    runner = Evidence(Layer.JOURNAL, "Initialized draft runner. draft_window_size=2048…", "12:00:01")
    async with console(size=(200, 60)) as desk:
        first, *rest = desk.session.view.verdicts
        desk.session.show(verdicts=(replace(first, evidence=(runner,)), *rest))
        desk.tune.query_one(CheckList).focus()
        await desk.press("o")
        await desk.dialog(TextDialog)
        lines = desk.app.screen.query_one(Choices)
        assert lines.highlighted == 1
        assert "draft_window_size=2048" in desk.text()
        await desk.press("escape")
        await desk.back_at(TuneScreen)


async def test_o_opens_the_unit_at_its_file_where_no_line_stands_in_the_journal() -> None:
    unit = Evidence(Layer.UNIT, "--speculative-ddtree-budget 8", "/etc/systemd/system/sglang.service:12")
    async with console(size=(200, 60)) as desk:
        first, *rest = desk.session.view.verdicts
        desk.session.show(verdicts=(replace(first, evidence=(unit,)), *rest))
        desk.tune.query_one(CheckList).focus()
        await desk.press("o")
        await desk.dialog(TextDialog)
        assert ("unit_text", "/etc/systemd/system/sglang.service") in desk.session.calls
        assert "ExecStart=[/usr/bin/x]" in desk.text()  # text of the host, never markup


async def test_a_stale_drop_in_is_made_anew_by_its_checks_next_step() -> None:
    async with console() as desk:
        first, *rest = desk.session.view.verdicts
        anew = NextAction("rebase", "make ddtui's drop-in anew")
        desk.session.show(verdicts=(replace(first, next=(anew,)), *rest))
        desk.tune.query_one(CheckList).focus()
        await desk.press("enter")
        await desk.dialog(Review)
        assert ("plan", ()) in desk.session.calls


async def test_evidence_opens_and_closes_with_space() -> None:
    async with console(size=(200, 60)) as desk:
        checks = desk.tune.query_one(CheckList)
        checks.focus()
        assert "does not read layer_types" in " ".join(desk.text().split())
        await desk.press("space")
        await desk.pilot.pause()
        assert "does not read layer_types" not in " ".join(desk.text().split())
        await desk.press("j", "space")
        await desk.until(lambda: "speculative_ddtree_budget = 8" in desk.text())


async def test_the_output_check_shows_how_far_it_is_and_what_it_found() -> None:
    async with console(size=(200, 60)) as desk:
        await desk.press("O")
        await desk.dialog(Confirm)
        await desk.press("y")
        await desk.dialog(OutputCheck)
        await desk.until(lambda: "3 of 45 answers" in desk.text())
        found = Quality(Verdict.DIFFERENT, "9 of 45 outputs differ", 45, 6, failed_tasks=("slugs",))
        desk.session.checks.put_nowait(found)
        await desk.until(lambda: "✗ different" in desk.text())
        assert "compared with step 6" in desk.text() and "tests fail in: slugs" in desk.text()
        await desk.press("escape")
        await desk.back_at(TuneScreen)


async def test_an_output_check_that_cannot_be_made_says_why() -> None:
    async with console() as desk:
        await desk.press("O")
        await desk.dialog(Confirm)
        await desk.press("y")
        await desk.dialog(OutputCheck)
        desk.session.checks.put_nowait(BenchError("no answer to check: the server [went] away"))
        await desk.until(lambda: "no answer to check: the server [went] away" in desk.text())


async def test_any_flag_is_found_by_a_part_of_its_name() -> None:
    async with console() as desk:
        await desk.press("f")
        await desk.dialog(FlagDialog)
        await desk.type("running")
        await desk.press("enter")
        await desk.type("64")
        await desk.press("enter")
        await desk.back_at(TuneScreen)
        assert desk.app.desk.view.turns == {
            "--max-running-requests": Turn("--max-running-requests", Op.SET, "64")
        }


async def test_what_is_no_flag_is_refused_in_words() -> None:
    async with console() as desk:
        await desk.press("f")
        dialog = await desk.dialog(FlagDialog)
        dialog.query_one("#flag").value = "rm -rf"  # type: ignore[attr-defined]
        dialog.query_one("#value").focus()
        await desk.press("enter")
        await desk.until(lambda: "is no flag" in desk.text())


async def test_stop_cancels_the_burst_and_keeps_what_was_measured() -> None:
    session = FakeSession()
    async with console(session) as desk:
        await desk.press("x")
        await desk.dialog(BurstDialog)
        await desk.press("enter")
        running = make_burst("b8", 8, state=BurstState.RUNNING, cell=Cell(8, 8192), fraction=0.3)
        session.bursts.put_nowait(running)
        await desk.until(lambda: desk.app.desk.view.burst is not None)
        await desk.press("X")
        await desk.until(lambda: session.burst_closed)
        await desk.until(lambda: desk.app.desk.view.bursts[0].state is BurstState.CANCELLED)
        assert desk.app.desk.view.bursts[0].points == running.points


async def test_a_burst_of_nonsense_is_refused_in_the_dialog() -> None:
    async with console() as desk:
        await desk.press("x")
        dialog = await desk.dialog(BurstDialog)
        dialog.query_one("#concurrency").value = "1,many"  # type: ignore[attr-defined]
        await desk.until(lambda: "'many' is no count" in desk.text())
        dialog.query_one("#concurrency").value = "1,500"  # type: ignore[attr-defined]
        await desk.until(lambda: "500 is not allowed, 1 to 64" in desk.text())
        assert dialog.query_one("#start").disabled


async def test_a_change_that_was_cut_is_offered_to_be_finished() -> None:
    session = FakeSession(view=make_view(cut="the change 2026 was cut while writing"))
    async with console(session, wait=False) as desk:
        await desk.dialog(Confirm)
        assert "was cut while writing" in desk.text()
        await desk.press("y")
        await desk.until(lambda: ("resume", False) in session.calls)


async def test_leaving_while_something_runs_asks_first() -> None:
    async with console() as desk:
        await apply_window(desk)
        desk.session.progress.put_nowait(STARTING)
        await desk.until(lambda: desk.app.desk.view.changing)
        await desk.press("q")
        await desk.dialog(Confirm)
        await desk.press("escape")
        await desk.back_at(TuneScreen)
        assert desk.app.is_running


@pytest.mark.parametrize("size", SIZES)
async def test_every_pane_is_reached_with_the_brackets_and_tells_that_it_has_the_focus(
    size: tuple[int, int],
) -> None:
    session = FakeSession()
    session.earlier = [make_burst("b7", 7)]
    async with console(session, size) as desk:
        seen = []
        for _ in range(6):
            await desk.press("right_square_bracket")
            await desk.pilot.pause()
            await desk.pilot.pause()
            found = desk.tune.pane_of(desk.tune.focused)
            assert found is not None
            pane = found[0].panes[found[1]]
            assert pane.region.area > 0
            seen.append(pane.id)
        assert len(set(seen)) == 6


@pytest.mark.parametrize("size", [(160, 45), (80, 24)])
async def test_zoom_gives_a_pane_the_screen_between_status_and_keys(size: tuple[int, int]) -> None:
    width, height = size
    async with console(size=size) as desk:
        rows = desk.tune.upper.region
        for screen in ("1", "4", "5", "6"):
            await desk.press(screen)
            await desk.until(lambda: desk.app.screen.query("PaneRow"))
            await desk.until(lambda: desk.app.screen.focused is not None)
            await desk.press("z")
            await desk.until(lambda: desk.app.screen.maximized is not None)
            for _ in range(2):
                zoomed = desk.app.screen.maximized
                await desk.until(lambda zoomed=zoomed: tuple(zoomed.region) == (0, 1, width, height - 2))
                lines = desk.text().split("\n")
                assert "ct200 ●" in lines[0] and "help" in lines[-1], screen
                await desk.press("right_square_bracket")
                await desk.until(lambda zoomed=zoomed: desk.app.screen.maximized is not zoomed)
            await desk.press("escape")
            await desk.until(lambda: desk.app.screen.maximized is None)
        await desk.press("1")
        await desk.until(lambda: desk.tune.upper.region == rows)


async def test_panes_become_tabs_when_the_terminal_is_made_narrow_and_back() -> None:
    async with console(size=(160, 45)) as desk:
        assert not desk.tune.query(PaneRow).first().has_class("-tabbed")
        await desk.pilot.resize_terminal(80, 24)
        await desk.until(lambda: desk.tune.query(PaneRow).first().has_class("-tabbed"))
        await desk.pilot.resize_terminal(10, 3)
        await desk.pilot.pause()
        await desk.pilot.resize_terminal(200, 60)
        await desk.until(lambda: not desk.tune.query(PaneRow).first().has_class("-tabbed"))
        assert all(pane.region.area > 0 for row in (desk.tune.upper, desk.tune.lower) for pane in row.panes)


async def test_a_service_that_failed_says_so_in_the_strip() -> None:
    view = make_view(
        service=ServiceView("x.service", "failed", "failed", NOW - 60, None, problem="exit code 1")
    )
    async with console(FakeSession(view=view)) as desk:
        assert "failed 1 min" in desk.text() and "! exit code 1" in desk.text()


async def test_every_layer_shows_how_old_its_reading_is_or_that_there_is_none() -> None:
    async with console(size=(200, 60)) as desk:
        layers = (
            LayerView("engine", read_at=NOW - 125),
            LayerView("unit", read_at=NOW - 3),
            LayerView("journal", read_at=NOW, problem="may not be read"),
        )
        desk.session.show(layers=layers)
        await desk.until(lambda: "read: unit just now; engine 2 min ago" in desk.text())
        assert "✗ journal: may not be read" in ages(layers, NOW).plain


async def test_the_knobs_flag_and_range_are_whole_again_after_the_terminal_was_small() -> None:
    async with console(FakeSession(), (160, 45)) as desk:
        whole = "--speculative-ddtree-budget  1 to 256"
        await desk.until(lambda: whole in desk.text())
        for _ in range(3):
            await desk.pilot.resize_terminal(100, 30)
            await desk.until(lambda: whole not in desk.text())
            await desk.pilot.resize_terminal(160, 45)
            await desk.until(lambda: whole in desk.text())
