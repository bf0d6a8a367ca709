"""The history's tables, as migrations: the list only ever grows at its end."""

from __future__ import annotations

# "ddtu": written into every history file (PRAGMA application_id), so that no foreign file is taken for one
APPLICATION = 0x64647475

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE hosts (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        unit TEXT NOT NULL,
        UNIQUE (name, unit)
    );
    CREATE TABLE steps (
        id INTEGER PRIMARY KEY,
        host INTEGER NOT NULL REFERENCES hosts ON DELETE CASCADE,
        number INTEGER NOT NULL,
        identity TEXT NOT NULL,
        at REAL NOT NULL,
        setting TEXT NOT NULL,
        verdicts TEXT NOT NULL,
        simulated INTEGER NOT NULL,
        words TEXT NOT NULL,
        UNIQUE (host, number),
        UNIQUE (host, identity)
    );
    CREATE INDEX steps_at ON steps (at);
    CREATE TABLE knobs (
        step INTEGER NOT NULL REFERENCES steps ON DELETE CASCADE,
        name TEXT NOT NULL,
        value TEXT,
        PRIMARY KEY (step, name)
    ) WITHOUT ROWID;
    CREATE TABLE changes (
        id TEXT PRIMARY KEY,
        host INTEGER NOT NULL REFERENCES hosts ON DELETE CASCADE,
        step INTEGER,
        at REAL NOT NULL,
        phase TEXT NOT NULL,
        result TEXT NOT NULL,
        record TEXT NOT NULL
    );
    CREATE INDEX changes_host ON changes (host, at);
    CREATE TABLE starts (
        id INTEGER PRIMARY KEY,
        host INTEGER NOT NULL REFERENCES hosts ON DELETE CASCADE,
        step INTEGER,
        at REAL NOT NULL,
        seconds REAL,
        result TEXT NOT NULL
    );
    CREATE INDEX starts_host ON starts (host, at);
    CREATE TABLE bursts (
        id TEXT PRIMARY KEY,
        host INTEGER NOT NULL REFERENCES hosts ON DELETE CASCADE,
        step INTEGER,
        at REAL NOT NULL,
        state TEXT NOT NULL,
        raw TEXT NOT NULL,
        simulated INTEGER NOT NULL,
        note TEXT NOT NULL,
        burst TEXT NOT NULL
    );
    CREATE INDEX bursts_host ON bursts (host, at);
    CREATE INDEX bursts_step ON bursts (host, step, at);
    CREATE INDEX bursts_at ON bursts (at);
    CREATE TABLE points (
        id INTEGER PRIMARY KEY,
        burst TEXT NOT NULL REFERENCES bursts ON DELETE CASCADE,
        host INTEGER NOT NULL,
        step INTEGER,
        concurrency INTEGER NOT NULL,
        context INTEGER NOT NULL,
        workload TEXT NOT NULL,
        at REAL NOT NULL,
        trusted INTEGER NOT NULL,
        output_rate REAL,
        accept_length REAL,
        step_ms REAL,
        point TEXT NOT NULL
    );
    CREATE INDEX points_burst ON points (burst);
    CREATE INDEX points_cell ON points (host, step, concurrency, context, workload, at);
    CREATE TABLE quality (
        id INTEGER PRIMARY KEY,
        host INTEGER NOT NULL REFERENCES hosts ON DELETE CASCADE,
        step INTEGER,
        at REAL NOT NULL,
        result TEXT NOT NULL
    );
    CREATE INDEX quality_step ON quality (host, step, at);
    CREATE TABLE aa_runs (
        id INTEGER PRIMARY KEY,
        host INTEGER NOT NULL REFERENCES hosts ON DELETE CASCADE,
        load TEXT NOT NULL,
        at REAL NOT NULL,
        means TEXT NOT NULL
    );
    CREATE INDEX aa_runs_load ON aa_runs (host, load, at);
    CREATE TABLE notes (
        id INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        subject TEXT NOT NULL,
        of TEXT NOT NULL,
        text TEXT NOT NULL
    );
    CREATE INDEX notes_of ON notes (subject, of);
    """,
    """
    ALTER TABLE aa_runs ADD COLUMN series TEXT NOT NULL DEFAULT '';
    CREATE INDEX aa_runs_series ON aa_runs (series);
    CREATE TABLE sweeps (
        id TEXT PRIMARY KEY,
        host INTEGER NOT NULL REFERENCES hosts ON DELETE CASCADE,
        at REAL NOT NULL,
        state TEXT NOT NULL,
        sweep TEXT NOT NULL
    );
    CREATE INDEX sweeps_host ON sweeps (host, at);
    CREATE TABLE trials (
        sweep TEXT NOT NULL REFERENCES sweeps ON DELETE CASCADE,
        number INTEGER NOT NULL,
        trial TEXT NOT NULL,
        PRIMARY KEY (sweep, number)
    ) WITHOUT ROWID;
    """,
    "CREATE INDEX points_rate ON points (host, step, output_rate);",
)
