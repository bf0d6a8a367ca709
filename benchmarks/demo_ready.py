"""How long the demo host takes until it can be reached, and until its first command has answered.

    .venv/bin/python benchmarks/demo_ready.py

Prints medians of 7 runs, in seconds from the start of the process: the line that says where to reach it; an
SSH connection that is up (its client already imported); the first `systemctl show`, by which time the server
has long been up. And the same as multiples of a bare `python -c pass`.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time

import asyncssh

from ddtui.demo import launch
from ddtui.demo.launch import Access
from ddtui.host import shell

RUNS = 7


async def first_answer(access: Access) -> tuple[float, float]:
    """When the connection was up and when the first command had answered (perf_counter)."""
    script = shell.Script(
        shell.new_marker(), (("systemctl", "show", access.unit, "-p", "ActiveState"),), single=True
    )
    async with asyncssh.connect(
        access.host,
        access.port,
        username=access.user,
        client_keys=[str(access.identity_file)],
        known_hosts=str(access.known_hosts),
        config=None,
        agent_path=None,
    ) as connection:
        up = time.perf_counter()
        done = await connection.run(shell.encode(script), encoding=None)
        assert isinstance(done.stdout, bytes) and done.stdout.endswith(b"ActiveState=active\n"), done.stdout
        return up, time.perf_counter()


def one_run() -> tuple[float, float, float]:
    began = time.perf_counter()
    starting = launch.Starting()
    try:
        access = starting.ready().access
        ready = time.perf_counter()
        up, answered = asyncio.run(first_answer(access))
    finally:
        starting.end()
    return ready - began, up - began, answered - began


def main() -> None:
    bare = statistics.median(bare_python() for _ in range(RUNS))
    runs = [one_run() for _ in range(RUNS)]
    print(f"python -c pass          {bare:6.3f} s")
    for title, column in (("reachable", 0), ("connected", 1), ("first command answered", 2)):
        seconds = statistics.median(run[column] for run in runs)
        print(f"{title:<23} {seconds:6.3f} s   {seconds / bare:5.1f} x bare Python")


def bare_python() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
