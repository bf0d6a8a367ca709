"""A/A series: the same setting measured again after each restart, so that the noise of restarts is known."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence

from ddtui.store.history import History


def save(
    history: History, host: str, unit: str, series: str, runs: Mapping[str, Sequence[Mapping[str, float]]]
) -> None:
    """Insert or replace a series. `runs`: by load, the means of each of its runs by metric."""
    now = time.time()
    with history.writing() as db:
        where = history.host_id(db, host, unit)
        db.execute("DELETE FROM aa_runs WHERE series = ?", (series,))
        db.executemany(
            "INSERT INTO aa_runs (host, load, at, means, series) VALUES (?, ?, ?, ?, ?)",
            [
                (where, load, now, json.dumps(dict(means)), series)
                for load, all_means in runs.items()
                for means in all_means
            ],
        )


def groups(history: History, host: str, unit: str, load: str, metric: str) -> list[list[float]]:
    """The runs' means of that load and metric, a list for each series."""
    rows = history.read(
        "SELECT s.series, s.means FROM aa_runs s JOIN hosts h ON h.id = s.host WHERE h.name = ?"
        " AND h.unit = ? AND s.load = ? ORDER BY s.at, s.id",
        [host, unit, load],
    )
    found: dict[str, list[float]] = {}
    for row in rows:
        value = json.loads(row["means"]).get(metric)
        if value is not None:
            found.setdefault(row["series"], []).append(float(value))
    return list(found.values())


def count(history: History, host: str, unit: str) -> int:
    """How many A/A runs there are, all loads together counted by their most frequent one."""
    rows = history.read(
        "SELECT count(*) AS runs FROM aa_runs s JOIN hosts h ON h.id = s.host WHERE h.name = ?"
        " AND h.unit = ? GROUP BY s.load ORDER BY runs DESC LIMIT 1",
        [host, unit],
    )
    return rows[0]["runs"] if rows else 0
