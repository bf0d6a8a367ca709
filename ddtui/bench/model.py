"""The words of the bench room: cells, requests, points, bursts. All frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

Place = Literal["host", "here"]
ApiKind = Literal["generate", "completions", "chat"]


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
    at: Place = "here"
    requests: int | None = None  # per cell; None: enough for the rule (32 prompts and 5 x concurrency)
    max_seconds: float = 120.0  # per cell, after its first wave
    temperature: float = 0.0
    seed: int = 0
    endpoint: ApiKind = "generate"
    precision: float = 0.03  # a cell ends when its interval is within this part of its value
    salt: str | None = None  # what the prompts begin with; None: new for every burst
    ignore_eos: bool = True  # every answer has the asked length; False: it ends where the model ends it
    idle: float = 60.0  # seconds without a byte after which a request is given up


class Outcome(StrEnum):
    OK = "ok"
    REFUSED = "refused"  # connection refused or reset before any answer
    HTTP_ERROR = "http error"
    SERVER_ERROR = "error in the stream"
    TRUNCATED = "truncated"
    STALLED = "stalled"
    EMPTY = "empty"
    MALFORMED = "malformed"  # not HTTP, not an event stream, or not JSON
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
    step_tokens: tuple[int, ...] = ()  # tokens in each chunk after the first; () if the server does not say
    text: str = ""  # the output
    finish: str | None = None
    warm_up: bool = False
    ended: float | None = None  # when the answer was complete, or given up
    output_ids: tuple[int, ...] = ()
    rid: str = ""
    retried: bool = False  # sent twice: the reused connection was closed before any answer


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number that can be trusted: value, 95 % interval by bootstrap over prompts, sample count."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Spread:
    """How a quantity is spread over its samples (requests for TTFT, TPOT and E2E; chunks for gaps)."""

    n: int
    mean: float
    median: float
    p90: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class ServerSide:
    """What the server itself counted meanwhile. None: it does not say."""

    output_rate: float | None = None  # tok/s of all requests in the measured time
    accept_length: float | None = None
    accept_how: str = ""  # "verify counter", "average since flush (all clients)"
    most_running: int | None = None  # requests seen running or waiting at once, all clients
    log_rate: float | None = None  # tok/s of the Decode batch lines in the steady window
    log_rate_error: float = 0.0  # standard error of that mean
    log_accept: float | None = None
    log_accept_error: float = 0.0
    log_lines: int = 0


@dataclass(frozen=True, slots=True)
class GpuUse:
    """One GPU of the host while a cell ran: means of `n` looks, and what held its clock down in any of them.
    None: the driver does not say.
    """

    index: int
    n: int
    memory_used_mib: float | None = None  # the most
    memory_total_mib: float | None = None
    utilization: float | None = None  # percent of time with a kernel running
    power_w: float | None = None
    power_limit_w: float | None = None
    clock_mhz: float | None = None  # of the SMs
    clock_max_mhz: float | None = None
    throttles: tuple[str, ...] = ()


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
    ttft_ms: Estimate | None  # median
    tpot_ms: Estimate | None  # mean
    step_ms: Estimate | None  # mean gap between token-bearing chunks
    accept_length: Estimate | None
    e2e_ms: Estimate | None  # median
    client_lag_p99_ms: float | None
    cached_tokens: int
    final: bool  # False while the burst still runs
    preview: bool  # too few samples to be a result
    marks: tuple[
        str, ...
    ] = ()  # "client-limited", "cache hits", "other traffic", "failures 3 %", "no steady window"
    accept_how: str = (
        ""  # "histogram", "accepted drafts / verify steps", "tokens / verify steps", "tokens / chunk"
    )
    accept_rates: tuple[float, ...] = ()  # P(draft position d is accepted), d = 1, 2, …
    tpot_how: str = ""  # "n - n1", or "n - 1" where the first chunk's tokens are unknown
    total_rate: float | None = None  # prompt and output tokens per second in the steady window
    window_seconds: float | None = None  # length of the steady window
    spreads: Mapping[str, Spread] = field(
        default_factory=dict
    )  # ttft_ms tpot_ms step_ms itl_ms e2e_ms accept
    outcomes: Mapping[str, int] = field(default_factory=dict)  # of all measured requests
    messages: tuple[str, ...] = ()  # what failed requests said, the most frequent first
    prompt_tokens: float | None = None  # mean, by the server's count
    output_tokens: float | None = None
    server: ServerSide | None = None
    place: Place = "here"
    prompts: str = ""  # identity of the prompts: equal means comparable
    gpus: tuple[GpuUse, ...] = ()
    gpus_unknown: str = ""  # why there are none: "no nvidia-smi"
    cache_told: bool = True  # False: no answer says how many tokens came from the cache

    @property
    def trusted(self) -> bool:
        """Whether this point may win a comparison."""
        return self.final and not self.preview and not self.marks and self.output_rate is not None


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
    started_at: float = 0.0  # unix time
    warnings: tuple[str, ...] = ()  # what to know about all of its points
    raw: str = ""  # path of the JSONL with one line per request
    rtt_ms: float | None = None  # of the link when it began; None: there is none, or it is not known
