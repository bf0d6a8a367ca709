"""History: everything so far listed, searched, noted, deleted, exported, imported; charts and advice from it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from console.fakes import FakeSession
from console.harness import Desk, console
from console.histories import make_past

from ddtui.past import Past
from ddtui.screens.ask_text import AskText, ExportDialog
from ddtui.screens.compare import CompareScreen
from ddtui.screens.dialogs import Confirm
from ddtui.screens.history import HistoryScreen
from ddtui.screens.tune import TuneScreen
from ddtui.store.history import History


@asynccontextmanager
async def history(
    folder: Path, size: tuple[int, int] = (200, 60)
) -> AsyncIterator[tuple[Desk, HistoryScreen, Past]]:
    """The history screen, everything read."""
    session = FakeSession()
    session.past = make_past(folder)
    async with console(session, size) as desk:
        await desk.press("6")
        await desk.until(
            lambda: isinstance(desk.app.screen, HistoryScreen) and desk.app.screen.list.view.rows
        )
        screen = desk.app.screen
        assert isinstance(screen, HistoryScreen)
        await desk.until(lambda: screen.sheet.sheet and screen.advice.advice)
        await desk.pilot.pause()
        yield desk, screen, session.past


async def test_steps_with_knobs_rates_and_notes_and_the_one_under_the_cursor_whole(tmp_path: Path) -> None:
    async with history(tmp_path, (200, 90)) as (desk, _, _past):
        text = desk.text()
        assert "6   16    4 2048" in text and "1,480 tok/s" in text and "“baseline”" in text
        assert "budget 16, topk 4, window 2048" in text and "0.5.11 (/opt/sglang)" in text
        assert "--tp-size 8" in text
        assert "sk-very-secret" not in text
        await desk.press("down")
        await desk.until(lambda: "budget 16, topk 1, window off" in desk.text())


async def test_every_kind_is_listed_in_turn(tmp_path: Path) -> None:
    async with history(tmp_path) as (desk, _screen, _):
        for title in ("Bursts (6)", "Changes (6)", "Sweeps (2)", "Notes (2)", "Steps (6)"):
            await desk.press("v")
            await desk.until(lambda title=title: title in desk.text())  # type: ignore[misc]


async def test_a_change_is_shown_by_the_options_that_it_changed(tmp_path: Path) -> None:
    async with history(tmp_path) as (desk, _, _past):
        await desk.press("v", "v")
        await desk.until(lambda: "Change 20260527-060000-cd06" in desk.text())
        text = desk.text()
        assert "- --speculative-ddtree-budget 2 " in text and "+ --speculative-ddtree-budget 16 " in text


async def test_words_filter_the_list_of_each_kind(tmp_path: Path) -> None:
    async with history(tmp_path) as (desk, screen, _):
        await desk.press("slash")
        await desk.type("faster")  # of a note
        await desk.until(lambda: [row.number for row in screen.list.view.rows] == [4])  # type: ignore[union-attr]
        await desk.press("enter", "v")
        await desk.until(lambda: "nothing is found" in desk.text())


async def test_a_note_is_added_and_the_baseline_set(tmp_path: Path) -> None:
    async with history(tmp_path) as (desk, _, past):
        await desk.press("n")
        await desk.dialog(AskText)
        await desk.type("keep")
        await desk.press("enter")
        await desk.until(lambda: "“keep”" in desk.text())
        await desk.press("B")
        await desk.until(lambda: "step 6 is the baseline" in desk.told())
        a, b = await past.newest_pair()
        assert a == b  # the step measured last is the baseline now


async def test_deleting_asks_and_takes_the_bursts_along(tmp_path: Path) -> None:
    async with history(tmp_path) as (desk, screen, past):
        await desk.press("d")
        await desk.dialog(Confirm)
        assert "step 6 of ct200 with 1 burst" in desk.text()
        await desk.press("escape")
        await desk.back_at(HistoryScreen)
        assert len(await past.rows("steps")) == 6
        await desk.press("d")
        await desk.dialog(Confirm)
        await desk.press("y")
        await desk.until(lambda: len(screen.list.view.rows) == 5)
        assert len(await past.rows("bursts")) == 5


async def test_what_is_exported_can_be_imported_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    async with history(tmp_path) as (desk, _, _past):
        for path in (file, file):  # the second time it is there already
            await desk.press("e")
            dialog = await desk.dialog(ExportDialog)
            dialog.query_one("#path").value = str(path)  # type: ignore[attr-defined]
            await desk.press("enter")
            await desk.back_at(HistoryScreen)
            await desk.until(lambda: file.exists())
        await desk.until(lambda: "exists already" in desk.told())
    session = FakeSession()
    session.past = Past(History.open(tmp_path / "empty.sqlite"), "ct200", "sglang-k26-ddtree.service")
    async with console(session, (200, 60)) as desk:
        await desk.press("6")
        await desk.until(lambda: "no steps yet" in desk.text())
        await desk.press("i")
        dialog = await desk.dialog(AskText)
        dialog.query_one("#text").value = str(file)  # type: ignore[attr-defined]
        await desk.press("enter")
        await desk.until(lambda: "Steps (6)" in desk.text())


async def test_charts_and_advice_are_made_from_all_steps(tmp_path: Path) -> None:
    async with history(tmp_path) as (desk, screen, _):
        titles = []
        for _turn in range(5):
            assert screen.figures.chart.data is not None
            titles.append(screen.figures.chart.data.title)
            screen.figures.action_next_slice()
        assert titles == [
            "Throughput against speed per user, context 512",
            "Throughput against speed per user, context 8k",
            "Accept length by budget",
            "Step time by budget, context 512",
            "Step time by budget, context 8k",
        ]
        assert "→ accept length saturates at budget 16" in desk.text()
        assert "step 4: budget 32: accept length 5 [4.85, 5.15] n=40" in desk.text()  # its evidence


async def test_the_front_is_read_point_by_point(tmp_path: Path) -> None:
    async with history(tmp_path) as (desk, screen, _):
        screen.figures.chart.focus()
        await desk.press("right")
        await desk.until(lambda: "step 6 (16 4 2048) C=32 1,480" in screen.figures.chart.reading)


async def test_taking_an_advice_turns_the_knob_and_leads_to_the_tune_screen(tmp_path: Path) -> None:
    async with history(tmp_path) as (desk, screen, _):
        screen.advice.focus_first()
        await desk.press("enter")
        await desk.back_at(TuneScreen)
        assert desk.app.desk.view.turns["budget"].value == "16"


async def test_enter_compares_the_step_with_the_baseline(tmp_path: Path) -> None:
    async with history(tmp_path) as (desk, _, _past):
        await desk.press("down", "down", "enter")
        await desk.until(lambda: isinstance(desk.app.screen, CompareScreen) and desk.app.screen.found)
        screen = desk.top(CompareScreen)
        assert screen.found is not None and (screen.found.a, screen.found.b) == ("step 1", "step 4")


async def test_in_80_columns_every_part_is_reached(tmp_path: Path) -> None:
    async with history(tmp_path, (80, 24)) as (desk, _, _past):
        for title in ("[Detail]", "[Charts]", "[Advice]", "[List]"):
            await desk.press("right_square_bracket")
            await desk.until(lambda title=title: title in desk.text())  # type: ignore[misc]
