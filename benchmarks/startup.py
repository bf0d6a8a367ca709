"""How long ddtui takes to answer and to show its first full screen.

    .venv/bin/python benchmarks/startup.py

Prints: `ddtui --help`, median of 15 runs; `ddtui demo` in a real terminal of 160x45, from exec to the first
screen that holds a verdict, the knob table and journal lines, median of 5 runs; and the same as multiples of
a bare `python -c pass`, which travels better between machines than seconds do.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from pty_terminal import Terminal  # noqa: E402

DDTUI = str(Path(sys.executable).with_name("ddtui"))


def run_time(argv: list[str], times: int) -> float:
    """Median seconds of a command's whole life."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def full_screen_time() -> tuple[float, float]:
    """Seconds from exec to the first paint and to the first full screen with data."""
    began = time.perf_counter()
    with Terminal([DDTUI, "demo"], 160, 45) as terminal:
        terminal.wait_for("Drafter")
        painted = time.perf_counter() - began
        terminal.wait_for(full)
        whole = time.perf_counter() - began
        terminal.press("q")
        terminal.wait_end()
    return painted, whole


def full(screen: str) -> bool:
    return "not in force" in screen and "Decode batch" in screen and "budget" in screen and "2048" in screen


def main() -> None:
    bare = run_time([sys.executable, "-c", "pass"], 15)
    help_ = run_time([DDTUI, "--help"], 15)
    screens = [full_screen_time() for _ in range(5)]
    painted = statistics.median(one[0] for one in screens)
    whole = statistics.median(one[1] for one in screens)
    print(f"python -c pass            {bare:6.3f} s")
    print(f"ddtui --help              {help_:6.3f} s   {help_ / bare:5.1f} x bare Python")
    print(f"ddtui demo, first paint   {painted:6.3f} s   {painted / bare:5.1f} x bare Python")
    print(f"ddtui demo, full screen   {whole:6.3f} s   {whole / bare:5.1f} x bare Python")


if __name__ == "__main__":
    main()
