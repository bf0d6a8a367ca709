"""What the worker is given, and what it gives back as records. Pure."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

from ddtui.bench.growing import Prompts
from ddtui.bench.metrics import least_samples
from ddtui.bench.model import BurstSpec, Cell, Outcome, RequestRecord

STREAMS_PER_PROCESS = 128  # one process keeps up with so many (benchmarks/client_lag.py)
MOST_WAVES = 20  # of requests, or four times the least number, when the interval is not tight before
PREFILL = (
    1000.0  # prompt tokens/s that even a slow server prefills: the first answer may wait for all of them
)
PATHS = {"generate": "/generate", "completions": "/v1/completions", "chat": "/v1/chat/completions"}


def measured_requests(spec: BurstSpec, cell: Cell) -> int:
    """How many requests are sent at most after the first wave; the last ones only keep the load up."""
    tail = cell.concurrency - 1
    return tail + (spec.requests or max(4 * least_samples(cell.concurrency), MOST_WAVES * cell.concurrency))


def make(
    spec: BurstSpec,
    cell: Cell,
    prompts: Prompts,
    *,
    address: dict[str, Any],
    rid: str,
    api_key: str | None = None,
    model: str = "default",
    processes: int,
) -> list[dict[str, Any]]:
    """One job for each process, of which there are at most `processes`. The first wave, as many requests as
    run at once, is marked as warm-up.
    """
    head, tail = _body(spec, prompts, model)
    shards = max(1, min(processes, math.ceil(cell.concurrency / STREAMS_PER_PROCESS)))
    asked = [
        {
            "index": prompt.index,
            "rid": f"{rid}-{prompt.index}",
            "pieces": list(prompt.pieces),
            "warm_up": at < cell.concurrency,
        }
        for at, prompt in enumerate(prompts.prompts)
    ]
    first = spec.idle + cell.concurrency * cell.context / PREFILL
    least = spec.requests or least_samples(cell.concurrency)
    return [
        {
            "address": address,
            "host_header": f"{address.get('host') or 'localhost'}:{address.get('port') or 80}",
            "headers": [f"authorization: Bearer {api_key}"] if api_key else [],
            "api": spec.endpoint,
            "path": PATHS[spec.endpoint],
            "slots": len(range(shard, cell.concurrency, shards)),
            "pieces": list(prompts.pieces),
            "separator": "," if prompts.ids else "",
            "head": head,
            "tail": tail,
            "requests": asked[shard::shards],
            "minimum": math.ceil(least / shards),
            "precision": spec.precision * math.sqrt(shards) if spec.requests is None else None,
            "max_seconds": spec.max_seconds,
            "first": first,
            "idle": spec.idle,
            "deadline": first + spec.max_seconds + spec.idle,
            "abort": f"{rid}-",
            "give_up_after": max(8, 2 * len(range(shard, cell.concurrency, shards))),
        }
        for shard in range(shards)
    ]


def _body(spec: BurstSpec, prompts: Prompts, model: str) -> tuple[str, str]:
    """The request's JSON before and after the prompt's pieces."""
    opening, closing = ("[", "]") if prompts.ids else ('"', '"')
    if spec.endpoint == "generate":
        key = "input_ids" if prompts.ids else "text"
        sampling = {
            "temperature": spec.temperature,
            "max_new_tokens": spec.output,
            "ignore_eos": spec.ignore_eos,
        }
        return (
            f'{{"rid":"%rid%","{key}":{opening}',
            f'{closing},"stream":true,"sampling_params":{json.dumps(sampling)}}}',
        )
    common = {
        "model": model,
        "max_tokens": spec.output,
        "temperature": spec.temperature,
        "ignore_eos": spec.ignore_eos,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }
    rest = json.dumps(common)[1:]
    if spec.endpoint == "completions":
        return f'{{"rid":"%rid%","prompt":{opening}', f"{closing},{rest}"
    return f'{{"rid":"%rid%","messages":[{{"role":"user","content":{opening}', f"{closing}}}],{rest}"


def record(told: dict[str, Any], cell: Cell) -> RequestRecord:
    """A worker's record. Its times are nanoseconds and microseconds; here they are seconds."""
    arrivals: list[int] = told["arrivals"]
    counts: list[int | None] = told["counts"]
    sent = told["sent"] / 1e9
    known = bool(counts) and all(count is not None for count in counts)
    gaps = tuple((later - earlier) / 1e6 for earlier, later in pairwise(arrivals))
    steps = tuple((later or 0) - (earlier or 0) for earlier, later in pairwise(counts))
    return RequestRecord(
        cell=cell,
        index=told["index"],
        outcome=Outcome(told["outcome"]),
        message=told["message"],
        sent=sent,
        first=sent + arrivals[0] / 1e6 if arrivals else None,
        last=sent + arrivals[-1] / 1e6 if arrivals else None,
        first_tokens=counts[0] if counts else None,
        prompt_tokens=told["prompt_tokens"],
        output_tokens=told["output_tokens"],
        cached_tokens=told["cached_tokens"],
        verify_steps=told["verify_steps"],
        accepted_drafts=told["accepted_drafts"],
        accept_histogram=tuple(told["histogram"]) if told["histogram"] else None,
        step_gaps=gaps,
        step_tokens=steps if known else (),
        text=told["text"],
        finish=told["finish"],
        warm_up=told["warm_up"],
        ended=told["ended"] / 1e9 if told["ended"] else None,
        output_ids=tuple(told["output_ids"]),
        rid=told["rid"],
        retried=told["retried"],
    )
