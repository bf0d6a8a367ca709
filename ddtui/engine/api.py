"""SGLang's HTTP API: control calls and reading, typed and tolerant of versions (0.5.9 to 0.5.23).

Every call has a timeout and raises `ApiError` with one sentence. Load is not sent from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Any, Protocol, Self


class ApiError(Exception):
    """A call failed. `status`: HTTP status, None when there was no answer; `kind` tells what to do about it."""

    def __init__(self, message: str, *, kind: str = "failed", status: int | None = None) -> None:
        super().__init__(message)
        self.kind = (
            kind  # refused, timeout, unauthorized, forbidden, not found, busy, not ready, invalid, server
        )
        self.status = status


class Endpoint(Protocol):
    """Where to connect: a Unix socket, or host and port. (`host.base.Endpoint` fits.)"""

    @property
    def uds(self) -> str | None: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


@dataclass(frozen=True, slots=True)
class ServerInfo:
    version: str | None
    arguments: Mapping[str, Any]  # resolved server arguments, secrets redacted
    accept_length: float | None  # since the last flush, all clients; mean over DP ranks that have one
    gen_throughput: float | None  # tok/s of the last decode line, sum over DP ranks
    dp: tuple[Mapping[str, Any], ...]  # internal_states of each DP rank, redacted
    weight_gb: float | None
    kv_gb: float | None
    graph_gb: float | None
    token_capacity: int | None  # sum over DP ranks
    max_running_requests: int | None  # effective, per DP rank
    max_total_num_tokens: int | None
    draft_window: int | None  # under either name
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelInfo:
    model_path: str
    tokenizer_path: str | None
    model_type: str | None
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Loads:
    running: int | None
    waiting: int | None
    token_usage: float | None
    gen_throughput: float | None
    accept_length: float | None
    source: str  # the path that answered
    raw: Any


class Health(StrEnum):
    READY = "ready"
    NOT_READY = "not ready"  # it answers, and is starting, stopping or hung
    DOWN = "down"  # nobody listens


@dataclass(frozen=True, slots=True)
class Generated:
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


class Api:
    """A client for one server. Use as an async context, or `close()` it."""

    def __init__(self, endpoint: Endpoint, api_key: str | None = None, *, timeout: float = 10.0) -> None:
        raise NotImplementedError

    async def server_info(self) -> ServerInfo:
        raise NotImplementedError

    async def model_info(self) -> ModelInfo:
        """The cheap poll. An answer means that HTTP is up, not that the server is ready."""
        raise NotImplementedError

    async def loads(self) -> Loads:
        raise NotImplementedError

    async def health(self, timeout: float = 25.0) -> Health:
        """READY only when the server generated a token: /health 200."""
        raise NotImplementedError

    async def generate_one(
        self,
        *,
        text: str | None = None,
        input_ids: Sequence[int] | None = None,
        max_new_tokens: int = 8,
        temperature: float = 0.0,
        ignore_eos: bool = False,
        rid: str | None = None,
        timeout: float = 60.0,
    ) -> Generated:
        raise NotImplementedError

    async def flush_cache(self, timeout: float = 10.0) -> bool:
        """True: flushed; False: refused because requests run or wait."""
        raise NotImplementedError

    async def abort(self, rid: str | None = None, *, all: bool = False) -> None:
        """Abort requests whose rid begins with `rid`, or all."""
        raise NotImplementedError

    async def tokenize(self, text: str) -> Tokens:
        raise NotImplementedError

    async def metrics(self) -> Metrics:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def parse_metrics(text: str) -> Metrics:
    """Prometheus text: name -> ((labels, value), …)."""
    raise NotImplementedError
