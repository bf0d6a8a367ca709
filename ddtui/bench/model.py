"""The words of the bench room: cells, requests, points, bursts. All frozen."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One load: how many requests at once, how long their prompts, of what kind."""

    concurrency: int
    context: int  # prompt tokens
    workload: str = "code"


@dataclass(frozen=True, slots=True)
class BurstSpec:
    """What to measure: cells, one after another, on one step."""

    cells: tuple[Cell, ...]
    output: int = 256  # output tokens per request
    at: Literal["host", "here"] = "here"
    requests: int | None = None  # per cell; None: enough for the rule (32 prompts and 5 x concurrency)
    max_seconds: float = 120.0  # per cell
    temperature: float = 0.0
    seed: int = 0
    endpoint: Literal["generate", "completions", "chat"] = "generate"


class Outcome(StrEnum):
    OK = "ok"
    REFUSED = "refused"  # connection refused or reset before any answer
    HTTP_ERROR = "http error"
    SERVER_ERROR = "error in the stream"
    TRUNCATED = "truncated"
    STALLED = "stalled"
    EMPTY = "empty"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request as it was measured. Times are seconds on the worker's monotonic clock; None: unknown."""

    cell: Cell
    index: int  # which prompt of the workload
    outcome: Outcome
    message: str  # why not OK
    sent: float
    first: float | None  # first token-bearing chunk
    last: float | None  # last token-bearing chunk
    first_tokens: int | None  # tokens in the first chunk
    prompt_tokens: int | None
    output_tokens: int | None  # by the server's own count, never the requested length
    cached_tokens: int | None
    verify_steps: int | None  # spec_verify_ct
    accepted_drafts: int | None
    accept_histogram: tuple[int, ...] | None
    step_gaps: tuple[float, ...] = ()  # seconds between token-bearing chunks
    step_tokens: tuple[int, ...] = ()  # tokens in each chunk after the first
    text: str = ""  # the output
    finish: str | None = None
    warm_up: bool = False


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number that can be trusted: value, 95 % interval by bootstrap over prompts, sample count."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Point:
    """One cell, measured. None: not known."""

    cell: Cell
    started_at: float  # unix time
    seconds: float
    ok: int
    failed: int
    output_rate: Estimate | None  # tok/s of all streams in the steady window: the headline
    output_rate_whole: float | None  # tok/s over the whole wall time
    per_user_rate: Estimate | None  # tok/s of one stream, 1/TPOT
    ttft_ms: Estimate | None
    tpot_ms: Estimate | None
    step_ms: Estimate | None
    accept_length: Estimate | None
    e2e_ms: Estimate | None
    client_lag_p99_ms: float | None
    cached_tokens: int
    final: bool  # False while the burst still runs
    preview: bool  # too few samples to be a result
    marks: tuple[str, ...] = ()  # "client-limited", "cache hits", "other traffic", "failures 3 %", "no steady window"


class BurstState(StrEnum):
    WAITING = "waiting"
    PREPARING = "preparing"  # building prompts, tokenizing, warming up
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Burst:
    """A burst at one moment; published many times while it runs."""

    id: str
    step: int | None  # number of the step it measures
    spec: BurstSpec
    state: BurstState
    text: str = ""  # what is happening, or why it failed
    cell: Cell | None = None  # being measured now
    fraction: float = 0.0
    eta_seconds: float | None = None
    points: tuple[Point, ...] = field(default=())  # the current cell's point is the last one, final=False
    simulated: bool = False
