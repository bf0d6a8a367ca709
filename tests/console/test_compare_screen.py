"""Compare: two steps of a real history, the answer first; refused with its reason, or knowingly."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from console.fakes import FakeSession
from console.harness import Desk, console
from console.histories import make_past

from ddtui.bench.model import Cell
from ddtui.screens.compare import CompareScreen
from ddtui.screens.tune import TuneScreen
from ddtui.widgets.heat_map import Heat, HeatMap


@asynccontextmanager
async def compare(
    folder: Path, size: tuple[int, int] = (160, 45)
) -> AsyncIterator[tuple[Desk, CompareScreen]]:
    """The compare screen with a comparison on it."""
    session = FakeSession()
    session.past = make_past(folder)
    async with console(session, size) as desk:
        await desk.press("4")
        await desk.until(lambda: isinstance(desk.app.screen, CompareScreen) and desk.app.screen.found)
        screen = desk.app.screen
        assert isinstance(screen, CompareScreen)
        await desk.pilot.pause()
        yield desk, screen


async def test_it_opens_with_the_step_measured_last_against_the_baseline(tmp_path: Path) -> None:
    async with compare(tmp_path) as (desk, screen):
        assert screen.found is not None and (screen.found.a, screen.found.b) == ("step 1", "step 6")
        text = desk.text()
        assert "▲ step 6 (budget 16, topk 4, window 2048) against step 1: throughput at 512 context" in text
        assert "▲ +31 % [19, 45]" in text  # the cell in the table, better, with its interval
        assert "outputs not compared" in text


async def test_any_two_steps_are_picked_and_swapped(tmp_path: Path) -> None:
    async with compare(tmp_path) as (desk, screen):
        await desk.press("down", "enter")  # step 5 is B
        await desk.until(lambda: screen.found is not None and screen.found.b == "step 5")
        await desk.press("down", "a")  # step 4 is A
        await desk.until(lambda: screen.found is not None and screen.found.a == "step 4")
        await desk.press("w")
        await desk.until(lambda: screen.found is not None and screen.found.a == "step 5")
        await desk.press("B")
        await desk.until(lambda: screen.found is not None and screen.found.a == "step 1")


async def test_another_gpu_is_refused_with_the_reason_and_compared_knowingly(tmp_path: Path) -> None:
    async with compare(tmp_path) as (desk, screen):
        assert "knowingly" not in desk.text()  # nothing is refused yet
        await desk.press("o")  # the steps of all hosts
        await desk.until(lambda: len(screen.steps.view.rows) == 7)
        await desk.press("G", "enter")
        await desk.until(lambda: screen.refusal is not None)
        await desk.pilot.pause()
        assert "another GPU: 8 x NVIDIA B200, driver 580.95 and 8 x NVIDIA H200" in desk.text()
        assert "Y knowingly" in desk.text()
        await desk.press("Y")
        await desk.until(lambda: screen.found is not None)
        await desk.pilot.pause()
        assert "! another GPU" in desk.text() and "! another host" in desk.text()


async def test_a_step_against_itself_asks_for_another(tmp_path: Path) -> None:
    async with compare(tmp_path) as (desk, screen):
        await desk.press("G", "enter")
        await desk.until(lambda: "A and B are the same step" in desk.text())
        assert screen.found is None


async def test_the_metric_turns_in_the_table_and_in_the_heat_map(tmp_path: Path) -> None:
    async with compare(tmp_path) as (desk, _screen):
        seen = []
        for _ in range(5):
            seen.append(desk.text().split("╭─ ")[-1].split(",")[0])
            await desk.press("m")
            await desk.pilot.pause()
        assert seen == ["throughput", "per user", "TTFT", "TPOT", "accept length"]


async def test_the_heat_map_and_the_table_have_one_cursor(tmp_path: Path) -> None:
    async with compare(tmp_path) as (desk, screen):
        screen.heat.map.focus()
        await desk.press("down", "right")
        await desk.until(
            lambda: screen.answer.table.row is not None and screen.answer.table.row.cell == Cell(8, 8192)
        )
        await desk.until(lambda: "C=8 ctx=8k code\n" in screen.heat.query_one("#cell-whole").render().plain)  # type: ignore[union-attr]


async def test_in_80_columns_picking_a_step_shows_the_answer_and_escape_leads_back(tmp_path: Path) -> None:
    async with compare(tmp_path, (80, 24)) as (desk, _screen):
        await desk.press("down", "enter")
        await desk.until(lambda: "[Answer]" in desk.text() and "▼ step 5" in desk.text())
        assert "B  step 5   budget 16, topk 1, window off" in desk.text()
        await desk.press("escape")
        await desk.until(lambda: isinstance(desk.app.screen, TuneScreen))


async def test_steps_are_searched_while_it_is_typed(tmp_path: Path) -> None:
    async with compare(tmp_path) as (desk, screen):
        await desk.press("slash")
        await desk.type("budget=32")
        await desk.until(lambda: [row.number for row in screen.steps.view.rows] == [4])
        await desk.press("escape")
        await desk.until(lambda: len(screen.steps.view.rows) == 6)


async def test_without_a_history_it_says_so() -> None:
    async with console() as desk:
        await desk.press("4")
        await desk.until(lambda: "there is no history to compare in" in desk.text())


def test_a_heat_map_says_better_and_worse_without_colour() -> None:
    heats = [
        Heat(Cell(1, 512), "+31 %", "better", 0.9),
        Heat(Cell(8, 512), "−4.0 %", "worse", 0.1),
        Heat(Cell(1, 8192), "+0.2 %", "same"),
        Heat(Cell(8, 8192), "–", "doubtful"),
    ]
    found = HeatMap()
    found._heats = {heat.cell: heat for heat in heats}
    lines = found.render().plain.split("\n")
    assert lines[0].split() == ["C", "↓", "ctx", "→", "512", "8k"]
    assert lines[1].split() == ["1", "▲", "+31", "%", "·", "+0.2", "%"]
    assert lines[2].split() == ["8", "▼", "−4.0", "%", "?", "–"]
