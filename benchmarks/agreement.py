"""Whether ddtui and SGLang's own client measure the same: both on one real server, one after the other.

    python benchmarks/agreement.py [--url http://127.0.0.1:30000] [--runs 5] [--concurrency 1,8,32]

Run it beside the server, under the Python that SGLang is installed in (with httpx, pydantic and pyyaml;
`PYTHONPATH` at this repository's root). Each run makes prompts of ddtui's `code` workload and sends both
clients the same texts, greedy, with the same fixed output length, in short blocks in the order A B B A, the
prefix cache flushed before each: a machine that drifts slows both alike. So that like is compared with like,
ddtui's figures are made here of all of its requests by its own definitions, since `bench_serving` has no
steady window: first wave and drain are in both. For each figure: the ratio ddtui / bench_serving of every
run, and the median of the runs. `bench_serving` opens a connection for each request within its TTFT, 1 to 2
ms; with prefills of a real model's length (50 ms or more) that does not show.
A machine whose steps wander more than the bar from burst to burst (an idle H200 host: 5.8 to 7.8 ms, for the
same client and prompts within two minutes) hides such a difference in any five runs. So the server itself is
the yardstick: each figure of a burst is divided by the mean that the server's own metrics (--enable-metrics)
give for the requests of that very burst (TTFT, inter-token latency, E2E), and the quotients of both clients
are compared; the plain ratio stands beside it. Without metrics only the plain one counts.
Its accept length is the server's own running mean, which counts the steps up to the last `Decode batch` line
(every 40th step): with few steps it leaves out up to 39 of them.
Bar: every median within 3 %. Exit code 1: the bar was missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import zlib
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ddtui.bench import burst as bursts
from ddtui.bench import metrics, samples, workload
from ddtui.bench.growing import Prompt, Prompts
from ddtui.bench.model import Burst, BurstSpec, Cell, Point
from ddtui.bench.target import Target
from ddtui.engine.answers import total
from ddtui.engine.api import Api, ApiError
from ddtui.host.base import Endpoint

BAR = 0.03
# Seconds before ddtui's load: bench_serving rests as long, and a GPU at its power limit is faster after it.
REST = 2.0
build = workload.build
T = TypeVar("T")
YARDSTICKS = {"ttft": "time_to_first_token", "itl": "inter_token_latency", "e2e": "e2e_request_latency"}
FIGURES = (  # name, bench_serving's key, ddtui's figure
    ("TTFT median ms", "median_ttft_ms", lambda p: p.spreads["ttft_ms"].median),
    ("TTFT mean ms", "mean_ttft_ms", lambda p: p.spreads["ttft_ms"].mean),
    ("TPOT mean ms", "mean_tpot_ms", lambda p: p.spreads["tpot_ms"].mean),
    ("TPOT median ms", "median_tpot_ms", lambda p: p.spreads["tpot_ms"].median),
    ("ITL mean ms", "mean_itl_ms", lambda p: p.spreads["itl_ms"].mean),
    ("ITL median ms", "median_itl_ms", lambda p: p.spreads["itl_ms"].median),
    ("E2E median ms", "median_e2e_latency_ms", lambda p: p.spreads["e2e_ms"].median),
    ("output tok/s", "output_throughput", lambda p: p.output_rate_whole),
    ("accept length", "accept_length", lambda p: p.accept_length.value),
)


# What the server's own mean of the same requests says to a figure: yardstick and its power.
MEASURED_BY = {
    "TTFT": ("ttft", 1),
    "TPOT": ("itl", 1),
    "ITL": ("itl", 1),
    "E2E": ("e2e", 1),
    "output": ("e2e", -1),
}


FORKS = """
import json, os, runpy, sys
import sglang.bench_serving  # heavy: once
print("ready", flush=True)
for line in sys.stdin:
    pid = os.fork()
    if not pid:
        sys.argv = ["bench_serving", *json.loads(line)]
        out = os.open(os.environ["BENCH_LOG"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(out, 1), os.dup2(out, 2)
        runpy.run_module("sglang.bench_serving", run_name="__main__")
        os._exit(0)
    print(os.waitpid(pid, 0)[1], flush=True)
"""


@dataclass(frozen=True)
class Pair:
    """One figure of one run, of both clients: itself, and as a multiple of the server's own."""

    ddtui: float
    bench_serving: float
    ddtui_by_server: float
    bench_serving_by_server: float

    @property
    def plain(self) -> float:
        return self.ddtui / self.bench_serving

    @property
    def by_server(self) -> float:
        return self.ddtui_by_server / self.bench_serving_by_server


class BenchServing:
    """SGLang's client, its imports done once; every measurement runs in a process of its own."""

    def __init__(self, url: str, folder: Path) -> None:
        self.where, self.folder, self.log = urlsplit(url), folder, folder / "bench_serving.log"
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", FORKS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "BENCH_LOG": str(self.log)},
        )
        assert self.process.stdin and self.process.stdout
        self.ask, self.hear = self.process.stdin, self.process.stdout
        while (line := self.hear.readline()) != "ready\n":
            if not line:
                raise SystemExit("sglang.bench_serving cannot be imported by this Python")

    def measure(self, cell: Cell, output: int, texts: list[str]) -> dict[str, Any]:
        data, out = self.folder / "prompts.jsonl", self.folder / "bench_serving.jsonl"
        out.unlink(missing_ok=True)
        talks = [{"conversations": [{"content": text}, {"content": "x " * output}]} for text in texts]
        data.write_text("".join(json.dumps(talk) + "\n" for talk in talks))
        words = ["--backend", "sglang", "--dataset-name", "custom", "--dataset-path", str(data)]
        words += ["--host", str(self.where.hostname), "--port", str(self.where.port)]
        words += [
            "--sharegpt-output-len",
            str(output),
            "--num-prompts",
            str(len(texts)),
            "--flush-cache",
            "--warmup-requests",
            "0",
        ]
        words += ["--max-concurrency", str(cell.concurrency), "--output-file", str(out), "--disable-tqdm"]
        print(json.dumps(words), file=self.ask, flush=True)
        if self.hear.readline().strip() != "0" or not out.exists():
            raise SystemExit(f"bench_serving failed:\n{self.log.read_text()[-3000:]}")
        return dict(json.loads(out.read_text().splitlines()[-1]))


def model_path(url: str) -> str:
    with urllib.request.urlopen(f"{url}/model_info", timeout=10) as answer:
        return str(json.load(answer)["model_path"])


async def texts_of(endpoint: Endpoint, cell: Cell, count: int, salt: str, tokenizer: Any) -> list[str]:
    """The texts of `count` prompts of ddtui's own making."""
    async with Api(endpoint, None) as api:

        async def tokenize(text: str) -> list[int]:
            return list((await api.tokenize(text)).ids)

        named = f"agreement {cell.concurrency} {salt}"
        made = await build(
            cell, count, api="generate", tokenize=tokenize, salt=named, seed=zlib.crc32(named.encode())
        )
    ids = [[int(i) for at in p.pieces for i in made.pieces[at].split(",") if i.strip()] for p in made.prompts]
    return [tokenizer.decode(one) for one in ids]


async def ddtui_point(endpoint: Endpoint, spec: BurstSpec, texts: list[str], keep: Path) -> Point:
    """One burst on these texts, and its figures over all of its requests."""
    (cell,) = spec.cells

    async def same_texts(*_: Any, **__: Any) -> Prompts:
        return Prompts(
            tuple(json.dumps(text)[1:-1] for text in texts),
            tuple(Prompt(at, (at,), cell.context, "agreement") for at in range(len(texts))),
            ids=False,
            identity="agreement",
            largest_id=None,
        )

    async def no_probe(*_: Any, **__: Any) -> None:
        """The server's metrics are to count the load's requests alone."""

    workload.build = same_texts
    Api.generate_one = no_probe  # type: ignore[assignment]
    last: Burst | None = None
    target = Target(endpoint, max_concurrency=cell.concurrency)
    async with aclosing(bursts.run(spec, target, keep=keep)) as states:
        async for state in states:
            last = state
    assert last is not None and last.points, last
    records = [replace(record, warm_up=False) for record in samples.records(last.raw)[cell]]
    every = metrics.Run(cell, last.started_at, 0.0, records, None, None, spec.output, final=True)
    steady = last.points[-1]
    for text in (*last.warnings, *steady.marks):
        print(f"    ddtui says: {text}", flush=True)
    return metrics.point(every)


async def counted(endpoint: Endpoint) -> dict[str, tuple[float, float]]:
    """Sum and count of each yardstick since the server's start; empty without metrics."""
    async with Api(endpoint, None) as api:
        try:
            found = await api.metrics()
        except ApiError:
            return {}
    names = {mine: f"sglang:{theirs}_seconds" for mine, theirs in YARDSTICKS.items()}
    both = {
        mine: (total(found, f"{name}_sum"), total(found, f"{name}_count")) for mine, name in names.items()
    }
    return {mine: (a, b) for mine, (a, b) in both.items() if a is not None and b is not None}


async def by_the_server(
    endpoint: Endpoint, requests: int, measure: Callable[[], Awaitable[T]]
) -> tuple[T, dict[str, float]]:
    """What `measure` gives, and the server's own means, in seconds, of the requests in between."""
    before = await counted(endpoint)
    result = await measure()
    await asyncio.sleep(0.5)  # the last requests are counted just after they were answered
    after = await counted(endpoint)
    start = {name: before.get(name, (0.0, 0.0)) for name in after}  # absent before the first request
    apart = {name: (a - start[name][0], b - start[name][1]) for name, (a, b) in after.items()}
    if apart and apart["ttft"][1] != requests:
        print(f"    the server counted {apart['ttft'][1]:.0f} requests, {requests} were sent", flush=True)
    return result, {name: seconds / count for name, (seconds, count) in apart.items() if count}


def quotient(title: str, value: float, server: dict[str, float]) -> float:
    """A figure as a multiple of what the server says; the figure itself where it says nothing."""
    yardstick, power = MEASURED_BY.get(title.split()[0], ("", 1))
    return value / server[yardstick] ** power if yardstick in server else value


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:30000")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--blocks", type=int, default=1, help="of A B B A in a run")
    parser.add_argument("--concurrency", default="1,8,32")
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--output", type=int, default=256)
    parser.add_argument("--json", type=Path, help="every figure of every run goes to this file too")
    args = parser.parse_args()
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_path(args.url))
    where = urlsplit(args.url)
    endpoint = Endpoint(None, where.hostname or "127.0.0.1", where.port or 80)
    cells = [Cell(int(number), args.context, "code") for number in args.concurrency.split(",")]
    found: dict[Cell, list[dict[str, Pair]]] = {cell: [] for cell in cells}
    with tempfile.TemporaryDirectory() as name:
        peer = BenchServing(args.url, Path(name))
        for run in range(args.runs):
            for cell in cells:
                count = max(16, min(8 * cell.concurrency, 128))
                spec = BurstSpec(
                    cells=(cell,),
                    output=args.output,
                    requests=count - 2 * cell.concurrency + 1,  # beside the first wave and the drain
                    max_seconds=300,
                )
                mine: list[tuple[dict[str, float], dict[str, float]]] = []
                theirs: list[tuple[dict[str, float], dict[str, float]]] = []
                sent, steps = [], []
                for at in range(args.blocks):
                    texts = await texts_of(endpoint, cell, count, f"{run} {at}", tokenizer)
                    for who in "ABBA":
                        if who == "A":
                            await asyncio.sleep(REST)
                            ours = partial(ddtui_point, endpoint, spec, texts, Path(name))
                            one, server = await by_the_server(endpoint, count, ours)
                            mine.append(({title: figure(one) for title, _, figure in FIGURES}, server))
                            sent.append(one.ok)
                        else:
                            peers = partial(asyncio.to_thread, peer.measure, cell, args.output, texts)
                            other, server = await by_the_server(endpoint, count, peers)
                            theirs.append(({title: other[key] for title, key, _ in FIGURES}, server))
                            sent.append(other["completed"])
                        steps.append(f"{1000 * server.get('itl', 0.0):.2f}")
                found[cell].append(
                    {
                        title: Pair(
                            *(statistics.mean(each[title] for each, _ in side) for side in (mine, theirs)),
                            *(
                                statistics.mean(quotient(title, each[title], server) for each, server in side)
                                for side in (mine, theirs)
                            ),
                        )
                        for title, _, _ in FIGURES
                    }
                )
                figures = "  ".join(
                    f"{t} {pair.plain:.3f}/{pair.by_server:.3f}" for t, pair in found[cell][-1].items()
                )
                print(
                    f"{time.strftime('%T')} C={cell.concurrency} run {run + 1}: {sent}  {figures}"
                    f"  server's ITL ms {' '.join(steps)}",
                    flush=True,
                )
                if args.json:
                    plain = {
                        str(each.concurrency): [{t: asdict(pair) for t, pair in one.items()} for one in runs]
                        for each, runs in found.items()
                    }
                    args.json.write_text(json.dumps(plain, indent=1))
    return report(found)


def report(found: dict[Cell, list[dict[str, Pair]]]) -> int:
    missed = []
    for cell, runs in found.items():
        print(
            f"\nC={cell.concurrency}, context {cell.context}: ddtui, bench_serving, ratio of {len(runs)} runs"
        )
        for title, _, _ in FIGURES:
            each = [run[title] for run in runs]
            plain = statistics.median(pair.plain for pair in each)
            middle = statistics.median(pair.by_server for pair in each)
            ok = abs(middle - 1) <= BAR
            if not ok:
                missed.append(f"{title} at C={cell.concurrency}")
            print(
                f"  {title:15} {statistics.median(pair.ddtui for pair in each):9.3f} "
                f"{statistics.median(pair.bench_serving for pair in each):9.3f}  median ratio {middle:.3f} "
                f"(plain {plain:.3f})  runs {' '.join(f'{pair.by_server:.3f}' for pair in each)}"
                f"{'' if ok else '   MISSED'}"
            )
    print("\nmissed: " + ", ".join(missed) if missed else "\nevery median within 3 %")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
