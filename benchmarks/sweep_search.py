"""Whether sweeps recommend the right setting: the sweep's own code against the demo's model, in simulated
time.

python benchmarks/sweep_search.py [SEEDS]

budget {4,8,16,32} x topk {1,2,4,8} x window {off,2048} on C {1,8,32} x context {1k,8k}. Every start of the
simulated server is faster or slower by 1 %, every request has its own noise; what is true is known exactly
from the model. The bars: the recommended setting's true speed is within 1 % of the true optimum's in at
least 95 of 100 seeds with the full grid, and in at least 90 with successive halving at no more than half
of the measuring time.
"""

from __future__ import annotations

import asyncio
import math
import statistics
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

from ddtui.bench.compare import Run, Side
from ddtui.bench.experiment import ExperimentPlan, Order, Setting, Trial, TrialState
from ddtui.bench.model import Burst, BurstSpec, BurstState, Cell, Estimate, Point
from ddtui.bench.samples import Sample
from ddtui.demo.standin.sglang import performance as model
from ddtui.tuning import experiments
from ddtui.tuning.ledger import Ledger
from ddtui.tuning.model import Progress
from ddtui.tuning.rig import Checked, Put

CELLS = tuple(Cell(c, context) for c in (1, 8, 32) for context in (1024, 8192))
GRID = {"budget": ("4", "8", "16", "32"), "topk": ("1", "2", "4", "8"), "window": ("off", "2048")}
FOUND: Setting = ()  # the setting that a host is found in
WITHIN = 0.01


@dataclass
class SimulatedRig:
    """A host whose server is the demo's model: no waiting."""

    seed: int
    restart_sd: float = model.RESTART_NOISE_SD
    name: str = "simulated"
    measuring: float = 0.0  # simulated s spent on measuring
    starts: int = 0
    fails: frozenset[Setting] = frozenset()
    setting: Setting | None = None
    kept: dict[str, list[Run]] = field(default_factory=dict)

    async def begin(self, purpose: str, mark: str | None) -> str:
        return "start"

    async def end(self) -> None:
        pass

    async def footing(self) -> str:
        return ""

    async def put(self, setting: Setting, *, fresh: bool) -> AsyncIterator[Progress | Put]:
        if setting in self.fails:
            yield Put(TrialState.FAILED, "the server ran out of memory")
            return
        if fresh or setting != self.setting:
            self.starts += 1
            self.setting = setting
        yield Put(TrialState.MEASURING, step=1)

    async def measure(
        self, experiment: ExperimentPlan, trial: Trial, cells: Sequence[Cell], requests: int, burst_id: str
    ) -> AsyncIterator[Burst]:
        await asyncio.sleep(0)  # other hosts' turn
        start = model.uniform_bits(self.seed, self.starts)
        for cell in cells:
            seconds, run = measured(trial.setting, cell, requests, experiment.output, start, self.restart_sd)
            self.measuring += seconds
            self.kept.setdefault(burst_id, []).append(run)
        points = tuple(run.point for run in self.kept[burst_id])
        yield Burst(burst_id, 1, BurstSpec(tuple(cells)), BurstState.DONE, points=points)

    def runs(self, bursts: Sequence[str]) -> list[Run]:
        return [run for burst in bursts for run in self.kept.get(burst, [])]

    def side(self, trial: Trial) -> Side:
        return Side(trial.stage, dict(trial.setting), {})

    async def check(self, tell: object, *, reference: bool = False) -> Checked:
        return Checked()

    def judge(self, trial: Trial, reference: Trial | None) -> str:
        return ""


def knobs(setting: Setting) -> model.Knobs:
    values = dict(setting or FOUND)
    window = values.get("window", "off")
    return model.Knobs(
        budget=int(values.get("budget", 8)),
        topk=int(values.get("topk", 4)),
        window=None if window == "off" else int(window),
    )


def measured(
    setting: Setting, cell: Cell, requests: int, output: int, start: int, restart_sd: float
) -> tuple[float, Run]:
    """How long it took, and what a burst on that cell would have given: a closed loop whose prefills hold
    up all.
    """
    load = model.Cell(cell.concurrency, cell.context, cell.workload, output)
    drawn = model.sample_requests(
        knobs(setting), load, cell.concurrency + requests, start=start, restart_sd=restart_sd
    )
    slots = [(cell.concurrency * one.ttft_ms + one.decode_ms) / 1e3 for one in drawn]
    samples = {
        at: Sample(output, slots[at], one.decode_ms / 1e3, output - 1, one.ttft_ms / 1e3, None, None)
        for at, one in enumerate(drawn)
        if at >= cell.concurrency
    }
    tokens = sum(sample.tokens or 0 for sample in samples.values())
    rate = cell.concurrency * tokens / sum(sample.slot for sample in samples.values())
    estimate = Estimate(rate, 0.97 * rate, 1.03 * rate, requests)
    point = Point(
        cell=cell, started_at=0.0, seconds=0.0, ok=requests, failed=0, output_rate=estimate,
        output_rate_whole=rate, per_user_rate=None, ttft_ms=None, tpot_ms=None, step_ms=None,
        accept_length=None, e2e_ms=None,
        client_lag_p99_ms=None, cached_tokens=0, final=True, preview=False,
    )  # fmt: skip
    run = Run("", point, output, 0.0, "generate", samples=samples, simulated=True)
    return sum(slots) / cell.concurrency, run


@lru_cache(maxsize=4096)
def true_speed(setting: Setting, cells: tuple[Cell, ...] = CELLS, output: int = 256) -> float:
    """Exactly: the geometric mean over the cells."""
    speeds = [
        model.expected(knobs(setting), model.Cell(c.concurrency, c.context, c.workload, output)).with_prefill
        for c in cells
    ]
    return math.exp(sum(map(math.log, speeds)) / len(speeds))


def settings(grid: dict[str, tuple[str, ...]] = GRID) -> tuple[Setting, ...]:
    return tuple(tuple(zip(grid, values, strict=True)) for values in product(*grid.values()))


@dataclass(frozen=True)
class Result:
    loss: float  # true speed of the recommended setting below the true optimum's
    measuring: float
    starts: int
    text: str


def sweep(plan: ExperimentPlan, seed: int) -> Result:
    """One whole sweep."""
    rig = SimulatedRig(seed)
    ledger = Ledger("simulated", plan, None, "simulated", "")

    async def go() -> experiments.ExperimentState:
        return [state async for state in experiments.run(ledger, [rig])][-1]

    end = asyncio.run(go())
    assert (
        end.outcome is not None and end.outcome.ranking is not None and end.outcome.ranking.best is not None
    )
    best = max(true_speed(one, plan.cells, plan.output) for one in plan.settings)
    chosen = true_speed(end.outcome.ranking.best.setting, plan.cells, plan.output)
    return Result(1 - chosen / best, rig.measuring, rig.starts, end.outcome.text)


def main(seeds: int) -> bool:
    bars = {Order.GRID: 0.95, Order.HALVING: 0.90, Order.MODEL: 0.0}
    good, whole = True, 1.0
    for order, bar in bars.items():
        plan = ExperimentPlan(settings(), CELLS, order, trials=16)
        found = [sweep(plan, seed) for seed in range(seeds)]
        near = sum(result.loss <= WITHIN for result in found) / seeds
        time = statistics.fmean(result.measuring for result in found)
        whole = time if order is Order.GRID else whole
        share = time / whole
        good &= near >= bar and (order is not Order.HALVING or share <= 0.5)
        worst = max(result.loss for result in found)
        print(
            f"{order:8} within 1 % of the optimum: {near:.0%} of {seeds} (bar {bar:.0%}); worst {worst:.1%};"
            f" measuring {time / 3600:.2f} h ({share:.0%}), {found[0].starts} starts",
            flush=True,
        )
    print(found[0].text)
    return good


if __name__ == "__main__":
    sys.exit(not main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
