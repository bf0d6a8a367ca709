"""Whether ddtui and SGLang's own client measure the same: both on one real server, one after the other.

    python benchmarks/agreement.py [--url http://127.0.0.1:30000] [--runs 5] [--concurrency 1,8,32]

Run it beside the server, under the Python that SGLang is installed in (with httpx, pydantic and pyyaml;
`PYTHONPATH` at this repository's root). Each run makes prompts of ddtui's `code` workload and measures them
with both clients in turns, A B then B A, the prefix cache flushed before each; `bench_serving` gets the text
of those prompts that ddtui counts, greedy, with the same fixed output length. For each figure: the ratio
ddtui / bench_serving of every run, and the median of the runs.
Bar: every median within 3 %. Exit code 1: the bar was missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ddtui.bench import burst as bursts
from ddtui.bench import jobs, workload
from ddtui.bench.model import Burst, BurstSpec, Cell, Point
from ddtui.bench.target import Target
from ddtui.engine.api import Api
from ddtui.host.base import Endpoint

BAR = 0.03
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


def model_path(url: str) -> str:
    with urllib.request.urlopen(f"{url}/model_info", timeout=10) as answer:
        return str(json.load(answer)["model_path"])


async def prompts(endpoint: Endpoint, spec: BurstSpec, tokenizer: Any) -> list[str]:
    """The text of the prompts that ddtui will count with this salt."""
    (cell,) = spec.cells
    assert spec.requests is not None and spec.salt is not None
    async with Api(endpoint, None) as api:

        async def tokenize(text: str) -> list[int]:
            return list((await api.tokenize(text)).ids)

        made = await workload.build(
            cell,
            cell.concurrency + jobs.measured_requests(spec, cell),
            api=spec.endpoint,
            tokenize=tokenize,
            salt=spec.salt,
            seed=spec.seed,
        )
    counted = made.prompts[cell.concurrency : cell.concurrency + spec.requests]
    ids = [[int(i) for at in p.pieces for i in made.pieces[at].split(",") if i.strip()] for p in counted]
    return [tokenizer.decode(one) for one in ids]


async def ddtui_point(endpoint: Endpoint, spec: BurstSpec, keep: Path) -> Point:
    target = Target(endpoint, max_concurrency=max(cell.concurrency for cell in spec.cells))
    last: Burst | None = None
    async with aclosing(bursts.run(spec, target, keep=keep)) as states:
        async for state in states:
            last = state
    assert last is not None and last.points, last
    for text in (*last.warnings, *last.points[-1].marks):
        print(f"    ddtui says: {text}", flush=True)
    return last.points[-1]


def bench_serving(url: str, cell: Cell, output: int, texts: list[str], folder: Path) -> dict[str, Any]:
    data, out = folder / "prompts.jsonl", folder / "bench_serving.jsonl"
    out.unlink(missing_ok=True)
    data.write_text(
        "".join(
            json.dumps({"conversations": [{"content": text}, {"content": "x " * output}]}) + "\n"
            for text in texts
        )
    )
    where = urlsplit(url)
    command = [
        sys.executable,
        "-m",
        "sglang.bench_serving",
        "--backend",
        "sglang",
        "--dataset-name",
        "custom",
    ]
    command += ["--host", str(where.hostname), "--port", str(where.port), "--dataset-path", str(data)]
    command += ["--sharegpt-output-len", str(output), "--num-prompts", str(len(texts)), "--flush-cache"]
    command += ["--max-concurrency", str(cell.concurrency), "--output-file", str(out), "--disable-tqdm"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise SystemExit(f"bench_serving failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return dict(json.loads(out.read_text().splitlines()[-1]))


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:30000")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--concurrency", default="1,8,32")
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--output", type=int, default=256)
    parser.add_argument("--requests", type=int, help="per run; default: 64, or 10 x concurrency")
    parser.add_argument("--json", type=Path, help="every figure of every run goes to this file too")
    args = parser.parse_args()
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_path(args.url))
    where = urlsplit(args.url)
    endpoint = Endpoint(None, where.hostname or "127.0.0.1", where.port or 80)
    missed, everything = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for concurrency in map(int, args.concurrency.split(",")):
            cell = Cell(concurrency, args.context, "code")
            pairs: list[tuple[Point, dict[str, Any]]] = []
            for run in range(args.runs):
                spec = BurstSpec(
                    cells=(cell,),
                    output=args.output,
                    requests=args.requests or max(64, 10 * concurrency),
                    max_seconds=300,
                    seed=run,
                    salt=f"agreement {concurrency} {run}",
                )
                texts = await prompts(endpoint, spec, tokenizer)
                theirs: dict[str, Any] | None = None
                if run % 2:
                    theirs = bench_serving(args.url, cell, args.output, texts, folder)
                ours = await ddtui_point(endpoint, spec, folder)
                theirs = theirs or bench_serving(args.url, cell, args.output, texts, folder)
                pairs.append((ours, theirs))
                print(f"C={concurrency} run {run + 1}: ddtui {ours.ok}, bench_serving {theirs['completed']}")
            print(f"\nC={concurrency}, context {args.context}, output {args.output}, {args.runs} runs")
            for title, key, figure in FIGURES:
                each = [(figure(ours), theirs[key]) for ours, theirs in pairs]
                ratios = [mine / other for mine, other in each]
                middle = statistics.median(ratios)
                ok = abs(middle - 1) <= BAR
                if not ok:
                    missed.append(f"{title} at C={concurrency}")
                everything.append({"C": concurrency, "figure": title, "ddtui, bench_serving": each})
                print(
                    f"  {title:15} {statistics.median(m for m, _ in each):9.3f} "
                    f"{statistics.median(o for _, o in each):9.3f}  median ratio {middle:.3f}"
                    f"  runs {' '.join(f'{ratio:.3f}' for ratio in ratios)}{'' if ok else '   MISSED'}",
                    flush=True,
                )
                if args.json:
                    args.json.write_text(json.dumps(everything, indent=1))
    print("missed: " + ", ".join(missed) if missed else "every median within 3 %")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
