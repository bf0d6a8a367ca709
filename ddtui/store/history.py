"""The history: one SQLite file per user, safe with two consoles open."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from ddtui import locations
from ddtui.store import database
from ddtui.store.model import HistoryError, Note, Setting, Start, Step, StoredBurst, StoredChange


class History:
    """All methods are quick and blocking; any thread may call them. They raise HistoryError."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.path = path
        self._db = db
        self._lock = threading.RLock()

    @classmethod
    def open(cls, path: Path | None = None) -> Self:
        """The history at `path`, else `data_dir()/history.sqlite`; made if absent, migrated if older.

        Raises HistoryError, without touching the file, if it is newer than this ddtui, not a history,
        damaged, or not writable.
        """
        path = path or locations.data_dir() / "history.sqlite"
        return cls(path, database.connect(path))

    def close(self) -> None:
        with self._lock:
            self._db.close()

    # steps

    def step(
        self,
        host: str,
        unit: str,
        setting: Setting,
        *,
        verdicts: Sequence[Mapping[str, Any]] = (),
        simulated: bool = False,
        at: float | None = None,
    ) -> Step:
        """The step of that setting on this host and unit: the one that is there, or a new one.

        A step that is there gets the newest verdicts.
        """
        identity = setting.identity
        whole = _plain_setting(setting)
        with self.writing() as db:
            where = self.host_id(db, host, unit)
            row = db.execute(
                "SELECT id FROM steps WHERE host = ? AND identity = ?", (where, identity)
            ).fetchone()
            if row is None:
                number = db.execute(
                    "SELECT coalesce(max(number), 0) + 1 FROM steps WHERE host = ?", (where,)
                ).fetchone()[0]
                new = db.execute(
                    "INSERT INTO steps (host, number, identity, at, setting, verdicts, simulated, words)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        where,
                        number,
                        identity,
                        _time(at),
                        _json(whole),
                        _json(list(verdicts)),
                        simulated,
                        _words(whole),
                    ),
                )
                step = new.lastrowid
                db.executemany(
                    "INSERT INTO knobs (step, name, value) VALUES (?, ?, ?)",
                    [
                        (step, name, None if value is None else str(value))
                        for name, value in setting.knobs.items()
                    ],
                )
            else:
                step = row["id"]
                if verdicts:
                    db.execute("UPDATE steps SET verdicts = ? WHERE id = ?", (_json(list(verdicts)), step))
            return step_of(db.execute(STEPS + " WHERE s.id = ?", (step,)).fetchone())

    def steps(
        self, host: str | None = None, unit: str | None = None, *, search: str = "", limit: int = 1000
    ) -> list[Step]:
        """Newest first. `search`: words that must all be found in knobs, flags, versions or notes."""
        where, values = place(host, unit)
        for word in search.split():
            where.append(
                "(s.words LIKE ? ESCAPE '\\' OR EXISTS (SELECT 1 FROM notes n WHERE n.subject = 'step'"
                " AND n.of = s.id AND n.text LIKE ? ESCAPE '\\'))"
            )
            values += [like(word), like(word)]
        rows = self.read(STEPS + clause(where) + " ORDER BY s.at DESC, s.id DESC LIMIT ?", [*values, limit])
        return [step_of(row) for row in rows]

    def delete_step(self, step_id: int) -> int:
        """The step with its bursts, their raw records, points, quality results and notes.

        Gives how many bursts it had.
        """
        with self.writing() as db:
            row = db.execute("SELECT host, number FROM steps WHERE id = ?", (step_id,)).fetchone()
            if row is None:
                raise HistoryError(f"there is no step with the id {step_id} in the history")
            key = (row["host"], row["number"])
            gone = db.execute("SELECT raw FROM bursts WHERE host = ? AND step = ?", key).fetchall()
            db.execute("DELETE FROM bursts WHERE host = ? AND step = ?", key)
            db.execute("DELETE FROM quality WHERE host = ? AND step = ?", key)
            db.execute("DELETE FROM notes WHERE subject = 'step' AND of = ?", (str(step_id),))
            db.execute("DELETE FROM steps WHERE id = ?", (step_id,))
        _remove_raw(gone)
        return len(gone)

    # changes and starts

    def save_change(
        self, host: str, unit: str, record: Mapping[str, Any], *, step: int | None = None
    ) -> None:
        """Insert or replace by the record's `id`. `step`: the step's number that it led to."""
        with self.writing() as db:
            db.execute(
                "INSERT INTO changes (id, host, step, at, phase, result, record) VALUES (?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (id) DO UPDATE SET step = coalesce(excluded.step, step), at = excluded.at,"
                " phase = excluded.phase, result = excluded.result, record = excluded.record",
                (
                    str(record["id"]),
                    self.host_id(db, host, unit),
                    step,
                    float(record.get("at") or time.time()),
                    str(record.get("phase", "")),
                    str(record.get("result", "")),
                    _json(record),
                ),
            )

    def changes(
        self, host: str | None = None, unit: str | None = None, *, limit: int = 200
    ) -> list[StoredChange]:
        """Newest first."""
        where, values = place(host, unit)
        rows = self.read(
            "SELECT s.*, h.name, h.unit FROM changes s JOIN hosts h ON h.id = s.host"
            + clause(where)
            + " ORDER BY s.at DESC, s.id DESC LIMIT ?",
            [*values, limit],
        )
        return [
            StoredChange(
                row["id"],
                row["name"],
                row["unit"],
                row["at"],
                row["phase"],
                row["result"],
                json.loads(row["record"]),
                row["step"],
            )
            for row in rows
        ]

    def save_start(
        self,
        host: str,
        unit: str,
        seconds: float | None,
        *,
        step: int | None = None,
        result: str = "ready",
        at: float | None = None,
    ) -> None:
        """`seconds` to ready; None: it did not get there, and `result` says why."""
        with self.writing() as db:
            db.execute(
                "INSERT INTO starts (host, step, at, seconds, result) VALUES (?, ?, ?, ?, ?)",
                (self.host_id(db, host, unit), step, _time(at), seconds, result),
            )

    def last_starts(self, host: str, unit: str, *, limit: int = 5) -> list[Start]:
        """Those that got ready, newest first."""
        rows = self.read(
            "SELECT s.* FROM starts s JOIN hosts h ON h.id = s.host WHERE h.name = ? AND h.unit = ?"
            " AND s.seconds IS NOT NULL ORDER BY s.at DESC, s.id DESC LIMIT ?",
            [host, unit, limit],
        )
        return [Start(row["at"], row["seconds"], row["step"], row["result"]) for row in rows]

    # bursts

    def save_burst(self, host: str, unit: str, burst: Mapping[str, Any], *, note: str = "") -> None:
        """Insert or replace by id; `burst` is bench.kept.to_plain(burst), with the step's number in it."""
        with self.writing() as db:
            where = self.host_id(db, host, unit)
            values = (
                where,
                burst.get("step"),
                float(burst.get("started_at") or time.time()),
                str(burst["state"]),
                str(burst.get("raw") or ""),
                bool(burst.get("simulated")),
                _json(burst),
            )
            db.execute(
                "INSERT INTO bursts (host, step, at, state, raw, simulated, burst, note, id)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET host = excluded.host,"
                " step = excluded.step, at = excluded.at, state = excluded.state, raw = excluded.raw,"
                " simulated = excluded.simulated, burst = excluded.burst,"
                " note = CASE excluded.note WHEN '' THEN note ELSE excluded.note END",
                (*values, note, str(burst["id"])),
            )
            db.execute("DELETE FROM points WHERE burst = ?", (str(burst["id"]),))
            db.executemany(
                "INSERT INTO points (burst, host, step, concurrency, context, workload, at, trusted,"
                " output_rate, accept_length, step_ms, point) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (str(burst["id"]), where, burst.get("step"), *point_row(point))
                    for point in burst.get("points", ())
                    if point.get("final")
                ],
            )

    def bursts(
        self,
        host: str | None = None,
        unit: str | None = None,
        *,
        step: int | None = None,
        limit: int = 200,
    ) -> list[StoredBurst]:
        """Newest first."""
        where, values = place(host, unit)
        if step is not None:
            where.append("s.step = ?")
            values.append(step)
        rows = self.read(
            "SELECT s.*, h.name, h.unit FROM bursts s JOIN hosts h ON h.id = s.host"
            + clause(where)
            + " ORDER BY s.at DESC, s.id DESC LIMIT ?",
            [*values, limit],
        )
        return [_burst_of(row) for row in rows]

    def burst(self, id: str) -> StoredBurst | None:
        """The burst of that id."""
        rows = self.read(
            "SELECT s.*, h.name, h.unit FROM bursts s JOIN hosts h ON h.id = s.host WHERE s.id = ?", [id]
        )
        return _burst_of(rows[0]) if rows else None

    def delete_burst(self, burst_id: str) -> None:
        """The burst with its raw records, points and notes."""
        with self.writing() as db:
            gone = db.execute("SELECT raw FROM bursts WHERE id = ?", (burst_id,)).fetchall()
            if not gone:
                raise HistoryError(f"there is no burst {burst_id!r} in the history")
            db.execute("DELETE FROM bursts WHERE id = ?", (burst_id,))
            db.execute("DELETE FROM notes WHERE subject = 'burst' AND of = ?", (burst_id,))
        _remove_raw(gone)

    def points(self, host: str, unit: str, *, steps: Sequence[int]) -> dict[int, list[Mapping[str, Any]]]:
        """By step number: its newest final point of every cell, as charts overlay and comparisons take
        them.
        """
        marks = ", ".join("?" for _ in steps)
        rows = self.read(
            "SELECT p.step, p.point, max(p.at) FROM points p JOIN hosts h ON h.id = p.host"
            f" WHERE h.name = ? AND h.unit = ? AND p.step IN ({marks}) AND p.output_rate IS NOT NULL"
            " GROUP BY p.step, p.concurrency, p.context, p.workload"
            " ORDER BY p.step, p.workload, p.context, p.concurrency",
            [host, unit, *steps],
        )
        found: dict[int, list[Mapping[str, Any]]] = {}
        for row in rows:
            found.setdefault(row["step"], []).append(json.loads(row["point"]))
        return found

    # quality, A/A runs, notes

    def save_quality(
        self, host: str, unit: str, step: int | None, result: Mapping[str, Any], *, at: float | None = None
    ) -> None:
        with self.writing() as db:
            db.execute(
                "INSERT INTO quality (host, step, at, result) VALUES (?, ?, ?, ?)",
                (self.host_id(db, host, unit), step, _time(at), _json(result)),
            )

    def quality(self, host: str, unit: str, *, step: int | None = None) -> list[Mapping[str, Any]]:
        """Newest first."""
        where, values = place(host, unit)
        if step is not None:
            where.append("s.step = ?")
            values.append(step)
        rows = self.read(
            "SELECT s.result FROM quality s JOIN hosts h ON h.id = s.host"
            + clause(where)
            + " ORDER BY s.at DESC, s.id DESC",
            values,
        )
        return [json.loads(row["result"]) for row in rows]

    def save_aa(
        self, host: str, unit: str, load: str, means: Mapping[str, float], *, at: float | None = None
    ) -> None:
        """One A/A run: the same setting after a restart. `load` names model and cell."""
        with self.writing() as db:
            db.execute(
                "INSERT INTO aa_runs (host, load, at, means) VALUES (?, ?, ?, ?)",
                (self.host_id(db, host, unit), load, _time(at), _json(means)),
            )

    def aa_means(self, host: str, unit: str, load: str, metric: str) -> list[float]:
        """The means of this metric in all A/A runs of that load, oldest first."""
        rows = self.read(
            "SELECT s.means FROM aa_runs s JOIN hosts h ON h.id = s.host WHERE h.name = ? AND h.unit = ?"
            " AND s.load = ? ORDER BY s.at, s.id",
            [host, unit, load],
        )
        means = [json.loads(row["means"]) for row in rows]
        return [float(run[metric]) for run in means if run.get(metric) is not None]

    def add_note(self, subject: str, of: str, text: str) -> None:
        """`subject`: step, burst or change; `of`: its id."""
        with self.writing() as db:
            db.execute(
                "INSERT INTO notes (at, subject, of, text) VALUES (?, ?, ?, ?)",
                (time.time(), subject, of, text),
            )

    def notes(self, subject: str, of: str) -> list[Note]:
        """Oldest first."""
        rows = self.read("SELECT * FROM notes WHERE subject = ? AND of = ? ORDER BY at, id", [subject, of])
        return [Note(row["id"], row["at"], row["subject"], row["of"], row["text"]) for row in rows]

    # for the other modules of this room

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that no other console's can come between."""
        with self._lock, self._telling():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def read(self, query: str, values: Sequence[Any]) -> list[sqlite3.Row]:
        """All rows."""
        with self._lock, self._telling():
            return self._db.execute(query, values).fetchall()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as problem:
            if "locked" in str(problem):
                raise HistoryError(
                    f"the history {self.path} is held by another program for more than {database.BUSY:.0f} s"
                ) from None
            raise HistoryError(f"the history {self.path}: {problem}") from None
        except sqlite3.Error as problem:
            raise HistoryError(f"the history {self.path}: {problem}") from None

    def host_id(self, db: sqlite3.Connection, host: str, unit: str) -> int:
        """The row of that host and unit, made if it is new."""
        db.execute("INSERT OR IGNORE INTO hosts (name, unit) VALUES (?, ?)", (host, unit))
        found: int = db.execute("SELECT id FROM hosts WHERE name = ? AND unit = ?", (host, unit)).fetchone()[
            "id"
        ]
        return found


STEPS = (
    "SELECT s.*, h.name, h.unit,"
    " (SELECT count(*) FROM bursts b WHERE b.host = s.host AND b.step = s.number) AS bursts,"
    " (SELECT text FROM notes n WHERE n.subject = 'step' AND n.of = CAST(s.id AS TEXT)"
    " ORDER BY n.at DESC, n.id DESC LIMIT 1) AS note"
    " FROM steps s JOIN hosts h ON h.id = s.host"
)


def step_of(row: sqlite3.Row) -> Step:
    return Step(
        id=row["id"],
        number=row["number"],
        host=row["name"],
        unit=row["unit"],
        identity=row["identity"],
        at=row["at"],
        setting=Setting(**json.loads(row["setting"])),
        verdicts=json.loads(row["verdicts"]),
        simulated=bool(row["simulated"]),
        bursts=row["bursts"],
        note=row["note"] or "",
    )


def _burst_of(row: sqlite3.Row) -> StoredBurst:
    return StoredBurst(
        id=row["id"],
        host=row["name"],
        unit=row["unit"],
        step=row["step"],
        at=row["at"],
        state=row["state"],
        burst=json.loads(row["burst"]),
        raw=row["raw"],
        simulated=bool(row["simulated"]),
        note=row["note"],
    )


def _remove_raw(gone: Sequence[sqlite3.Row]) -> None:
    """The raw records of deleted bursts. What is left over if one cannot be removed is in nobody's way."""
    for path in {row["raw"] for row in gone} - {""}:
        with suppress(OSError):
            Path(path).unlink(missing_ok=True)


def _plain_setting(setting: Setting) -> dict[str, Any]:
    return {
        "knobs": dict(setting.knobs),
        "flags": dict(setting.flags),
        "engine": setting.engine,
        "drafter": setting.drafter,
        "target": setting.target,
        "gpu": setting.gpu,
        "environment": dict(setting.environment),
    }


def _words(setting: Mapping[str, Any]) -> str:
    """What a search looks through: `budget=16`, flags with dashes, versions."""
    words = [f"{name}={value}" for name, value in setting["knobs"].items()]
    words += [f"--{name.lstrip('-').replace('_', '-')}={value}" for name, value in setting["flags"].items()]
    words += [f"{name}={value}" for name, value in setting["environment"].items()]
    words += [setting[name] for name in ("engine", "drafter", "target", "gpu")]
    return "\n".join(words)


def point_row(point: Mapping[str, Any]) -> tuple[Any, ...]:
    cell = point["cell"]

    def value(name: str) -> float | None:
        estimate = point.get(name)
        return estimate["value"] if isinstance(estimate, Mapping) else None

    rate = value("output_rate")
    trusted = rate is not None and not point.get("preview") and not point.get("marks")
    return (
        cell["concurrency"],
        cell["context"],
        cell["workload"],
        point["started_at"],
        trusted,
        rate,
        value("accept_length"),
        value("step_ms"),
        _json(point),
    )


def place(host: str | None, unit: str | None) -> tuple[list[str], list[Any]]:
    where, values = [], []
    for column, wanted in (("h.name", host), ("h.unit", unit)):
        if wanted is not None:
            where.append(f"{column} = ?")
            values.append(wanted)
    return where, values


def clause(conditions: Sequence[str]) -> str:
    return " WHERE " + " AND ".join(conditions) if conditions else ""


def like(word: str) -> str:
    for special in "\\%_":
        word = word.replace(special, "\\" + special)
    return f"%{word}%"


def _time(at: float | None) -> float:
    return time.time() if at is None else at


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), default=str)
