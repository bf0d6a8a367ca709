"""The journal under a flood in a real terminal: loop stalls, key to paint, memory; a filter on a full store.

    .venv/bin/python benchmarks/journal_pty.py [LINES_PER_SECOND] [SECONDS] [STORED]

The console runs in a pty of 160x45 with the logs screen open, on a scripted session. Gaps are between ticks
of a 5 ms timer in its loop. Key to paint: from writing a space (hold, follow) into the pty to the first byte
of the state it leads to. The filter is timed in the console from setting it to the screen that shows its
lines: for words in every tenth line, in most lines, and in the oldest line only.
"""

# ruff: noqa: ASYNC110, ASYNC240

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import resource
import select
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))


def child(rate: int, seconds: float, stored: int, report: Path) -> None:
    from console.fakes import NOW, FakeSession, decode_line
    from console.harness import make_app

    from ddtui.session import JournalLine
    from ddtui.settings import Settings
    from ddtui.widgets.journal_filter import parse_filter
    from ddtui.widgets.journal_lines import Level
    from ddtui.widgets.journal_view import JournalView

    session = FakeSession()
    app = make_app(session, settings=Settings(journal_lines=max(1000, stored)))

    def rss() -> float:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 2**20

    async def work() -> None:
        while app._desk is None or not app.desk.view.tune.surveyed or app.current_mode == "connect":
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        app.go("logs")
        while "logs" not in app.current_mode or not app.screen.query(JournalView):
            await asyncio.sleep(0.05)
        view = app.screen.query_one(JournalView)
        store = app.desk.store
        await asyncio.sleep(1)
        gaps: list[float] = []
        loop: list[float] = []  # its own CPU time in each gap: does not depend on a busy machine
        memory: list[float] = []
        cpu, began, sent = time.process_time(), time.perf_counter(), 0
        report.with_suffix(".go").touch()
        last, flooded, own = began, 0.0, time.thread_time()
        while (passed := time.perf_counter() - began) < seconds:
            if (due := int(passed * rate) - sent) and passed - flooded > 0.01:
                session.lines.put_nowait(
                    [
                        decode_line(NOW, 700.0, 4.2)
                        if i % 10
                        else JournalLine(NOW, f"line {sent + i} of the flood \x1b[31mred\x1b[0m", cursor="c")
                        for i in range(due)
                    ]
                )
                sent, flooded = sent + due, passed
                if not len(memory) or passed - len(memory) > 1:
                    memory.append(rss())
            await asyncio.sleep(0.005)
            now = time.perf_counter()
            gaps.append(max(0.0, now - last - 0.005))
            last = now
            loop.append(time.thread_time() - own)
            own = time.thread_time()
        spent = (time.process_time() - cpu) / (time.perf_counter() - began)
        report.with_suffix(".go").unlink()
        while len(store) < stored:
            batch = min(20_000, stored - len(store))
            store.append([JournalLine(NOW, f"line {i} of the flood, nothing to see") for i in range(batch)])
            await asyncio.sleep(0)
        store.texts[0] = "the needle"
        await asyncio.sleep(3)
        times = {}
        for word in ("needle", "flood", "accept", "/fl.od/", "!Decode"):
            view.set_filter(parse_filter("", Level.INFO))
            while view.scanning:
                await asyncio.sleep(0.01)
            painted = asyncio.Event()
            own = time.thread_time()
            at = time.perf_counter()
            view.set_filter(parse_filter(word, Level.INFO))
            want = 1 if word == "needle" else view.size.height
            while len(view.matches) < want and view.scanning:
                await asyncio.sleep(0.001)
            view.call_after_refresh(painted.set)
            await painted.wait()
            times[word] = 1000 * (time.perf_counter() - at), 1000 * (time.thread_time() - own)
            while view.scanning:
                await asyncio.sleep(0.01)
        gaps.sort()
        loop.sort()
        report.write_text(
            json.dumps(
                {
                    "sent": sent,
                    "cpu": spent,
                    "gaps": [1000 * gaps[int(len(gaps) * part)] for part in (0.5, 0.99, 0.999)]
                    + [1000 * gaps[-1]],
                    "loop": [1000 * loop[int(len(loop) * part)] for part in (0.5, 0.99, 0.999)]
                    + [1000 * loop[-1]],
                    "memory": memory,
                    "stored": len(store),
                    "filter": times,
                    "rss_stored": rss(),
                }
            )
        )
        app.exit(0)

    app.call_later(lambda: app.run_worker(work(), exit_on_error=True))
    app.run()


def main(rate: int, seconds: float, stored: int) -> None:
    report = Path(tempfile.mkdtemp()) / "report.json"
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", XDG_STATE_HOME=str(report.parent))
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 160, 0, 0))
        child(rate, seconds, stored, report)
        os._exit(0)
    keys: list[float] = []
    follow, held = "▶ follow".encode(), b"held,"
    wanted, pressed, next_press, tail, painted = held, 0.0, 0.0, b"", 0
    while True:
        ready, _, _ = select.select([terminal], [], [], 0.01)
        now = time.perf_counter()
        if ready:
            try:
                data = os.read(terminal, 1 << 16)
            except OSError:
                break
            if not data:
                break
            painted += len(data)
            tail = (tail + data)[-(1 << 16) - 64 :]
            if pressed and wanted in tail:
                keys.append(1000 * (now - pressed))
                wanted = follow if wanted is held else held
                pressed, next_press = 0.0, now + 0.15
        if not pressed and now > next_press and report.with_suffix(".go").exists():
            tail = b""
            os.write(terminal, b" ")
            pressed = time.perf_counter()
    os.waitpid(pid, 0)
    told = json.loads(report.read_text())
    memory = told["memory"]
    print(
        f"{told['sent']:,} lines in {seconds:.0f} s, {100 * told['cpu']:.0f} % of a core, "
        f"{painted / 1e6:.1f} MB painted"
    )
    for name, key in (("loop gap", "gaps"), ("loop CPU in a gap", "loop")):
        p50, p99, p999, most = told[key]
        print(f"{name}: p50 {p50:.1f}  p99 {p99:.1f}  p99.9 {p999:.1f}  max {most:.1f} ms")
    keys.sort()
    if keys:
        at = [keys[int(len(keys) * part)] for part in (0.5, 0.99)]
        print(f"key to paint: p50 {at[0]:.0f}  p99 {at[1]:.0f}  max {keys[-1]:.0f} ms  (n={len(keys)})")
    print(f"memory: {memory[0]:.0f} MiB at first, {max(memory):.0f} at most, {memory[-1]:.0f} at the end")
    words = "  ".join(f"{word} {ms:.0f} ms ({own:.0f} CPU)" for word, (ms, own) in told["filter"].items())
    print(f"filter on {told['stored']:,} lines ({told['rss_stored']:.0f} MiB): {words}")


if __name__ == "__main__":
    given = [*map(float, sys.argv[1:]), *(10_000.0, 60.0, 1_000_000.0)[len(sys.argv) - 1 :]][:3]
    main(int(given[0]), given[1], int(given[2]))
