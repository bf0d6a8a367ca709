"""A burst from its cells to its points, against a server on a schedule, through the real worker processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench import faults
from bench.little_server import LittleServer, Reply, serving

from ddtui import locations
from ddtui.bench import burst, kept
from ddtui.bench.model import Burst, BurstSpec, BurstState, Cell
from ddtui.bench.target import BenchError, Target
from ddtui.host.base import Endpoint, NotPermitted

SPEC = BurstSpec((Cell(2, 128),), output=17, requests=8, max_seconds=20)


def target(server: LittleServer, **what: Any) -> Target:
    return Target(Endpoint(None, "127.0.0.1", server.port), **what)


async def measured(spec: BurstSpec, to: Target, **what: Any) -> list[Burst]:
    async with asyncio.timeout(60):
        return [snapshot async for snapshot in burst.run(spec, to, **what)]


def raw(of: Burst) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(of.raw).read_text().splitlines()]


async def test_a_burst_ends_with_a_point_for_each_cell() -> None:
    spec = replace(SPEC, cells=(Cell(1, 64), Cell(3, 256, "chat"), Cell(2, 512, "document")))
    async with serving(LittleServer()) as server:
        seen = await measured(spec, target(server), step=7)
        last = seen[-1]
    assert (last.state, last.step, last.fraction, last.text) == (BurstState.DONE, 7, 1.0, "")
    assert [point.cell for point in last.points] == list(spec.cells)
    for point in last.points:
        # answers that end in the same instant as the eighth count as well
        assert 8 <= point.ok < 8 + point.cell.concurrency and point.failed == 0 and point.final
        assert point.output_tokens == 17 and point.prompt_tokens == point.cell.context
        assert point.output_rate and point.per_user_rate and point.ttft_ms and point.step_ms
        assert point.accept_length and point.accept_length.value == 4.0
        assert (point.accept_how, point.tpot_how) == ("accepted drafts / verify steps", "n - n1")
        assert point.output_rate.value > 0 and point.output_rate_whole
        assert point.server and point.server.accept_length == 4.0
    assert [snapshot.state for snapshot in seen].index(BurstState.RUNNING) > 0
    fractions = [snapshot.fraction for snapshot in seen]
    assert fractions == sorted(fractions)


@pytest.mark.parametrize("api", ["generate", "completions", "chat"])
async def test_what_is_sent_is_what_was_asked(api: str) -> None:
    spec = replace(SPEC, endpoint=api, temperature=0.5)  # type: ignore[arg-type]
    async with serving(LittleServer()) as server:
        last = (await measured(spec, target(server)))[-1]
        asked = server.requests
    assert last.state is BurstState.DONE and len(asked) == 2 + 8 + 1
    assert len({body["rid"] for body in asked}) == 11
    assert all(body["rid"].startswith(f"{last.id}-0-") for body in asked)
    for body in asked:
        settings = body["sampling_params"] if api == "generate" else body
        assert (settings["temperature"], settings["ignore_eos"], body["stream"]) == (0.5, True, True)
        if api == "generate":
            assert len(body["input_ids"]) == 128 and settings["max_new_tokens"] == 17
        else:
            assert body["max_tokens"] == 17 and body["stream_options"]["continuous_usage_stats"]
        if api == "completions":
            assert len(body["prompt"]) == 128
        if api == "chat":
            assert body["messages"][0]["role"] == "user" and len(body["messages"][0]["content"]) > 200


async def test_no_two_prompts_begin_alike_and_none_repeats_in_the_next_burst() -> None:
    async with serving(LittleServer()) as server:
        for _ in range(2):
            await measured(SPEC, target(server))
        begins = [tuple(body["input_ids"][:3]) for body in server.requests]
    assert len(set(begins)) == len(begins) == 22


async def test_the_same_salt_gives_the_same_prompts() -> None:
    async with serving(LittleServer()) as server:
        for _ in range(2):
            await measured(replace(SPEC, salt="pair"), target(server))
        prompts = [tuple(body["input_ids"]) for body in server.requests]
    assert set(prompts[:11]) == set(prompts[11:])


async def test_the_cache_is_flushed_when_idle_and_left_when_others_run() -> None:
    async with serving(LittleServer()) as server:
        await measured(SPEC, target(server))
        assert server.flushed == 1
        server.others = 2
        last = (await measured(SPEC, target(server)))[-1]
        assert server.flushed == 1
    assert any("not flushed" in warning for warning in last.warnings)
    assert any("other traffic: 2 requests" in mark for mark in last.points[0].marks)


async def test_the_servers_own_count_is_held_against_ours() -> None:
    class Busy(LittleServer):
        async def well(self, reply: Reply) -> None:
            self.extra += 20
            await super().well(reply)

    async with serving(Busy()) as server:
        (point,) = (await measured(SPEC, target(server)))[-1].points
    assert any(mark.startswith("server's output rate") for mark in point.marks)


async def test_the_servers_log_stands_beside_the_point() -> None:
    asked: list[float] = []

    async def log(seconds: float) -> list[tuple[float, str]]:
        asked.append(seconds)
        line = "[2026-12-01 02:55:04] Decode batch, #running-req: 2, accept len: 4.00, "
        line += "gen throughput (token/s): 77.00, #queue-req: 0"
        return [(ago / 1000, line) for ago in range(round(1000 * seconds), 0, -1)]

    async def none(seconds: float) -> list[tuple[float, str]]:
        raise NotPermitted("this user may not read the journal")

    async with serving(LittleServer()) as server:
        (point,) = (await measured(SPEC, target(server, log=log)))[-1].points
        (silent,) = (await measured(SPEC, target(server, log=none)))[-1].points
    assert asked and point.server and point.window_seconds
    assert point.server.log_rate == pytest.approx(77.0) and point.server.log_accept == pytest.approx(4.0)
    assert point.server.log_lines == pytest.approx(1000 * point.window_seconds, abs=2)
    assert any("server's log 77" in mark for mark in point.marks)
    assert silent.server and silent.server.log_rate is None


async def test_every_request_is_on_disk_as_it_ends() -> None:
    async with serving(LittleServer()) as server:
        last = (await measured(SPEC, target(server), burst_id="b1"))[-1]
    lines = raw(last)
    assert Path(last.raw) == locations.data_dir() / "bursts" / "b1.jsonl"
    assert [line["kind"] for line in lines] == ["burst", *["record"] * 11, "point", "done"]
    assert sum(line["warm_up"] for line in lines if line["kind"] == "record") == 2
    for line in lines[1:12]:
        assert (
            line["counts"][0] == 1
            and line["counts"][-1] == 17
            and len(line["arrivals"]) == len(line["counts"])
        )
        assert line["text"].startswith("wörd0 ")


async def test_closing_the_iterator_cancels_and_keeps_what_was_measured() -> None:
    async with serving(LittleServer(step=0.01, tokens=1)) as server:
        last: Burst | None = None
        async with asyncio.timeout(30):
            async with aclosing(burst.run(replace(SPEC, requests=500), target(server))) as running:
                async for last in running:
                    if last.points and last.points[-1].ok >= 2:
                        break
        assert last is not None and server.running == 0
        assert f"{last.id}-0-" in server.aborted
    records = [line for line in raw(last) if line["kind"] == "record"]
    assert sum(line["outcome"] == "ok" for line in records) >= 4
    assert sum((line["outcome"], line["message"]) == ("aborted", "cancelled") for line in records) == 2


async def test_the_cancel_event_ends_with_a_snapshot_of_what_was_measured() -> None:
    cancel = asyncio.Event()
    async with serving(LittleServer(step=0.01, tokens=1)) as server:
        async with asyncio.timeout(30):
            async for last in burst.run(replace(SPEC, requests=500), target(server), cancel=cancel):
                if last.points and last.points[-1].ok >= 2:
                    cancel.set()
    assert last.state is BurstState.CANCELLED
    (point,) = last.points
    assert point.final and point.preview and point.ok >= 2 and point.failed == 0


async def test_a_cell_beyond_the_models_limit_is_not_sent() -> None:
    spec = replace(SPEC, cells=(Cell(1, 4000), Cell(1, 64)))
    async with serving(LittleServer(limit=4001)) as server:
        last = (await measured(spec, target(server)))[-1]
        assert all(len(body["input_ids"]) == 64 for body in server.requests)
    skipped, sent = last.points
    assert skipped.marks == ("4000 + 17 tokens exceed the model's limit of 4001",) and skipped.ok == 0
    assert sent.ok == 8


@pytest.mark.parametrize("missing", [set(), {"/tokenize", "/v1/tokenize"}], ids=["counted", "guessed"])
async def test_text_that_may_come_out_longer_than_the_limit_is_not_sent(missing: set[str]) -> None:
    """A chat's template is not in the count, and where nobody counts the text may have twice the tokens."""
    spec = replace(SPEC, cells=(Cell(1, 4000),), endpoint="chat")
    async with serving(LittleServer(limit=4100, context_length=4100, missing=missing)) as server:
        (point,) = (await measured(spec, target(server)))[-1].points
        assert server.requests == []
    assert "text of 4000 tokens, which may be" in point.marks[0]


async def test_token_ids_beyond_the_vocabulary_are_not_sent() -> None:
    async with serving(LittleServer()) as server:
        (point,) = (await measured(SPEC, target(server, vocab_size=1000)))[-1].points
        assert server.requests == []
    assert "beyond the vocabulary of 1000" in point.marks[0]


@pytest.mark.parametrize(
    ("spec", "what", "says"),
    [
        (replace(SPEC, cells=(Cell(65, 64),)), {}, "more than the 64"),
        (replace(SPEC, cells=()), {}, "at least one cell"),
        (replace(SPEC, output=1), {}, "2 output tokens"),
        (replace(SPEC, cells=(Cell(1, 8),)), {}, "at least 16 tokens"),
        (replace(SPEC, at="host"), {}, "through a profile"),
    ],
)
async def test_what_must_not_be_sent_is_refused(spec: BurstSpec, what: dict[str, Any], says: str) -> None:
    async with serving(LittleServer()) as server:
        with pytest.raises(BenchError, match=says):
            await measured(spec, target(server, **what))
        assert server.requests == []


async def test_a_server_without_a_tokenizer_gets_text_and_the_burst_says_so() -> None:
    async with serving(LittleServer(missing={"/tokenize", "/v1/tokenize"})) as server:
        last = (await measured(SPEC, target(server)))[-1]
        assert all(isinstance(body["text"], str) for body in server.requests)
    assert last.state is BurstState.DONE and any("estimates" in warning for warning in last.warnings)


async def test_a_users_own_prompts(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(
        '{"prompt": "What is love?"}\n\n{"messages": [{"role": "user", "content": "Baby"}]}\n"hm"\n'
    )
    async with serving(LittleServer()) as server:
        last = (await measured(replace(SPEC, cells=(Cell(1, 64, str(path)),)), target(server)))[-1]
        assert {len(body["input_ids"]) for body in server.requests} == {64}
        path.write_text('{"no": 1}\n')
        failed = (await measured(replace(SPEC, cells=(Cell(1, 64, str(path)),)), target(server)))[-1]
    assert last.points[0].ok == 8
    assert failed.state is BurstState.FAILED and "line 1: no prompt" in failed.text


async def test_the_burst_stops_when_its_interval_is_tight_enough() -> None:
    spec = replace(SPEC, requests=None, precision=2.0, output=9)  # wide: a busy machine reaches it too
    async with serving(LittleServer(step=0.01)) as server:
        (point,) = (await measured(spec, target(server)))[-1].points
    assert not point.preview and 32 <= point.ok < 60


async def test_until_then_it_goes_on_to_the_end_of_its_time() -> None:
    spec = replace(SPEC, requests=None, precision=0.000001, max_seconds=1.5, output=9)
    async with serving(LittleServer(step=0.03)) as server:
        (point,) = (await measured(spec, target(server)))[-1].points
    # two slots of four steps of 30 ms: some 12 requests a second, of which 128 would be sent at most
    assert 8 <= point.ok < 64 and point.window_seconds and point.failed == 0
    assert point.preview == (point.ok < 32)


@pytest.mark.parametrize(
    ("rtt", "says"),
    [(0.01, ()), (15.0, ("are in every TTFT",)), (400.0, ("are in every TTFT", "exceed a step"))],
)
async def test_a_slow_link_is_told_where_it_matters(rtt: float, says: tuple[str, ...]) -> None:
    async with serving(LittleServer(step=0.05)) as server:
        last = (await measured(SPEC, target(server, rtt_ms=rtt)))[-1]
    told = [warning for warning in last.warnings if warning.startswith("the link")]
    assert last.rtt_ms == rtt and len(told) == len(says)
    for warning, words in zip(told, says, strict=True):
        assert words in warning


async def test_a_worker_that_is_killed_ends_the_burst_with_what_it_has() -> None:
    killed = False
    async with serving(LittleServer(step=0.01, tokens=1)) as server:
        async with asyncio.timeout(60):
            async for last in burst.run(replace(SPEC, requests=500), target(server)):
                if not killed and last.points and last.points[-1].ok >= 2:
                    os.kill(worker_of_this_process(), signal.SIGKILL)
                    killed = True
        assert f"{last.id}-" in server.aborted
        while server.running:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    (point,) = last.points
    assert last.state is BurstState.DONE and point.final and point.ok >= 2
    assert any(mark.startswith("the load process ended early") for mark in point.marks)


def worker_of_this_process() -> int:
    done = subprocess.run(["pgrep", "-P", str(os.getpid()), "-f", "sys.stdin.readline"], capture_output=True)
    return int(done.stdout)


async def test_while_nothing_comes_the_burst_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(burst, "QUIET", 0.8)

    async def script(reply: Reply) -> None:
        await (faults.plain if len(server.requests) < 5 else faults.silent(faults.two))(reply)

    server = LittleServer(script=script)
    async with serving(server), asyncio.timeout(30):
        running = burst.run(replace(SPEC, output=9), target(server))
        async with aclosing(running):
            async for snapshot in running:
                if "nothing has come for" in snapshot.text:
                    break
            else:
                pytest.fail("it was not said")


async def test_a_burst_survives_being_kept() -> None:
    async with serving(LittleServer()) as server:
        last = (await measured(SPEC, target(server)))[-1]
    plain = json.loads(json.dumps(kept.to_plain(last)))
    assert kept.from_plain(plain) == last
    plain["points"][0]["something new"] = 1
    del plain["points"][0]["spreads"]
    assert kept.from_plain(plain).points[0].spreads == {}
