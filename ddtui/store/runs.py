"""What was measured of a step, run by run: where a comparison and an estimate begin."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ddtui.store import history as histories
from ddtui.store.history import History
from ddtui.store.model import Step


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One cell that a burst measured; `point` and `spec` are the bench room's as plain values."""

    burst: str
    step: int | None
    point: Mapping[str, Any]
    spec: Mapping[str, Any]
    raw: str
    simulated: bool


LATELY = 1000  # points that an estimate of times looks back on

_RUNS = (
    "SELECT p.point, p.burst, p.step, b.raw, b.simulated, json_extract(b.burst, '$.spec') AS spec{more}"
    " FROM points p JOIN bursts b ON b.id = p.burst JOIN hosts h ON h.id = p.host"
    " WHERE p.output_rate IS NOT NULL"
)


def newest(history: History, step: Step) -> list[StoredRun]:
    """The newest run of every cell of a step."""
    rows = history.read(
        _RUNS.format(more=", max(p.at)")
        + " AND h.name = ? AND h.unit = ? AND p.step = ? GROUP BY p.concurrency, p.context, p.workload"
        " ORDER BY p.workload, p.context, p.concurrency",
        [step.host, step.unit, step.number],
    )
    return [_run(row) for row in rows]


def of_bursts(history: History, bursts: Sequence[str]) -> list[StoredRun]:
    """All cells that these bursts measured, oldest first."""
    marks = ", ".join("?" for _ in bursts)
    rows = history.read(_RUNS.format(more="") + f" AND p.burst IN ({marks}) ORDER BY p.at, p.id", bursts)
    return [_run(row) for row in rows]


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest point of one cell of a step, with no more than the charts of all steps need."""

    step: int
    concurrency: int
    context: int
    workload: str
    at: float
    values: Mapping[str, Any]  # output_rate per_user_rate accept_length step_ms marks place, as in the point


_DRAWN = ("output_rate", "per_user_rate", "accept_length", "step_ms", "marks", "place")


def newest_of_all(history: History, host: str, unit: str) -> list[Newest]:
    """The newest point of every cell of every step of a host."""
    paths = ", ".join(f"'$.{name}'" for name in _DRAWN)
    rows = history.read(
        f"SELECT p.step, p.concurrency, p.context, p.workload, p.at, json_extract(p.point, {paths}) AS drawn"
        " FROM points p WHERE p.id IN (SELECT id FROM (SELECT p.id, max(p.at) FROM points p"
        " JOIN hosts h ON h.id = p.host WHERE h.name = ? AND h.unit = ? AND p.step IS NOT NULL"
        " AND p.output_rate IS NOT NULL GROUP BY p.step, p.concurrency, p.context, p.workload))"
        " ORDER BY p.step, p.workload, p.context, p.concurrency",
        [host, unit],
    )
    return [
        Newest(
            row["step"],
            row["concurrency"],
            row["context"],
            row["workload"],
            row["at"],
            dict(zip(_DRAWN, json.loads(row["drawn"]), strict=True)),
        )
        for row in rows
    ]


def step(history: History, id: int) -> Step | None:
    """The step of that id."""
    rows = history.read(histories.STEPS + " WHERE s.id = ?", [id])
    return histories.step_of(rows[0]) if rows else None


def steps_numbered(history: History, number: int, host: str | None = None) -> list[Step]:
    """The steps of that number: one for each host and unit that has so many."""
    found = history.read(
        histories.STEPS + " WHERE s.number = ?" + (" AND h.name = ?" if host else ""),
        [number, *([host] if host else [])],
    )
    return [histories.step_of(row) for row in found]


def baseline(history: History, host: str, unit: str) -> Step | None:
    """The step that was last noted as "baseline", else the first that was measured."""
    rows = history.read(
        histories.STEPS
        + " LEFT JOIN notes b ON b.subject = 'step' AND b.of = CAST(s.id AS TEXT) AND b.text LIKE 'baseline%'"
        " WHERE h.name = ? AND h.unit = ? AND EXISTS (SELECT 1 FROM points p WHERE p.host = s.host AND"
        " p.step = s.number) ORDER BY b.at IS NULL, b.at DESC, s.number LIMIT 1",
        [host, unit],
    )
    return histories.step_of(rows[0]) if rows else None


def last_measured(history: History, host: str, unit: str) -> Step | None:
    """The step that was measured last."""
    rows = history.read(
        "SELECT b.step FROM bursts b JOIN hosts h ON h.id = b.host WHERE h.name = ? AND h.unit = ?"
        " AND b.step IS NOT NULL AND EXISTS (SELECT 1 FROM points p WHERE p.burst = b.id)"
        " ORDER BY b.at DESC LIMIT 1",
        [host, unit],
    )
    found = steps_numbered(history, rows[0]["step"], host) if rows else []
    return next((one for one in found if one.unit == unit), None)


def seconds(history: History, host: str, unit: str) -> dict[tuple[int, int, str], float]:
    """How long each cell (concurrency, context, workload) took lately: the mean of its last measurements."""
    rows = history.read(
        "SELECT concurrency, context, workload, avg(took) AS seconds FROM ("
        " SELECT concurrency, context, workload, json_extract(point, '$.seconds') AS took,"
        " row_number() OVER (PARTITION BY concurrency, context, workload ORDER BY id DESC) AS age FROM ("
        " SELECT p.* FROM points p JOIN hosts h ON h.id = p.host WHERE h.name = ? AND h.unit = ?"
        f" ORDER BY p.id DESC LIMIT {LATELY})) WHERE age <= 3 GROUP BY concurrency, context, workload",
        [host, unit],
    )
    return {(row["concurrency"], row["context"], row["workload"]): row["seconds"] for row in rows}


def _run(row: sqlite3.Row) -> StoredRun:
    return StoredRun(
        burst=row["burst"],
        step=row["step"],
        point=json.loads(row["point"]),
        spec=json.loads(row["spec"] or "{}"),
        raw=row["raw"],
        simulated=bool(row["simulated"]),
    )
