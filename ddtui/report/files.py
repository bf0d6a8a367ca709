"""A report as files for other tools: CSV, JSON, Parquet, and JSONL in the shape of SGLang's bench_serving."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ddtui.bench import samples
from ddtui.bench.model import Outcome, Point
from ddtui.report.collect import Entry, Report, flags, rows


class MissingPackage(Exception):
    """A form of report needs a package that is not installed: one sentence with what to do."""


def as_csv(report: Report) -> str:
    """A row for each cell of each step."""
    table = rows(report)
    file = io.StringIO()
    writer = csv.DictWriter(file, list(table[0]) if table else ["step"], lineterminator="\n")
    writer.writeheader()
    for row in table:
        writer.writerow({name: _inert(value) for name, value in row.items()})
    return file.getvalue()


def as_json(report: Report) -> str:
    """Everything, with each step's flags."""
    whole = {
        "schema": "ddtui/report/1",
        "title": report.title,
        "at": report.at,
        "simulated": report.simulated,
        "sentences": report.sentences,
        "steps": [
            {
                "host": step.host,
                "unit": step.unit,
                "step": step.number,
                "simulated": step.simulated,
                "knobs": step.setting.knobs,
                "sglang": step.setting.engine,
                "model": step.setting.target,
                "drafter": step.setting.drafter,
                "gpu": step.setting.gpu,
                "flags": flags(step),
                "verdicts": step.verdicts,
                "note": step.note,
                "output": [{**asdict(one), "wrong": one.wrong} for one in report.checks.get(step.id, ())],
            }
            for step in report.steps
        ],
        "cells": rows(report),
        "advice": [
            {"text": one.text, "knob": one.knob, "value": one.value, "evidence": one.evidence}
            for one in report.advice
        ],
        "warnings": report.warnings,
        "commands": report.commands,
    }
    return json.dumps(whole, ensure_ascii=False, default=str) + "\n"


def write_parquet(report: Report, path: Path) -> None:
    """The rows as Parquet. Raises MissingPackage, OSError."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingPackage(
            "Parquet needs pyarrow: pip install 'ddtui[parquet]', or take --format csv"
        ) from None
    table = arrow.Table.from_pylist(rows(report))
    table = table.replace_schema_metadata({b"ddtui.simulated": str(report.simulated).lower().encode()})
    parquet.write_table(table, path)


def as_bench_serving(report: Report, *, details: bool = False) -> str:
    """A line for each cell, with the keys of `sglang.bench_serving --output-file` (0.5.11), as far as
    ddtui measures the same thing; what it does not is null. `details`: each request's numbers, from the
    raw records.
    """
    lines = [json.dumps(bench_serving(entry, details), ensure_ascii=False) for entry in report.entries]
    return "\n".join(lines) + ("\n" if lines else "")


def bench_serving(entry: Entry, details: bool = False) -> dict[str, Any]:
    """One cell as bench_serving says it. Its `duration` is the whole wall time; so are its rates."""
    point = entry.point
    total_in = (point.prompt_tokens or 0) * point.ok
    total_out = (point.output_tokens or 0) * point.ok
    whole = point.output_rate_whole
    seconds = total_out / whole if whole else point.seconds

    def spread(name: str, part: str) -> float | None:
        found = point.spreads.get(name)
        return getattr(found, part) if found is not None else None

    made: dict[str, Any] = {
        "tag": f"ddtui step {entry.step.number}"
        + (" SIMULATED" if entry.step.simulated or entry.run.simulated else ""),
        "backend": "sglang" if entry.run.spec.get("endpoint", "generate") == "generate" else "sglang-oai",
        "dataset_name": point.cell.workload,
        "request_rate": "inf",
        "max_concurrency": point.cell.concurrency,
        "sharegpt_output_len": None,
        "random_input_len": point.cell.context,
        "random_output_len": entry.run.spec.get("output"),
        "random_range_ratio": 1.0,
        "simulated": entry.step.simulated or entry.run.simulated,
        "server_info": dict(flags(entry.step)),
        "duration": seconds,
        "completed": point.ok,
        "total_input_tokens": round(total_in),
        "total_input_text_tokens": round(total_in),
        "total_input_vision_tokens": 0,
        "total_output_tokens": round(total_out),
        "total_output_tokens_retokenized": None,
        "request_throughput": point.ok / seconds if seconds else None,
        "input_throughput": total_in / seconds if seconds else None,
        "output_throughput": whole,
        "total_throughput": (total_in + total_out) / seconds if seconds else None,
    }
    for ours, theirs, parts in (
        ("e2e_ms", "e2e_latency_ms", ("mean", "median", "p90", "p99")),
        ("ttft_ms", "ttft_ms", ("mean", "median", "p99")),
        ("tpot_ms", "tpot_ms", ("mean", "median", "p99")),
        ("itl_ms", "itl_ms", ("mean", "median", "p95", "p99")),
    ):
        made |= {f"{part}_{theirs}": spread(ours, part) for part in parts}
    made |= {
        "concurrency": point.cell.concurrency,
        "accept_length": point.accept_length.value if point.accept_length else None,
        "max_output_tokens_per_s": None,
        "max_concurrent_requests": point.cell.concurrency,
    }
    return made | (_details(entry.run.raw, point) if details else {})


def _details(raw: str, point: Point) -> dict[str, Any]:
    records = [record for record in samples.records(raw).get(point.cell, []) if not record.warm_up]
    return {
        "input_lens": [record.prompt_tokens for record in records],
        "output_lens": [record.output_tokens for record in records],
        "ttfts": [record.first - record.sent if record.first is not None else 0.0 for record in records],
        "itls": [list(record.step_gaps) for record in records],
        "generated_texts": [record.text for record in records],
        "errors": ["" if record.outcome is Outcome.OK else record.message for record in records],
    }


def _inert(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula gets an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t" and value[:1] else value
