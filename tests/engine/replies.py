"""A small HTTP server that gives the replies a test asks for, over TCP or a Unix socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from engine.captured import CAPTURES


@dataclass(frozen=True)
class Where:
    uds: str | None
    host: str
    port: int


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> object:
        return json.loads(self.body)


@dataclass
class Server:
    """`replies`: path (without its query) → raw HTTP answer; None: close without one; "hang": never answer."""

    replies: Mapping[str, bytes | str | None]
    where: Where = field(default_factory=lambda: Where(None, "127.0.0.1", 0))
    requests: list[Request] = field(default_factory=list)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
            }
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            method, path, _ = first.split(" ")
            self.requests.append(Request(method, path, headers, body))
            reply = self.replies.get(path.partition("?")[0], NOT_FOUND)
            if reply == "hang":
                await asyncio.Event().wait()
            elif isinstance(reply, bytes):
                writer.write(reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def reply(status: int, body: bytes | str, kind: str = "application/json") -> bytes:
    data = body.encode() if isinstance(body, str) else body
    return (
        f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data
    )


NOT_FOUND = reply(404, '{"detail":"Not Found"}')


def captured(name: str) -> bytes:
    """A real 0.5.11's answer, byte for byte."""
    return (CAPTURES / "http" / f"{name}.raw").read_bytes()


@asynccontextmanager
async def serving(
    replies: Mapping[str, bytes | str | None], uds: Path | None = None
) -> AsyncIterator[Server]:
    server = Server(replies)
    if uds is not None:
        listening: asyncio.Server = await asyncio.start_unix_server(server.handle, path=str(uds))
        server.where = Where(str(uds), "127.0.0.1", 30000)
    else:
        listening = await asyncio.start_server(server.handle, "127.0.0.1", 0)
        server.where = Where(None, "127.0.0.1", listening.sockets[0].getsockname()[1])
    try:
        yield server
    finally:
        listening.close()
