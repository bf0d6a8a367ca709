"""The faulty-server suite: every way in which a server can answer badly, through every endpoint. Each request
gets its outcome, none hangs, and the burst ends with what it has and says what happened.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from bench import faults
from bench.faults import answering, sending, silent, two
from bench.little_server import LAST, LittleServer, Reply, Script, chunk, event, serving

from ddtui.bench import burst
from ddtui.bench.model import ApiKind, Burst, BurstSpec, BurstState, Cell, Point
from ddtui.bench.target import Target
from ddtui.host.base import Endpoint

APIS: tuple[ApiKind, ...] = ("generate", "completions", "chat")
WAVE = 8  # requests at once; the first ones are answered well
SPEC = BurstSpec((Cell(WAVE, 64),), output=9, idle=1.5, max_seconds=100)


@dataclass(frozen=True)
class Fault:
    """One way to answer, and what must be made of it."""

    kind: str
    name: str
    script: Script
    outcome: str = "ok"
    says: str = ""  # part of the request's message
    kept: int | None = 9  # tokens that are kept of it; None: unknown


def ended(*what: Callable[[Reply], bytes] | bytes) -> Script:
    """Those pieces as a response that is complete by HTTP's rules."""
    return sending(*what, LAST)


def broken(reply: Reply) -> bytes:
    return chunk(faults.error_event(reply) + event("[DONE]"))


TABLE = (
    Fault("reset", "before any answer", faults.reset_at_once, "refused", "", None),
    Fault("reset", "after the headers", sending(end="reset"), "truncated", "", None),
    Fault("reset", "after two events", sending(two, end="reset"), "truncated", "", 5),
    Fault("closed", "before any answer", faults.closed_at_once, "refused", "closed", None),
    Fault("closed", "after the headers", sending(end="close"), "truncated", "closed", None),
    Fault("closed", "after two events", sending(two, end="close"), "truncated", "closed", 5),
    Fault("closed", "inside an event", sending(two, faults.half, end="close"), "truncated", "inside an event", 5),
    Fault("closed", "inside a chunk", sending(two, b"40\r\ndata: {", end="close"), "truncated", "", 5),
    Fault("closed", "after [DONE], without a last chunk", faults.closed_after_done),
    Fault("error in the body", "after two events", ended(two, broken), "error in the stream", "CUDA out of mem", 5),
    Fault("error in the body", "first of all", ended(broken), "error in the stream", "CUDA out of memory", None),
    Fault("error in the body", "as an event by name", ended(two, chunk(b"event: error\ndata: engine died\n\n")),
          "error in the stream", "engine died", 5),
    Fault("error in the body", "as JSON with 200", answering("200 OK", "application/json", faults.JSON),
          "error in the stream", "too long", None),
    Fault("error in the body", "aborted by the server", ended(lambda r: chunk(faults.aborted(r))), "aborted", "aborted by the server", 5),
    Fault("4xx/5xx with JSON", "400", answering("400 Bad Request", "application/json", faults.JSON),
          "http error", "HTTP 400: The input is too long", None),
    Fault("4xx/5xx with JSON", "404", answering("404 Not Found", "application/json", faults.OPENAI_JSON),
          "http error", "HTTP 404: no such model", None),
    Fault("4xx/5xx with JSON", "401", answering("401 Unauthorized", "application/json", b'{"error":"Unauthorized"}'),
          "http error", "HTTP 401: Unauthorized", None),
    Fault("4xx/5xx with JSON", "503", answering("503 Busy", "application/json", b'{"detail":"The queue is full"}'),
          "http error", "HTTP 503: The queue is full", None),
    Fault("4xx/5xx with HTML", "502", answering("502 Bad Gateway", "text/html", faults.HTML),
          "http error", "HTTP 502: 502 Bad Gateway", None),
    Fault("4xx/5xx with HTML", "403", answering("403 Forbidden", "text/html", b"<html><h1>Go away</h1></html>"),
          "http error", "HTTP 403: Go away", None),
    Fault("4xx/5xx with HTML", "200, a login page", answering("200 OK", "text/html", b"<html>Sign in</html>"),
          "malformed", "not an event stream", None),
    Fault("4xx/5xx otherwise", "plain text", answering("500 Oops", "text/plain", b"Internal Server Error"),
          "http error", "HTTP 500: Internal Server Error", None),
    Fault("4xx/5xx otherwise", "no body", answering("503 Unavailable", "text/plain", b""), "http error", "HTTP 503", None),
    Fault("split at every byte", "a write for each byte", faults.byte_by_byte),
    Fault("split at every byte", "an HTTP chunk for each byte", faults.chunks_of_one_byte),
    Fault("split at every byte", "not at all: one write", faults.all_in_one),
    Fault("characters across chunks", "each in two", faults.characters_apart),
    Fault("line ends", "CRLF", faults.crlf),
    Fault("line ends", "CR", faults.cr),
    Fault("line ends", "no blank line at the end", faults.without_last_blank_line),
    Fault("comments", "keep-alives between events", faults.comments),
    Fault("comments", "nothing but keep-alives", ended(chunk(b": ping\n\n"), chunk(b":\n\n")), "empty", "without a tok", None),
    Fault("missing usage", "no token counts at all", ended(lambda r: chunk(faults.without_usage(r))), kept=None),
    Fault("empty chunks", "between the events", faults.empty_chunks),
    Fault("empty chunks", "nothing else", ended(), "empty", "without a token", None),
    Fault("empty chunks", "only [DONE]", ended(chunk(event("[DONE]"))), "empty", "no tokens", None),
    Fault("stalls", "before any answer", silent(), "stalled", "nothing came", None),
    Fault("stalls", "after the headers", silent(b""), "stalled", "nothing came", None),
    Fault("stalls", "after two events", silent(two), "stalled", "nothing came", 5),
    Fault("ends too early", "no finish reason", ended(two), "truncated", "finish reason", 5),
    Fault("ends too early", "inside an event", ended(two, faults.half), "malformed", "inside an event", 5),
    Fault("other framing", "no [DONE]", faults.without_done),
    Fault("other framing", "no space after the colon", faults.no_space),
    Fault("other framing", "an event in several data lines", faults.split_in_lines),
    Fault("other framing", "up to the end of the connection", faults.to_the_end),
    Fault("other framing", "with a content length", faults.sized),
    Fault("other framing", "100 Continue and trailers", faults.trailers_and_interim),
    Fault("not what was asked", "not HTTP", faults.not_http, "malformed", "not HTTP", None),
    Fault("not what was asked", "not JSON", ended(two, chunk(b"data: {nope}\n\n" + event("[DONE]"))),
          "malformed", "not a JSON object", 5),
    Fault("not what was asked", "not UTF-8", ended(two, chunk(b'data: {"text":"\xff"}\n\n')), "malformed", "JSON", 5),
    Fault("not what was asked", "a chunk longer than it says", sending(two, b"3\r\nabcdef\r\n"), "malformed", "longer", 5),
    Fault("not what was asked", "compressed", answering("200 OK\r\ncontent-encoding: gzip", "text/event-stream", b"\x1f"),
          "malformed", "compressed", None),
    Fault("not what was asked", "JSON in place of a stream", answering("200 OK", "application/json", b'{"text":"hi"}'),
          "malformed", "not an event stream", None),
)  # fmt: skip


@dataclass
class Seen:
    """A burst that is over, the raw records by prompt, and the rids of what the server was asked."""

    burst: Burst
    records: dict[int, dict[str, Any]]
    asked: set[str]

    @property
    def point(self) -> Point:
        (point,) = self.burst.points
        return point


async def through(server: LittleServer, api: ApiKind, folder: Path, **what: Any) -> Seen:
    spec = replace(SPEC, endpoint=api, **what)
    async with serving(server), asyncio.timeout(90):
        target = Target(Endpoint(None, "127.0.0.1", server.port))
        last = [snapshot async for snapshot in burst.run(spec, target, keep=folder)][-1]
    told = [json.loads(line) for line in Path(last.raw).read_text().splitlines()]  # noqa: ASYNC240
    assert told[-1]["kind"] == "done" or last.state is BurstState.FAILED
    records = {one["index"]: one for one in told if one["kind"] == "record"}
    return Seen(last, records, {str(body["rid"]) for body in server.requests})


# one burst meets every fault of the table, each between two good answers


async def every_fault(api: ApiKind, folder: Path) -> Seen:
    """A burst that meets them all."""
    server = LittleServer()

    async def script(reply: Reply) -> None:
        at = place(int(str(reply.body["rid"]).rpartition("-")[2]))
        await (faults.plain if at is None else TABLE[at].script)(reply)

    server.script = script
    return await through(server, api, folder, requests=2 * len(TABLE))


@pytest.fixture(scope="module")
def bursts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    folder = tmp_path_factory.mktemp("bursts")

    async def all_of_them() -> list[Seen]:
        return await asyncio.gather(*(every_fault(api, folder) for api in APIS))

    return dict(zip(APIS, asyncio.run(all_of_them()), strict=True))


def place(index: int) -> int | None:
    """The fault that a request meets; None: it is answered well."""
    at, between = divmod(index - WAVE, 2)
    return at if not between and 0 <= at < len(TABLE) else None


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("fault", TABLE, ids=[f"{fault.kind}: {fault.name}" for fault in TABLE])
def test_the_request_has_its_outcome(fault: Fault, api: str, bursts: dict[str, Seen]) -> None:
    record = bursts[api].records[WAVE + 2 * TABLE.index(fault)]
    assert record["outcome"] == fault.outcome, record["message"]
    assert fault.says in record["message"] and bool(record["message"]) == (fault.outcome != "ok")
    assert record["output_tokens"] == fault.kept
    assert record["sent"] < record["ended"]
    if fault.outcome == "ok" and fault.kept:
        assert record["text"].endswith("wörd8 ") and record["finish"] == "length"


@pytest.mark.parametrize("api", APIS)
def test_the_burst_goes_on_to_its_end_and_says_what_happened(api: str, bursts: dict[str, Seen]) -> None:
    seen = bursts[api]
    assert seen.burst.state is BurstState.DONE
    assert {record["rid"] for record in seen.records.values()} == seen.asked, "each request, and once"
    assert len(seen.records) == WAVE + 2 * len(TABLE) + WAVE - 1
    for index, record in seen.records.items():
        assert place(index) is not None or record["outcome"] == "ok", "the good ones stay good"
    wrong = Counter(fault.outcome for fault in TABLE if fault.outcome != "ok")
    assert {name: n for name, n in seen.point.outcomes.items() if name != "ok"} == wrong
    assert seen.point.failed == wrong.total() and seen.point.messages
    assert any(mark.startswith("failures") for mark in seen.point.marks) and not seen.point.trusted


# the server is lost for all that comes after


@dataclass(frozen=True)
class Loss:
    """What becomes of the whole server in the middle of a burst."""

    name: str
    script: Script
    outcomes: frozenset[str]
    says: str


async def dies(reply: Reply) -> None:
    await sending(two)(reply)
    reply.server.die()


LOSSES = (
    Loss("it dies, and connections are refused", dies, frozenset({"truncated", "refused"}), "connection refused"),
    Loss("it closes every connection", faults.closed_at_once, frozenset({"refused"}), "closed by the server"),
    Loss("it stalls and stays silent", silent(two), frozenset({"stalled"}), "nothing came for"),
    Loss("its gateway answers for it", answering("502 Bad Gateway", "text/html", faults.HTML),
         frozenset({"http error"}), "HTTP 502: 502 Bad Gateway"),
)  # fmt: skip
GOOD = 3 * WAVE  # requests that are answered well before


async def lost(loss: Loss, api: ApiKind, folder: Path) -> Seen:
    """A burst whose server answers well a while, and then as the loss has it."""
    server, asked = LittleServer(), 0

    async def script(reply: Reply) -> None:
        nonlocal asked
        asked += 1
        await (faults.plain if asked <= GOOD else loss.script)(reply)

    server.script = script
    return await through(server, api, folder, requests=200)


@pytest.fixture(scope="module")
def losses(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Seen]:
    folder = tmp_path_factory.mktemp("losses")

    async def all_of_them() -> dict[tuple[str, str], Seen]:
        pairs = [(loss, api) for loss in LOSSES for api in APIS]
        seen = await asyncio.gather(*(lost(loss, api, folder) for loss, api in pairs))
        return {(loss.name, api): one for (loss, api), one in zip(pairs, seen, strict=True)}

    return asyncio.run(all_of_them())


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("loss", LOSSES, ids=[loss.name for loss in LOSSES])
def test_a_server_that_is_lost_ends_the_burst_with_what_it_has(
    loss: Loss, api: str, losses: dict[tuple[str, str], Seen]
) -> None:
    seen = losses[loss.name, api]
    assert seen.burst.state is BurstState.DONE
    outcomes = Counter(record["outcome"] for record in seen.records.values())
    assert outcomes.pop("ok") == GOOD and set(outcomes) == loss.outcomes
    assert 2 * WAVE <= outcomes.total() < 100, "a dead server is not asked for all 200"
    assert seen.asked <= {record["rid"] for record in seen.records.values()}
    assert seen.point.ok and seen.point.failed == outcomes.total()
    assert any(loss.says in message for message in seen.point.messages), seen.point.messages
    assert any("requests in a row failed" in mark for mark in seen.point.marks)


@pytest.mark.parametrize("api", APIS)
async def test_a_server_that_refuses_from_the_beginning_fails_the_burst_in_a_sentence(
    api: ApiKind, tmp_path: Path
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: refused
        where = Target(Endpoint(None, "127.0.0.1", taken.getsockname()[1]))
        async with asyncio.timeout(30):
            spec = replace(SPEC, endpoint=api)
            last = [snapshot async for snapshot in burst.run(spec, where, keep=tmp_path)][-1]
    assert last.state is BurstState.FAILED and last.points == ()
    assert "does not generate" in last.text and "nothing listens there" in last.text
