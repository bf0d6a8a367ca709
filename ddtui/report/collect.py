"""What a report is made of: steps with their newest point of every cell, and where each number came from."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ddtui import __version__, redact
from ddtui.bench import kept
from ddtui.bench.advice import Advice, Observation, advise, block_of, grouped
from ddtui.bench.model import Cell, Estimate, Point
from ddtui.store import listing, outputs
from ddtui.store import runs as stored
from ddtui.store.history import History
from ddtui.store.model import Setting, Step
from ddtui.store.outputs import OutputCheck
from ddtui.store.runs import Newest, StoredRun

LATELY = 200  # steps, those measured last, that the advice of an overview rests on
ESTIMATES = ("output_rate", "per_user_rate", "ttft_ms", "tpot_ms", "step_ms", "accept_length", "e2e_ms")


@dataclass(frozen=True, slots=True)
class Entry:
    """One cell of one step."""

    step: Step
    run: StoredRun
    point: Point


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that any form of a report shows."""

    title: str
    at: float
    steps: tuple[Step, ...]
    entries: tuple[Entry, ...]
    advice: tuple[Advice, ...]
    commands: tuple[str, ...] = ()  # how each number can be had again
    warnings: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()  # comparisons with the first step, where there are some
    checks: Mapping[int, tuple[OutputCheck, ...]] = field(default_factory=dict)  # of outputs, by steps' ids
    wrong: Mapping[int, str] = field(default_factory=dict)  # why the output of a step is wrong, by steps' ids

    @property
    def simulated(self) -> bool:
        return any(step.simulated for step in self.steps) or any(e.run.simulated for e in self.entries)

    @property
    def knobs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for step in self.steps for name in step.setting.knobs))


def collect(
    history: History, steps: Sequence[Step], *, title: str = "", sentences: Sequence[str] = ()
) -> Report:
    """The report of these steps. Raises HistoryError."""
    entries = [
        Entry(step, run, kept.point_from_plain(run.point))
        for step in steps
        for run in stored.newest(history, step)
    ]
    checks = {
        step.id: outputs.newest(history.quality(step.host, step.unit, step=step.number)) for step in steps
    }
    wrong = {step: one.text for step, found in checks.items() for one in found if one.wrong}
    seen = [_observed(entry) for entry in entries if entry.step.id not in wrong]
    marks: dict[str, None] = {}
    for step in steps:
        if step.id in wrong:
            marks[f"step {step.number}: its output is WRONG: {wrong[step.id]}"] = None
    for entry in entries:
        where = f"step {entry.step.number}, C={entry.point.cell.concurrency} ctx={entry.point.cell.context}"
        for mark in entry.point.marks:
            marks[f"{where}: {mark}"] = None
    for step in steps:
        if few := [_few(e.point) for e in entries if e.step.id == step.id and e.point.preview]:
            marks[f"step {step.number}: a preview, too few requests for a result: {'; '.join(few)}"] = None
    return Report(
        title=title or "ddtui report",
        at=time.time(),
        steps=tuple(steps),
        entries=tuple(entries),
        advice=grouped(advise(seen)),
        commands=tuple(dict.fromkeys(_command(entry) for entry in entries)),
        warnings=tuple(marks),
        sentences=tuple(sentences),
        checks=checks,
        wrong=wrong,
    )


def _few(point: Point) -> str:
    return f"{point.ok} at C={point.cell.concurrency} ctx={point.cell.context}"


def overview(history: History, host: str, unit: str) -> Report:
    """All steps of a host with no more than figures and advice need: read at once, light. Raises
    HistoryError.
    """
    steps = {
        row.number: Step(
            row.id,
            row.number,
            row.host,
            row.unit,
            "",
            row.at,
            Setting(row.knobs, row.flags),
            simulated=row.simulated,
        )
        for row in listing.named(history, host, unit)
    }
    entries = []
    for newest in stored.newest_of_all(history, host, unit):
        step = steps.get(newest.step)
        if step is not None:
            run = StoredRun("", newest.step, {}, {}, "", step.simulated)
            entries.append(Entry(step, run, _drawn(newest)))
    newest_at = {entry.step.number: entry.point.started_at for entry in entries}
    wrong = outputs.wrong_steps(history, host, unit)
    lately = set(sorted(newest_at, key=lambda number: -newest_at[number])[:LATELY])
    seen = [
        _observed(entry) for entry in entries if entry.step.number in lately and entry.step.id not in wrong
    ]
    measured = tuple(steps[number] for number in sorted(newest_at))
    return Report("", time.time(), measured, tuple(entries), grouped(advise(seen)), wrong=wrong)


def _drawn(newest: Newest) -> Point:
    """A point of which only that is known what charts and advice take."""
    values = newest.values
    return Point(
        cell=Cell(newest.concurrency, newest.context, newest.workload),
        started_at=newest.at,
        seconds=0.0,
        ok=0,
        failed=0,
        output_rate_whole=None,
        ttft_ms=None,
        tpot_ms=None,
        e2e_ms=None,
        client_lag_p99_ms=None,
        cached_tokens=0,
        final=True,
        preview=False,
        marks=tuple(values.get("marks") or ()),
        place=values.get("place") or "here",
        output_rate=kept.estimate_from_plain(values["output_rate"]),
        per_user_rate=kept.estimate_from_plain(values["per_user_rate"]),
        accept_length=kept.estimate_from_plain(values["accept_length"]),
        step_ms=kept.estimate_from_plain(values["step_ms"]),
    )


def rows(report: Report) -> list[dict[str, Any]]:
    """A flat row for each cell of each step, the same columns in all."""
    found = []
    for entry in report.entries:
        step, point = entry.step, entry.point
        row: dict[str, Any] = {
            "simulated": step.simulated or entry.run.simulated,
            "host": step.host,
            "unit": step.unit,
            "step": step.number,
            **{f"knob_{name}": step.setting.knobs.get(name) for name in report.knobs},
            "sglang": step.setting.engine,
            "model": step.setting.target,
            "drafter": step.setting.drafter,
            "gpu": step.setting.gpu,
            "concurrency": point.cell.concurrency,
            "context": point.cell.context,
            "workload": point.cell.workload,
            "at": point.place,
            "output": entry.run.spec.get("output"),
            "temperature": entry.run.spec.get("temperature"),
            "endpoint": entry.run.spec.get("endpoint"),
            "measured_at": point.started_at,
            "seconds": point.seconds,
            "ok": point.ok,
            "failed": point.failed,
        }
        for name in ESTIMATES:
            estimate: Estimate | None = getattr(point, name)
            for part in ("value", "low", "high", "n"):
                key = name if part == "value" else f"{name}_{part}"
                row[key] = getattr(estimate, part) if estimate is not None else None
        row |= {
            **gpu_columns(point),
            "preview": point.preview,
            "marks": "; ".join(point.marks),
            "prompts": point.prompts,
            "burst": entry.run.burst,
            "ddtui": __version__,
        }
        found.append(row)
    return found


def gpu_columns(point: Point) -> dict[str, Any]:
    """The GPUs while the cell ran: means over all of them, the most memory, what held any clock down."""
    gpus = point.gpus

    def mean(name: str) -> float | None:
        known = [value for one in gpus if (value := getattr(one, name)) is not None]
        return sum(known) / len(known) if known else None

    return {
        "gpus": len(gpus),
        "gpu_utilization": mean("utilization"),
        "gpu_power_w": mean("power_w"),
        "gpu_clock_mhz": mean("clock_mhz"),
        "gpu_memory_mib": max((one.memory_used_mib for one in gpus if one.memory_used_mib), default=None),
        "gpu_held_by": "; ".join(dict.fromkeys(name for one in gpus for name in one.throttles)),
    }


def flags(step: Step) -> Mapping[str, Any]:
    """The step's flags that are set to anything; values of secrets are masked, whoever wrote them there."""
    return {
        name: redact.value(name, value) if isinstance(value, str) else value
        for name, value in sorted(step.setting.flags.items())
        if value not in (None, "", [], {})
    }


def _observed(entry: Entry) -> Observation:
    setting = entry.step.setting
    return Observation(setting.knobs, entry.point, f"step {entry.step.number}", block_of(setting.flags))


def _command(entry: Entry) -> str:
    cell, spec = entry.point.cell, entry.run.spec
    return (
        f"ddtui bench PROFILE --concurrency {cell.concurrency} --context {cell.context} "
        f"--workload {cell.workload} --output {spec.get('output', 256)} --at {entry.point.place} "
        f"--temperature {spec.get('temperature', 0):g} --seed {spec.get('seed', 0)}"
        + (f" --requests {spec['requests']}" if spec.get("requests") else "")
    )
