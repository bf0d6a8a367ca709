"""Opening the history's file: what is newer, foreign or broken is never written to."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ddtui.store.model import HistoryError
from ddtui.store.schema import APPLICATION, MIGRATIONS

BUSY = 10.0  # s that one console waits for another one's write
CHECKED = 32 << 20  # bytes up to which a file is checked as a whole: a tenth of a second


def connect(path: Path) -> sqlite3.Connection:
    """The file, made if absent, migrated if older. Raises HistoryError and leaves the file as it is
    otherwise.
    """
    fresh = not path.exists() or path.stat().st_size == 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not fresh:
            _look(path)
        db = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
    except OSError as problem:
        raise HistoryError(f"the history {path} cannot be made: {problem.strerror}") from None
    except sqlite3.Error as problem:
        raise _broken(path, problem) from None
    try:
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA foreign_keys = ON")
        _migrate(db, path)
        if fresh:
            path.chmod(0o600)
    except sqlite3.Error as problem:
        db.close()
        raise _broken(path, problem) from None
    except BaseException:
        db.close()
        raise
    return db


def _look(path: Path) -> None:
    """Refuse what ddtui must not write to, looking without writing."""
    with path.open("rb") as file:
        if file.read(16) != b"SQLite format 3\0":
            raise HistoryError(
                f"{path} is no history of ddtui's (not an SQLite file): move it away, and a new one is made"
            )
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY)
    try:
        application = db.execute("PRAGMA application_id").fetchone()[0]
        version = db.execute("PRAGMA user_version").fetchone()[0]
        tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application != APPLICATION and (tables or version):
            raise HistoryError(f"{path} is another program's SQLite file: ddtui does not touch it")
        if version > len(MIGRATIONS):
            raise HistoryError(
                f"the history {path} was written by a newer ddtui (version {version}, this one knows "
                f"{len(MIGRATIONS)}): update ddtui, or move the file away; it was left as it is"
            )
        small = path.stat().st_size <= CHECKED
        fault = str(db.execute("PRAGMA quick_check(1)").fetchone()[0]).splitlines()[-1] if small else "ok"
        if fault != "ok":
            raise HistoryError(
                f"the history {path} is damaged ({fault}) and was left as it is: restore it from a backup, "
                "or move it away"
            )
    finally:
        db.close()


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    if db.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS):
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        # another console may have done it meanwhile
        version: int = db.execute("PRAGMA user_version").fetchone()[0]
        for script in MIGRATIONS[version:]:
            for statement in script.split(";"):
                if statement.strip():
                    db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {max(version, len(MIGRATIONS))}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def _broken(path: Path, problem: sqlite3.Error) -> HistoryError:
    return HistoryError(
        f"the history {path} cannot be used ({problem}) and was left as it is: restore it from a backup, "
        "or move it away"
    )
