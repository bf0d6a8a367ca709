"""How true a load client's gaps are, and how much it takes: ddtui's worker beside what others use.

    python benchmarks/client_lag.py [--streams 64,256,512] [--rounds 3] [--clients ddtui,…] [--realtime]

A server in C (null_server.c) sends every stream's chunk in the same instant on an exact schedule. Reported
for each client: the 99th percentile of |gap - interval| at 40 ms, the most chunks a second that it keeps up
with (that error stays below a quarter of the interval, or 1 ms where that is more), and its CPU time per
chunk at 40 ms. Server and clients have cores of their own where there are two or more. `bench_serving` is the
client of that name out of SGLang's own wheel, fetched by pip unless given. Clients are measured in turns, and
medians of the rounds are shown. `--realtime` puts both ahead of
all else, for a machine that others use (root).
Bars: ddtui's error at most half of bench_serving's, its rate three times as high, its CPU per chunk within
1.5 x of the bare loop. Exit code 1: a bar was missed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import types
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
VERSION = "0.5.11"
TOKENS = 4
CLIENTS = ("ddtui", "bench_serving", "bare loop", "aiohttp lines", "httpx lines")
BODY = {"text": "x" * 200, "sampling_params": {"max_new_tokens": 100}, "stream": True, "incremental": True}


# one client, in a process of its own: prints its figures as JSON


async def bare_loop(port: int, streams: int) -> list[list[float]]:
    """The leanest loop there is: stamp and keep; what it means is read after the end."""
    loop = asyncio.get_running_loop()
    body = json.dumps(BODY).encode()
    ask = b"POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body

    class Stream(asyncio.Protocol):
        def __init__(self) -> None:
            self.raw: list[tuple[int, bytes]] = []
            self.over = loop.create_future()

        def connection_made(self, transport: Any) -> None:
            self.transport = transport
            transport.write(ask)

        def data_received(self, data: bytes) -> None:
            self.raw.append((time.monotonic_ns(), data))
            if data.endswith(b"0\r\n\r\n"):
                self.over.set_result(None)

    mark()
    made = [(await loop.create_connection(Stream, "127.0.0.1", port))[1] for _ in range(streams)]
    await asyncio.gather(*(one.over for one in made))
    mark()
    return [
        gaps([at / 1e9 for at, data in one.raw for _ in range(data.count(b'"completion_tokens"'))])
        for one in made
    ]


async def aiohttp_lines(port: int, streams: int) -> list[list[float]]:
    import aiohttp

    async def one() -> list[float]:
        times = []
        async with aiohttp.ClientSession(read_bufsize=10 << 20) as session:
            async with session.post(f"http://127.0.0.1:{port}/generate", json=BODY) as answer:
                async for line in answer.content:
                    line = line.strip()
                    if line and line != b"data: [DONE]":
                        json.loads(line.decode().removeprefix("data: "))
                        times.append(time.perf_counter())
        return gaps(times)

    mark()
    found = await asyncio.gather(*(one() for _ in range(streams)))
    mark()
    return list(found)


async def httpx_lines(port: int, streams: int) -> list[list[float]]:
    import httpx

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=600) as client:

        async def one() -> list[float]:
            times = []
            async with client.stream("POST", f"http://127.0.0.1:{port}/generate", json=BODY) as answer:
                async for line in answer.aiter_lines():
                    if line.startswith("data: {"):
                        json.loads(line[6:])
                        times.append(time.perf_counter())
            return gaps(times)

        mark()
        found = await asyncio.gather(*(one() for _ in range(streams)))
        mark()
        return list(found)


async def bench_serving(port: int, streams: int, wheel: str) -> list[list[float]]:
    module = load_bench_serving(Path(wheel))
    names = ("disable_ignore_eos", "disable_stream", "return_logprob", "return_routed_experts")
    module.args = types.SimpleNamespace(
        **dict.fromkeys(names, False),
        logprob_start_len=-1,
        top_logprobs_num=0,
        token_ids_logprob=None,
        header=None,
    )

    async def one() -> list[float]:
        asked = module.RequestFuncInput(
            prompt="x" * 200,
            api_url=f"http://127.0.0.1:{port}/generate",
            prompt_len=16,
            output_len=100,
            model="default",
            lora_name="",
            image_data=None,
            extra_request_body={"incremental": True},
        )
        output = await module.async_request_sglang_generate(asked)
        assert output.success, output.error
        return [per_token * TOKENS for per_token in output.itl[::TOKENS]]

    mark()
    found = await asyncio.gather(*(one() for _ in range(streams)))
    mark()
    return list(found)


def load_bench_serving(wheel: Path) -> Any:
    """The module as it is in the wheel; what it imports and the client does not use is stood in for."""
    folder = Path(tempfile.mkdtemp())
    with zipfile.ZipFile(wheel) as archive:
        path = Path(archive.extract("sglang/bench_serving.py", folder))

    class Anything(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name == "remove_prefix":
                return lambda text, prefix: text.removeprefix(prefix)
            return type(name, (), {}) if name[:1].isupper() else (lambda *a, **k: None)

    for name in (
        "requests",
        "tqdm",
        "tqdm.asyncio",
        "transformers",
        "sglang",
        "sglang.benchmark",
        "sglang.benchmark.datasets",
        "sglang.benchmark.datasets.mooncake",
        "sglang.benchmark.utils",
        "sglang.srt",
        "sglang.srt.disaggregation",
        "sglang.srt.disaggregation.utils",
        "sglang.srt.utils",
        "sglang.srt.utils.network",
    ):
        sys.modules.setdefault(name, Anything(name))
    spec = importlib.util.spec_from_file_location("sglang.bench_serving", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


async def ddtui(port: int, streams: int) -> tuple[list[list[float]], float, int]:
    from ddtui.bench import jobs, load
    from ddtui.bench.growing import Prompt, Prompts
    from ddtui.bench.model import BurstSpec, Cell

    cell = Cell(streams, 16)
    spec = BurstSpec((cell,), output=100, requests=1)
    prompts = Prompts(
        ("x" * 200,), tuple(Prompt(at, (0,), 16, "x") for at in range(streams)), False, "", None
    )
    told: list[dict[str, Any]] = []
    made = jobs.make(
        spec, cell, prompts, address={"host": "127.0.0.1", "port": port}, rid="lag", processes=load.cores()
    )
    for job in made:
        job["tail"] = job["tail"][:-1] + ',"incremental":true}'
    await asyncio.gather(*(load.here(job, told.append) for job in made))
    records = [one for one in told if one["kind"] == "record"]
    assert all(one["outcome"] == "ok" for one in records), records[0]["message"]
    cpu = sum(one["cpu_s"] for one in told if one["kind"] == "end")
    return [gaps([at / 1e6 for at in one["arrivals"]]) for one in records], cpu, len(made)


def gaps(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times)]


CPU: list[float] = []


def mark() -> None:
    """The load begins, or is over: what lies between is its CPU time."""
    CPU.append(time.process_time())


def client(name: str, port: int, streams: int, interval: float, wheel: str) -> None:
    processes = 1
    if name == "ddtui":
        found, cpu, processes = asyncio.run(ddtui(port, streams))
    else:
        run = {"bare loop": bare_loop, "aiohttp lines": aiohttp_lines, "httpx lines": httpx_lines}.get(name)
        work = run(port, streams) if run else bench_serving(port, streams, wheel)
        if name == "bare loop":
            import uvloop

            found = uvloop.run(work)
        else:
            found = asyncio.run(work)
        cpu = CPU[1] - CPU[0]
    every = np.concatenate([np.asarray(one) for one in found])
    summary = {
        "error_ms": float(np.percentile(np.abs(every - interval), 99)) * 1e3,
        "rate": len(every) / max(sum(one) for one in found),
        "cpu_us": cpu / (len(every) + streams) * 1e6,
        "processes": processes,
    }
    print(json.dumps(summary))


# the parent


@contextlib.contextmanager
def null_server(binary: Path, streams: int, interval_us: int, chunks: int) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(binary), str(port), str(streams), str(interval_us), str(chunks), str(TOKENS)]
    last = {max(os.sched_getaffinity(0))}
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: place(last)
    )
    assert process.stdout
    process.stdout.readline()
    try:
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


REALTIME = "--realtime" in sys.argv


def place(cores: set[int]) -> None:
    """Before a process begins: where it runs, and with --realtime ahead of everything else there."""
    os.sched_setaffinity(0, cores)
    if REALTIME:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))


def measured(
    name: str, binary: Path, streams: int, interval_us: int, chunks: int, wheel: str
) -> dict[str, float]:
    cores = os.sched_getaffinity(0)
    rest = cores - {max(cores)} if len(cores) > 1 else cores
    with null_server(binary, streams, interval_us, chunks) as port:
        done = subprocess.run(
            [
                sys.executable,
                __file__,
                "--client",
                name,
                str(port),
                str(streams),
                str(interval_us / 1e6),
                wheel,
            ],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=300,
            preexec_fn=lambda: place(rest),
        )
    summary: dict[str, float] = json.loads(done.stdout)
    return summary


RATES = (
    5_000,
    6_300,
    8_000,
    10_000,
    12_600,
    16_000,
    20_000,
    25_000,
    32_000,
    40_000,
    50_000,
    63_000,
    80_000,
    100_000,
    126_000,
    160_000,
    200_000,
)


def most(name: str, binary: Path, streams: int, wheel: str) -> float:
    """The most chunks a second with a gap error of at most a quarter of the interval; each rate may be
    tried twice.
    """
    best = 0.0
    for rate in RATES:
        interval_us = round(1e6 * streams / rate)
        chunks = max(100, round(2 * rate / streams))
        for _ in range(2):
            error = measured(name, binary, streams, interval_us, chunks, wheel)["error_ms"]
            if error <= max(1.0, interval_us / 4e3):
                best = rate
                break
        if best < rate:
            break
    return best


def find_wheel(folder: Path) -> str:
    """SGLang's wheel, fetched by pip. "" if it cannot be had."""
    words = [
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--only-binary=:all:",
        f"sglang=={VERSION}",
        "-d",
        str(folder),
    ]
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True)
    found = list(folder.glob("sglang-*.whl"))
    if done.returncode or not found:
        print(f"sglang's wheel cannot be had: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return ""
    return str(found[0])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--streams", default="64,256,512")
    parser.add_argument("--interval-ms", type=float, default=40.0)
    parser.add_argument("--chunks", type=int, default=250)
    parser.add_argument("--rounds", type=int, default=3, help="of all clients in turns; medians are shown")
    parser.add_argument("--clients", default=",".join(CLIENTS))
    parser.add_argument("--wheel", default="")
    parser.add_argument("--no-bench-serving", action="store_true")
    parser.add_argument(
        "--realtime", action="store_true", help="ahead of all else here: for a busy machine; root"
    )
    parser.add_argument("--client", nargs=5, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.client:
        name, port, streams, interval, wheel = args.client
        client(name, int(port), int(streams), float(interval), wheel)
        return 0
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "null_server"
        subprocess.run(["cc", "-O2", "-o", str(binary), str(HERE / "null_server.c")], check=True)
        wheel = "" if args.no_bench_serving else args.wheel or find_wheel(Path(folder))
        names = [name for name in args.clients.split(",") if name != "bench_serving" or wheel]
        print(
            f"{'streams':>7}  {'client':<14} {'p99 gap error':>13}  {'most chunks/s':>13}  {'CPU/chunk':>9}"
        )
        for streams in map(int, args.streams.split(",")):
            rounds: dict[str, list[dict[str, float]]] = {name: [] for name in names}
            for _ in range(args.rounds):
                for name in names:
                    steady = measured(name, binary, streams, int(args.interval_ms * 1000), args.chunks, wheel)
                    rounds[name].append({**steady, "rate": most(name, binary, streams, wheel)})
            found = {}
            for name, each in rounds.items():
                row = found[name] = {key: statistics.median(one[key] for one in each) for key in each[0]}
                figures = f"{row['error_ms']:>10.2f} ms  {row['rate']:>13,.0f}  {row['cpu_us']:>6.1f} µs"
                print(f"{streams:>7}  {name:<14} {figures}", flush=True)
            ours, bare, theirs = found["ddtui"], found["bare loop"], found.get("bench_serving")
            checks = [("CPU per chunk against the bare loop", ours["cpu_us"] / bare["cpu_us"], 1.5, True)]
            if theirs:
                checks.append(
                    ("gap error against bench_serving", ours["error_ms"] / theirs["error_ms"], 0.5, True)
                )
                checks.append(
                    ("most chunks/s against bench_serving", ours["rate"] / theirs["rate"], 3.0, False)
                )
            for what, ratio, bar, at_most in checks:
                good = ratio <= bar if at_most else ratio >= bar
                print(
                    f"         {what}: {ratio:.2f} x  (bar: {'at most' if at_most else 'at least'} {bar}) "
                    f"{'ok' if good else 'MISSED'}"
                )
                if not good:
                    missed.append((streams, what))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
