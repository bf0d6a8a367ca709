"""Sweep, A/B, calibration, comparison and report on the live demo host, by the commands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import quick_demo

from ddtui import cli
from ddtui.bench import check_output
from ddtui.profile import Profile
from ddtui.store import series, sweeps
from ddtui.store.history import History

LOAD = (
    "--concurrency",
    "1",
    "--context",
    "512",
    "--output",
    "4",
    "--requests",
    "32",
    "--max-seconds",
    "15",
    "--yes",
)


@pytest.fixture(autouse=True)
def few_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The output check with three of its tasks: it is the way through that is tested here."""
    few = check_output.coding_tasks()[:3]
    monkeypatch.setattr(check_output, "coding_tasks", lambda: few)


@pytest.fixture(scope="module")
def demo() -> Iterator[Profile]:
    with quick_demo.start(SPEED="4") as host:
        yield host.profile


def run(demo: Profile, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, object]]:
    """The exit code and the last JSON object of a command."""
    code = cli.run([*words, "--json"], lambda name: demo)
    return code, json.loads(capsys.readouterr().out.splitlines()[-1])


def test_a_small_sweep_measures_every_setting_and_leaves_the_best(
    demo: Profile, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, end = run(demo, capsys, "sweep", "demo", "--grid", "budget=4,8", "--grid", "topk=4,900", *LOAD)
    assert code == 0 and end["state"] == "done" and end["simulated"] is True
    trials, ranking = end["trials"], end["ranking"]
    assert isinstance(trials, list) and isinstance(ranking, list)
    assert [trial["state"] for trial in trials] == ["measured", "measured"]
    skipped = end["skipped"]
    assert isinstance(skipped, list) and len(skipped) == 2 and "at most 64" in skipped[0]["why"]
    assert end["left"] == ranking[0]["setting"]
    assert "is in force" in str(end["left_text"])
    assert re.search(r"; output: (no garbage|all 3 outputs|\d of 3)", str(end["left_text"])), end["left_text"]

    steps = [str(trial["step"]) for trial in trials]
    code, compared = run(demo, capsys, "compare", *steps)
    assert code in (0, 1)
    assert "budget 8" in str(compared["sentence"]) and compared["preview"] is True
    outputs = compared["outputs"]
    assert isinstance(outputs, dict) and outputs["compared"] >= 32 and outputs["equal"] == outputs["compared"]

    assert cli.run(["report", "-o", str(tmp_path / "r.html")], lambda name: demo) == 0
    text = (tmp_path / "r.html").read_text()
    assert "SIMULATED" in text and "<svg" in text and "0.5.11" in text


def test_ab_confirms_and_puts_a_back_unless_b_is_better(
    demo: Profile, capsys: pytest.CaptureFixture[str]
) -> None:
    code, end = run(demo, capsys, "ab", "demo", "--set", "budget=1", *LOAD, "--output", "24")
    comparison = end["comparison"]
    assert isinstance(comparison, dict)
    assert comparison["standing"] in ("worse", "not judged"), comparison["sentence"]
    assert code == (1 if comparison["standing"] == "worse" else 0)
    assert end["left"] == {}
    _, checked = run(demo, capsys, "check", "demo")
    knobs = checked["knobs"]
    assert isinstance(knobs, list)
    assert next(row["running"] for row in knobs if row["name"] == "budget") != "2"


def test_calibration_keeps_the_noise_of_restarts(demo: Profile, capsys: pytest.CaptureFixture[str]) -> None:
    code, end = run(demo, capsys, "calibrate", "demo", "--runs", "3", *LOAD)
    assert code == 0 and "3 runs of the same setting" in str(end["text"])
    history = History.open()
    assert series.count(history, demo.connection.host, demo.service.unit) == 3
    assert sweeps.sweeps(history)[0].state == "done"
    history.close()


def test_what_is_already_so_is_no_b(demo: Profile, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["ab", "demo", "--set", "topk=4", *LOAD], lambda name: demo) == 2
    assert "nothing to compare" in capsys.readouterr().err


def test_without_yes_nothing_runs_where_nobody_can_confirm(
    demo: Profile, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["sweep", "demo", "--grid", "budget=4,8"], lambda name: demo) == 2
    said = capsys.readouterr().err
    assert "restart" in said and "--yes" in said
    assert cli.run(["sweep", "demo", "--grid", "budget=4,8", "--forecast"], lambda name: demo) == 0
    assert "2 trials" in capsys.readouterr().out


def test_the_output_of_what_is_in_force_is_checked_and_kept(
    demo: Profile, capsys: pytest.CaptureFixture[str]
) -> None:
    code, end = run(demo, capsys, "bench", "demo", "--check-output", "only", "--yes")
    assert code == 0 and end["schema"] == "ddtui/bench-check/1"
    judged = end["check"]
    assert isinstance(judged, dict) and judged["prompts"] == 3 and judged["tests_run"] in (3, None)
    history = History.open()
    (newest, *_) = history.quality(demo.connection.host, demo.service.unit, step=int(str(end["step"])))
    history.close()
    assert newest["of"] == "check" and newest["text"] == judged["text"]
