"""How often A/B calls a winner where there is none, and how often it finds a true one.

python benchmarks/false_wins.py [SEEDS]

Runs of 96 prompts (as `ddtui ab` takes them), SD 25 % between prompts, 8 % from run to run of a prompt,
through ddtui's own comparison: A/B and A B B A, restart SD of 0.5, 1 and 2 %, 3, 5 and 10 A/A runs in the
history. The bars: false wins at most 6 % everywhere; power at least 80 % for 5 % at restart SD 1 %, five
A/A runs, A B B A.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from ddtui.bench.compare import Run, Side, Standing, compare
from ddtui.bench.model import Cell, Estimate, Point
from ddtui.bench.samples import Sample

PROMPTS, BETWEEN, WITHIN = 96, 0.25, 0.08
CELL = Cell(8, 1024)


@dataclass(frozen=True)
class Case:
    restart_sd: float
    aa_runs: int
    restarts: int = 1  # of each arm: 2 is A B B A
    effect: float = 0.0
    prompts: int = PROMPTS
    floor: bool = True


def wins(case: Case, seeds: int) -> float:
    """The part of comparisons that end with a winner."""
    return sum(_decided(case, seed) for seed in range(seeds)) / seeds


def _decided(case: Case, seed: int) -> bool:
    rng = np.random.default_rng([seed, case.aa_runs, round(1e4 * case.restart_sd), case.restarts])
    true = 100 * np.exp(BETWEEN * rng.standard_normal(case.prompts))

    def rates(factor: float = 1.0) -> np.ndarray:
        restart = np.exp(case.restart_sd * rng.standard_normal())
        return true * factor * restart * np.exp(WITHIN * rng.standard_normal(case.prompts))

    history = [float(case.prompts / (1 / rates()).sum()) for _ in range(case.aa_runs)]
    a = side("A", [rates() for _ in range(case.restarts)])
    b = side("B", [rates(1 + case.effect) for _ in range(case.restarts)])
    groups = [history] if case.floor else []
    answer = compare(a, b, restarts=lambda load, metric: groups, own_noise=case.floor)
    return answer.standing in (Standing.BETTER, Standing.WORSE)


def side(name: str, runs: list[np.ndarray]) -> Side:
    """A step whose prompts had these rates, in tokens per second of a slot."""
    made = []
    for rates in runs:
        samples = {
            at: Sample(256, 256 / float(rate), None, None, None, None, None) for at, rate in enumerate(rates)
        }
        made.append(Run("", _point(float(rates.mean())), 256, 0.0, "generate", samples=samples))
    return Side(name, {}, {CELL: tuple(made)})


def _point(rate: float) -> Point:
    estimate = Estimate(rate, rate, rate, PROMPTS)
    return Point(
        cell=CELL, started_at=0.0, seconds=1.0, ok=PROMPTS, failed=0, output_rate=estimate,
        output_rate_whole=None, per_user_rate=None, ttft_ms=None, tpot_ms=None, step_ms=None,
        accept_length=None, e2e_ms=None, client_lag_p99_ms=None, cached_tokens=0, final=True, preview=False,
    )  # fmt: skip


def main(seeds: int) -> bool:
    good = True
    print(f"false wins of {seeds} comparisons without an effect (bar: 6 %)")
    print("restart SD   without floor   A/A runs    A B    A B B A")
    for sd in (0.005, 0.01, 0.02):
        bare = wins(Case(sd, 3, floor=False), seeds)
        for runs in (3, 5, 10):
            found = [wins(Case(sd, runs, restarts), seeds) for restarts in (1, 2)]
            good &= max(found) <= 0.06
            print(f"{sd:9.1%} {bare:14.1%} {runs:10}  {found[0]:8.1%} {found[1]:9.1%}", flush=True)
    power = wins(Case(0.01, 5, 2, 0.05), seeds)
    good &= power >= 0.80
    print(f"power for +5 %, restart SD 1 %, 5 A/A runs, A B B A: {power:.1%} (bar: 80 %)")
    for prompts in (32, 48, 64, 128):
        print(f"  with {prompts} prompts: {wins(Case(0.01, 5, 2, 0.05, prompts), seeds):.1%}", flush=True)
    return good


if __name__ == "__main__":
    sys.exit(not main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000))
