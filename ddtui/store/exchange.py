"""Export and import of the history: JSON lines that another history can take in.

The first line is `{"kind": "ddtui-history", "version": 1}`; then a line for each row, hosts and steps by
name and number. Import adds what is missing and changes nothing that is there; a step that is there under
another number keeps its number here, and everything imported for it follows.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from ddtui import locations
from ddtui.sanitize import sanitize
from ddtui.store.history import History
from ddtui.store.model import HistoryError

KIND, VERSION = "ddtui-history", 1
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

# by table: the columns that travel, host and step apart; and those that say whether a row is there already
_TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "changes": (("id", "step", "at", "phase", "result", "record"), ("id",)),
    "starts": (("step", "at", "seconds", "result"), ("host", "at")),
    "bursts": (("id", "step", "at", "state", "raw", "simulated", "note", "burst"), ("id",)),
    "quality": (("step", "at", "result"), ("host", "step", "at")),
    "aa_runs": (("load", "at", "means", "series"), ("host", "load", "at", "means")),
    "sweeps": (("id", "at", "state", "sweep"), ("id",)),
}
_JSON = frozenset(["record", "burst", "means", "sweep"])


Tell = Callable[[float | None], None]  # which part of it is done, after each line; may raise to stop it


def export(
    history: History,
    file: TextIO,
    *,
    host: str | None = None,
    records: bool = False,
    tell: Tell = lambda part: None,
) -> Counter[str]:
    """Write everything, or all of one host. `records`: the bursts' raw records too. Gives counts by kind."""
    counts: Counter[str] = Counter()
    for line in _lines(history, host, records):
        tell(None)
        counts[line["kind"]] += 1
        file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
    counts.pop(KIND)
    return counts


def export_to(
    history: History, name: str, *, host: str | None, records: bool, tell: Tell = lambda part: None
) -> Counter[str]:
    """`export` into a new file; one that is there is left alone, none is left half. Raises HistoryError."""
    path = Path(name).expanduser()
    try:
        with open(path, "x", encoding="utf-8") as file:
            try:
                return export(history, file, host=host, records=records, tell=tell)
            except BaseException:
                path.unlink(missing_ok=True)
                raise
    except FileExistsError:
        raise HistoryError(f"{path} exists already; name another file") from None
    except OSError as problem:
        raise HistoryError(f"{path}: cannot be written: {problem.strerror}") from None


def import_from(history: History, name: str, *, tell: Tell = lambda part: None) -> Counter[str]:
    """`take_in` of a file. Raises HistoryError."""
    path = Path(name).expanduser()
    try:
        with open(path, encoding="utf-8") as file:
            size = os.fstat(file.fileno()).st_size
            return take_in(history, file, str(path), lambda done: tell(done / size if size else None))
    except (OSError, UnicodeDecodeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
        raise HistoryError(f"{path}: cannot be read: {why}") from None


def take_in(
    history: History, file: TextIO, name: str, tell: Callable[[int], None] = lambda done: None
) -> Counter[str]:
    """Import an export, all or nothing. Gives counts by kind of what was new. Raises HistoryError with the
    line. `tell`: how many bytes of it are done, after each line.
    """
    taking = _Taking(history)
    number, done = 1, 0
    raw: list[tuple[Path, str]] = []
    with history.writing() as db:
        try:
            for number, text in enumerate(file, 1):
                done += len(text.encode())
                tell(done)
                line = json.loads(text)
                if number == 1 and (line.get("kind"), line.get("version")) != (KIND, VERSION):
                    raise ValueError("it does not begin as an export of this ddtui's history does")
                if line["kind"] == "records":
                    raw.append(_raw(line))
                elif line["kind"] != KIND:
                    taking.take(db, line["kind"], line)
            if number == 1:
                raise ValueError("it is empty")
        except (ValueError, KeyError, TypeError, AttributeError, sqlite3.Error) as problem:
            why = f"{problem.args[0]} is missing" if isinstance(problem, KeyError) else str(problem)
            raise HistoryError(f"{name}, line {number}: {why}; nothing was imported") from None
        for path, words in raw:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(words, "utf-8")
    return taking.new


def _lines(history: History, host: str | None, records: bool) -> Iterator[dict[str, Any]]:
    yield {"kind": KIND, "version": VERSION}
    only, value = (" WHERE h.name = ?", [host]) if host else ("", [])
    for row in history.read(f"SELECT s.*, h.name AS host_name, h.unit FROM steps s{_HOST}{only}", value):
        yield {
            "kind": "steps",
            **_where(row),
            "number": row["number"],
            "identity": row["identity"],
            "at": row["at"],
            "setting": json.loads(row["setting"]),
            "verdicts": json.loads(row["verdicts"]),
            "simulated": row["simulated"],
            "words": row["words"],
        }
    for table, (columns, _) in _TABLES.items():
        rows = history.read(f"SELECT s.*, h.name AS host_name, h.unit FROM {table} s{_HOST}{only}", value)
        for row in rows:
            yield {"kind": table, **_where(row), **{name: _out(row, name) for name in columns}}
            if table == "bursts" and records and row["raw"] and Path(row["raw"]).is_file():
                yield {
                    "kind": "records",
                    "burst": row["id"],
                    "text": Path(row["raw"]).read_text("utf-8", "replace"),
                }
    for row in history.read("SELECT * FROM trials", []):
        yield {
            "kind": "trials",
            "sweep": row["sweep"],
            "number": row["number"],
            "trial": json.loads(row["trial"]),
        }
    for row in history.read(
        "SELECT n.*, h.name AS host_name, h.unit, s.number FROM notes n LEFT JOIN steps s"
        " ON n.subject = 'step' AND CAST(s.id AS TEXT) = n.of LEFT JOIN hosts h ON h.id = s.host",
        [],
    ):
        yield {
            "kind": "notes",
            **_where(row),
            "step": row["number"],
            **{name: row[name] for name in ("at", "subject", "of", "text")},
        }


_HOST = " JOIN hosts h ON h.id = s.host"


def _where(row: sqlite3.Row) -> dict[str, Any]:
    return {"host": row["host_name"], "unit": row["unit"]}


def _out(row: sqlite3.Row, name: str) -> Any:
    return json.loads(row[name]) if name in _JSON else row[name]


def _raw(line: Mapping[str, Any]) -> tuple[Path, str]:
    return locations.data_dir() / "bursts" / f"{_fit(line['burst'])}.jsonl", str(line["text"])


def _fit(id: Any) -> str:
    if not isinstance(id, str) or not _ID.fullmatch(id):
        raise ValueError("an id in it is none of ddtui's")
    return id


class _Taking:
    """Rows as they come in."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._numbers: dict[tuple[int, int], int] = {}  # host here, number there -> number here
        self._ids: dict[tuple[int, int], int] = {}  # host here, number there -> the step's id here
        self.new: Counter[str] = Counter()

    def take(self, db: sqlite3.Connection, kind: str, given: Mapping[str, Any]) -> None:
        line: dict[str, Any] = _clean(given)
        if kind == "trials":
            self._put(
                db,
                kind,
                {"sweep": line["sweep"], "number": line["number"], "trial": json.dumps(line["trial"])},
                ("sweep", "number"),
            )
        elif kind == "notes":
            self._note(db, line)
        elif kind == "steps":
            self._step(db, line)
        elif kind in _TABLES:
            columns, key = _TABLES[kind]
            host = self._history.host_id(db, str(line["host"]), str(line["unit"]))
            values: dict[str, Any] = {"host": host}
            values |= {name: json.dumps(line[name]) if name in _JSON else line[name] for name in columns}
            if values.get("step") is not None:
                values["step"] = self._numbers.get((host, values["step"]), values["step"])
            if kind == "bursts":
                self._burst(db, host, values, line["burst"])
            else:
                self._put(db, kind, values, key)
        else:
            raise ValueError(f"{kind!r} is not known")

    def _put(self, db: sqlite3.Connection, table: str, values: Mapping[str, Any], key: Sequence[str]) -> bool:
        there = db.execute(
            f"SELECT 1 FROM {table} WHERE {' AND '.join(f'{name} IS ?' for name in key)}",
            [values[name] for name in key],
        ).fetchone()
        if there is None:
            marks = ", ".join("?" for _ in values)
            db.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", list(values.values()))
            self.new[table] += 1
        return there is None

    def _step(self, db: sqlite3.Connection, line: Mapping[str, Any]) -> None:
        host = self._history.host_id(db, str(line["host"]), str(line["unit"]))
        row = db.execute(
            "SELECT id, number FROM steps WHERE host = ? AND identity = ?", (host, line["identity"])
        ).fetchone()
        if row is None:
            taken = db.execute(
                "SELECT 1 FROM steps WHERE host = ? AND number = ?", (host, line["number"])
            ).fetchone()
            number = int(line["number"])
            if taken:
                number = db.execute("SELECT max(number) + 1 FROM steps WHERE host = ?", (host,)).fetchone()[0]
            values = {
                "host": host,
                "number": number,
                **{name: line[name] for name in ("identity", "at", "simulated", "words")},
                "setting": json.dumps(line["setting"]),
                "verdicts": json.dumps(line["verdicts"]),
            }
            self._put(db, "steps", values, ("host", "identity"))
            id = db.execute("SELECT last_insert_rowid()").fetchone()[0]
            db.executemany(
                "INSERT INTO knobs (step, name, value) VALUES (?, ?, ?)",
                [(id, name, value) for name, value in line["setting"]["knobs"].items()],
            )
        else:
            id, number = row["id"], row["number"]
        self._numbers[host, int(line["number"])] = number
        self._ids[host, int(line["number"])] = id

    def _burst(
        self, db: sqlite3.Connection, host: int, values: dict[str, Any], burst: Mapping[str, Any]
    ) -> None:
        from ddtui.store.history import point_row

        kept = locations.data_dir() / "bursts" / f"{_fit(values['id'])}.jsonl"
        values["raw"] = str(kept)
        values["burst"] = json.dumps({**burst, "step": values["step"], "raw": str(kept)})
        if not self._put(db, "bursts", values, ("id",)):
            return
        db.executemany(
            "INSERT INTO points (burst, host, step, concurrency, context, workload, at, trusted,"
            " output_rate, accept_length, step_ms, point) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (values["id"], host, values["step"], *point_row(point))
                for point in burst.get("points", ())
                if point.get("final")
            ],
        )

    def _note(self, db: sqlite3.Connection, line: Mapping[str, Any]) -> None:
        of = str(line["of"])
        if line["subject"] == "step":
            if line["host"] is None:
                return
            host = self._history.host_id(db, str(line["host"]), str(line["unit"]))
            of = str(self._ids[host, int(line["step"])])
        values = {"at": line["at"], "subject": line["subject"], "of": of, "text": line["text"]}
        self._put(db, "notes", values, ("subject", "of", "at", "text"))


def _clean(value: Any) -> Any:
    """What a file says is data: nothing in it reaches a terminal as anything else."""
    if isinstance(value, str):
        return sanitize(value, newlines=True)
    if isinstance(value, Mapping):
        return {sanitize(str(name)): _clean(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value
