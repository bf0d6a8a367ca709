"""How long the probe of an installed SGLang takes: `python benchmarks/probe_time.py [FOLDER_OR_PYTHON …]`.

Each argument is a folder that holds a package `sglang`, or an interpreter that can import one; without any,
the stand-in of the demo host. Prints medians of eleven runs and the size of the answer; fails nothing.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from ddtui.engine import installation

RUNS = 11
STAND_IN = Path(installation.__file__).parents[1] / "demo" / "standin"


def measure(target: Path) -> str:
    """One line: how long, how many flags, which version."""
    if target.is_dir():
        argv = installation.probe_argv(sys.executable, paths=(str(target),))
    else:
        argv = installation.probe_argv(str(target))
    wall, processor, answer = [], [], b""
    for _ in range(RUNS):
        began, used = time.perf_counter(), cpu()
        answer = subprocess.run(argv, input=installation.probe_text(), capture_output=True, check=True).stdout
        wall.append(time.perf_counter() - began)
        processor.append(cpu() - used)
    try:
        found = installation.parse(answer)
    except installation.InstallationError as error:
        return f"{target}: {error}"
    return (
        f"{target}: SGLang {found.version}, {len(found.flags.flags)} flags: {statistics.median(wall):.3f} s,"
        f" processor {statistics.median(processor):.3f} s, answer {len(answer) / 1000:.0f} kB"
    )


def cpu() -> float:
    """Processor seconds of the children so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    for target in [Path(argument) for argument in sys.argv[1:]] or [STAND_IN]:
        print(measure(target))
