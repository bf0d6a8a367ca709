"""Turning one knob: + and -, the range and where it comes from, and what its values gave so far."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from console.fakes import FakeSession, make_view
from console.harness import Desk, console
from console.histories import make_past
from textual.widgets import Input

from ddtui.bench import effect
from ddtui.bench.effect import Effect, best_of
from ddtui.bench.model import Estimate
from ddtui.screens.knob import KnobDialog
from ddtui.tuning.model import Op, Turn


async def opened(desk: Desk, key: str = "b") -> Input:
    await desk.press(key)
    dialog = await desk.dialog(KnobDialog)
    return dialog.query_one("#value", Input)


async def test_plus_and_minus_go_by_one_and_stop_at_the_range() -> None:
    async with console() as desk:
        field = await opened(desk, "t")
        await desk.press("plus", "plus")
        assert field.value == "6"
        await desk.press(*["minus"] * 9)
        await desk.until(lambda: "goes no further: 1 to 16" in desk.text())
        assert field.value == "1"
        await desk.press("enter")
        await desk.until(lambda: desk.app.desk.view.turns)
        assert desk.app.desk.view.turns["topk"] == Turn("topk", Op.SET, "1")


async def test_the_range_says_where_it_comes_from_and_sglangs_own_words_are_beside_it() -> None:
    flags = tuple(
        type(row)("--speculative-ddtree-budget", None, None, help="The node budget of the draft tree.")
        if row.flag == "--mem-fraction-static"
        else row
        for row in make_view().known_flags
    )
    async with console(FakeSession(view=make_view(known_flags=flags))) as desk:
        await opened(desk)
        shown = " ".join(desk.text().split())
        assert "1 to 256" in shown and "the profile sets the range" in shown
        assert "SGLang: The node budget of the draft tree." in shown


async def test_its_values_stand_side_by_side_with_rate_interval_and_samples(tmp_path: Path) -> None:
    session = FakeSession()
    session.past = make_past(tmp_path)
    async with console(session) as desk:
        await opened(desk)
        await desk.until(lambda: "so far" in desk.text())
        text = desk.text()
        assert "topk 4, window unset" in text
        rows = re.findall(r"(\d+) +[\d.,k]+ tok/s ±[\d.,k]+ \(n=40\)  accept [\d.]+  step (\d)(.*)", text)
        assert [(value, step) for value, step, _ in rows] == [
            ("4", "2"),
            ("8", "1"),
            ("16", "3"),
            ("32", "4"),
        ]
        assert ["now" in rest for _, _, rest in rows] == [False, True, False, False]


async def test_a_knob_that_was_never_measured_says_so(tmp_path: Path) -> None:
    session = FakeSession()
    session.past = make_past(tmp_path)
    session.past.host = "a-new-host"
    async with console(session) as desk:
        await opened(desk)
        await desk.until(lambda: "not measured yet" in desk.text())


class Step:
    def __init__(self, number: int, **knobs: str | None) -> None:
        self.number, self.knobs = number, knobs


class Cell:
    def __init__(self, step: int, rate: float, at: float = 0.0, concurrency: int = 8) -> None:
        self.step, self.at, self.concurrency, self.context, self.workload = step, at, concurrency, 512, "code"
        self.values = {"output_rate": {"value": rate, "low": rate - 1, "high": rate + 1, "n": 9}}


def test_only_steps_that_differ_in_this_knob_alone_are_set_side_by_side() -> None:
    steps = [Step(1, a="4", b="1"), Step(2, a="8", b="1"), Step(3, a="16", b="9"), Step(4, a=None, b="1")]
    cells = [Cell(1, 10), Cell(2, 20), Cell(3, 99), Cell(4, 5)]
    found = effect.of_knob("a", steps, cells)
    assert found is not None and found.others == (("b", "1"),)
    assert [(row.value, row.step, row.rate.value) for row in found.rows] == [
        (None, 4, 5),
        ("4", 1, 10),
        ("8", 2, 20),
    ]


def test_of_a_value_measured_twice_the_newest_counts_on_the_cell_that_most_share() -> None:
    steps = [Step(1, a="4"), Step(2, a="8"), Step(3, a="4")]
    cells = [Cell(1, 10, at=1), Cell(2, 20, at=2), Cell(3, 12, at=3), Cell(3, 77, at=9, concurrency=1)]
    found = effect.of_knob("a", steps, cells)
    assert found is not None and found.concurrency == 8
    assert [(row.step, row.rate.value) for row in found.rows] == [(3, 12), (2, 20)]


def test_a_knob_without_measurements_has_no_effect() -> None:
    assert effect.of_knob("a", [Step(1, b="4")], [Cell(1, 10)]) is None


@pytest.mark.parametrize(("high", "best"), [(9.0, "b"), (11.0, None)])
def test_the_best_is_named_only_where_the_intervals_do_not_touch(high: float, best: str | None) -> None:
    rows = [
        Effect("a", 1, Estimate(8, 7, high, 9), None),
        Effect("b", 2, Estimate(12, 10, 14, 9), None),
    ]
    found = best_of(rows)
    assert (found.value if found else None) == best
