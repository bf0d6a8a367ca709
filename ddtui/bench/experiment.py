"""The words of sweeps, A/B and calibration: settings, plans, trials. All frozen; plain values for the
history.

All three are experiments: trials one after another, each a setting that is put in force and measured. They
differ in which setting comes next (`search`) and what is made of the results (`ranking`, `compare`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

from ddtui.bench.compare import Run
from ddtui.bench.metrics import least_samples
from ddtui.bench.model import ApiKind, Cell, Place

OFF, ON = "off", "on"  # a flag taken away; a switch given
PROMPTS = 96  # of a cell of an A/B, at least: what finds 5 % by A B B A (benchmarks/false_wins.py)

Setting = tuple[tuple[str, str], ...]  # (knob or flag, value): what is turned; (): as it was found
Finish = Literal["best", "first", "stay"]
Objective = Literal["throughput", "per-user"]


class Order(StrEnum):
    """In which order settings are tried."""

    GRID = "grid"  # every one, with full bursts
    HALVING = "halving"  # short bursts for all, longer ones for the best
    MODEL = "model"  # where a model of the results so far sees the most promise
    AB = "ab"
    ABBA = "abba"
    CALIBRATE = "calibrate"  # the same setting again and again, after restarts


class TrialState(StrEnum):
    APPLYING = "applying"
    MEASURING = "measuring"
    MEASURED = "measured"
    REFUSED = "refused"  # SGLang's or the profile's constraints forbid it
    FAILED = "failed"  # the server did not start with it, or nothing could be measured
    NOT_IN_FORCE = "not in force"  # applied, and not proven to be in force: not measured

    @property
    def over(self) -> bool:
        return self not in (TrialState.APPLYING, TrialState.MEASURING)


@dataclass(frozen=True, slots=True)
class ExperimentPlan:
    """What to try, on which cells, how, and what to leave in force."""

    settings: tuple[Setting, ...]
    cells: tuple[Cell, ...]
    order: Order = Order.GRID
    output: int = 256
    at: Place = "here"
    temperature: float = 0.0
    max_seconds: float = 120.0  # per cell
    endpoint: ApiKind = "generate"
    requests: int | None = None  # per cell; None: the least that make a result
    seed: int = 0
    finish: Finish = "best"
    check: bool = True  # a winner's whole output is checked before it is left in force
    objective: Objective = "throughput"
    trials: int | None = None  # for `model` and `calibrate`: how many
    skipped: tuple[tuple[Setting, str], ...] = ()  # known beforehand to be refused, and why
    why: str = ""

    def requests_of(self, cell: Cell, effort: float = 1.0) -> int:
        """How many requests one cell gets at this effort: 1 is a whole burst."""
        whole = max(self.requests or 0, least_samples(cell.concurrency))
        return max(4, cell.concurrency // 2, round(effort * whole))

    @property
    def salt(self) -> str:
        """All trials get the same prompts to the letter, so that their outputs can be compared."""
        return f"experiment {self.seed}"


@dataclass(frozen=True, slots=True)
class Ask:
    """The next trial."""

    setting: Setting
    stage: str  # "grid", "short", "A", "B": trials of one stage are compared with each other
    effort: float = 1.0
    fresh: bool = False  # after a restart, even if the setting is in force


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting, put in force and measured once."""

    number: int
    setting: Setting
    stage: str
    effort: float = 1.0
    fresh: bool = False
    state: TrialState = TrialState.APPLYING
    text: str = ""  # why it was not measured; what was noticed
    host: str = ""
    step: int | None = None
    ready_seconds: float | None = None  # of the start, if there was one
    put_at: float | None = None  # when it was in force
    bursts: tuple[str, ...] = ()
    cells: tuple[Cell, ...] = ()  # measured so far
    wrong: str = ""  # why its output is wrong
    runs: Mapping[Cell, Run] = field(default_factory=dict)  # what was measured; not kept with the trial

    @property
    def measured(self) -> bool:
        return self.state is TrialState.MEASURED and not self.wrong


def setting(values: Mapping[str, str | None]) -> Setting:
    """A setting from knob names and values; None: off."""
    return tuple((name, OFF if value is None else value) for name, value in values.items())


def name(one: Setting) -> str:
    """A setting in words: budget 16, topk 4, window off."""
    return ", ".join(f"{knob} {value}" for knob, value in one) or "as it was found"


def cheapness(one: Setting) -> tuple[float, ...]:
    """Orders near-ties: the smaller values first, by the knobs' order; what is off last."""
    return tuple(_number(value) for _, value in one)


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return float("inf")


def plan_to_plain(plan: ExperimentPlan) -> dict[str, Any]:
    """The plan as JSON can hold it."""
    return {
        **{name: getattr(plan, name) for name in _SIMPLE},
        "order": plan.order.value,
        "settings": [list(map(list, one)) for one in plan.settings],
        "cells": [_cell(cell) for cell in plan.cells],
        "skipped": [[list(map(list, one)), why] for one, why in plan.skipped],
    }


def plan_from_plain(kept: Mapping[str, Any]) -> ExperimentPlan:
    """The inverse of `plan_to_plain`."""
    return ExperimentPlan(
        **{name: kept[name] for name in _SIMPLE if name in kept},
        order=Order(kept["order"]),
        settings=tuple(_setting(one) for one in kept["settings"]),
        cells=tuple(Cell(*cell) for cell in kept["cells"]),
        skipped=tuple((_setting(one), why) for one, why in kept["skipped"]),
    )


def trial_to_plain(trial: Trial) -> dict[str, Any]:
    """The trial as JSON can hold it, without its runs."""
    return {
        **{name: getattr(trial, name) for name in _OF_TRIAL},
        "state": trial.state.value,
        "setting": list(map(list, trial.setting)),
        "bursts": list(trial.bursts),
        "cells": [_cell(cell) for cell in trial.cells],
    }


def trial_from_plain(kept: Mapping[str, Any]) -> Trial:
    """The inverse of `trial_to_plain`."""
    return Trial(
        **{name: kept[name] for name in _OF_TRIAL if name in kept},
        state=TrialState(kept["state"]),
        setting=_setting(kept["setting"]),
        bursts=tuple(kept["bursts"]),
        cells=tuple(Cell(*cell) for cell in kept["cells"]),
    )


def of_ask(number: int, ask: Ask, host: str = "") -> Trial:
    """The trial that an ask begins."""
    return Trial(number, ask.setting, ask.stage, ask.effort, ask.fresh, host=host)


def with_run(trial: Trial, run: Run) -> Trial:
    """The trial with one cell more."""
    cell = run.point.cell
    bursts = trial.bursts if run.burst in trial.bursts else (*trial.bursts, run.burst)
    cells = trial.cells if cell in trial.cells else (*trial.cells, cell)
    return replace(trial, bursts=bursts, cells=cells, runs={**trial.runs, cell: run})


_SIMPLE = (
    "output", "at", "temperature", "max_seconds", "endpoint", "requests", "seed", "finish", "objective",
    "trials", "why",
)  # fmt: skip
_OF_TRIAL = (
    "number", "stage", "effort", "fresh", "text", "host", "step", "ready_seconds", "put_at", "wrong",
)  # fmt: skip


def _cell(cell: Cell) -> list[Any]:
    return [cell.concurrency, cell.context, cell.workload]


def _setting(kept: Sequence[Sequence[str]]) -> Setting:
    return tuple((str(knob), str(value)) for knob, value in kept)
