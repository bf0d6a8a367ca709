"""What SGLang's HTTP API answers, typed, tolerant of versions (0.5.9 to 0.5.23), secrets redacted."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ddtui import redact


class UnknownShape(ValueError):
    """An answer that is not what this path answers. `str()` is one sentence."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """GET /server_info. None: not in this version's answer, or not yet known to the server."""

    version: str | None
    arguments: Mapping[str, Any]  # resolved server arguments by field name
    accept_length: float | None  # since the last flush, all clients; mean over the DP ranks that have one
    gen_throughput: float | None  # tok/s by the last decode line of each DP rank, summed
    dp: tuple[Mapping[str, Any], ...]  # internal_states, one for each DP rank
    weight_gb: float | None  # of one DP rank's GPU
    kv_gb: float | None
    graph_gb: float | None
    token_capacity: int | None  # summed over DP ranks
    max_running_requests: int | None  # effective, for each DP rank
    max_total_num_tokens: int | None
    draft_window: int | None  # under either of its names; None: no window, or no such argument
    raw: Mapping[str, Any]

    def argument(self, name: str) -> Any:
        """A resolved argument by its field name; None: unset or unknown."""
        return self.arguments.get(name)

    @property
    def has_draft_window(self) -> bool:
        """Whether this version reports a draft window at all."""
        return any(name in self.arguments for name in WINDOW_FIELDS)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    model_path: str
    tokenizer_path: str | None
    model_type: str | None
    architectures: tuple[str, ...]
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Loads:
    """What runs and waits now, summed over DP ranks."""

    running: int | None
    waiting: int | None
    token_usage: float | None  # the fullest rank's, 0..1
    gen_throughput: float | None
    accept_length: float | None
    source: str  # the path that answered
    raw: Any


@dataclass(frozen=True, slots=True)
class Generated:
    """One answer of POST /generate. Speculative counts: None where this version does not give them."""

    text: str
    output_ids: tuple[int, ...]
    finish: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    verify_steps: int | None
    accepted_drafts: int | None
    proposed_drafts: int | None
    accept_histogram: tuple[int, ...] | None
    meta: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tokens:
    ids: tuple[int, ...]
    max_model_len: int | None


Metrics = Mapping[str, tuple[tuple[Mapping[str, str], float], ...]]

WINDOW_FIELDS = ("speculative_draft_window_size", "speculative_dflash_draft_window_size")
# One count had several names: 0.5.9-10, 0.5.11, from 0.5.12 on.
ACCEPTED = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
PROPOSED = ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
HISTOGRAM = ("spec_correct_drafts_histogram", "spec_accept_histogram")


def is_server_info(answer: Mapping[str, Any]) -> bool:
    """All releases put the server's arguments there, beside or within `internal_states`."""
    return "internal_states" in answer or "server_args" in answer or {"model_path", "port"} <= answer.keys()


def is_model_info(answer: Mapping[str, Any]) -> bool:
    return {"model_path", "is_generation"} <= answer.keys() and not is_server_info(answer)


def server_info(answer: Any) -> ServerInfo:
    """Raises UnknownShape."""
    if not isinstance(answer, dict) or not is_server_info(answer):
        raise UnknownShape("It is not what /server_info of SGLang answers.")
    raw = redacted(answer)
    states = tuple(state for state in _list(raw.get("internal_states")) if isinstance(state, dict))
    memory = [state.get("memory_usage") for state in states]
    usage = next((item for item in memory if isinstance(item, dict)), {})
    nested = raw.get("server_args")
    arguments = dict(nested) if isinstance(nested, dict) else {}
    arguments |= {
        name: value for name, value in raw.items() if name not in ("internal_states", "server_args")
    }
    capacities = [_int(item.get("token_capacity")) for item in memory if isinstance(item, dict)]
    lengths = _numbers(state.get("avg_spec_accept_length") for state in states)
    rates = _numbers(state.get("last_gen_throughput") for state in states)
    return ServerInfo(
        version=_text(raw.get("version")),
        arguments=arguments,
        accept_length=sum(lengths) / len(lengths) if lengths else None,
        gen_throughput=sum(rates) if rates else None,
        dp=states,
        weight_gb=_gb(usage.get("weight")),
        kv_gb=_gb(usage.get("kvcache")),
        graph_gb=_gb(usage.get("graph")),
        token_capacity=sum(n for n in capacities if n is not None) if any(capacities) else None,
        max_running_requests=_first(
            *(state.get("effective_max_running_requests_per_dp") for state in states),
            raw.get("max_running_requests"),
        ),
        max_total_num_tokens=_int(raw.get("max_total_num_tokens")),
        draft_window=_first(*(arguments.get(name) for name in WINDOW_FIELDS)),
        raw=raw,
    )


def model_info(answer: Any) -> ModelInfo:
    """Raises UnknownShape."""
    if not isinstance(answer, dict) or not isinstance(answer.get("model_path"), str):
        raise UnknownShape("It is not what /model_info of SGLang answers.")
    return ModelInfo(
        model_path=answer["model_path"],
        tokenizer_path=_text(answer.get("tokenizer_path")),
        model_type=_text(answer.get("model_type")),
        architectures=tuple(str(name) for name in _list(answer.get("architectures"))),
        raw=redacted(answer),
    )


def loads(answer: Any, source: str) -> Loads:
    """/v1/loads, or the older /get_load. Raises UnknownShape."""
    ranks = answer.get("loads") if isinstance(answer, dict) else answer
    if not isinstance(ranks, list) or not all(isinstance(rank, dict) for rank in ranks):
        raise UnknownShape(f"It is not what {source} of SGLang answers.")
    waiting = _numbers(rank.get("num_waiting_reqs") for rank in ranks)
    running = _numbers(rank.get("num_running_reqs") for rank in ranks)
    if not running:  # /get_load counts both together
        both = _numbers(rank.get("num_reqs") for rank in ranks)
        running = [sum(both) - sum(waiting)] if both else []
    speculative = [rank.get("speculative") for rank in ranks]
    lengths = _numbers(item.get("accept_length") for item in speculative if isinstance(item, dict))
    rates = _numbers(rank.get("gen_throughput") for rank in ranks)
    return Loads(
        running=int(sum(running)) if running else None,
        waiting=int(sum(waiting)) if waiting else None,
        token_usage=max(_numbers(rank.get("token_usage") for rank in ranks), default=None),
        gen_throughput=sum(rates) if rates else None,
        accept_length=sum(lengths) / len(lengths) if lengths else None,
        source=source,
        raw=answer,
    )


def loads_by_metrics(metrics: Metrics) -> Loads:
    """The same from /metrics, which keeps the last decode line's values for up to 30 s of idleness."""
    running, waiting = total(metrics, "sglang:num_running_reqs"), total(metrics, "sglang:num_queue_reqs")
    lengths = [value for _, value in metrics.get("sglang:spec_accept_length", ()) if value > 0]
    return Loads(
        running=None if running is None else int(running),
        waiting=None if waiting is None else int(waiting),
        token_usage=max((value for _, value in metrics.get("sglang:token_usage", ())), default=None),
        gen_throughput=total(metrics, "sglang:gen_throughput"),
        accept_length=sum(lengths) / len(lengths) if lengths else None,
        source="/metrics",
        raw=None,
    )


def generated(answer: Any) -> Generated:
    """One object of /generate. Raises UnknownShape."""
    if isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    meta = answer.get("meta_info") if isinstance(answer, dict) else None
    if not isinstance(answer, dict) or not isinstance(meta, dict):
        raise UnknownShape("It is not what /generate of SGLang answers.")
    finish = meta.get("finish_reason")
    histogram = next((meta[name] for name in HISTOGRAM if isinstance(meta.get(name), list)), None)
    return Generated(
        text=_text(answer.get("text")) or "",
        output_ids=tuple(n for n in _list(answer.get("output_ids")) if isinstance(n, int)),
        finish=_text(finish.get("type")) if isinstance(finish, dict) else _text(finish),
        prompt_tokens=_int(meta.get("prompt_tokens")),
        completion_tokens=_int(meta.get("completion_tokens")),
        cached_tokens=_int(meta.get("cached_tokens")),
        verify_steps=_int(meta.get("spec_verify_ct")),
        accepted_drafts=_first(*(meta.get(name) for name in ACCEPTED)),
        proposed_drafts=_first(*(meta.get(name) for name in PROPOSED)),
        accept_histogram=tuple(int(n) for n in _numbers(histogram)) if histogram is not None else None,
        meta=meta,
    )


def behind(body: bytes) -> dict[int, float] | None:
    """How many nats each of the likeliest first tokens is behind the best: `meta_info.output_top_logprobs`,
    for each token a list of [logprob, id, text]. None: it is not in this answer of /generate.
    """
    try:
        meta = json.loads(body)["meta_info"]
        known = {int(one[1]): float(one[0]) for one in meta["output_top_logprobs"][0]}
        best = max(known.values())
    except (ValueError, KeyError, IndexError, TypeError):
        return None
    return {token: best - logprob for token, logprob in known.items()} if len(known) > 1 else None


def tokens(answer: Any) -> Tokens:
    """POST /tokenize of one text. Raises UnknownShape."""
    ids = answer.get("tokens") if isinstance(answer, dict) else None
    if isinstance(ids, list) and len(ids) == 1 and isinstance(ids[0], list):
        ids = ids[0]
    if not isinstance(ids, list) or not all(isinstance(n, int) for n in ids):
        raise UnknownShape("It is not what /tokenize of SGLang answers.")
    return Tokens(tuple(ids), _int(answer.get("max_model_len")))


# --- metrics ------------------------------------------------------------------------------------------------

_SAMPLE = re.compile(r"(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?\s*$")
_LABEL = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}


def metrics(text: str) -> Metrics:
    """Prometheus' text format: name → ((labels, value), …). Lines that do not fit are left out."""
    found: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for line in text.splitlines():
        sample = None if line.startswith("#") else _SAMPLE.match(line.strip())
        if not sample:
            continue
        try:
            value = float(sample["value"])
        except ValueError:
            continue
        labels = {
            name: re.sub(r"\\.", lambda escaped: _ESCAPES.get(escaped[0], escaped[0]), written)
            for name, written in _LABEL.findall(sample["labels"] or "")
        }
        found.setdefault(sample["name"], []).append((labels, value))
    return {name: tuple(samples) for name, samples in found.items()}


def total(metrics: Metrics, name: str, **labels: str) -> float | None:
    """The sum over all samples with these labels, of TP ranks only the first. None: absent."""
    values = [
        value
        for found, value in metrics.get(name, ())
        if all(found.get(key) == wanted for key, wanted in labels.items())
        and found.get("tp_rank", "0") == "0"
    ]
    return sum(values) if values else None


# --- values -------------------------------------------------------------------------------------------------


def redacted(value: Any, name: str = "") -> Any:
    """The same, with secrets masked by the names that they stand under."""
    if isinstance(value, dict):
        return {key: redacted(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [redacted(item, name) for item in value]
    return redact.value(name, value) if isinstance(value, str) else value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _int(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return int(value)


def _first(*values: Any) -> int | None:
    return next((number for number in map(_int, values) if number is not None), None)


def _numbers(values: Iterable[Any]) -> list[float]:
    return [
        float(value)
        for value in values
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    ]


def _gb(value: Any) -> float | None:
    """Some releases give one number, 0.5.22 and later one for each kind of graph."""
    if isinstance(value, dict):
        parts = [part for part in (_gb(item) for item in value.values()) if part is not None]
        return sum(parts) if parts else None
    found = _numbers([value])
    return found[0] if found else None
