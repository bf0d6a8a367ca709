"""The environment variables that the stand-in listens to beside SGLang's own: all of them, in one place.

    SGLANG_STANDIN_LOAD_SECONDS    seconds from the start to ready (4); 0: at once. What a real server does on
                                   its own clock (draining, looking after its children) scales with it
    SGLANG_STANDIN_ROOT            folder below which absolute paths of flags are read; printed without it
    SGLANG_STANDIN_UDS             listen on this Unix socket; the log still names --host and --port
    SGLANG_STANDIN_SPEED           factor on the speed of generation (1): 10 is ten times the model's speed
    SGLANG_STANDIN_HEALTH_SECONDS  how long /health takes (1, as the real one)
    SGLANG_STANDIN_SEED            seed of this start's noise; by default every start differs
    SGLANG_STANDIN_NOISE           0: no noise, neither from step to step nor from start to start (1)
    SGLANG_STANDIN_TRAFFIC         requests per minute that the stand-in sends itself, for a live journal (0)
    SGLANG_STANDIN_FAIL            what goes wrong, comma separated:
        oom            CUDA out of memory while the drafter's KV cache is allocated
        graph_oom      CUDA graph capture fails for want of memory
        nccl           hangs in "Init torch distributed begin."
        killed         the host's OOM killer ends the scheduler while weights are read
        hang_warmup    HTTP comes up, the first request never ends: /health stays 503
        warmup_error   the first request fails: the server ends
        crash_after=N  the scheduler dies N seconds after ready, with a CUDA error
        hang           after ready: no request is answered any more, /server_info hangs, /health becomes 503
        stop_hangs     SIGTERM: the server waits for requests for ever
        corrupt        output is garbage and almost no draft is accepted, as with a broken tree mask

Of SGLang's own: SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION=0, SGL_FORCE_SHUTDOWN=1, SGLANG_LOG_MS=1 and
SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 work as there.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

REAL_LOAD_SECONDS = 45.0  # of the captured 0.5.11: the clock that LOAD_SECONDS scales


def _number(name: str, default: float) -> float:
    text = os.environ.get(name, "")
    try:
        return float(text) if text else default
    except ValueError:
        raise SystemExit(f"{name}={text!r} is not a number.") from None


def _failures() -> dict[str, str]:
    found = {}
    for item in os.environ.get("SGLANG_STANDIN_FAIL", "").split(","):
        name, _, value = item.strip().partition("=")
        if name:
            found[name] = value
    return found


@dataclass(frozen=True)
class Switches:
    load_seconds: float = field(default_factory=lambda: _number("SGLANG_STANDIN_LOAD_SECONDS", 4.0))
    root: str = field(default_factory=lambda: os.environ.get("SGLANG_STANDIN_ROOT", ""))
    uds: str = field(default_factory=lambda: os.environ.get("SGLANG_STANDIN_UDS", ""))
    speed: float = field(default_factory=lambda: _number("SGLANG_STANDIN_SPEED", 1.0))
    health_seconds: float = field(default_factory=lambda: _number("SGLANG_STANDIN_HEALTH_SECONDS", 1.0))
    seed: int = field(default_factory=lambda: int(_number("SGLANG_STANDIN_SEED", 0)) or time.time_ns())
    noise: bool = field(default_factory=lambda: _number("SGLANG_STANDIN_NOISE", 1.0) != 0)
    traffic: float = field(default_factory=lambda: _number("SGLANG_STANDIN_TRAFFIC", 0.0))
    failures: dict[str, str] = field(default_factory=_failures)
    health_generates: bool = field(
        default_factory=lambda: (
            os.environ.get("SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION", "1").lower() not in ("0", "false")
        )
    )
    force_shutdown: bool = field(
        default_factory=lambda: os.environ.get("SGL_FORCE_SHUTDOWN", "") in ("1", "true")
    )

    def fails(self, name: str) -> bool:
        return name in self.failures

    def scaled(self, real_seconds: float) -> float:
        """Seconds of the real server's clock on this one's."""
        return real_seconds * self.load_seconds / REAL_LOAD_SECONDS

    def local(self, path: str) -> Path:
        """Where a path of the host lies on this machine."""
        return Path(self.root + path) if self.root and path.startswith("/") else Path(path)


SWITCHES = Switches()
