"""A few customers, so that a demo's journal is alive: requests of the stand-in to itself, at random times.

They step aside for anybody else: a burst on the demo host must not be spoilt by its own scenery.
"""

from __future__ import annotations

import asyncio
import random
import time
import uuid

from sglang.simulation import writing
from sglang.simulation.intake import Intake
from sglang.simulation.journal import access
from sglang.simulation.requests import Request
from sglang.simulation.scheduler import Scheduler
from sglang.simulation.switches import SWITCHES

ASIDE = 20.0  # seconds without anybody else's request until the customers come back
LOOK = 0.05  # seconds between looks whether somebody else came


async def run(scheduler: Scheduler, intake: Intake) -> None:
    """SGLANG_STANDIN_TRAFFIC requests per minute, for ever."""
    rng = random.Random(SWITCHES.seed)
    mine: dict[str, Request] = {}
    strangers_at = float("-inf")
    following = 0.0  # when the next customer comes
    while True:
        await asyncio.sleep(LOOK)
        now = time.monotonic()
        present = {request.rid for request in scheduler.requests()}
        mine = {rid: request for rid, request in mine.items() if rid in present}
        if present - mine.keys():
            strangers_at = now
            for request in mine.values():
                scheduler.abort(request)
        if now < following or now < strangers_at + ASIDE:
            continue
        following = now + rng.expovariate(SWITCHES.traffic / 60.0)
        request = _customer(rng, intake)
        mine[request.rid] = request
        scheduler.submit(request)


def _customer(rng: random.Random, intake: Intake) -> Request:
    kind = rng.choice(["code", "code", "prose"])
    context = int(min(rng.lognormvariate(6.8, 0.9), 12_000))
    text = writing.passage(rng.getrandbits(32), kind, context * 4)
    ids = intake.tokenizer.encode(text)[:context]
    sampling = {"max_new_tokens": rng.randint(120, 480), "temperature": 0, "ignore_eos": True}
    client = f"10.20.0.{rng.randint(11, 14)}:{rng.randint(32768, 60999)}"
    access(client, "POST /v1/chat/completions HTTP/1.1", 200, "OK")
    return intake.make(uuid.uuid4().hex, ids, sampling)
