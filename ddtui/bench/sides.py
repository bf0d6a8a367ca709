"""A step with its runs, from the history: what `compare` takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ddtui.bench import kept, samples
from ddtui.bench.compare import Restarts, Run, Side
from ddtui.bench.model import Cell
from ddtui.bench.samples import Samples
from ddtui.store import outputs, series
from ddtui.store import runs as stored
from ddtui.store.history import History
from ddtui.store.model import Step
from ddtui.store.runs import StoredRun


def of_step(history: History, step: Step) -> Side:
    """The step with its newest run of every cell. Raises HistoryError."""
    return _side(history, step, stored.newest(history, step))


def of_bursts(history: History, step: Step, bursts: Sequence[str]) -> Side:
    """The step with what these bursts measured, each after a restart of its own."""
    return _side(history, step, stored.of_bursts(history, bursts))


def restarts(history: History, side_host: str, unit: str) -> Restarts:
    """The A/A runs of a host, as `compare` asks for them."""
    return lambda load, metric: series.groups(history, side_host, unit, load, metric)


def runs_of(found: Sequence[StoredRun]) -> list[Run]:
    """Runs with the samples of their raw records, where those are still there."""
    files: dict[str, dict[Cell, dict[int, samples.Sample]]] = {}
    made = []
    for run in found:
        if run.raw and run.raw not in files:
            files[run.raw] = samples.read(run.raw)
        point = kept.point_from_plain(run.point)
        of_cell: Samples = files.get(run.raw, {}).get(point.cell, {})
        spec: dict[str, Any] = dict(run.spec)
        made.append(
            Run(
                burst=run.burst,
                point=point,
                output=int(spec.get("output", 0)),
                temperature=float(spec.get("temperature", 0.0)),
                endpoint=str(spec.get("endpoint", "generate")),
                salt=spec.get("salt"),
                samples=of_cell,
                simulated=run.simulated,
            )
        )
    return made


def described(step: Step, runs: Mapping[Cell, tuple[Run, ...]] | None = None, wrong: str = "") -> Side:
    """A step as one side of a comparison, with these runs."""
    setting = step.setting
    return Side(
        name=f"step {step.number}",
        knobs=setting.knobs,
        runs=runs or {},
        host=step.host,
        target=setting.target,
        engine=setting.engine,
        drafter=setting.drafter,
        gpu=setting.gpu,
        simulated=step.simulated,
        wrong=wrong,
    )


def by_cell(runs: Sequence[Run]) -> dict[Cell, tuple[Run, ...]]:
    """The runs of each cell, in their order."""
    found: dict[Cell, tuple[Run, ...]] = {}
    for run in runs:
        found[run.point.cell] = (*found.get(run.point.cell, ()), run)
    return found


def _side(history: History, step: Step, found: Sequence[StoredRun]) -> Side:
    return described(step, by_cell(runs_of(found)), _wrong(history, step))


def _wrong(history: History, step: Step) -> str:
    """Why the newest output checks of the step failed; empty if they did not, or there was none."""
    return outputs.why_wrong(history.quality(step.host, step.unit, step=step.number))
