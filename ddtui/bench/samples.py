"""What a comparison takes from a run: per prompt, what was counted and how long it took. From records, or
from the raw file of a burst.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ddtui.bench import jobs, metrics
from ddtui.bench.model import Cell, Outcome, RequestRecord
from ddtui.bench.quality import Output


@dataclass(frozen=True, slots=True)
class Sample:
    """One prompt's measured request. Times in seconds; None: not known."""

    tokens: int | None
    slot: float  # seconds that it held one of the slots
    decode: float | None  # from the first token-bearing chunk to the last
    after: int | None  # tokens after the first chunk's
    ttft: float | None
    committed: float | None  # tokens by verify steps
    verify_steps: float | None
    output: str = ""  # identity of the output; "": not kept
    length: int = 0  # of the output, in tokens or characters


Samples = Mapping[int, Sample]  # by prompt


def of_records(cell: Cell, records: Iterable[RequestRecord]) -> dict[int, Sample]:
    """The requests that count: as for the point, without the first wave and the drain."""
    kept = tuple(records)
    run = metrics.Run(cell, 0.0, 0.0, kept, _unfilled(kept), None, 0, final=True)
    return {record.index: _sample(record) for record in metrics.measured(run)[0]}


def read(path: str | Path) -> dict[Cell, dict[int, Sample]]:
    """By cell, from a burst's raw file; empty where the file is gone. Lines that were cut are passed over."""
    return {cell: of_records(cell, found) for cell, found in records(path).items()}


def outputs(path: str | Path, cell: Cell) -> list[Output]:
    """What was generated in that cell, by prompt; empty where the file is gone."""
    found = [record for record in records(path).get(cell, []) if record.outcome is Outcome.OK]
    return [
        Output(str(record.index), record.text, record.output_ids)
        for record in sorted(found, key=lambda record: record.index)
    ]


def records(path: str | Path) -> dict[Cell, list[RequestRecord]]:
    """All request records of a burst's raw file, by cell."""
    found: dict[Cell, list[RequestRecord]] = {}
    try:
        lines = Path(path).read_text("utf-8", "replace").splitlines() if path else []
    except OSError:
        return {}
    for line in lines:
        if not line.startswith('{"kind":"record"'):
            continue
        try:
            told: dict[str, Any] = json.loads(line)
            cell = Cell(*told["cell"])
            found.setdefault(cell, []).append(jobs.record(told, cell))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _unfilled(records: tuple[RequestRecord, ...]) -> float | None:
    """When the first slot found nothing more to send: the first end after the last sending."""
    if not records:
        return None
    last = max(record.sent for record in records)
    ends = [record.ended for record in records if record.ended is not None and record.ended > last]
    return min(ends) if ends else None


def _sample(record: RequestRecord) -> Sample:
    known = metrics.committed(record)
    decode = after = None
    if metrics.tpot_seconds(record) is not None:
        assert record.first is not None and record.last is not None and record.output_tokens is not None
        decode, after = record.last - record.first, record.output_tokens - (record.first_tokens or 1)
    said = record.output_ids or record.text
    return Sample(
        tokens=record.output_tokens,
        slot=(record.ended or record.sent) - record.sent,
        decode=decode,
        after=after,
        ttft=record.first - record.sent if record.first is not None else None,
        committed=known[1] if known else None,
        verify_steps=known[2] if known else None,
        output=hashlib.sha256(repr(said).encode()).hexdigest()[:16] if said else "",
        length=len(said),
    )
