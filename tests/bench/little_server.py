"""A little server of the tests: SGLang's endpoints on a schedule, and every way to answer badly."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
)
LAST = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(value: Any) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return f"data: {text}\n\n".encode()


@dataclass
class Reply:
    """How one load request is answered: the writer is all the script's."""

    writer: asyncio.StreamWriter
    api: str
    body: dict[str, Any]
    asked: int
    prompt_tokens: int
    server: LittleServer

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    def reset(self) -> None:
        """End the connection by RST."""
        reset(self.writer)

    def close(self) -> None:
        self.writer.close()

    def token_event(self, count: int, *, finish: str | None = None, steps: int = 0, cached: int = 0) -> bytes:
        """The event that brings the answer to `count` tokens."""
        words = [f"wörd{n} " for n in range(count)]
        if self.api == "generate":
            meta: dict[str, Any] = {
                "finish_reason": {"type": finish, "length": count} if finish else None,
                "prompt_tokens": self.prompt_tokens,
                "completion_tokens": count,
                "cached_tokens": cached,
            }
            if finish and steps:
                meta |= {"spec_verify_ct": steps, "spec_accepted_drafts": count - 1 - steps}
            return event({"text": "".join(words), "output_ids": list(range(count)), "meta_info": meta})
        usage = {"prompt_tokens": self.prompt_tokens, "completion_tokens": count}
        text = words[-1] if words else ""
        choice: dict[str, Any] = {"index": 0, "finish_reason": finish}
        choice |= {"text": text} if self.api == "completions" else {"delta": {"content": text}}
        return event({"choices": [choice], "usage": usage})


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection by RST."""
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


Script = Callable[[Reply], Awaitable[None]]


@dataclass
class LittleServer:
    """Answers well unless `script` says otherwise."""

    step: float = 0.002  # s
    tokens: int = 4  # per step
    script: Script | None = None
    limit: int = 200_000  # as /tokenize tells it
    context_length: int | None = None  # as /server_info tells it
    running: int = 0
    others: int = 0
    port: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)  # load requests' bodies
    aborted: list[str] = field(default_factory=list)
    flushed: int = 0
    generated: int = 0
    verifies: int = 0
    extra: int = 0  # tokens that the server counts for others
    missing: set[str] = field(default_factory=set)  # paths that answer 404
    live: dict[str, asyncio.Event] = field(default_factory=dict)
    busy: asyncio.Condition = field(default_factory=asyncio.Condition)
    connections: set[asyncio.StreamWriter] = field(default_factory=set)
    listener: asyncio.Server | None = None

    def die(self) -> None:
        """As a process that is killed: every connection is reset, and nobody listens any more."""
        if self.listener is not None:
            self.listener.close()
        for writer in list(self.connections):
            reset(writer)

    async def until_running(self, count: int) -> None:
        """Return as soon as so many requests are being answered, with a second event each."""
        async with self.busy:
            await self.busy.wait_for(lambda: self.running >= count)

    async def well(self, reply: Reply) -> None:
        """A stream as it should be: a first token, then steps."""
        rid = str(reply.body.get("rid"))
        gone = self.live[rid] = asyncio.Event()
        self.running += 1
        try:
            await reply.send(HEAD)
            count, steps = 1, 0
            await reply.send(chunk(reply.token_event(1)))
            while count < reply.asked and not gone.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(gone.wait(), self.step)
                steps += 1
                count = min(reply.asked, count + self.tokens)
                finish = "abort" if gone.is_set() else "length" if count == reply.asked else None
                await reply.send(chunk(reply.token_event(count, finish=finish, steps=steps)))
                async with self.busy:
                    self.busy.notify_all()
            self.generated += count
            self.verifies += steps
            await reply.send(chunk(event("[DONE]")), LAST)
        finally:
            self.running -= 1
            self.live.pop(rid, None)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.add(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                _, path, _ = head.split(b"\r\n")[0].decode().split(" ")
                length = re.search(rb"content-length: *(\d+)", head, re.I)
                data = await reader.readexactly(int(length[1])) if length else b""
                await self.answer(path.split("?")[0], json.loads(data) if data else {}, writer)
                if writer.is_closing():
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # cancelled: the loop ends, and asyncio would complain of it
        finally:
            self.connections.discard(writer)
            writer.close()

    async def answer(self, path: str, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        loads = {"/generate": "generate", "/v1/completions": "completions", "/v1/chat/completions": "chat"}
        if path in self.missing:
            return await self.plain(writer, {"detail": "Not Found"}, "404 Not Found")
        if path in loads and body.get("stream"):
            self.requests.append(body)
            sampling = body.get("sampling_params") or {}
            asked = sampling.get("max_new_tokens") or body.get("max_tokens")
            prompt = body.get("input_ids") or body.get("prompt")
            length = len(prompt) if isinstance(prompt, list) else 7
            reply = Reply(writer, loads[path], body, asked, length, self)
            return await (self.script or self.well)(reply)
        if path == "/generate":
            meta = {"completion_tokens": 2, "prompt_tokens": 1, "finish_reason": {"type": "length"}}
            return await self.plain(writer, {"text": " a", "output_ids": [1, 2], "meta_info": meta})
        if path in ("/tokenize", "/v1/tokenize"):
            ids = [1] + [
                zlib.crc32(w.encode()) % 32_000 for w in re.findall(r"\w+|\s+|.", body["prompt"], re.S)
            ]
            return await self.plain(writer, {"tokens": ids, "count": len(ids), "max_model_len": self.limit})
        if path in ("/server_info", "/get_server_info"):
            info = {
                "version": "0.5.11",
                "max_total_num_tokens": 1_000_000,
                "context_length": self.context_length,
            }
            return await self.plain(writer, {**info, "internal_states": [{"avg_spec_accept_length": 5.0}]})
        if path in ("/model_info", "/get_model_info"):
            return await self.plain(writer, {"model_path": "/opt/models/target"})
        if path == "/get_load":
            return await self.plain(writer, [{"num_reqs": self.running + self.others, "num_waiting_reqs": 0}])
        if path == "/flush_cache":
            if self.running or self.others:
                return await self.plain(writer, "Flush cache failed.", "400 Bad Request")
            self.flushed += 1
            return await self.plain(writer, "Cache flushed.")
        if path == "/abort_request":
            self.aborted.append(body["rid"])
            for rid, gone in self.live.items():
                if rid.startswith(body["rid"]):
                    gone.set()
            return await self.plain(writer, "")
        if path == "/metrics":
            text = f"sglang:generation_tokens_total{{}} {self.generated + self.extra}.0\n"
            text += f"sglang:spec_verify_calls_total{{}} {self.verifies}.0\n"
            return await self.plain(writer, text)
        await self.plain(writer, {"detail": "Not Found"}, "404 Not Found")

    async def plain(self, writer: asyncio.StreamWriter, value: Any, status: str = "200 OK") -> None:
        body = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        kind = "text/plain" if isinstance(value, str) else "application/json"
        writer.write(
            f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode()
            + body
        )
        await writer.drain()


@asynccontextmanager
async def serving(server: LittleServer) -> AsyncIterator[LittleServer]:
    """The server on a free port of this machine."""
    server.listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = server.listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        server.listener.close()
        for gone in server.live.values():
            gone.set()
