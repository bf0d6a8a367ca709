"""A few customers, so that a demo's journal is alive: requests of the stand-in to itself, at random times."""

from __future__ import annotations

import asyncio
import random
import uuid

from sglang.simulation import writing
from sglang.simulation.intake import Intake
from sglang.simulation.journal import access
from sglang.simulation.scheduler import Scheduler
from sglang.simulation.switches import SWITCHES


async def run(scheduler: Scheduler, intake: Intake) -> None:
    """SGLANG_STANDIN_TRAFFIC requests per minute, for ever."""
    rng = random.Random(SWITCHES.seed)
    while True:
        await asyncio.sleep(rng.expovariate(SWITCHES.traffic / 60.0))
        kind = rng.choice(["code", "code", "prose"])
        context = int(min(rng.lognormvariate(6.8, 0.9), 12_000))
        text = writing.passage(rng.getrandbits(32), kind, context * 4)
        ids = intake.tokenizer.encode(text)[:context]
        sampling = {"max_new_tokens": rng.randint(120, 480), "temperature": 0, "ignore_eos": True}
        client = f"10.20.0.{rng.randint(11, 14)}:{rng.randint(32768, 60999)}"
        access(client, "POST /v1/chat/completions HTTP/1.1", 200, "OK")
        scheduler.submit(intake.make(uuid.uuid4().hex, ids, sampling))
