"""How long a first full survey of a host takes over a 50 ms link, and how many round trips.

    sudo .venv/bin/python benchmarks/first_survey.py        # boots the real test host

Prints: round trips, and the median seconds of five first surveys, at 0 and at 50 ms of round-trip time.
The target is under 3 s and at most eight round trips at 50 ms.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from contract_help import ready  # noqa: E402
from testhost_fixture import TestHost, boot  # noqa: E402
from tuning.conftest import profile_of  # noqa: E402

from ddtui.host.base import NobodyToAsk  # noqa: E402
from ddtui.host.open import open_host  # noqa: E402
from ddtui.tuning import survey  # noqa: E402
from ddtui.tuning.context import Tuning  # noqa: E402

TIMES = 5


async def measure(testhost: TestHost) -> None:
    profile = profile_of(testhost)
    host = open_host(profile.connection, NobodyToAsk())
    await host.connect()
    try:
        ctx = Tuning(profile, host)
        await ready(ctx)
        for rtt in (0, 50):
            testhost.ctl("delay", str(rtt / 2) if rtt else "off")
            seconds, trips = [], 0
            for _ in range(TIMES):
                began = time.perf_counter()
                trips = (await survey.read(ctx)).round_trips
                seconds.append(time.perf_counter() - began)
            print(f"round trip {rtt} ms: {trips} round trips, {statistics.median(seconds):.2f} s")
    finally:
        await host.close()


if __name__ == "__main__":
    for booted in boot("benchmark-survey"):
        asyncio.run(measure(booted))
