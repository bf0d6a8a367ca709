"""Export and import: what comes out goes in elsewhere, once, and a damaged file changes nothing."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from store.test_history import HOST, UNIT, burst, point, setting

from ddtui import locations
from ddtui.store import exchange, runs, series, sweeps
from ddtui.store.history import History
from ddtui.store.model import HistoryError


@pytest.fixture
def full(tmp_path: Path) -> Iterator[History]:
    history = History.open(tmp_path / "one.sqlite")
    step = history.step(HOST, UNIT, setting(8))
    history.step(HOST, UNIT, setting(16))
    raw = locations.data_dir() / "bursts/b1.jsonl"
    raw.parent.mkdir(parents=True, exist_ok=True)
    raw.write_text('{"kind":"record"}\n')
    history.save_burst(HOST, UNIT, {**burst("b1", 1, point(), point(context=8192)), "raw": str(raw)})
    history.save_change(HOST, UNIT, {"id": "c1", "phase": "verified", "result": "ready", "at": 5.0}, step=2)
    history.save_start(HOST, UNIT, 61.0, step=2, at=7.0)
    history.save_quality(HOST, UNIT, 1, {"wrong": ""}, at=8.0)
    history.add_note("step", str(step.id), "as found")
    series.save(history, HOST, UNIT, "s1", {"load": [{"output_rate": 100.0}, {"output_rate": 101.0}]})
    sweeps.save(history, HOST, UNIT, "w1", {"grid": {}}, state="done", at=9.0)
    sweeps.save_trial(history, "w1", 0, {"state": "measured"})
    yield history
    history.close()


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[History]:
    history = History.open(tmp_path / "other.sqlite")
    yield history
    history.close()


def exported(history: History, **what: bool) -> str:
    file = io.StringIO()
    exchange.export(history, file, **what)  # type: ignore[arg-type]
    return file.getvalue()


def test_an_export_goes_in_elsewhere_whole_and_only_once(full: History, empty: History) -> None:
    text = exported(full)
    new = exchange.take_in(empty, io.StringIO(text), "x.jsonl")
    assert new == {
        "steps": 2, "changes": 1, "starts": 1, "bursts": 1, "quality": 1, "aa_runs": 2, "sweeps": 1,
        "trials": 1, "notes": 1,
    }  # fmt: skip
    assert exchange.take_in(empty, io.StringIO(text), "x.jsonl") == {}
    (step,) = empty.steps(HOST, UNIT, search="budget=8")
    assert step.note == "as found" and step.bursts == 1
    assert [run.point["cell"]["context"] for run in runs.newest(empty, step)] == [512, 8192]
    assert series.groups(empty, HOST, UNIT, "load", "output_rate") == [[100.0, 101.0]]
    found = sweeps.find(empty, "w1")
    assert found and found.trials == {0: {"state": "measured"}}


def test_a_number_that_is_taken_here_gives_the_step_a_new_one(full: History, empty: History) -> None:
    empty.step(HOST, UNIT, setting(4))
    exchange.take_in(empty, io.StringIO(exported(full)), "x.jsonl")
    (step,) = empty.steps(HOST, UNIT, search="budget=8")
    assert step.number != 1
    assert {run.burst for run in runs.newest(empty, step)} == {"b1"}
    assert empty.bursts(HOST, UNIT, step=step.number)[0].burst["step"] == step.number


def test_raw_records_travel_when_asked(full: History, empty: History) -> None:
    text = exported(full, records=True)
    raw = locations.data_dir() / "bursts/b1.jsonl"
    raw.unlink()
    exchange.take_in(empty, io.StringIO(text), "x.jsonl")
    assert raw.read_text() == '{"kind":"record"}\n'


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "no json\n",
        '{"kind":"something"}\n',
        '{"kind":"ddtui-history","version":99}\n',
        '{"kind":"ddtui-history","version":1}\n{"kind":"steps"}\n',
        '{"kind":"ddtui-history","version":1}\n{"kind":"unheard-of"}\n',
        '{"kind":"ddtui-history","version":1}\n[]\n',
        '{"kind":"ddtui-history","version":1}\n{"kind":"records","burst":"../../x","text":""}\n',
    ],
)
def test_a_damaged_file_is_refused_with_its_line_and_changes_nothing(empty: History, damage: str) -> None:
    with pytest.raises(HistoryError, match=r"x\.jsonl, line \d+: .*nothing was imported"):
        exchange.take_in(empty, io.StringIO(damage), "x.jsonl")
    assert empty.steps() == []


def test_a_cut_in_the_middle_leaves_nothing_behind(full: History, empty: History) -> None:
    text = exported(full)
    with pytest.raises(HistoryError):
        exchange.take_in(empty, io.StringIO(text[: len(text) // 2]), "x.jsonl")
    assert empty.steps() == [] and empty.bursts() == []


def test_text_of_a_file_is_inert(full: History, empty: History) -> None:
    hostile = exported(full).replace("as found", json.dumps("\x1b]0;x\x07ha")[1:-1])
    exchange.take_in(empty, io.StringIO(hostile), "x.jsonl")
    (step,) = empty.steps(HOST, UNIT, search="budget=8")
    assert "\x1b" not in step.note and "ha" in step.note


def test_the_baseline_is_the_step_noted_as_such_else_the_first_measured(full: History) -> None:
    first = runs.baseline(full, HOST, UNIT)
    assert first and first.number == 1
    full.save_burst(HOST, UNIT, burst("b2", 2, point(at=200.0), at=200.0))
    two = runs.steps_numbered(full, 2)[0]
    full.add_note("step", str(two.id), "baseline")
    found = runs.baseline(full, HOST, UNIT)
    assert found and found.number == 2


def test_a_cells_time_is_the_mean_of_its_last_measurements(full: History) -> None:
    for at, seconds in enumerate([5.0, 10.0, 20.0, 30.0]):
        made = point(concurrency=4, at=1000.0 + at, seconds=seconds)
        full.save_burst(HOST, UNIT, burst(f"t{at}", 1, made, at=1000.0 + at))
    assert runs.seconds(full, HOST, UNIT)[4, 512, "code"] == 20.0
