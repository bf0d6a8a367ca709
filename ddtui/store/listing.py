"""Lists of what the history holds, light enough to be shown while it is typed: without settings, verdicts or
points.

`search` is words that must all be found; what they are looked for in is said at each list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ddtui.store import outputs
from ddtui.store.history import History, clause, like, place

MOST = 1000  # rows of a list


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step in a list."""

    id: int
    number: int
    host: str
    unit: str
    at: float  # unix time of the first time
    knobs: Mapping[str, str | None]
    simulated: bool
    bursts: int
    measured_at: float | None  # of its last burst
    rate: float | None  # tok/s, the greatest of any cell
    note: str = ""  # the newest one
    wrong: str = ""  # why its output is wrong
    flags: Mapping[str, Any] = field(default_factory=dict)  # `named` alone: those of SPECULATIVE


@dataclass(frozen=True, slots=True)
class BurstRow:
    """A burst in a list."""

    id: str
    host: str
    unit: str
    step: int | None
    at: float
    state: str
    simulated: bool
    cells: int
    rate: float | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A change in a list; `turns` in words."""

    id: str
    host: str
    unit: str
    at: float
    step: int | None
    phase: str
    result: str
    turns: tuple[str, ...]
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SweepRow:
    """A sweep, A/B or calibration in a list."""

    id: str
    host: str
    unit: str
    at: float
    state: str  # "running", "done", "stopped"
    order: str
    settings: int
    cells: int
    trials: int  # begun
    outcome: str  # the decision in a sentence, or why it stopped
    why: str = ""


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A note and what it is on, in words."""

    id: int
    at: float
    subject: str
    of: str
    on: str  # "step 7"
    text: str


def steps(
    history: History, host: str | None = None, unit: str | None = None, *, search: str = "", limit: int = MOST
) -> list[StepRow]:
    """Newest first. Searched: knobs and flags (`budget=16`), versions, notes, and `step 7`."""
    where, values = place(host, unit)
    for word in search.split():
        where.append(
            "(s.words LIKE ? ESCAPE '\\' OR s.number = ? OR EXISTS (SELECT 1 FROM notes n WHERE"
            " n.subject = 'step' AND n.of = CAST(s.id AS TEXT) AND n.text LIKE ? ESCAPE '\\'))"
        )
        values += [like(word), word if word.isdigit() else -1, like(word)]
    rows = history.read(
        "SELECT s.id, s.number, h.name, h.unit, s.at, s.simulated,"
        " (SELECT count(*) FROM bursts b WHERE b.host = s.host AND b.step = s.number) AS bursts,"
        " (SELECT max(b.at) FROM bursts b WHERE b.host = s.host AND b.step = s.number) AS measured_at,"
        " (SELECT max(p.output_rate) FROM points p WHERE p.host = s.host AND p.step = s.number) AS rate,"
        " (SELECT text FROM notes n WHERE n.subject = 'step' AND n.of = CAST(s.id AS TEXT)"
        " ORDER BY n.at DESC, n.id DESC LIMIT 1) AS note"
        " FROM steps s JOIN hosts h ON h.id = s.host"
        f"{clause(where)} ORDER BY s.at DESC, s.id DESC LIMIT ?",
        [*values, limit],
    )
    knobs = _knobs(history, [row["id"] for row in rows])
    wrong = outputs.wrong_steps(history, host, unit)
    return [
        StepRow(
            id=row["id"],
            number=row["number"],
            host=row["name"],
            unit=row["unit"],
            at=row["at"],
            knobs=knobs.get(row["id"], {}),
            simulated=bool(row["simulated"]),
            bursts=row["bursts"],
            measured_at=row["measured_at"],
            rate=row["rate"],
            note=row["note"] or "",
            wrong=wrong.get(row["id"], ""),
        )
        for row in rows
    ]


SPECULATIVE = ("speculative_algorithm", "speculative_dflash_block_size", "speculative_num_draft_tokens")


def named(history: History, host: str, unit: str) -> list[StepRow]:
    """All steps with no more than their knobs and SPECULATIVE flags, oldest first: what a chart names its
    points by, and advice goes by."""
    paths = ", ".join(f"'$.flags.{name}'" for name in SPECULATIVE)
    rows = history.read(
        f"SELECT s.id, s.number, s.at, s.simulated, json_extract(s.setting, {paths}) AS flags"
        " FROM steps s JOIN hosts h ON h.id = s.host WHERE h.name = ? AND h.unit = ? ORDER BY s.number",
        [host, unit],
    )
    knobs = _knobs(history, [row["id"] for row in rows])
    return [
        StepRow(
            row["id"], row["number"], host, unit, row["at"], knobs.get(row["id"], {}), bool(row["simulated"]),
            bursts=0, measured_at=None, rate=None,
            flags=dict(zip(SPECULATIVE, json.loads(row["flags"]), strict=True)),
        )
        for row in rows
    ]  # fmt: skip


def bursts(
    history: History,
    host: str | None = None,
    unit: str | None = None,
    *,
    step: int | None = None,
    search: str = "",
    limit: int = MOST,
) -> list[BurstRow]:
    """Newest first. Searched: id, state, `step 7`, what it was measured for, notes, workloads."""
    where, values = place(host, unit)
    if step is not None:
        where.append("s.step = ?")
        values.append(step)
    for word in search.split():
        where.append(
            "(s.id || ' ' || s.state || ' ' || s.note || ' step ' || ifnull(s.step, '') LIKE ? ESCAPE '\\'"
            " OR EXISTS (SELECT 1 FROM notes n WHERE n.subject = 'burst' AND n.of = s.id AND n.text LIKE ?"
            " ESCAPE '\\') OR EXISTS (SELECT 1 FROM points p WHERE p.burst = s.id AND p.workload LIKE ?"
            " ESCAPE '\\'))"
        )
        values += [like(word)] * 3
    rows = history.read(
        "SELECT s.id, h.name, h.unit, s.step, s.at, s.state, s.simulated, s.note,"
        " (SELECT count(*) FROM points p WHERE p.burst = s.id) AS cells,"
        " (SELECT max(p.output_rate) FROM points p WHERE p.burst = s.id) AS rate"
        f" FROM bursts s JOIN hosts h ON h.id = s.host{clause(where)} ORDER BY s.at DESC, s.id DESC LIMIT ?",
        [*values, limit],
    )
    return [
        BurstRow(
            id=row["id"],
            host=row["name"],
            unit=row["unit"],
            step=row["step"],
            at=row["at"],
            state=row["state"],
            simulated=bool(row["simulated"]),
            cells=row["cells"],
            rate=row["rate"],
            note=row["note"],
        )
        for row in rows
    ]


def changes(
    history: History, host: str | None = None, unit: str | None = None, *, search: str = "", limit: int = 200
) -> list[ChangeRow]:
    """Newest first. Searched: everything in the record."""
    where, values = place(host, unit)
    for word in search.split():
        where.append(
            "(s.record LIKE ? ESCAPE '\\' OR s.result LIKE ? ESCAPE '\\' OR s.phase LIKE ? ESCAPE '\\')"
        )
        values += [like(word)] * 3
    rows = history.read(
        f"SELECT s.*, h.name, h.unit FROM changes s JOIN hosts h ON h.id = s.host{clause(where)}"
        " ORDER BY s.at DESC, s.id DESC LIMIT ?",
        [*values, limit],
    )
    return [
        ChangeRow(
            id=row["id"],
            host=row["name"],
            unit=row["unit"],
            at=row["at"],
            step=row["step"],
            phase=row["phase"],
            result=row["result"],
            turns=tuple(_turns(record := json.loads(row["record"]))),
            record=record,
        )
        for row in rows
    ]


def sweeps(
    history: History, host: str | None = None, unit: str | None = None, *, search: str = "", limit: int = 200
) -> list[SweepRow]:
    """Newest first. Searched: everything in the plan and the outcome."""
    where, values = place(host, unit)
    for word in search.split():
        where.append("(s.sweep LIKE ? ESCAPE '\\' OR s.state LIKE ? ESCAPE '\\' OR s.id LIKE ? ESCAPE '\\')")
        values += [like(word)] * 3
    rows = history.read(
        "SELECT s.id, s.at, s.state, s.sweep, h.name, h.unit,"
        " (SELECT count(*) FROM trials t WHERE t.sweep = s.id) AS trials"
        f" FROM sweeps s JOIN hosts h ON h.id = s.host{clause(where)} ORDER BY s.at DESC, s.id DESC LIMIT ?",
        [*values, limit],
    )
    found = []
    for row in rows:
        kept: Mapping[str, Any] = json.loads(row["sweep"])
        plan: Mapping[str, Any] = kept.get("plan", {})
        found.append(
            SweepRow(
                id=row["id"],
                host=row["name"],
                unit=row["unit"],
                at=row["at"],
                state=row["state"],
                order=str(plan.get("order", "")),
                settings=len(plan.get("settings", ())),
                cells=len(plan.get("cells", ())),
                trials=row["trials"],
                outcome=str(kept.get("outcome") or kept.get("problem") or ""),
                why=str(plan.get("why", "")),
            )
        )
    return found


def notes(
    history: History, host: str | None = None, unit: str | None = None, *, search: str = "", limit: int = MOST
) -> list[NoteRow]:
    """Newest first; of one host those on its steps, bursts and changes. Searched: the text."""
    where, values = ["1"], list[Any]()
    for column, wanted in (("name", host), ("unit", unit)):
        if wanted is not None:
            where.append(f"coalesce(hs.{column}, hb.{column}, hc.{column}) = ?")
            values.append(wanted)
    for word in search.split():
        where.append("n.text LIKE ? ESCAPE '\\'")
        values.append(like(word))
    rows = history.read(
        "SELECT n.*, s.number FROM notes n"
        " LEFT JOIN steps s ON n.subject = 'step' AND s.id = CAST(n.of AS INTEGER)"
        " LEFT JOIN hosts hs ON hs.id = s.host"
        " LEFT JOIN bursts b ON n.subject = 'burst' AND b.id = n.of LEFT JOIN hosts hb ON hb.id = b.host"
        " LEFT JOIN changes c ON n.subject = 'change' AND c.id = n.of LEFT JOIN hosts hc ON hc.id = c.host"
        f"{clause(where)} ORDER BY n.at DESC, n.id DESC LIMIT ?",
        [*values, limit],
    )
    return [
        NoteRow(
            id=row["id"],
            at=row["at"],
            subject=row["subject"],
            of=row["of"],
            on=f"step {row['number']}" if row["number"] is not None else f"{row['subject']} {row['of']}",
            text=row["text"],
        )
        for row in rows
    ]


def _knobs(history: History, ids: Sequence[int]) -> dict[int, dict[str, str | None]]:
    found: dict[int, dict[str, str | None]] = {}
    marks = ", ".join("?" for _ in ids)
    for row in history.read(f"SELECT step, name, value FROM knobs WHERE step IN ({marks})", ids):
        found.setdefault(row["step"], {})[row["name"]] = row["value"]
    return found


def _turns(record: Mapping[str, Any]) -> Sequence[str]:
    """The turns of a kept change in words: "window 2048", "budget off"."""
    words = []
    for turn in record.get("turns", ()):
        value = turn.get("value")
        if turn.get("op") == "unset":
            value = "off"
        words.append(f"{turn.get('knob')} {'on' if value is None else value}")
    if not words and record.get("restores") is not None:
        words.append("back")
    return words
