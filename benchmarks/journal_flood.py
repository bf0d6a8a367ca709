"""The journal under a flood: lines delivered, CPU, and how long the UI loop was away.

    .venv/bin/python benchmarks/journal_flood.py [LINES_PER_SECOND] [SECONDS]

Headless at 160x45 on a scripted session, the tune screen showing. Gaps are between ticks of a 5 ms timer in
the loop; `loop CPU` is the loop thread's own time in such a gap, which does not depend on a busy machine.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from console.fakes import NOW, FakeSession, decode_line
from console.harness import console

from ddtui.session import JournalLine


async def flood(rate: int, seconds: float) -> None:
    session = FakeSession()
    async with console(session) as desk:
        gaps: list[tuple[float, float]] = []
        running = True

        async def ticks() -> None:
            wall, cpu = time.perf_counter(), time.thread_time()
            while running:
                await asyncio.sleep(0.005)
                now, spent = time.perf_counter(), time.thread_time()
                gaps.append((now - wall - 0.005, spent - cpu))
                wall, cpu = now, spent

        ticking = asyncio.create_task(ticks())
        cpu, began = time.thread_time(), time.perf_counter()
        sent = 0
        while (passed := time.perf_counter() - began) < seconds:
            due = int(passed * rate) - sent
            if due:
                lines = [
                    decode_line(NOW, 700.0, 4.2)
                    if i % 10
                    else JournalLine(NOW, f"line {sent + i} of the flood")
                    for i in range(due)
                ]
                session.lines.put_nowait(lines)
                sent += due
            await asyncio.sleep(0.01)
        await desk.until(lambda: desk.app.desk.store.end >= sent)
        spent, passed = time.thread_time() - cpu, time.perf_counter() - began
        running = False
        await ticking
        wall_gaps = sorted(gap for gap, _ in gaps)
        cpu_gaps = sorted(gap for _, gap in gaps)
        share, kept = 100 * spent / passed, len(desk.app.desk.store)
        print(f"{sent:,} lines in {passed:.1f} s, {share:.0f} % of a core, kept {kept:,}")
        for name, values in (("gap", wall_gaps), ("loop CPU", cpu_gaps)):
            p99, p999 = (1000 * values[int(len(values) * part)] for part in (0.99, 0.999))
            most = 1000 * values[-1]
            print(f"{name:>9}: p99 {p99:5.1f} ms   p99.9 {p999:5.1f} ms   max {most:5.1f} ms")


if __name__ == "__main__":
    rate, seconds = [*map(float, sys.argv[1:]), *(10_000.0, 10.0)[len(sys.argv) - 1 :]][:2]
    asyncio.run(flood(int(rate), seconds))
