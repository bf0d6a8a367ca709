"""What makes a result doubtful never wins: each reason, as it is measured, in a comparison, an A/B, a sweep, a
front and among a knob's values.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from bench.test_metrics import record, steady
from decide.benchmark import load
from decide.sides import run, side

from ddtui.bench import effect, metrics, ranking
from ddtui.bench.compare import Run, Standing, compare
from ddtui.bench.experiment import ExperimentPlan, Order, Setting, Trial, TrialState
from ddtui.bench.model import Cell, Outcome
from ddtui.tuning import experiments
from ddtui.tuning.ledger import Ledger
from ddtui.widgets import trial_words

simulated = load("sweep_search")
ONE = Cell(1, 8192)
A: Setting = (("budget", "8"),)
B: Setting = (("budget", "16"),)


def seen(**what: Any) -> tuple[str, ...]:
    """The marks of a burst in which that was seen."""
    of = what.pop("of", {})
    return metrics.point(replace(steady(waves=40, **of), **what)).marks


def changed(make: Any) -> tuple[str, ...]:
    """The marks of a burst whose step times are other ones."""
    clean = steady(waves=40)
    return seen(records=[replace(one, step_gaps=(make(one),) * 4) for one in clean.records])


FAILED = [record(1.0, outcome=Outcome.TRUNCATED, message="closed")] * 4
DOUBTS = {
    "failures": seen(records=[*steady(waves=40).records, *FAILED]),
    "cache hits": seen(of={"cached_tokens": 60}),
    "other traffic": seen(others="9 requests on the server, 2 of them ours"),
    "drift": changed(lambda one: 0.05 * (1 + one.sent / 40)),
    "two modes": changed(lambda one: 0.05 if one.index % 3 else 0.07),
    "client-limited": seen(lag_p99_ms=5.1),
}
each_doubt = pytest.mark.parametrize(("kind", "marks"), DOUBTS.items(), ids=list(DOUBTS))


@each_doubt
def test_it_is_seen(kind: str, marks: tuple[str, ...]) -> None:
    assert len(marks) == 1 and marks[0].startswith(kind)


@each_doubt
def test_it_wins_no_comparison(kind: str, marks: tuple[str, ...]) -> None:
    faster = side(2, run(ONE, 1.5, marks=marks))
    found = compare(side(1, run(ONE)), faster)
    assert found.standing is Standing.NOT_JUDGED and f"not judged at C=1 (B: {kind}" in found.sentence
    assert compare(faster, side(1, run(ONE))).standing is Standing.NOT_JUDGED, "and nothing loses to it"
    assert compare(side(1, run(ONE)), side(2, run(ONE, 1.5))).standing is Standing.BETTER


def trial(number: int, setting: Setting, factor: float, stage: str = "grid", **what: Any) -> Trial:
    return Trial(number, setting, stage, state=TrialState.MEASURED, runs={ONE: run(ONE, factor, **what)})


@each_doubt
def test_it_is_the_best_of_no_sweep(kind: str, marks: tuple[str, ...]) -> None:
    slow, doubtful = trial(0, A, 1.0), trial(1, B, 1.5, marks=marks)
    made = ranking.rank([slow, doubtful])
    assert made.best and made.best.setting == A and len(made.rows) == 1
    assert f"not ranked: budget 16 ({kind}" in made.text
    made = ranking.rank([replace(slow, runs={ONE: run(ONE, marks=marks)}), doubtful])
    assert made.best is None and made.rows == ()
    assert made.text.startswith(f"no setting is the best; not ranked: budget 8 ({kind}")
    assert made.text.endswith("and 1 more")
    assert trial_words.best_of([slow, doubtful])[ONE] == pytest.approx(100.0, rel=0.02)


@each_doubt
def test_a_setting_whose_longest_burst_is_doubtful_does_not_win_by_its_short_one(
    kind: str, marks: tuple[str, ...]
) -> None:
    trials = [trial(0, A, 1.0, "short"), trial(1, B, 1.5, "short"), trial(2, A, 1.0, "whole")]
    made = ranking.rank([*trials, trial(3, B, 1.5, "whole", marks=marks)])
    assert made.best and made.best.setting == A and f"budget 16 ({kind}" in made.text


@each_doubt
def test_it_is_neither_on_the_front_nor_the_best_value_of_a_knob(kind: str, marks: tuple[str, ...]) -> None:
    clean, doubtful = run(ONE).point, run(ONE, 1.5, marks=marks).point
    doubtful = replace(doubtful, output_rate=replace(clean.output_rate, value=150.0, low=149, high=151))  # type: ignore[type-var]
    assert ranking.front([("A", clean), ("B", doubtful)]) == (("A", clean),)
    assert clean.output_rate and doubtful.output_rate
    rows = [
        effect.Effect("8", 1, clean.output_rate, None),
        effect.Effect("16", 2, doubtful.output_rate, None, marks[0]),
    ]
    assert effect.best_of(rows) is None
    assert effect.best_of([rows[0], replace(rows[1], doubt="")]) is not None


class Doubtful(simulated.SimulatedRig):  # type: ignore[misc, name-defined]
    """A rig on which one setting gives doubtful numbers, and fast ones."""

    def __init__(self, of: set[Setting], marks: tuple[str, ...]) -> None:
        super().__init__(1)
        self.of, self.marks, self.by_burst = of, marks, dict[str, Setting]()

    async def measure(self, plan: Any, trial: Trial, cells: Any, requests: int, burst_id: str) -> Any:
        self.by_burst[burst_id] = trial.setting
        async for one in super().measure(plan, trial, cells, requests, burst_id):
            yield one

    def runs(self, bursts: Any) -> list[Run]:
        found = []
        for burst in bursts:
            for one in self.kept.get(burst, []):
                marked = self.by_burst[burst] in self.of
                found.append(replace(one, point=replace(one.point, marks=self.marks)) if marked else one)
        return found


def left_in_force(plan: ExperimentPlan, rig: Doubtful) -> Setting | None:
    async def go() -> Any:
        ledger = Ledger.begin(plan, None, "simulated", "x.service")
        return [state async for state in experiments.run(ledger, [rig])][-1]

    end = asyncio.run(go())
    assert end.outcome is not None
    left: Setting | None = rig.setting
    return left


@each_doubt
@pytest.mark.parametrize("order", [Order.AB, Order.ABBA, Order.GRID, Order.HALVING])
def test_it_is_not_left_in_force(order: Order, kind: str, marks: tuple[str, ...]) -> None:
    """Without doubts this one wins in the model against what was found, and against budget 32."""
    good: Setting = (("budget", "8"), ("topk", "4"), ("window", "2048"))
    bad: Setting = (("budget", "32"), ("topk", "1"), ("window", "2048"))
    settings = (good,) if order in (Order.AB, Order.ABBA) else (good, bad)
    plan = ExperimentPlan(settings, (Cell(8, 32768),), order=order, output=64, check=False)
    assert left_in_force(plan, Doubtful(set(), marks)) == good
    assert left_in_force(plan, Doubtful({good}, marks)) != good
    assert left_in_force(plan, Doubtful({(), good, bad}, marks)) == ()
