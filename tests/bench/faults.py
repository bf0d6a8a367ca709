"""Every way to answer a request for a stream oddly or badly: scripts of the little server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

from bench.little_server import HEAD, LAST, Reply, Script, chunk, event


def tokens(reply: Reply, *counts: int, finish: bool = True) -> list[bytes]:
    return [
        reply.token_event(count, finish="length" if finish and count == counts[-1] else None, steps=2)
        for count in counts
    ]


def whole(reply: Reply) -> bytes:
    """A good answer's body, without framing."""
    return b"".join(tokens(reply, 1, 5, 9)) + event("[DONE]")


def error_event(reply: Reply) -> bytes:
    return event({"error": {"message": "CUDA out of memory", "type": "InternalServerError", "code": 500}})


# answers that are fine, however odd they look


async def plain(reply: Reply) -> None:
    await reply.send(HEAD, *map(chunk, tokens(reply, 1, 5, 9)), chunk(event("[DONE]")), LAST)


async def byte_by_byte(reply: Reply) -> None:
    data = HEAD + b"".join(map(chunk, tokens(reply, 1, 5, 9))) + chunk(event("[DONE]")) + LAST
    for at in range(len(data)):
        await reply.send(data[at : at + 1])


async def chunks_of_one_byte(reply: Reply) -> None:
    body = whole(reply)
    await reply.send(HEAD, *(chunk(body[at : at + 1]) for at in range(len(body))), LAST)


async def all_in_one(reply: Reply) -> None:
    await reply.send(HEAD + chunk(whole(reply)) + LAST)


async def characters_apart(reply: Reply) -> None:
    """Each character of more than one byte comes in two HTTP chunks, in two writes."""
    first, *rest = whole(reply).split(b"\xc3")
    assert rest, "there are such characters"
    await reply.send(HEAD, chunk(first + b"\xc3"))
    for piece in rest[:-1]:
        await reply.send(chunk(piece + b"\xc3"))
    await reply.send(chunk(rest[-1]), LAST)


async def crlf(reply: Reply) -> None:
    await reply.send(HEAD, *(chunk(one.replace(b"\n", b"\r\n")) for one in tokens(reply, 1, 5, 9)), LAST)


async def cr(reply: Reply) -> None:
    await reply.send(HEAD, *(chunk(one.replace(b"\n", b"\r")) for one in tokens(reply, 1, 5, 9)), LAST)


async def comments(reply: Reply) -> None:
    first, *rest = tokens(reply, 1, 5, 9)
    await reply.send(HEAD, chunk(b": keep-alive\n\n"), chunk(first), chunk(b":\n\n"), *map(chunk, rest), LAST)


async def no_space(reply: Reply) -> None:
    await reply.send(HEAD, chunk(whole(reply).replace(b"data: ", b"data:")), LAST)


async def split_in_lines(reply: Reply) -> None:
    body = whole(reply).replace(b',"', b'\ndata: ,"')
    await reply.send(HEAD, chunk(body), LAST)


async def to_the_end(reply: Reply) -> None:
    await reply.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", whole(reply))
    reply.close()


async def sized(reply: Reply) -> None:
    body = whole(reply)
    await reply.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body), body)


async def without_done(reply: Reply) -> None:
    await reply.send(HEAD, *map(chunk, tokens(reply, 1, 5, 9)), LAST)


async def without_last_blank_line(reply: Reply) -> None:
    await reply.send(HEAD, chunk(whole(reply)[:-2]), LAST)


async def closed_after_done(reply: Reply) -> None:
    await reply.send(HEAD, chunk(whole(reply)))
    reply.close()


async def trailers_and_interim(reply: Reply) -> None:
    await reply.send(b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD, chunk(whole(reply)), b"0\r\nX-Took: 1\r\n\r\n")


async def empty_chunks(reply: Reply) -> None:
    first, *rest = tokens(reply, 1, 5, 9)
    nothing = event({"choices": [{"index": 0, "delta": {"content": ""}, "text": "", "finish_reason": None}]})
    extra = nothing if reply.api != "generate" else reply.token_event(1)
    await reply.send(HEAD, chunk(first), chunk(extra), chunk(b"\n\n"), *map(chunk, rest), LAST)


# answers that are not


def answering(status: str, kind: str, body: bytes) -> Script:
    async def script(reply: Reply) -> None:
        head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
        await reply.send(head.encode() + body)

    return script


def sending(*what: Callable[[Reply], bytes] | bytes, end: str = "") -> Script:
    """Those pieces after the head, then nothing, "close" or "reset"."""

    async def script(reply: Reply) -> None:
        await reply.send(HEAD)
        for one in what:
            await reply.send(one if isinstance(one, bytes) else one(reply))
        await asyncio.sleep(0.05 if end == "reset" else 0)  # what was sent must arrive before the RST
        if end == "close":
            reply.close()
        elif end == "reset":
            reply.reset()

    return script


def silent(*what: Callable[[Reply], bytes] | bytes) -> Script:
    """Those pieces after the head, and then nothing more for a long time."""

    async def script(reply: Reply) -> None:
        if what:
            await sending(*what)(reply)
        await asyncio.sleep(60)

    return script


def two(reply: Reply) -> bytes:
    return b"".join(map(chunk, tokens(reply, 1, 5, finish=False)))


def half(reply: Reply) -> bytes:
    return chunk(reply.token_event(9)[:40])


async def closed_at_once(reply: Reply) -> None:
    reply.close()


async def reset_at_once(reply: Reply) -> None:
    reply.reset()


async def not_http(reply: Reply) -> None:
    await reply.send(b"SSH-2.0-OpenSSH_9.2\r\n")


def without_usage(reply: Reply) -> bytes:
    """A good answer of a server that counts nothing."""
    if reply.api == "generate":
        return event({"text": "a"}) + event({"text": "ab"}) + event("[DONE]")
    pieces = []
    for finish in (None, "length"):
        choice = {"text": "x"} if reply.api == "completions" else {"delta": {"content": "x"}}
        pieces.append(event({"choices": [{"index": 0, "finish_reason": finish, **choice}], "usage": None}))
    return b"".join(pieces) + event("[DONE]")


def aborted(reply: Reply) -> bytes:
    return reply.token_event(5) + reply.token_event(5, finish="abort") + event("[DONE]")


JSON = json.dumps({"object": "error", "message": "The input is too long", "code": 400}).encode()
OPENAI_JSON = json.dumps({"error": {"message": "no such model", "type": "NotFoundError"}}).encode()
HTML = b"<html><head><title>502</title></head><body><h1>Bad Gateway</h1></body></html>"
