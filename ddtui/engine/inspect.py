"""One layer from a local file, offline: what `ddtui inspect drafter|log|server-info FILE` shows.

Each function gives an object for --json and the lines of text that say the same.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

from ddtui.engine import answers, evidence, failure, recognise, startup
from ddtui.engine import carried as carried_lines
from ddtui.engine import drafter as drafters
from ddtui.engine import log as logs
from ddtui.engine.log import Kind, LogLine
from ddtui.sanitize import sanitize

Inspected = tuple[dict[str, Any], list[str]]


def drafter(data: bytes, path: str) -> Inspected:
    """A drafter's config.json. A file that cannot be used gives `problems`."""
    try:
        config = drafters.parse(data, path)
    except drafters.DrafterError as error:
        seems = recognise.looks_like(data)
        problem = _no_drafter(path, seems) if seems in recognise.OF_A_SERVER else str(error)
        return {"file": path, "problems": [problem]}, [problem]
    if not recognise.is_config(config.raw):
        problem = _no_drafter(path, recognise.looks_like(data))
        return {"file": path, "problems": [problem]}, [problem]
    fields = {
        field.name: getattr(config, field.name) for field in dataclasses.fields(config) if field.name != "raw"
    }
    report = {
        **fields,
        "file": fields.pop("path"),
        "family": str(config.family),
        "rope": dataclasses.asdict(config.rope),
        "layers": [dataclasses.asdict(layer) for layer in config.layers],
        "sliding_layers": config.sliding_layers,
        "full_layers": config.full_layers,
        "problems": [],
    }
    report.pop("path", None)
    return report, [sanitize(line) for line in _drafter_lines(config)]


def _no_drafter(path: str, seems: str) -> str:
    return f"{path} is no drafter's config.json but {seems}. Give the config.json in the drafter's folder"


def _drafter_lines(config: drafters.DrafterConfig) -> list[str]:
    rope = config.rope
    scaled = f", {rope.kind} ×{rope.factor:g} on {rope.original_max_position}" if rope.factor else ""
    rows = [
        ("family", f"{config.family}  ({', '.join(config.architectures) or 'no architecture given'})"),
        ("layers", f"{config.num_hidden_layers}: {config.sliding_layers} sliding, {config.full_layers} full"),
        ("window", f"{config.window or 'none'}  ({config.why})"),
        ("sliding_window", config.sliding_window),
        ("use_sliding_window", config.use_sliding_window),
        ("max_window_layers", config.max_window_layers),
        ("block size", config.block_size),
        ("target layers", f"{_shown(config.target_layer_ids)} of {_shown(config.num_target_layers)}"),
        ("mask token", config.mask_token_id),
        ("max position", config.max_position_embeddings),
        ("rope", f"theta {_shown(rope.theta)}{scaled}"),
        ("draft KV", f"{_shown(config.kv_bytes_per_token())} bytes a token on one GPU at 16 bit"),
    ]
    lines = [f"{name:20}{_shown(value)}" for name, value in rows]
    lines += [
        f"  layer {layer.index:<3} {'slides' if layer.slides else 'full':7}{layer.why}"
        for layer in config.layers
    ]
    return lines + [f"warning: {text}" for text in config.warnings]


def server_info(data: bytes, path: str) -> Inspected:
    """A saved answer of /server_info, with or without its HTTP head. Secrets are redacted."""
    try:
        info = answers.server_info(recognise.body(data))
    except (ValueError, RecursionError) as error:
        text = f"{path} is not an answer of /server_info: {_refused(data, error)}"
        return {"file": path, "problems": [text]}, [text]
    report = {field.name: getattr(info, field.name) for field in dataclasses.fields(info)}
    report["dp"] = len(info.dp)
    del report["raw"]
    speculative = {
        name: value for name, value in info.arguments.items() if "specul" in name and value is not None
    }
    rows = [
        ("version", info.version),
        *speculative.items(),
        ("draft window", info.draft_window if info.has_draft_window else "not in this version's answer"),
        ("accept length", info.accept_length),
        ("last throughput", info.gen_throughput),
        ("weights, GB", info.weight_gb),
        ("KV cache, GB", info.kv_gb),
        ("graphs, GB", info.graph_gb),
        ("token capacity", info.token_capacity),
        ("max running", info.max_running_requests),
        ("DP ranks", len(info.dp)),
    ]
    lines = [sanitize(f"{name:45}{_shown(value)}") for name, value in rows]
    return {"file": path, **report, "problems": []}, lines


def _refused(data: bytes, error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    return f"it is {recognise.looks_like(data)}. Save one with `curl http://HOST:PORT/server_info > FILE`"


def log(data: bytes, path: str) -> Inspected:
    """A server's log, as it is or as journalctl, docker or kubectl gave it: how far the last start came, what
    it proves, why it failed. A text without a line of SGLang gives `problems`.
    """
    carried = carried_lines.last_start(data.decode("utf-8", "replace"))
    lines = carried.lines
    read = list(logs.parse_all(lines))
    start = startup.Start()
    for line in read:
        start = start.see(line)
    found = evidence.of_start(lines)
    failed = failure.explain(lines)
    if failed is None and not recognise.is_log(read):
        text = _no_log(data, path)
        return {"file": path, "problems": [text]}, [text]
    counts = Counter(str(line.kind) for line in read)
    decode = [line for line in read if line.kind is Kind.DECODE]
    report: dict[str, Any] = {
        "file": path,
        "phase": str(start.phase),
        "fraction": round(start.fraction, 4),
        "text": start.text,
        "ready": start.ready_line_seen,
        "http_up": start.http_up,
        "evidence": _evidence(found),
        "failure": dataclasses.asdict(failure.shortened(failed)) if failed else None,
        "carrier": carried.carrier,
        "earlier_starts": carried.earlier_starts,
        "lines_without_text": carried.nulls,
        "decode_lines": len(decode),
        "accept_len": _mean(decode, "accept_len"),
        "kinds": dict(sorted(counts.items())),
        "problems": [failed.cause] if failed else [],
    }
    shown = [*_carried_words(carried), *_log_lines(start, found, failed, report)]
    return report, [sanitize(line) for line in shown]


def _carried_words(carried: carried_lines.Carried) -> list[str]:
    words = []
    if carried.earlier_starts:
        which = (
            "an earlier start" if carried.earlier_starts == 1 else f"{carried.earlier_starts} earlier starts"
        )
        words.append(f"the last start in this file; {which} left out")
    if carried.nulls:
        words.append(
            f"lines without their text: {carried.nulls}; journalctl shows long ones and progress bars with -a"
            " only, and the server_args line is a long one"
        )
    return words


def _no_log(data: bytes, path: str) -> str:
    if not data.strip():
        return f"{path} is empty: save the log with `journalctl -u UNIT -o json -a > FILE`"
    return (
        f"{path} has no line that SGLang writes: it is {recognise.looks_like(data)}. Give the server's log,"
        " or what `journalctl -u UNIT -o json -a` prints"
    )


def _evidence(found: evidence.JournalEvidence) -> dict[str, Any]:
    return {
        "server_args": found.server_args,
        "draft_runner": found.draft_runner.line if found.draft_runner else None,
        "draft_window": found.draft_window,
        "compact_cache": found.compact_cache,
        "block_size": found.block_size,
        "draft_backend": found.draft_backend,
        "ddtree": found.ddtree.line if found.ddtree else None,
        "kv_pools": [dict(pool.fields) for pool in found.kv_pools],
        "overrides": [line.line for line in found.overrides],
        "limits": dict(found.limits.fields) if found.limits else None,
        "graph_sizes": found.graph_sizes,
    }


def _log_lines(
    start: startup.Start,
    found: evidence.JournalEvidence,
    failed: failure.Failure | None,
    report: dict[str, Any],
) -> list[str]:
    lines = [f"start: {start.fraction:.0%}, {start.text}"]
    if found.draft_runner is None:
        lines.append("draft window: no draft runner line in this log")
    elif found.compact_cache:
        lines.append(f"draft window: {found.draft_window}, in force (compact cache)")
    else:
        lines.append("draft window: none in force (no compact cache)")
    quoted = [found.draft_runner, found.ddtree, found.limits, *found.kv_pools, *found.overrides]
    lines += [f"  {line.line}" for line in quoted if line]
    if report["decode_lines"]:
        mean = report["accept_len"]
        accept = f", mean accept len {mean:.2f}" if mean else ""
        lines.append(f"decode lines: {report['decode_lines']}{accept}")
    if failed:
        short = failure.shortened(failed)
        lines += [
            f"failed ({failed.kind}): {failed.cause}",
            *(f"  {line}" for line in short.evidence),
            failed.advice,
        ]
    return lines


def _mean(lines: list[LogLine], key: str) -> float | None:
    values = [line.fields[key] for line in lines if isinstance(line.fields.get(key), float)]
    return sum(values) / len(values) if values else None


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:g}"
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
