"""The sweep's own code on a simulated host: what it recommends, what it writes down, and how it goes on
after a cut.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from decide.benchmark import load

from ddtui.bench import experiment, search
from ddtui.bench.experiment import ExperimentPlan, Order, Setting, Trial, TrialState
from ddtui.bench.model import Burst, Cell
from ddtui.host.base import LinkLost
from ddtui.store.history import History
from ddtui.tuning import experiments, telling
from ddtui.tuning.experiments import ExperimentState
from ddtui.tuning.ledger import Ledger
from ddtui.tuning.rig import Checked
from ddtui.widgets import trial_words

simulated = load("sweep_search")
CELLS = (Cell(1, 1024), Cell(8, 1024))
SETTINGS: tuple[Setting, ...] = simulated.settings(
    {"budget": ("4", "8", "32"), "topk": ("1", "4"), "window": ("2048",)}
)
PLAN = ExperimentPlan(SETTINGS, CELLS, output=64)


def ended(ledger: Ledger, *rigs: Any) -> ExperimentState:
    async def go() -> ExperimentState:
        return [state async for state in experiments.run(ledger, rigs)][-1]

    return asyncio.run(go())


def ledger(plan: ExperimentPlan = PLAN, history: History | None = None) -> Ledger:
    return Ledger.begin(plan, history, "simulated", "x.service")


def cells_measured(rig: Any) -> list[tuple[str, Cell]]:
    return [(burst, run.point.cell) for burst, runs in rig.kept.items() for run in runs]


@pytest.mark.parametrize("order", [Order.GRID, Order.HALVING])
def test_what_is_recommended_is_truly_within_a_percent_of_the_best(order: Order) -> None:
    plan = replace(PLAN, order=order)
    losses = [simulated.sweep(plan, seed).loss for seed in range(6)]
    assert sum(loss <= 0.01 for loss in losses) >= 5, losses


def test_halving_measures_much_less() -> None:
    grid = simulated.sweep(replace(PLAN, settings=simulated.settings()), 1)
    halving = simulated.sweep(replace(PLAN, settings=simulated.settings(), order=Order.HALVING), 1)
    assert halving.measuring < 0.5 * grid.measuring
    assert halving.loss <= 0.02


def test_a_model_searches_a_part_of_the_space() -> None:
    pytest.importorskip("optuna")
    found = simulated.sweep(replace(PLAN, settings=simulated.settings(), order=Order.MODEL, trials=14), 2)
    assert found.starts <= 15
    assert found.loss <= 0.02


def test_without_optuna_the_model_order_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from ddtui.bench import model_search
    from ddtui.bench.target import BenchError

    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(BenchError, match=r"pip install 'ddtui\[sweep\]'"):
        model_search.must_be_installed()


def test_the_host_is_left_on_the_best_or_on_the_first() -> None:
    rig = simulated.SimulatedRig(1)
    end = ended(ledger(), rig)
    assert end.outcome and end.outcome.left == rig.setting and dict(rig.setting)["budget"] == "8"
    rig = simulated.SimulatedRig(1)
    assert ended(ledger(replace(PLAN, finish="first")), rig).outcome
    assert rig.setting == ()


def test_a_failed_start_is_a_result_and_the_next_one_goes_on() -> None:
    bad = SETTINGS[2]
    end = ended(ledger(), simulated.SimulatedRig(1, fails=frozenset([bad])))
    failed = [trial for trial in end.trials if trial.state is TrialState.FAILED]
    assert [trial.setting for trial in failed] == [bad]
    assert failed[0].text == "the server ran out of memory"
    assert sum(trial.measured for trial in end.trials) == len(SETTINGS) - 1


class Refusing(simulated.SimulatedRig):  # type: ignore[misc, name-defined]
    async def put(self, setting: Setting, *, fresh: bool) -> AsyncIterator[Any]:
        if setting == SETTINGS[1]:
            yield experiments.Put(TrialState.NOT_IN_FORCE, "window: conflicting")
            return
        async for one in super().put(setting, fresh=fresh):
            yield one


def test_a_setting_that_is_not_in_force_is_not_measured() -> None:
    rig = Refusing(1)
    end = ended(ledger(), rig)
    (trial,) = [trial for trial in end.trials if trial.setting == SETTINGS[1]]
    assert trial.state is TrialState.NOT_IN_FORCE and not trial.runs and not trial.bursts
    assert len(cells_measured(rig)) == (len(SETTINGS) - 1) * len(CELLS)


class Kept(simulated.SimulatedRig):  # type: ignore[misc, name-defined]
    """A rig whose bursts are kept in a history, as the real one's are, and that is cut at a point of its
    own.
    """

    def __init__(self, seed: int, history: History, cut_at: int) -> None:
        super().__init__(seed)
        self.history, self.left = history, cut_at

    def tick(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise LinkLost("cut")

    async def put(self, setting: Setting, *, fresh: bool) -> AsyncIterator[Any]:
        self.tick()
        async for one in super().put(setting, fresh=fresh):
            yield one
        self.tick()

    async def measure(
        self, plan: Any, trial: Trial, cells: Any, requests: int, burst_id: str
    ) -> AsyncIterator[Burst]:
        from ddtui.bench import kept

        for at in range(len(cells)):
            self.tick()
            async for burst in super().measure(plan, trial, cells[at : at + 1], requests, burst_id):
                self.history.save_burst("simulated", "x.service", kept.to_plain(burst))
                self.tick()
                yield burst

    def runs(self, bursts: Any) -> Any:
        from ddtui.bench import sides
        from ddtui.store import runs

        return sides.runs_of(runs.of_bursts(self.history, bursts))


def table(state: ExperimentState) -> list[tuple[Setting, set[Cell], TrialState]]:
    return [(trial.setting, set(trial.runs), trial.state) for trial in state.trials]


def test_a_sweep_that_is_cut_anywhere_goes_on_and_measures_nothing_twice(tmp_path: Path) -> None:
    """Cut after so many steps, again and again until it is done: in a change, in a burst, between the two
    writes.
    """
    plan = replace(PLAN, settings=SETTINGS[:3], output=16)
    calm = History.open(tmp_path / "calm.sqlite")
    undisturbed = table(ended(ledger(plan, calm), Kept(1, calm, 0)))
    for every in (4, 5, 6, 7, 11):
        history = History.open(tmp_path / f"{every}.sqlite")
        current = ledger(plan, history)
        measured: list[tuple[str, Cell]] = []
        for _ in range(100):
            rig = Kept(1, history, every)
            state = ended(current, rig)
            measured += cells_measured(rig)
            if state.state == "done":
                break
            assert state.state == "stopped" and state.problem == "cut"
            current = Ledger.find(history, "simulated", "x.service")
        assert table(state) == undisturbed
        assert len(measured) == sum(len(trial.runs) for trial in state.trials) == 6
        history.close()
    calm.close()


def test_several_hosts_share_the_settings() -> None:
    rigs = [simulated.SimulatedRig(seed, name=f"gpu{seed}") for seed in (1, 2, 3)]
    end = ended(ledger(), *rigs)
    assert {trial.host for trial in end.trials} == {"gpu1", "gpu2", "gpu3"}
    assert sorted(trial.setting for trial in end.trials) == sorted(SETTINGS)
    assert end.outcome and all(rig.setting == end.outcome.left for rig in rigs)
    (said, *_) = telling.trial(end.trials[0], 1, 1, shared=True)
    assert f"on {end.trials[0].host}" in said
    row = trial_words.table_row(end.trials[0], end.plan, {}, 120, shared=True)
    assert row.plain.endswith(end.trials[0].host)
    name = experiment.name(end.outcome.left or ())
    assert all(f"gpu{seed}: {name} is in force" in end.outcome.left_text for seed in (1, 2, 3))


def test_what_a_host_left_undone_that_takes_no_part_any_more_is_done_by_another() -> None:
    book = ledger()
    asked = search.ask(book.plan, ())
    assert isinstance(asked, experiment.Ask)
    book.put(experiment.of_ask(0, asked, "gone"))
    end = ended(book, simulated.SimulatedRig(1, name="gpu1"))
    assert [trial.host for trial in end.trials] == ["gpu1"] * len(SETTINGS)
    assert all(trial.measured for trial in end.trials)


def test_ab_leaves_the_winner_and_puts_a_back_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    better: Setting = (("budget", "8"), ("topk", "4"), ("window", "2048"))
    for b, standing in ((better, "better"), ((("budget", "32"), ("topk", "1")), "worse")):
        rig = simulated.SimulatedRig(3)
        plan = ExperimentPlan((b,), CELLS, Order.ABBA, output=64, requests=96)
        rig.setting = ()
        monkeypatch.setattr(simulated, "FOUND", (("budget", "16"), ("topk", "2")))  # what A is
        end = ended(ledger(plan), rig)
        assert [trial.stage for trial in end.trials] == ["A", "B", "B", "A"]
        assert end.outcome and end.outcome.comparison
        assert end.outcome.comparison.standing == standing
        assert rig.setting == (b if standing == "better" else ())


def test_calibration_restarts_the_same_setting_each_time() -> None:
    rig = simulated.SimulatedRig(1)
    plan = ExperimentPlan((), CELLS, Order.CALIBRATE, trials=4, output=16, finish="stay")
    end = ended(ledger(plan), rig)
    assert rig.starts == 4 and [trial.setting for trial in end.trials] == [()] * 4


def test_near_ties_go_to_the_smaller_budget() -> None:
    from decide.sides import run

    from ddtui.bench import ranking

    def trial(number: int, budget: str, factor: float) -> Trial:
        made = run(CELLS[0], factor, seed=number)
        return replace(
            Trial(number, (("budget", budget),), "grid", state=TrialState.MEASURED), runs={CELLS[0]: made}
        )

    close = ranking.rank([trial(0, "16", 1.003), trial(1, "8", 1.0), trial(2, "32", 0.9)])
    assert close.best and close.best.setting == (("budget", "8"),)
    apart = ranking.rank([trial(0, "16", 1.05), trial(1, "8", 1.0)])
    assert apart.best and apart.best.setting == (("budget", "16"),)


def test_a_setting_with_wrong_output_is_not_recommended() -> None:
    from decide.sides import run

    from ddtui.bench import ranking

    fast = Trial(
        0,
        (("budget", "8"),),
        "grid",
        state=TrialState.MEASURED,
        wrong="garbage",
        runs={CELLS[0]: run(CELLS[0], 2)},
    )
    slow = Trial(1, (("budget", "4"),), "grid", state=TrialState.MEASURED, runs={CELLS[0]: run(CELLS[0])})
    best = ranking.rank([fast, slow]).best
    assert best and best.setting == slow.setting


def test_a_plan_and_its_trials_survive_the_history() -> None:
    plan = replace(PLAN, skipped=((SETTINGS[0], "because"),), why="x")
    assert experiment.plan_from_plain(experiment.plan_to_plain(plan)) == plan
    trial = Trial(
        3, SETTINGS[1], "grid", 0.5, True, TrialState.FAILED, "why", "h", 7, 61.0, 5.0, ("b1",), CELLS
    )
    assert experiment.trial_from_plain(experiment.trial_to_plain(trial)) == trial


def test_the_forecast_counts_what_a_sweep_asks() -> None:
    assert len(search.longest(PLAN)) == len(SETTINGS)
    halving = search.longest(replace(PLAN, settings=simulated.settings(), order=Order.HALVING))
    assert len(halving) == 32 + 8 + 3
    ab = search.longest(ExperimentPlan((SETTINGS[0],), CELLS, Order.ABBA))
    assert [ask.stage for ask in ab] == ["A", "B", "B", "A"]


class Corrupt(simulated.SimulatedRig):  # type: ignore[misc, name-defined]
    """A rig on which settings have wrong output that only the whole check sees."""

    def __init__(self, wrong: set[Setting]) -> None:
        super().__init__(1)
        self.bad, self.stands, self.checked = wrong, (), []

    async def put(self, setting: Setting, *, fresh: bool) -> Any:
        async for one in super().put(setting, fresh=fresh):
            yield one
        self.stands = setting

    async def check(self, tell: Any, *, reference: bool = False) -> Checked:
        self.checked.append((self.stands, reference))
        return Checked("garbage", "garbage") if self.stands in self.bad and not reference else Checked("fine")


def test_a_winner_whose_output_turns_out_wrong_loses_to_the_next() -> None:
    first = ended(ledger(replace(PLAN, finish="best")), Corrupt(set())).outcome
    assert first and first.left and first.left_text.endswith("output: fine")
    rig = Corrupt({first.left})
    second = ended(ledger(replace(PLAN, finish="best")), rig)
    assert second.outcome and second.outcome.left not in ((), None, first.left)
    assert rig.stands == second.outcome.left
    assert [trial.wrong for trial in second.trials if trial.setting == first.left] == ["garbage"]
    assert rig.checked[0][1], "the first trial gives outputs to compare with"


def test_where_every_output_is_wrong_the_first_setting_is_put_back() -> None:
    rig = Corrupt(set(SETTINGS))
    outcome = ended(ledger(replace(PLAN, finish="best")), rig).outcome
    assert outcome and not outcome.left and rig.stands == ()


def test_no_output_is_checked_where_that_was_asked_or_nothing_is_left_by_merit() -> None:
    for plan in (replace(PLAN, finish="best", check=False), replace(PLAN, finish="first")):
        rig = Corrupt(set(SETTINGS))
        ended(ledger(plan), rig)
        assert rig.checked == []


class Flaky(simulated.SimulatedRig):  # type: ignore[misc, name-defined]
    """A rig whose first bursts fail; with the link lost meanwhile, or without."""

    def __init__(self, bad: int, lost: bool) -> None:
        super().__init__(1)
        self.bad, self.lost, self.bursts = bad, lost, 0

    async def footing(self) -> str:
        return str(min(self.bursts, self.bad)) if self.lost else "the same"

    def runs(self, bursts: Any) -> Any:
        self.bursts += 1
        found = super().runs(bursts)
        if self.bursts > self.bad:
            return found
        return [replace(run, point=replace(run.point, marks=("failures 90 %",))) for run in found]


def test_what_fails_while_the_link_is_lost_says_nothing_of_the_setting() -> None:
    plan = replace(PLAN, settings=SETTINGS[:1], cells=CELLS[:1], output=16)
    (trial,) = ended(ledger(plan), Flaky(8, lost=True)).trials
    assert trial.measured
    (trial,) = ended(ledger(plan), Flaky(8, lost=False)).trials
    assert trial.state is TrialState.FAILED and trial.text == "failures 90 %"
    assert len(trial.bursts) == experiments.ATTEMPTS
