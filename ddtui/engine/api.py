"""SGLang's HTTP API: control calls and reading. Load is not sent from here.

Every call has a timeout and raises `ApiError` with one sentence. Answers are typed in `answers`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import httpx

from ddtui import redact
from ddtui.engine import answers
from ddtui.engine.answers import Generated, Loads, Metrics, ModelInfo, ServerInfo, Tokens

__all__ = [
    "Api",
    "ApiError",
    "Endpoint",
    "Generated",
    "Health",
    "Loads",
    "Metrics",
    "ModelInfo",
    "ServerInfo",
    "Tokens",
    "Trouble",
]

T = TypeVar("T")


class Trouble(StrEnum):
    """What kind of failure a call met: tells what to do about it."""

    REFUSED = "refused"  # nobody listens
    CLOSED = "closed"  # the connection broke without an answer
    TIMEOUT = "timeout"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not found"
    NOT_READY = "not ready"  # 503: starting or stopping
    INVALID = "invalid"  # the answer is not what the path answers
    BAD_REQUEST = "bad request"  # 4xx: what was asked is wrong
    SERVER = "server"  # 5xx


class ApiError(Exception):
    """A call failed. `str()` is one sentence; `status` is None when there was no answer."""

    def __init__(self, message: str, *, kind: Trouble, status: int | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status


class Endpoint(Protocol):
    """Where to connect: a Unix socket, or host and port. (`host.base.Endpoint` fits.)"""

    @property
    def uds(self) -> str | None: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


class Health(StrEnum):
    READY = "ready"
    NOT_READY = "not ready"  # it answers, and is starting, stopping or hung
    DOWN = "down"  # nobody listens, or the connection is dropped


class Api:
    """A client for one server. Use as an async context, or `close()` it.

    `api_key` is sent as a bearer token. Flushing and aborting want the admin key where the server has one.
    """

    def __init__(self, endpoint: Endpoint, api_key: str | None = None, *, timeout: float = 10.0) -> None:
        self._where = f"{endpoint.host}:{endpoint.port}"
        self._timeout = timeout
        self._has_key = api_key is not None
        self._gone: set[str] = set()  # paths that this server does not have
        if api_key is not None:
            redact.remember(api_key)
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        self._client = httpx.AsyncClient(
            base_url=f"http://{host}:{endpoint.port}",
            headers={"Authorization": f"Bearer {api_key}"} if api_key is not None else {},
            transport=httpx.AsyncHTTPTransport(
                verify=False,  # plain HTTP: the certificates, 26 ms to load each time, would verify nothing
                uds=endpoint.uds,
                limits=httpx.Limits(keepalive_expiry=4.0),
            ),
            timeout=timeout,
            trust_env=False,  # no proxy between us and a forwarded port
        )

    async def server_info(self, timeout: float | None = None) -> ServerInfo:
        """Resolved arguments and live state. Hangs with the scheduler: the timeout ends it."""
        return await self._first_of(("/server_info", "/get_server_info"), answers.server_info, timeout)

    async def model_info(self, timeout: float | None = None) -> ModelInfo:
        """The cheap poll. An answer means that HTTP is up, not that the server is ready."""
        return await self._first_of(("/model_info", "/get_model_info"), answers.model_info, timeout)

    async def loads(self, timeout: float | None = None) -> Loads:
        """What runs and waits: /v1/loads, else /get_load, else /metrics, whichever works in this server."""
        trouble: ApiError | None = None
        for path, query in (("/v1/loads", "?include=core,spec"), ("/get_load", "")):
            if path in self._gone:
                continue
            try:
                answer = await self._json("GET", path + query, timeout=timeout)
                return self._shaped(partial(answers.loads, source=path), answer, path)
            except ApiError as error:
                if error.kind not in (Trouble.NOT_FOUND, Trouble.SERVER, Trouble.INVALID):
                    raise
                self._gone.add(path)
                trouble = error
        try:
            return answers.loads_by_metrics(await self.metrics(timeout))
        except ApiError as error:
            if error.kind is Trouble.NOT_FOUND and trouble is not None:
                raise trouble from None
            raise

    async def health(self, timeout: float = 25.0) -> Health:
        """READY only on a 200 of /health, for which the server generates a token (a second when it is idle).

        Raises ApiError only for what is no state of the server (a wrong key, a web page).
        """
        try:
            answer = await self._send("GET", "/health", timeout=timeout)
        except ApiError as error:
            if error.kind in (Trouble.REFUSED, Trouble.CLOSED):  # through a tunnel, refused looks like closed
                return Health.DOWN
            if error.kind is Trouble.TIMEOUT:
                return Health.NOT_READY
            raise
        if answer.status_code == 200:
            return Health.READY
        if answer.status_code >= 500:
            return Health.NOT_READY
        raise self._refusal(answer, "/health")

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
        """One request, not streamed. Check lengths and ids first: one id too high kills a 0.5.11."""
        body: dict[str, Any] = {
            "sampling_params": {
                "max_new_tokens": max_new_tokens,
                "temperature": temperature,
                "ignore_eos": ignore_eos,
            }
        }
        body |= {"text": text} if text is not None else {"input_ids": list(input_ids or ())}
        if rid is not None:
            body["rid"] = rid
        answer = await self._json("POST", "/generate", body=body, timeout=timeout)
        return self._shaped(answers.generated, answer, "/generate")

    async def behind(self, input_ids: Sequence[int], timeout: float = 60.0) -> dict[int, float] | None:
        """How many nats each of the five likeliest next tokens is behind the best. None: the server does not
        say: with DFLASH up to 0.5.16 it refuses `return_logprob` (400).
        """
        body = {
            "input_ids": list(input_ids),
            "sampling_params": {"max_new_tokens": 1, "temperature": 0.0, "ignore_eos": True},
            "return_logprob": True,
            "top_logprobs_num": 5,
        }
        answer = await self._send("POST", "/generate", body=body, timeout=timeout)
        if answer.status_code == 400:
            return None
        self._check(answer, "/generate")
        return answers.behind(answer.content)

    async def flush_cache(self, timeout: float | None = None) -> bool:
        """True: flushed; False: refused because requests run or wait (up to 0.5.10 it never says so)."""
        answer = await self._send("POST", "/flush_cache", timeout=timeout)
        if answer.status_code == 400:
            return False
        self._check(answer, "/flush_cache")
        return True

    async def abort(self, rid: str | None = None, *, all: bool = False, timeout: float | None = None) -> None:
        """Abort the requests whose rid begins with `rid`, or all. An unknown rid is no error."""
        if not rid and not all:
            raise ValueError("abort needs a rid, or all=True")
        body = {"abort_all": True} if all else {"rid": rid}
        self._check(await self._send("POST", "/abort_request", body=body, timeout=timeout), "/abort_request")

    async def tokenize(self, text: str, timeout: float = 60.0) -> Tokens:
        """Token ids of a text by the server's own tokenizer."""
        answer = await self._json("POST", "/tokenize", body={"prompt": text}, timeout=timeout)
        return self._shaped(answers.tokens, answer, "/tokenize")

    async def metrics(self, timeout: float | None = None) -> Metrics:
        """Prometheus metrics; ApiError of kind NOT_FOUND without --enable-metrics."""
        answer = await self._send("GET", "/metrics", timeout=timeout, follow=True)
        self._check(answer, "/metrics")
        return answers.metrics(answer.text)

    async def close(self) -> None:
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- one call -------------------------------------------------------------------------------------------

    async def _first_of(self, paths: tuple[str, str], shape: Callable[[Any], T], timeout: float | None) -> T:
        """The path of today, or the one it had before where the server does not know it."""
        new, old = paths
        path = old if new in self._gone else new
        try:
            answer = await self._json("GET", path, timeout=timeout)
        except ApiError as error:
            if error.kind is not Trouble.NOT_FOUND or path == old:
                raise
            self._gone.add(new)
            answer = await self._json("GET", old, timeout=timeout)
            path = old
        return self._shaped(shape, answer, path)

    async def _json(
        self, method: str, path: str, *, body: Mapping[str, Any] | None = None, timeout: float | None = None
    ) -> Any:
        answer = await self._send(method, path, body=body, timeout=timeout)
        self._check(answer, path)
        try:
            return json.loads(answer.content)
        except (ValueError, RecursionError):
            if _is_page(answer):
                raise ApiError(
                    f"{self._where}{path} answered with a web page: a proxy or another program is there.",
                    kind=Trouble.INVALID,
                    status=answer.status_code,
                ) from None
            raise ApiError(
                f"{self._where}{path} answered with something that is not JSON: {_start(answer.text)}",
                kind=Trouble.INVALID,
                status=answer.status_code,
            ) from None

    async def _send(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        follow: bool = False,
    ) -> httpx.Response:
        limit = self._timeout if timeout is None else timeout
        try:
            return await self._client.request(
                method, path, json=body, timeout=httpx.Timeout(limit), follow_redirects=follow
            )
        except httpx.TimeoutException:
            raise ApiError(
                f"{self._where}{path} did not answer within {limit:g} s.", kind=Trouble.TIMEOUT
            ) from None
        except httpx.ConnectError as error:
            raise ApiError(f"{self._where} cannot be reached: {_why(error)}.", kind=Trouble.REFUSED) from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise ApiError(
                f"{self._where}{path} broke the connection without a whole answer: {_why(error)}.",
                kind=Trouble.CLOSED,
            ) from None

    def _check(self, answer: httpx.Response, path: str) -> None:
        if answer.status_code != 200:
            raise self._refusal(answer, path)

    def _refusal(self, answer: httpx.Response, path: str) -> ApiError:
        status, where = answer.status_code, f"{self._where}{path.partition('?')[0]}"
        says = _says(answer)
        if status == 401:
            text = f"{where} refused the API key." if self._has_key else f"{where} wants an API key."
            return ApiError(text, kind=Trouble.UNAUTHORIZED, status=status)
        if status == 403:
            return ApiError(f"{where} is forbidden with this key.", kind=Trouble.FORBIDDEN, status=status)
        if status in (404, 405):
            return ApiError(f"{where} is not there in this server.", kind=Trouble.NOT_FOUND, status=status)
        if status == 503:
            return ApiError(f"{where}: the server is not ready (503).", kind=Trouble.NOT_READY, status=status)
        if status >= 500:
            return ApiError(
                f"{where} failed in the server ({status}){says}", kind=Trouble.SERVER, status=status
            )
        if status >= 400:
            return ApiError(f"{where} refused ({status}){says}", kind=Trouble.BAD_REQUEST, status=status)
        return ApiError(f"{where} answered {status}{says}", kind=Trouble.INVALID, status=status)

    def _shaped(self, shape: Callable[[Any], T], answer: Any, path: str) -> T:
        try:
            return shape(answer)
        except answers.UnknownShape as error:
            raise ApiError(f"{self._where}{path}: {error}", kind=Trouble.INVALID, status=200) from None


def _is_page(answer: httpx.Response) -> bool:
    kind = answer.headers.get("content-type", "")
    return "html" in kind or answer.content[:64].lstrip().lower().startswith((b"<!doctype", b"<html"))


def _says(answer: httpx.Response) -> str:
    """`: the message in an error's body`, in each of the shapes that SGLang and FastAPI use."""
    if _is_page(answer):
        return ": a web page, so there is a proxy or another program."
    try:
        body = json.loads(answer.content)
    except (ValueError, RecursionError):
        text = _start(answer.text)
        return f": {text}" if text else "."
    found: Any = body
    if isinstance(body, dict):
        found = body.get("error") or body.get("message") or body.get("detail") or body
        if isinstance(found, dict):
            found = found.get("message") or found
    return f": {_start(found if isinstance(found, str) else json.dumps(found))}"


def _start(text: str, limit: int = 200) -> str:
    text = redact.redact(re.sub(r"\s+", " ", text).strip())
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return text.rstrip(".") + "." if text else ""


def _why(error: Exception) -> str:
    text = str(error).strip().rstrip(".")
    if "All connection attempts failed" in text or "Connection refused" in text or "Errno 111" in text:
        return "nothing listens there"
    return text or type(error).__name__
