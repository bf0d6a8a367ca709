"""The load on the inference host: the same worker over stdin, by the host's own Python, leaving nothing."""

from __future__ import annotations

import ast
import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest
from bench.little_server import LittleServer, serving

from ddtui.bench import burst, load
from ddtui.bench.model import Burst, BurstSpec, BurstState, Cell
from ddtui.bench.target import Target
from ddtui.host.base import Endpoint, Host, NobodyToAsk
from ddtui.host.open import open_host
from ddtui.profile import Connection

SPEC = BurstSpec((Cell(2, 128),), output=17, requests=8, at="host")


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    made = open_host(Connection(host="local"), NobodyToAsk())
    await made.connect()
    yield made
    await made.close()


def target(server: LittleServer, host: Host) -> Target:
    reach = Endpoint(None, "127.0.0.1", server.port)
    return Target(reach, host=host, python=sys.executable, address=("127.0.0.1", server.port))


async def test_a_burst_runs_on_the_host(host: Host, tmp_path: Path) -> None:
    ran: list[tuple[str, ...]] = []
    host.on_command(lambda command: ran.append(command.argv))
    async with serving(LittleServer()) as server:
        async with asyncio.timeout(60):
            seen = [snapshot async for snapshot in burst.run(SPEC, target(server, host))]
    (point,) = seen[-1].points
    assert seen[-1].state is BurstState.DONE and point.place == "host" and point.ok >= 8
    workers = [words for words in ran if words[0] != "nvidia-smi"]  # the GPUs are looked at meanwhile
    assert workers and all(words[1:] == ("-c", load.READ) for words in workers), (
        "no argument holds a script or a key"
    )


async def test_cancelling_stops_the_worker_on_the_host_and_keeps_what_came(host: Host) -> None:
    async with serving(LittleServer(step=0.01, tokens=1)) as server:
        last: Burst | None = None
        async with asyncio.timeout(60):
            async with aclosing(burst.run(replace(SPEC, requests=500), target(server, host))) as running:
                async for last in running:
                    if last.points and last.points[-1].ok >= 2:
                        break
        assert last is not None and server.running == 0 and f"{last.id}-0-" in server.aborted
    records = [json.loads(line) for line in Path(last.raw).read_text().splitlines()]  # noqa: ASYNC240
    cut = [one for one in records if one["kind"] == "record" and one["message"] == "cancelled"]
    assert len(cut) == 2 and all(one["output_tokens"] for one in cut)


async def test_a_host_without_that_python_fails_the_burst_in_a_sentence(host: Host) -> None:
    async with serving(LittleServer()) as server:
        where = replace(target(server, host), python="/nowhere/python3")
        async with asyncio.timeout(60):
            seen = [snapshot async for snapshot in burst.run(SPEC, where)]
        assert server.requests == []
    assert seen[-1].state is BurstState.FAILED and seen[-1].text


def job(port: int) -> dict[str, object]:
    return {
        "address": {"host": "127.0.0.1", "port": port},
        "host_header": "127.0.0.1",
        "headers": [],
        "api": "generate",
        "path": "/generate",
        "slots": 2,
        "pieces": ["1,2,3"],
        "separator": ",",
        "head": '{"rid":"%rid%","input_ids":[',
        "tail": '],"stream":true,"sampling_params":{"max_new_tokens":9}}',
        "requests": [{"index": at, "rid": f"r-{at}", "pieces": [0], "warm_up": at < 2} for at in range(6)],
        "minimum": 4,
        "precision": None,
        "max_seconds": 30,
        "first": 10,
        "idle": 10,
        "deadline": 30,
        "abort": "r-",
        "give_up_after": 8,
    }


def runs(path: str) -> bool:
    return subprocess.run([path, "-c", ""], capture_output=True).returncode == 0


# every other Python of this machine: services run older and newer ones than ddtui
OTHERS = [path for n in range(9, 16) if (path := shutil.which(f"python3.{n}")) and runs(path)]


@pytest.mark.parametrize(
    "python",
    [[sys.executable, "-I", "-S"], *([path, "-I", "-S"] for path in OTHERS)],
    ids=lambda p: Path(p[0]).name,
)
async def test_the_worker_needs_nothing_but_python(python: list[str]) -> None:
    """Without site packages there is neither uvloop nor orjson."""
    async with serving(LittleServer()) as server:
        script = load.bundle(job(server.port))
        process = await asyncio.create_subprocess_exec(
            *python, "-", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await asyncio.wait_for(process.communicate(script), 30)
    told = [json.loads(line) for line in out.splitlines()]
    assert told[0]["loop"] == "asyncio" and told[0]["orjson"] is False
    assert [one["outcome"] for one in told if one["kind"] == "record"] == ["ok"] * 6
    assert told[-1]["kind"] == "end"


@pytest.mark.parametrize(
    ("lost", "patience"),
    [("its stdout is closed", None), ("its stdin ends", 60.0), ("its stdin is silent", 1.5)],
)
async def test_the_worker_ends_when_nobody_is_there_any_more(lost: str, patience: float | None) -> None:
    """The link is gone, with or without a word: it must not go on loading the server."""
    async with serving(LittleServer(step=0.05, tokens=1)) as server:
        long = {**job(server.port), "tail": '],"stream":true,"sampling_params":{"max_new_tokens":100000}}'}
        process = subprocess.Popen(  # noqa: ASYNC220 (its pipes are to be closed)
            [sys.executable, "-c", load.READ], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdin and process.stdout
        process.stdin.write(load.bundle({**long, "patience": patience}))
        process.stdin.flush()
        await server.until_running(2)
        for _ in range(20):  # a pulse keeps it going beyond its patience
            process.stdin.write(b"\n")
            process.stdin.flush()
            await asyncio.sleep(0.1)
        assert process.poll() is None and server.running == 2
        if lost == "its stdout is closed":
            process.stdout.close()
        elif lost == "its stdin ends":
            process.stdin.close()
        assert await asyncio.to_thread(process.wait, 20) == 0
        assert server.aborted == ["r-"] and server.running == 0
        process.stdin.close()
        process.stdout.close()


def test_the_modules_that_are_sent_need_nothing_that_is_not_sent() -> None:
    folder = Path(load.__file__).parent
    sent = {f"ddtui.bench.{name}" for name in load.MODULES}
    for name in load.MODULES:
        tree = ast.parse((folder / f"{name}.py").read_text(), feature_version=(3, 9))
        for node in ast.walk(tree):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for found in names:
                top = found.split(".")[0]
                assert found in sent or top in sys.stdlib_module_names or top in ("uvloop", "orjson"), found


def test_a_long_job_travels_small() -> None:
    """128k-token contexts of 160 requests: what is sent is what differs, packed."""
    made = job(1)
    made["pieces"] = [
        ",".join(str(7 * n % 100_000) for n in range(k * 512, k * 512 + 512)) for k in range(800)
    ]
    made["requests"] = [
        {"index": at, "rid": f"r-{at}", "pieces": list(range(at, at + 256))} for at in range(160)
    ]
    assert len(load.bundle(made)) < 2_500_000
