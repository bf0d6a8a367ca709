"""Every way in which a server can answer badly, on every endpoint: each request gets an outcome, none hangs."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from bench.little_server import HEAD, LAST, LittleServer, Reply, chunk, event, serving

from ddtui.bench import jobs
from ddtui.bench.growing import Prompt, Prompts
from ddtui.bench.model import BurstSpec, Cell, RequestRecord
from ddtui.bench.worker import Load

Script = Callable[[Reply], Awaitable[None]]
APIS = ("generate", "completions", "chat")
CELL = Cell(1, 64)


class Heard:
    """Takes the worker's messages in place of stdout."""

    closed = False

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def put(self, value: dict[str, Any]) -> None:
        self.told.append(json.loads(json.dumps(value)))

    @property
    def records(self) -> list[RequestRecord]:
        return [jobs.record(told, CELL) for told in self.told if told["kind"] == "record"]


def job(api: str, port: int, *, requests: int = 1, slots: int = 1, **what: Any) -> dict[str, Any]:
    ids = api != "chat"
    prompts = Prompts(
        ("1,2,3" if ids else "hello ", "4" if ids else "you"),
        tuple(Prompt(at, (0, 1), 4, "x") for at in range(requests)),
        ids,
        "same",
        4,
    )
    spec = BurstSpec((Cell(slots, 64),), output=9, endpoint=api, requests=requests)  # type: ignore[arg-type]
    (made,) = jobs.make(
        spec,
        Cell(slots, 64),
        prompts,
        address={"host": "127.0.0.1", "port": port},
        rid="b-0",
        processes=1,
    )
    return {**made, "give_up_after": 100, "idle": 5, "first": 5, "deadline": 10, **what}


async def ask(script: Script | None, api: str, **what: Any) -> list[RequestRecord]:
    async with serving(LittleServer(script=script)) as server:
        heard = Heard()
        async with asyncio.timeout(20):
            await Load(job(api, server.port, **what), asyncio.get_running_loop(), heard).run()  # type: ignore[arg-type]
        return heard.records


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


def good(record: RequestRecord) -> None:
    assert (record.outcome, record.message) == ("ok", "")
    assert record.output_tokens == 9 and record.finish == "length"
    assert record.text.endswith("wörd8 ")
    assert record.first is not None and record.last is not None
    assert record.sent <= record.first <= record.last <= (record.ended or 0)


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


GOOD = [
    plain,
    byte_by_byte,
    chunks_of_one_byte,
    all_in_one,
    crlf,
    cr,
    comments,
    no_space,
    split_in_lines,
    to_the_end,
    sized,
    without_done,
    without_last_blank_line,
    closed_after_done,
    trailers_and_interim,
    empty_chunks,
]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("script", GOOD)
async def test_an_odd_answer_is_an_answer(script: Script, api: str) -> None:
    (record,) = await ask(script, api)
    good(record)


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


JSON_400 = json.dumps({"object": "error", "message": "The input is too long", "code": 400}).encode()
HTML = b"<html><head><title>502</title></head><body><h1>Bad Gateway</h1></body></html>"

BAD: list[tuple[str, Script, str, str, int]] = [
    # name, script, outcome, part of the message, tokens that are kept
    ("closed at once", closed_at_once, "refused", "closed", 0),
    ("reset at once", reset_at_once, "refused", "", 0),
    ("not HTTP", not_http, "malformed", "not HTTP", 0),
    ("400 with JSON", answering("400 Bad Request", "application/json", JSON_400), "http error", "too long", 0),
    ("401", answering("401 Unauthorized", "application/json", b'{"error":"Unauthorized"}'), "http error", "401", 0),
    ("500 in plain text", answering("500 Oops", "text/plain", b"Internal Server Error"), "http error", "Internal", 0),
    ("502 with HTML", answering("502 Bad Gateway", "text/html", HTML), "http error", "502 Bad Gateway", 0),
    ("503 without a body", answering("503 Unavailable", "text/plain", b""), "http error", "HTTP 503", 0),
    ("an error as JSON with 200", answering("200 OK", "application/json", JSON_400), "error in the stream", "too", 0),
    ("JSON for a stream", answering("200 OK", "application/json", b'{"text":"hi"}'), "malformed", "not an event", 0),
    ("error after two chunks", sending(two, lambda r: chunk(error_event(r) + event("[DONE]")), LAST),
     "error in the stream", "CUDA out of memory", 5),
    ("error first", sending(lambda r: chunk(error_event(r) + event("[DONE]")), LAST),
     "error in the stream", "CUDA out of memory", 0),
    ("error event by name", sending(two, chunk(b"event: error\ndata: engine died\n\n"), LAST),
     "error in the stream", "engine died", 5),
    ("only DONE", sending(chunk(event("[DONE]")), LAST), "empty", "no tokens", 0),
    ("no event at all", sending(LAST), "empty", "without a token", 0),
    ("comments only", sending(chunk(b": ping\n\n"), LAST), "empty", "without a token", 0),
    ("chunks, then the end", sending(two, LAST), "truncated", "finish reason", 5),
    ("chunks, then closed", sending(two, end="close"), "truncated", "closed", 5),
    ("chunks, then reset", sending(two, end="reset"), "truncated", "", 5),
    ("half an event, then closed", sending(two, half, end="close"), "truncated", "inside an event", 5),
    ("half an event, then the end", sending(two, half, LAST), "malformed", "inside an event", 5),
    ("cut inside a chunk", sending(two, b"40\r\ndata: {", end="close"), "truncated", "", 5),
    ("closed after the headers", sending(end="close"), "truncated", "closed", 0),
    ("an event that is not JSON", sending(two, chunk(b"data: {nope}\n\n" + event("[DONE]")), LAST),
     "malformed", "not a JSON object", 5),
    ("an event that is not UTF-8", sending(two, chunk(b'data: {"text":"\xff"}\n\n'), LAST), "malformed", "JSON", 5),
    ("a chunk longer than it says", sending(two, b"3\r\nabcdef\r\n"), "malformed", "longer", 5),
    ("compressed, unasked", answering("200 OK\r\ncontent-encoding: gzip", "text/event-stream", b"\x1f\x8b"),
     "malformed", "compressed", 0),
]  # fmt: skip


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("script", "outcome", "message", "kept"), [row[1:] for row in BAD], ids=[r[0] for r in BAD]
)
async def test_a_bad_answer_has_its_outcome(
    script: Script, outcome: str, message: str, kept: int, api: str
) -> None:
    (record,) = await ask(script, api)
    assert (record.outcome, message in record.message) == (outcome, True), record.message
    assert (record.output_tokens or 0) == kept and len(record.step_gaps) == (1 if kept else 0)


@pytest.mark.parametrize("api", APIS)
async def test_nobody_listens(api: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: refused
        heard = Heard()
        await Load(job(api, taken.getsockname()[1]), asyncio.get_running_loop(), heard).run()  # type: ignore[arg-type]
    (record,) = heard.records
    assert (record.outcome, record.message) == ("refused", "connection refused")


@pytest.mark.parametrize("api", APIS)
async def test_a_stream_that_stalls_is_given_up(api: str) -> None:
    async def script(reply: Reply) -> None:
        await reply.send(HEAD, two(reply))
        await asyncio.sleep(60)

    (record,) = await ask(script, api, idle=0.2)
    assert record.outcome == "stalled" and "nothing came" in record.message and record.output_tokens == 5


@pytest.mark.parametrize("api", APIS)
async def test_a_server_that_never_answers_is_given_up(api: str) -> None:
    async def script(reply: Reply) -> None:
        await asyncio.sleep(60)

    (record,) = await ask(script, api, first=0.2)
    assert (record.outcome, record.output_tokens) == ("stalled", None)


@pytest.mark.parametrize("api", APIS)
async def test_keep_alives_do_not_hold_a_request_for_ever(api: str) -> None:
    async def script(reply: Reply) -> None:
        await reply.send(HEAD, two(reply))
        while True:
            await reply.send(chunk(b": ping\n\n"))
            await asyncio.sleep(0.02)

    (record,) = await ask(script, api, deadline=0.6)
    assert record.outcome == "stalled" and "not finished" in record.message


async def test_the_role_chunk_is_not_the_first_token() -> None:
    said = asyncio.Event()

    async def script(reply: Reply) -> None:
        role = event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
        await reply.send(HEAD, chunk(role))
        await asyncio.sleep(0.05)
        said.set()
        await reply.send(chunk(whole(reply)), LAST)

    (record,) = await ask(script, "chat")
    good(record)
    assert said.is_set() and record.first is not None and record.first - record.sent >= 0.05


@pytest.mark.parametrize("usage", ["absent", "null"])
async def test_without_usage_the_tokens_are_unknown(usage: str) -> None:
    async def script(reply: Reply) -> None:
        for finish in (None, "length"):
            value: dict[str, Any] = {"choices": [{"index": 0, "text": "x", "finish_reason": finish}]}
            if usage == "null":
                value["usage"] = None
            await reply.send(*([HEAD] if finish is None else []), chunk(event(value)))
        await reply.send(chunk(event("[DONE]")), LAST)

    (record,) = await ask(script, "completions")
    assert (record.outcome, record.output_tokens, record.first_tokens) == ("ok", None, None)
    assert record.step_tokens == () and len(record.step_gaps) == 1


async def test_a_server_that_counts_nothing_has_unknown_tokens() -> None:
    async def script(reply: Reply) -> None:
        await reply.send(HEAD, chunk(event({"text": "a"}) + event({"text": "ab"}) + event("[DONE]")), LAST)

    (record,) = await ask(script, "generate")
    assert (record.outcome, record.output_tokens, record.text) == ("ok", None, "ab")


async def test_an_abort_by_the_server_is_told_apart() -> None:
    async def script(reply: Reply) -> None:
        await reply.send(HEAD, chunk(reply.token_event(3, finish="abort") + event("[DONE]")), LAST)

    (record,) = await ask(script, "generate")
    assert record.outcome == "aborted" and record.message != "cancelled"


@pytest.mark.parametrize("api", APIS)
async def test_an_idle_connection_that_was_closed_is_opened_again(api: str) -> None:
    """The keep-alive race: the server closes just when the connection is used again."""
    asked = 0

    async def script(reply: Reply) -> None:
        nonlocal asked
        asked += 1
        if asked == 2:
            reply.close()  # the second request, on the reused connection, is lost
        else:
            await plain(reply)

    records = await ask(script, api, requests=3)
    for record in records:
        good(record)
    assert [record.retried for record in records] == [False, True, False]


async def test_bytes_after_the_end_are_not_the_next_answer() -> None:
    async def script(reply: Reply) -> None:
        await reply.send(HEAD + chunk(whole(reply)) + LAST + b"HTTP/1.1 500 Old\r\ncontent-length: 0\r\n\r\n")

    for record in await ask(script, "generate", requests=3):
        good(record)


async def test_one_bad_answer_among_good_ones_leaves_the_others_alone() -> None:
    asked = 0

    async def script(reply: Reply) -> None:
        nonlocal asked
        asked += 1
        await (reset_at_once if asked == 5 else plain)(reply)

    records = await ask(script, "generate", requests=20, slots=4)
    assert sorted(record.outcome for record in records) == ["ok"] * 19 + ["refused"] or all(
        record.outcome == "ok" for record in records
    ), "a lost request is either told, or was sent again on a new connection"
    assert len({record.index for record in records}) == 20


async def test_a_dead_server_ends_the_run_early() -> None:
    records = await ask(closed_at_once, "generate", requests=200, slots=2, give_up_after=8)
    assert 8 <= len(records) < 20


async def test_cancelling_aborts_by_rid_and_keeps_what_came() -> None:
    async with serving(LittleServer(step=0.02, tokens=1)) as server:
        heard = Heard()
        load = Load(
            job("generate", server.port, requests=10, slots=3),
            asyncio.get_running_loop(),
            heard,  # type: ignore[arg-type]
        )
        running = asyncio.create_task(load.run())
        async with asyncio.timeout(10):
            await server.until_running(3)
            load.cancel()
            await running
        assert server.aborted == ["b-0-"] and server.running == 0
    records = heard.records
    assert [(r.outcome, r.message) for r in records] == [("aborted", "cancelled")] * 3
    assert all(record.output_tokens and record.output_tokens < 9 for record in records)
    assert heard.told[-1]["why"] == "cancelled"
