"""A sweep as it is asked for: on the command line and in a file."""

from __future__ import annotations

import pytest

from ddtui.bench import grid
from ddtui.bench.experiment import Order
from ddtui.bench.model import Cell
from ddtui.bench.target import BenchError
from ddtui.profile import Bench


def test_a_grid_is_every_combination_the_last_knob_first() -> None:
    parsed = grid.parse(["budget=4,8", "window=off,2048", "--mem-fraction-static=0.8"])
    expanded = grid.expand(parsed)
    assert len(expanded) == 4
    assert expanded[0] == (("budget", "4"), ("window", "off"), ("--mem-fraction-static", "0.8"))
    assert dict(expanded[1])["window"] == "2048"


@pytest.mark.parametrize("words", [["budget"], ["=4"], ["budget="], ["budget=4", "budget=8"]])
def test_a_grid_that_is_none_is_refused(words: list[str]) -> None:
    with pytest.raises(BenchError, match="--grid"):
        grid.parse(words)


def test_a_grid_beyond_reason_is_refused_before_it_is_made() -> None:
    with pytest.raises(BenchError, match="settings, more than"):
        grid.expand({f"k{n}": tuple(map(str, range(10))) for n in range(9)})


def test_a_file_says_the_same_and_the_rest_is_as_the_profiles_bursts() -> None:
    text = """
grid: {budget: [4, 8], window: [off, 2048], overlap: [on, off]}
concurrency: [1, 8]
context: [1k, 512]
order: halving
finish: first
"""
    plan = grid.read(text, "plan.yaml", Bench(output=77, at="host"))
    assert plan.settings[0] == (("budget", "4"), ("window", "off"), ("overlap", "on"))
    assert len(plan.settings) == 8
    assert plan.cells == (Cell(1, 1024), Cell(8, 1024), Cell(1, 512), Cell(8, 512))
    assert (plan.order, plan.finish, plan.output, plan.at) == (Order.HALVING, "first", 77, "host")


def test_listed_settings_are_completed_so_that_none_depends_on_the_one_before() -> None:
    plan = grid.read("settings: [{budget: 8}, {topk: 2, window: 2048}]", "plan.yaml", Bench())
    whole = grid.complete(plan.settings, {"budget": "16", "topk": "4"})
    assert whole == (
        (("budget", "8"), ("topk", "4"), ("window", "off")),
        (("budget", "16"), ("topk", "2"), ("window", "2048")),
    )


@pytest.mark.parametrize(
    "text",
    [
        "grid: {budget: [4, 16, '08'], window: [off, 2048], --attention-backend: [fa3, 'a: b']}",
        "settings: [{budget: 8}, {topk: 2, window: 2048}]",
        "settings: [{budget: 8}, {budget: 8}]",
        "grid: {overlap: [on, off]}\ncontext: [1k, 512]\nconcurrency: 8\norder: model\ntrials: 9\nrequests: 64\n"
        "finish: stay\ncheck: false\nat: host\nendpoint: chat\nseed: 3\nwhy: '# quiet: ✓'\nobjective: per-user",
    ],
)
def test_a_plan_is_written_as_it_is_read(text: str) -> None:
    plan = grid.read(text, "plan.yaml", Bench())
    assert grid.read(grid.write(plan), "written.yaml", Bench(output=9, concurrency=(3,))) == plan


def test_a_grid_is_told_from_a_list() -> None:
    values = {"budget": ("4", "8"), "topk": ("1", "2")}
    whole = grid.expand(values)
    assert grid.values_of(whole) == values
    assert grid.values_of(whole[:3]) is None
    assert grid.values_of((whole[0], *whole[:3])) is None
    assert grid.values_of((whole[0], (("budget", "8"),))) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty or no mapping"),
        ("grid: [", "plan.yaml:1: is not valid YAML"),
        ("budgets: [4]", "budgets: is no key of a plan"),
        ("order: best", "order:"),
        ("concurrency: 8", "give `grid` or `settings`"),
        ("grid: {budget: [4]}\nsettings: [{budget: 4}]", "one of them"),
        ("grid: {}", "no setting is named"),
        ("grid: {budget: [4]}\ncontext: [lots]", "is no count"),
        ("grid: {budget: [4]}\noutput: 1", "output:"),
    ],
)
def test_a_faulty_file_is_one_sentence_with_the_place(text: str, words: str) -> None:
    with pytest.raises(BenchError) as refused:
        grid.read(text, "plan.yaml", Bench())
    assert words in str(refused.value) and str(refused.value).startswith("plan.yaml")
    assert "\n" not in str(refused.value)
