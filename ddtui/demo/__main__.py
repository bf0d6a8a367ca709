"""The demo host's process: `python -m ddtui.demo --state DIR [--fresh] [--temporary] [--delay MS]`.

Prints one JSON line (ddtui.demo.launch.Access) as soon as it can be reached. Ends when stdin has ended and no
other ddtui is attached, or on SIGTERM; everything that it started ends with it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m ddtui.demo", description="ddtui's demo host")
    parser.add_argument(
        "--state", type=Path, required=True, help="folder that holds the host's disk and journal"
    )
    parser.add_argument("--fresh", action="store_true", help="forget what the folder holds")
    parser.add_argument("--temporary", action="store_true", help="remove the folder at the end")
    parser.add_argument("--delay", type=float, default=0.0, metavar="MS", help="latency each way")
    parser.add_argument("--port", type=int, default=0, help="SSH port on loopback (default: a free one)")
    given = parser.parse_args()
    from ddtui.demo.run import run

    state = given.state.resolve()
    code = run(state, fresh=given.fresh, delay=given.delay / 1000, port=given.port)
    if given.temporary:
        shutil.rmtree(state, ignore_errors=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
