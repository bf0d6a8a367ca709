"""Sweeps and their trials, written down before each is made: what a cut leaves is found and continued."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ddtui.store.history import History


@dataclass(frozen=True, slots=True)
class StoredSweep:
    """`sweep` is the bench room's plan and outcome as plain values; `trials` by number."""

    id: str
    host: str
    unit: str
    at: float
    state: str  # "running", "done", "stopped"
    sweep: Mapping[str, Any]
    trials: Mapping[int, Mapping[str, Any]]


def save(
    history: History,
    host: str,
    unit: str,
    id: str,
    sweep: Mapping[str, Any],
    *,
    state: str,
    at: float | None = None,
) -> None:
    """Insert or replace, without touching its trials."""
    with history.writing() as db:
        db.execute(
            "INSERT INTO sweeps (id, host, at, state, sweep) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET state = excluded.state, sweep = excluded.sweep",
            (
                id,
                history.host_id(db, host, unit),
                time.time() if at is None else at,
                state,
                json.dumps(dict(sweep)),
            ),
        )


def save_trial(history: History, id: str, number: int, trial: Mapping[str, Any]) -> None:
    """Insert or replace one trial."""
    with history.writing() as db:
        db.execute(
            "INSERT INTO trials (sweep, number, trial) VALUES (?, ?, ?)"
            " ON CONFLICT (sweep, number) DO UPDATE SET trial = excluded.trial",
            (id, number, json.dumps(dict(trial))),
        )


def sweeps(
    history: History, host: str | None = None, unit: str | None = None, *, limit: int = 100
) -> list[StoredSweep]:
    """Newest first, without their trials."""
    wanted = [(column, value) for column, value in (("h.name", host), ("h.unit", unit)) if value is not None]
    where = " WHERE " + " AND ".join(f"{column} = ?" for column, _ in wanted) if wanted else ""
    rows = history.read(
        f"SELECT s.*, h.name, h.unit FROM sweeps s JOIN hosts h ON h.id = s.host{where}"
        " ORDER BY s.at DESC, s.id DESC LIMIT ?",
        [*(value for _, value in wanted), limit],
    )
    return [
        StoredSweep(
            row["id"], row["name"], row["unit"], row["at"], row["state"], json.loads(row["sweep"]), {}
        )
        for row in rows
    ]


def find(history: History, id: str) -> StoredSweep | None:
    """One sweep with its trials."""
    rows = history.read(
        "SELECT s.*, h.name, h.unit FROM sweeps s JOIN hosts h ON h.id = s.host WHERE s.id = ?", [id]
    )
    if not rows:
        return None
    trials = history.read("SELECT number, trial FROM trials WHERE sweep = ? ORDER BY number", [id])
    row = rows[0]
    return StoredSweep(
        row["id"],
        row["name"],
        row["unit"],
        row["at"],
        row["state"],
        json.loads(row["sweep"]),
        {trial["number"]: json.loads(trial["trial"]) for trial in trials},
    )
