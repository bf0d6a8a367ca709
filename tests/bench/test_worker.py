"""The worker by itself: what it does with connections, time limits and a cancel."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from bench.faults import plain, two, whole
from bench.little_server import HEAD, LAST, LittleServer, Reply, Script, chunk, event, serving

from ddtui.bench import jobs
from ddtui.bench.growing import Prompt, Prompts
from ddtui.bench.model import BurstSpec, Cell, RequestRecord
from ddtui.bench.worker import Load

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


async def ask(script: Script, api: str, **what: Any) -> list[RequestRecord]:
    async with serving(LittleServer(script=script)) as server:
        heard = Heard()
        async with asyncio.timeout(20):
            await Load(job(api, server.port, **what), asyncio.get_running_loop(), heard).run()  # type: ignore[arg-type]
        return heard.records


def good(record: RequestRecord) -> None:
    assert (record.outcome, record.message) == ("ok", "")
    assert record.output_tokens == 9 and record.finish == "length"
    assert record.text.endswith("wörd8 ")
    assert record.first is not None and record.last is not None
    assert record.sent <= record.first <= record.last <= (record.ended or 0)


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
