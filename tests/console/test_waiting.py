"""Waits that take longer than a moment are shown, estimated and can be stopped."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from console.fakes import NOW, STARTING, FakeSession
from console.harness import console
from console.histories import make_past
from textual.content import Content

from ddtui.bench.experiment import ExperimentPlan
from ddtui.past import Past
from ddtui.screens.connect import ConnectScreen
from ddtui.screens.dialogs import Confirm, Problem
from ddtui.screens.logs import LogsScreen
from ddtui.screens.review import Review
from ddtui.screens.tune import TuneScreen
from ddtui.screens.waiting import InPlace, Stopped, Waiting, how_far
from ddtui.session import JournalLine
from ddtui.store.history import History
from ddtui.tuning.forecast import Forecast
from ddtui.tuning.model import Op, Plan, Turn
from ddtui.widgets.journal_pane import Question, reading_words
from ddtui.widgets.journal_store import Reading


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


async def test_a_change_can_be_stopped_once_that_is_confirmed() -> None:
    session = FakeSession()
    async with console(session) as desk:
        for key, changing in (("escape", True), ("y", False)):
            if not desk.app.desk.view.changing:
                desk.app.desk.turn(Turn("window", Op.SET, "2048"))
                await desk.press("a")
                await desk.dialog(Review)
                await desk.press("y")
                session.progress.put_nowait(STARTING)
                await desk.until(lambda: "starting" in desk.text())
            await desk.press("X")
            await desk.dialog(Confirm)
            assert "Stop the change?" in desk.text() and "Stop it" in desk.text()
            await desk.press(key)
            await desk.back_at(TuneScreen)
            await desk.until(lambda changing=changing: desk.app.desk.view.changing is changing)  # type: ignore[misc]
        await desk.until(lambda: "stopped here; the change can be finished or undone" in desk.text())


async def test_reading_every_layer_again_shows_that_it_goes_on_and_can_be_left() -> None:
    class Reads(FakeSession):
        async def refresh(self) -> None:
            await asyncio.Event().wait()

    async with console(Reads()) as desk:
        await desk.press("ctrl+r")
        await desk.dialog(Waiting)
        assert "Reading every layer" in desk.text()
        await desk.press("escape")
        await desk.back_at(TuneScreen)


async def test_earlier_lines_that_take_long_are_stopped_by_escape() -> None:
    class Reads(FakeSession):
        async def earlier_lines(self, before: str, count: int) -> list[JournalLine]:
            await asyncio.Event().wait()
            return []

    session = Reads()
    session.lines.put_nowait([JournalLine(NOW, f"line {i}", cursor=f"c{i}") for i in range(9)])
    async with console(session) as desk:
        await desk.press("2")
        await desk.until(lambda: len(desk.app.desk.store) == 9 and "line 8" in desk.text())
        await desk.press("g")
        await desk.until(lambda: "reading earlier lines" in desk.text())
        await desk.press("escape")
        await desk.until(lambda: desk.app.desk.store.reading is None)
        assert isinstance(desk.app.screen, LogsScreen)
        await desk.press("escape")
        await desk.back_at(TuneScreen)


def test_how_far_back_in_time_it_is_or_how_long_it_took_before_tells_how_far_it_is() -> None:
    assert reading_words(Reading(0.0), 0.5) == "reading earlier lines …"
    assert reading_words(Reading(0.0), 3.0) == "reading earlier lines 0:03   esc stops"
    assert "▓▓▓▓▓░░░░░ 50%  eta 0:02" in reading_words(Reading(0.0, usual=4.0), 2.0)
    assert "▓▓░░░░░░░░ 25%  eta 0:06" in reading_words(Reading(0.0, part=0.25), 2.0)


async def test_an_export_that_is_stopped_leaves_no_file(tmp_path: Path) -> None:
    past, file = make_past(tmp_path), tmp_path / "out.jsonl"
    began, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def tell(part: float | None) -> None:
        loop.call_soon_threadsafe(began.set)
        go_on.wait()

    work = asyncio.create_task(past.export(str(file), tell=tell))
    await began.wait()
    assert file.exists()
    work.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert not file.exists()


async def test_an_import_that_is_stopped_takes_nothing_in_and_knew_how_far_it_was(tmp_path: Path) -> None:
    past, file = make_past(tmp_path), tmp_path / "out.jsonl"
    parts: list[float | None] = []
    await past.export(str(file), tell=parts.append)
    assert set(parts) == {None}
    parts.clear()
    empty = Past(History.open(tmp_path / "empty.sqlite"), past.host, "x.service")
    work: asyncio.Task[object]

    def tell(part: float | None) -> None:
        parts.append(part)
        if len(parts) == 5:
            asyncio.run_coroutine_threadsafe(stop(), loop).result()

    async def stop() -> None:
        work.cancel()
        await asyncio.sleep(0)

    loop = asyncio.get_running_loop()
    work = asyncio.create_task(empty.take_in(str(file), tell))
    with pytest.raises(asyncio.CancelledError):
        await work
    assert len(parts) == 5 and 0 < (parts[0] or 0) < (parts[4] or 0) < 1
    assert await empty.rows("steps", everywhere=True) == []
    assert sum((await empty.take_in(str(file), lambda part: None)).values()) > 10


class Ponders(FakeSession):
    """Takes its time to work out what a sweep takes."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.stopped = 0

    async def forecast(self, wanted: ExperimentPlan, *, hosts: int = 1) -> Forecast:
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        return await super().forecast(wanted, hosts=hosts)


async def test_what_an_a_b_takes_is_worked_out_with_a_bar_and_escape_ends_it() -> None:
    session = Ponders()
    async with console(session) as desk:
        desk.app.desk.turn(Turn("budget", Op.SET, "16"))
        await desk.press("A")
        await desk.until(lambda: "working out what it takes …   esc stops" in desk.text())
        assert "░░░" in desk.text()
        await desk.press("escape")
        await desk.back_at(TuneScreen)
        await desk.until(lambda: session.stopped)


async def test_what_a_sweep_takes_is_worked_out_with_a_bar_and_escape_stops_that_first() -> None:
    session = Ponders()
    async with console(session) as desk:
        await desk.press("5")
        await desk.until(lambda: "pick values of a knob" in desk.text())
        await desk.press("space")
        await desk.until(lambda: "working it out …   esc stops" in desk.text())
        assert "░░░" in desk.text()
        sweep = desk.app.screen
        await desk.press("escape")
        await desk.until(lambda: "any change of the form works it out" in desk.text())
        assert session.stopped and desk.app.screen is sweep
        session.go.set()
        await desk.press("escape")
        await desk.back_at(TuneScreen)


async def test_the_second_wait_in_a_place_is_estimated_by_the_first() -> None:
    shown: list[str] = []
    estimated = asyncio.Event()

    def show(words: Content) -> None:
        shown.append(words.plain)
        if "%" in words.plain:
            estimated.set()

    place = InPlace(show, lambda: 60)
    assert await place.wait("counting", asyncio.sleep(0.05, 7)) == 7
    assert any("░░░" in words for words in shown) and not estimated.is_set()
    again = asyncio.create_task(place.wait("counting", asyncio.Event().wait()))
    await estimated.wait()
    place.stop()
    with pytest.raises(Stopped):
        await again
    assert not place.busy


async def test_saving_that_is_stopped_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, go_on, file = threading.Event(), threading.Event(), tmp_path / "a.log"

    def redacted(text: str) -> str:
        began.set()
        go_on.wait()
        return text

    monkeypatch.setattr("ddtui.widgets.journal_file.redact", redacted)
    session = FakeSession()
    session.lines.put_nowait([JournalLine(NOW, f"line {i}") for i in range(1001)])
    async with console(session) as desk:
        await desk.until(lambda: len(desk.app.desk.store) == 1001)
        desk.app.act("save")
        await desk.until(lambda: "save as" in desk.text())
        desk.tune.journal.query_one(Question).value = str(file)
        await desk.press("enter")
        await desk.dialog(Waiting)
        assert "Saving the journal" in desk.text() and began.is_set()
        await desk.press("escape")
        await desk.back_at(TuneScreen)
        go_on.set()
        await desk.until(lambda: not file.exists())
        assert "saved" not in desk.told()
