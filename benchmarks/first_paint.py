"""What the first paint of the console costs, and what is loaded by then.

    .venv/bin/python benchmarks/first_paint.py

Prints: seconds from exec to the first paint in a real terminal (median of 9, on a scripted session: no host),
seconds to import the app, and the ten slowest imports.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from pty_terminal import Terminal  # noqa: E402

PROGRAM = [sys.executable, str(ROOT / "tests" / "console" / "program.py")]


def paint() -> float:
    began = time.perf_counter()
    with Terminal(PROGRAM, 160, 45) as terminal:
        terminal.wait_for(lambda screen: screen.strip() != "")
        seconds = time.perf_counter() - began
        terminal.wait_for("Drafter")
        terminal.press("q")
        terminal.wait_end()
    return seconds


def imports() -> list[tuple[float, str]]:
    """Own milliseconds of every module that the app imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import ddtui.app"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.findall(r"import time:\s+(\d+) \|\s+\d+ \| +(\S+)", done.stderr)
    return sorted(((int(us) / 1000, name) for us, name in found), reverse=True)


def main() -> None:
    paints = [paint() for _ in range(9)]
    slow = imports()
    print(f"exec to first paint  {statistics.median(paints):6.3f} s   (least {min(paints):.3f})")
    print(f"importing the app    {sum(ms for ms, _ in slow) / 1000:6.3f} s   {len(slow)} modules")
    for ms, name in slow[:10]:
        print(f"  {ms:6.1f} ms  {name}")


if __name__ == "__main__":
    main()
