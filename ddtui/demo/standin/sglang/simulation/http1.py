"""HTTP/1.1 on asyncio: keep-alive, chunked bodies both ways, uvicorn's headers. One request at a time a
connection.
"""

from __future__ import annotations

import asyncio
import json
import random
import traceback
from collections.abc import Awaitable
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Callable
from urllib.parse import parse_qsl, unquote, urlsplit

from sglang.simulation.journal import access, log

MAX_HEAD, MAX_BODY = 65536, 64 << 20


@dataclass
class HttpRequest:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""
    path: str = ""
    query: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parts = urlsplit(self.target)
        self.path, self.query = unquote(parts.path), dict(parse_qsl(parts.query))


@dataclass
class Response:
    status: int = 200
    body: bytes = b""
    content_type: str = ""
    vary: bool = True


def json_response(content: Any, status: int = 200) -> Response:
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return Response(status, body, "application/json")


class BadRequest(Exception):
    pass


Handler = Callable[[HttpRequest, "Connection"], Awaitable["Response | None"]]


class Connection(asyncio.Protocol):
    """Answers come from `handler`: a response, or None when it has streamed one itself."""

    def __init__(self, handler: Handler, on_answer: Callable[[str, str, int], None]) -> None:
        self._handler, self._on_answer = handler, on_answer
        self._buffer = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._request: HttpRequest | None = None
        self._streaming = False
        self.transport: asyncio.Transport | None = None
        self.client = ""
        self.on_disconnect: Callable[[], None] | None = None

    # --- the connection -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        peer = transport.get_extra_info("peername")
        # on a Unix socket there is no peer address: the log gets one all the same
        self.client = (
            f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else f"127.0.0.1:{random.randint(32768, 60999)}"
        )

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self.on_disconnect is not None:
            self.on_disconnect()
            self.on_disconnect = None

    @property
    def closed(self) -> bool:
        return self.transport is None or self.transport.is_closing()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def _next(self) -> None:
        if self._task is not None or self.closed:
            return
        try:
            request = self._parse()
        except BadRequest:
            self._write_head(
                400, [("content-type", "text/plain; charset=utf-8"), ("connection", "close")], 31
            )
            self._write(b"Invalid HTTP request received.\n")
            self.close()
            return
        if request is not None:
            self._request = request
            self._task = asyncio.get_running_loop().create_task(self._answer(request))

    def _parse(self) -> HttpRequest | None:
        """The next whole request in the buffer, or None."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD:
                raise BadRequest
            return None
        lines = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise BadRequest
        headers = {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon:
                raise BadRequest
            headers[name.strip().lower()] = value.strip()
        if words[2] == "HTTP/1.0":
            headers.setdefault("connection", "close")
        start = end + 4
        if "chunked" in headers.get("transfer-encoding", "").lower():
            parsed = self._parse_chunks(start)
            if parsed is None:
                return None
            body, stop = parsed
        else:
            try:
                length = int(headers.get("content-length") or 0)
            except ValueError:
                raise BadRequest from None
            if not 0 <= length <= MAX_BODY:
                raise BadRequest
            stop = start + length
            if len(self._buffer) < stop:
                if headers.pop("expect", "").lower() == "100-continue" and len(self._buffer) == start:
                    self._write(b"HTTP/1.1 100 Continue\r\n\r\n")
                return None
            body = bytes(self._buffer[start:stop])
        del self._buffer[:stop]
        return HttpRequest(words[0], words[1], headers, body)

    def _parse_chunks(self, at: int) -> tuple[bytes, int] | None:
        body = bytearray()
        while True:
            line_end = self._buffer.find(b"\r\n", at)
            if line_end < 0:
                return None
            try:
                size = int(bytes(self._buffer[at:line_end]).split(b";")[0], 16)
            except ValueError:
                raise BadRequest from None
            if len(body) + size > MAX_BODY:
                raise BadRequest
            start = line_end + 2
            if size == 0:
                end = self._buffer.find(b"\r\n", start)  # trailers are not supported
                return None if end < 0 else (bytes(body), end + 2)
            if len(self._buffer) < start + size + 2:
                return None
            body += self._buffer[start : start + size]
            at = start + size + 2

    async def _answer(self, request: HttpRequest) -> None:
        try:
            response = await self._handler(request, self)
            if response is not None:
                self._respond(response)
        except asyncio.CancelledError:
            raise
        except Exception:
            log(f"ERROR:    Exception in ASGI application\n{traceback.format_exc().rstrip()}")
            if self._streaming:
                self.drop()
            else:
                self._respond(
                    Response(500, b"Internal Server Error", "text/plain; charset=utf-8", vary=False)
                )
        finally:
            self.on_disconnect = None
            self._task = None
            self._streaming = False
            if request.headers.get("connection", "").lower() == "close":
                self.close()
            elif not self.closed:
                asyncio.get_running_loop().call_soon(self._next)

    # --- answers ------------------------------------------------------------------------------------

    def _write(self, data: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def _write_head(self, status: int, headers: list[tuple[str, str]], length: int | None) -> None:
        phrase = HTTPStatus(status).phrase
        if self._request is not None:
            access(self.client, f"{self._request.method} {self._request.target} HTTP/1.1", status, phrase)
            self._on_answer(self._request.path, self._request.method, status)
            if self._request.headers.get("connection", "").lower() == "close":
                headers.append(("Connection", "close"))
        if length is not None:
            headers.insert(0, ("content-length", str(length)))
        lines = [f"HTTP/1.1 {status} {phrase}", f"date: {formatdate(usegmt=True)}", "server: uvicorn"]
        lines += [f"{name}: {value}" for name, value in headers]
        self._write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n")

    def _respond(self, response: Response) -> None:
        headers = [("content-type", response.content_type)] if response.content_type else []
        if response.vary:
            headers.append(("vary", "Origin"))
        self._write_head(response.status, headers, len(response.body))
        self._write(response.body)

    def start_stream(self, content_type: str = "text/event-stream; charset=utf-8") -> None:
        self._streaming = True
        self._write_head(
            200, [("content-type", content_type), ("vary", "Origin"), ("Transfer-Encoding", "chunked")], None
        )

    def write_chunk(self, *parts: bytes | bytearray) -> None:
        length = sum(map(len, parts))
        self._write(b"".join((f"{length:x}\r\n".encode(), *parts, b"\r\n")))

    def end_stream(self) -> None:
        self._write(b"0\r\n\r\n")

    @property
    def backlog(self) -> int:
        """Bytes that the client has not taken yet."""
        return self.transport.get_write_buffer_size() if self.transport is not None else 0

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def drop(self) -> None:
        if self.transport is not None:
            self.transport.abort()
