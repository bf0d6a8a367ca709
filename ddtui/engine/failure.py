"""Why a start failed, or a server died: the cause in a sentence, the lines it rests on, what to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    ARGUMENT = "argument"  # the parser refused
    RULE = "rule"  # parsed, then refused by a rule
    OUT_OF_MEMORY = "out of memory"
    NO_ROOM_FOR_KV = "no room for the KV cache"
    MISSING_MODEL = "missing model"
    BAD_DRAFTER = "bad drafter"
    PORT_IN_USE = "port in use"
    NCCL = "nccl"
    CHILD_KILLED = "child killed"
    WATCHDOG = "watchdog"
    CRASH = "crash"
    NO_GPU = "no gpu"
    GPU_HELD = "gpu memory held"
    WARM_UP = "warm-up failed"
    START_LIMIT = "start limit"
    CRASH_LOOP = "crash loop"
    TIMEOUT = "timeout"
    STOP_TIMEOUT = "stop timeout"
    EXEC = "not started"  # systemd could not run it
    IMPORT = "import"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Failure:
    kind: Cause
    cause: str  # one sentence
    evidence: tuple[str, ...]  # log lines it rests on, as written
    advice: str  # what to try
    flag: str | None = None  # the offending argument, where there is one
    value: str | None = None


def explain(
    lines: Sequence[str],
    *,
    result: str | None = None,  # systemd's Result: exit-code, signal, oom-kill, timeout, start-limit-hit, …
    exit_status: int | None = None,  # ExecMainStatus: exit code, or the signal's number when Result is signal
    restarts: int = 0,  # NRestarts
    active_state: str | None = None,
    timed_out: bool = False,  # ddtui's own limit on the start was reached
) -> Failure | None:
    """The cause of a failed start or a crash. None: nothing failed in what is given."""
    raise NotImplementedError
