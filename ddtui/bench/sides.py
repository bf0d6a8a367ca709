"""A step with its runs, from the history: what `compare` takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ddtui.bench import kept, samples
from ddtui.bench.compare import Restarts, Run, Side
from ddtui.bench.model import Cell
from ddtui.bench.samples import Samples
from ddtui.store import runs as stored
from ddtui.store import series
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


def _side(history: History, step: Step, found: Sequence[StoredRun]) -> Side:
    by_cell: dict[Cell, tuple[Run, ...]] = {}
    for run in runs_of(found):
        by_cell[run.point.cell] = (*by_cell.get(run.point.cell, ()), run)
    setting = step.setting
    return Side(
        name=f"step {step.number}",
        knobs=setting.knobs,
        runs=by_cell,
        host=step.host,
        target=setting.target,
        engine=setting.engine,
        drafter=setting.drafter,
        gpu=setting.gpu,
        simulated=step.simulated,
        wrong=_wrong(history, step),
    )


def _wrong(history: History, step: Step) -> str:
    """Why the newest quality check of the step failed; empty if it did not, or there was none."""
    checks = history.quality(step.host, step.unit, step=step.number)
    if not checks or not checks[0].get("wrong"):
        return ""
    return str(checks[0].get("text") or checks[0]["wrong"])
