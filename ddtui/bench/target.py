"""Where a burst is aimed: the server as this machine reaches it, and as the host reaches it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ddtui.host.base import Endpoint, Host


class BenchError(Exception):
    """A burst that cannot be run: one sentence."""


@dataclass(frozen=True, slots=True)
class Target:
    """One server to measure, and the bounds of what may be sent to it."""

    endpoint: Endpoint  # how this machine reaches the server: a Unix socket over the link, or host and port
    api_key: str | None = None
    host: Host | None = None  # needed for at="host": the worker runs there
    python: str | None = None  # the service's interpreter on the host, for at="host"
    address: tuple[str, int] | None = None  # the server as the host reaches it, for at="host"
    rtt_ms: float | None = None  # of the link, for at="here": a warning when it matters
    max_concurrency: int = 64  # what the profile allows
    vocab_size: int | None = None  # of the target model, where its config was read
    simulated: bool = False
    # the server's log of the last so many seconds, as (seconds before it was asked, line); raises HostError
    log: Callable[[float], Awaitable[Sequence[tuple[float, str]]]] | None = None
