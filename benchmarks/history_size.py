"""How long the history's own work takes with 1,000 steps and 20,000 bursts.

    python benchmarks/history_size.py

The bar: whatever a screen or command needs to list or compare comes in under 200 ms; and a screen of the
console opens in under 200 ms of its own time: from its key until its list (or its comparison) is on it. What
the history screen draws from all steps together comes after that, and has a line of its own.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ddtui.bench import compare, kept, sides
from ddtui.bench.model import Burst, BurstSpec, BurstState, Cell, Estimate, Point, Spread
from ddtui.past import Past
from ddtui.report.collect import collect
from ddtui.store import listing, runs, sweeps
from ddtui.store.history import History
from ddtui.store.model import Setting

sys.path.append(str(Path(__file__).parents[1] / "tests"))

STEPS, BURSTS, BAR = 1000, 20_000, 0.200
HOST, UNIT = "gpu1", "sglang.service"
CELLS = tuple(Cell(c, context) for c in (1, 8, 32) for context in (1024, 8192))


def fill(history: History, steps: int = STEPS, bursts: int = BURSTS) -> None:
    """Steps with 300 flags and seven verdicts each, and their bursts of two cells."""
    flags = {f"some_flag_of_the_server_{number}": number for number in range(300)}
    verdicts = [
        {"title": f"knob {n}", "status": "in force", "evidence": ["a line of text " * 5] * 5}
        for n in range(7)
    ]
    for number in range(steps):
        setting = Setting({"budget": str(number), "topk": "4", "window": None}, flags, engine="0.5.11")
        history.step(HOST, UNIT, setting, verdicts=verdicts, at=float(number))
    for number in range(bursts):
        step = number % steps + 1
        cells = CELLS[number // steps % 3 * 2 :][:2]
        burst = Burst(
            f"b{number:06}", step, BurstSpec(cells), BurstState.DONE,
            points=tuple(point(cell, number) for cell in cells), started_at=1e6 + number,
        )  # fmt: skip
        history.save_burst(HOST, UNIT, kept.to_plain(burst))


def point(cell: Cell, number: int) -> Point:
    estimate = Estimate(100.0 + number % 7, 95.0, 110.0, 48)
    spreads = {
        name: Spread(48, 1.0, 1.0, 1.0, 1.0, 1.0)
        for name in ("ttft_ms", "tpot_ms", "step_ms", "itl_ms", "e2e_ms")
    }
    return Point(
        cell=cell, started_at=1e6 + number, seconds=20.0, ok=48, failed=0, output_rate=estimate,
        output_rate_whole=100.0, per_user_rate=estimate, ttft_ms=estimate, tpot_ms=estimate, step_ms=estimate,
        accept_length=estimate, e2e_ms=estimate, client_lag_p99_ms=1.0, cached_tokens=0, final=True,
        preview=False, spreads=spreads, prompts="p",
    )  # fmt: skip


def work(history: History) -> dict[str, Callable[[], Any]]:
    """What screens and commands ask."""
    (one,) = runs.steps_numbered(history, 500)
    (two,) = runs.steps_numbered(history, 900)
    return {
        "list 200 steps": lambda: history.steps(HOST, UNIT, limit=200),
        "list all 1,000 steps": lambda: history.steps(HOST, UNIT),
        "search steps": lambda: history.steps(HOST, UNIT, search="budget=77", limit=200),
        "list 200 bursts": lambda: history.bursts(HOST, UNIT),
        "bursts of a step": lambda: history.bursts(HOST, UNIT, step=500),
        "points of two steps": lambda: history.points(HOST, UNIT, steps=[500, 900]),
        "compare two steps": lambda: compare.compare(*(sides.of_step(history, s) for s in (one, two))),
        "report of 40 steps": lambda: collect(history, history.steps(HOST, UNIT, limit=40)),
        "baseline": lambda: runs.baseline(history, HOST, UNIT),
        "seconds of cells": lambda: runs.seconds(history, HOST, UNIT),
        "sweeps": lambda: sweeps.sweeps(history),
        "rows of steps": lambda: listing.steps(history, HOST, UNIT),
        "rows of steps, searched": lambda: listing.steps(history, HOST, UNIT, search="budget=77"),
        "rows of bursts": lambda: listing.bursts(history, HOST, UNIT),
        "rows of bursts, searched": lambda: listing.bursts(history, HOST, UNIT, search="b0077"),
    }  # fmt: skip


def main() -> bool:
    good = True
    with tempfile.TemporaryDirectory() as folder:
        history = History.open(Path(folder) / "history.sqlite")
        began = time.perf_counter()
        fill(history)
        print(f"{STEPS} steps and {BURSTS} bursts written in {time.perf_counter() - began:.0f} s")
        for name, ask in work(history).items():
            times = []
            for _ in range(3):
                began = time.perf_counter()
                ask()
                times.append(time.perf_counter() - began)
            good &= min(times) < BAR
            print(
                f"{name:24} {1e3 * min(times):7.1f} ms{'' if min(times) < BAR else '  ABOVE THE BAR'}",
                flush=True,
            )
        began = time.perf_counter()
        history.close()
        History.open(history.path).close()
        print(f"{'open':24} {1e3 * (time.perf_counter() - began):7.1f} ms")
        good &= asyncio.run(screens(History.open(history.path)))
    return good


async def screens(history: History) -> bool:
    """Open every screen that lists or compares, twice, on a session without a host."""
    from console.fakes import FakeSession
    from console.harness import console

    session = FakeSession()
    session.past = past = Past(history, HOST, UNIT)
    session.earlier = [kept.from_plain(one.burst) for one in history.bursts(HOST, UNIT, limit=50)]
    began = time.perf_counter()
    await past.overview()
    print(f"{'charts of all steps':24} {1e3 * (time.perf_counter() - began):7.1f} ms, once the list is there")
    shown: dict[str, Callable[[Any], object]] = {
        "compare": lambda screen: screen.found is not None,
        "history": lambda screen: len(screen.list.view.rows) == STEPS,
        "bursts": lambda screen: len(screen._bursts) == len(session.earlier),
        "sweep": lambda screen: screen.earlier.list._empty == "no sweep yet",
    }
    took: dict[str, list[float]] = {}
    for _ in range(3):  # consoles: a screen opens for the first time once in each
        async with console(session, (200, 60)) as desk:
            await desk.until(lambda: desk.app.desk.view.bursts)
            await asyncio.sleep(2.0)  # what is loaded after the first paint has been
            for which in ("first", "again"):
                for name, ready in shown.items():
                    seconds = await _opened(desk, name, ready)
                    took.setdefault(f"{name} screen, {which}", []).append(seconds)
    for name, times in took.items():
        late = "" if min(times) < BAR else "  ABOVE THE BAR"
        print(f"{name:24} {1e3 * min(times):7.1f} ms{late}")
    return all(min(times) < BAR for times in took.values())


async def _opened(desk: Any, name: str, ready: Callable[[Any], object]) -> float:
    """Seconds from the action to the screen with its data, drawn once whole."""
    app = desk.app
    app.action_tune()
    await asyncio.sleep(1.5)
    began = time.perf_counter()
    getattr(app, f"action_{name}")()
    for _ in range(10_000):
        if type(app.screen).__name__.lower().startswith(name) and ready(app.screen):
            break
        await asyncio.sleep(0.001)
    app.screen._compositor.render_update(full=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(not main())
