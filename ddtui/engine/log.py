"""One line of SGLang's log, read: what kind it is and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    DECODE = "decode"
    PREFILL = "prefill"
    ARGUMENTS = "server_args"
    DISTRIBUTED = "distributed"
    LOAD_BEGIN = "load_begin"
    LOAD_SHARDS = "load_shards"
    LOAD_END = "load_end"
    KV_DTYPE = "kv_dtype"
    KV_POOL = "kv_pool"
    POOL_END = "pool_end"
    GRAPH_BEGIN = "graph_begin"
    GRAPH_SIZES = "graph_sizes"
    GRAPH_STEP = "graph_step"
    GRAPH_END = "graph_end"
    DRAFT_RUNNER = "draft_runner"
    DRAFT_READY = "draft_ready"
    DDTREE_WORKER = "ddtree_worker"
    LIMITS = "limits"  # max_total_num_tokens=…
    HTTP_UP = "http_up"
    ACCESS = "access"
    READY = "ready"
    CACHE_FLUSHED = "cache_flushed"
    DRAINING = "draining"
    OVERRIDE = "override"  # an argument was changed, or has no effect
    USAGE = "usage"  # argparse's usage text
    ARGUMENT_ERROR = "argument_error"
    TRACEBACK = "traceback"  # Traceback…, and the lines in it
    EXCEPTION = "exception"  # SomeError: …
    SIGNAL = "signal"
    RETRACT = "retract"
    WARNING = "warning"
    PROGRESS = "progress"  # another tqdm bar
    OTHER = "other"


class Level(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class LogLine:
    kind: Kind
    text: str  # without prefix; of a progress bar the last piece
    level: Level = Level.INFO
    time: str | None = None  # as written by SGLang, local time of the host
    rank: str | None = None  # "DP0 TP1"; None: the main process, or a line without prefix
    fields: Mapping[str, Any] = field(default_factory=dict)
    raw: str = ""


def parse(text: str) -> LogLine:
    """Read one line (a tqdm bar may hold many `\\r` pieces: the last counts)."""
    raise NotImplementedError
