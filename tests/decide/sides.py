"""Steps with measured cells, made for the tests of what is decided on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ddtui.bench.compare import Run, Side
from ddtui.bench.model import Cell, Estimate, Point
from ddtui.bench.samples import Sample


def point(cell: Cell, rate: float = 100.0, **what: Any) -> Point:
    estimate = Estimate(rate, rate * 0.97, rate * 1.03, 48)
    made = Point(
        cell=cell,
        started_at=0.0,
        seconds=10.0,
        ok=48,
        failed=0,
        output_rate=estimate,
        output_rate_whole=rate,
        per_user_rate=estimate,
        ttft_ms=None,
        tpot_ms=None,
        step_ms=None,
        accept_length=None,
        e2e_ms=None,
        client_lag_p99_ms=None,
        cached_tokens=0,
        final=True,
        preview=False,
        prompts="p1",
    )
    return replace(made, **what)


def run(
    cell: Cell,
    factor: float = 1.0,
    *,
    seed: int = 0,
    count: int = 64,
    noise: float = 0.004,
    said: str = "same",
    **what: Any,
) -> Run:
    """A run in which every prompt is `factor` times as fast as in another; the prompts differ by a
    quarter.
    """
    true = 100 * np.exp(0.25 * np.random.default_rng(1).standard_normal(count))
    rates = true * factor * np.exp(noise * np.random.default_rng(seed + 2).standard_normal(count))
    samples = {
        at: Sample(
            tokens=256,
            slot=256 / float(rate),
            decode=250 / float(rate),
            after=250,
            ttft=0.1,
            committed=256.0,
            verify_steps=60.0,
            output=f"{said}-{at}",
            length=256,
        )
        for at, rate in enumerate(rates)
    }
    fields = {"output": 256, "temperature": 0.0, "endpoint": "generate", "salt": "s", "samples": samples}
    given = {name: what.pop(name) for name in list(what) if name in (*fields, "simulated")}
    return Run("burst", point(cell, float(rates.mean()), **what), **{**fields, **given})


def side(number: int, *runs: Run, knobs: dict[str, str | None] | None = None, **what: Any) -> Side:
    by_cell: dict[Cell, tuple[Run, ...]] = {}
    for one in runs:
        by_cell[one.point.cell] = (*by_cell.get(one.point.cell, ()), one)
    return Side(
        f"step {number}", knobs or {"budget": "16", "window": None}, by_cell, target="/models/kimi", **what
    )
