"""What the contract tests share."""

from __future__ import annotations

import asyncio

from ddtui.bench import server_log
from ddtui.engine.api import Api, Health
from ddtui.tuning import survey as surveys
from ddtui.tuning.aim import aim
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Layer


async def ready(ctx: Tuning) -> None:
    """Until the server answers: a host that has just booted still loads."""
    async with asyncio.timeout(60):
        while True:
            async with Api(await ctx.host.endpoint(30000)) as api:
                if await api.health() is Health.READY:
                    return
            await asyncio.sleep(0.2)


def problems(survey: surveys.Survey) -> dict[Layer, str]:
    """Of each layer that could not be read, its sentence."""
    found = {}
    for reading in (
        survey.drafter,
        survey.engine,
        survey.unit,
        survey.process,
        survey.server,
        survey.journal,
    ):
        assert (reading.value is None) is (reading.problem is not None)
        assert reading.read_at is not None
        if reading.problem:
            found[reading.layer] = reading.problem
    return found


async def all_files(ctx: Tuning) -> dict[str, str]:
    """Every file of the unit and its drop-ins with its hash: what must be as before."""
    folder = f"/etc/systemd/system/{ctx.unit}.d"
    listed = await ctx.host.run(["ls", "-1A", "--", folder])
    paths = [f"/etc/systemd/system/{ctx.unit}"]
    paths += [f"{folder}/{name}" for name in listed.out.splitlines() if name.endswith(".conf")]
    done = await ctx.host.run(["sha256sum", "--", *paths])
    assert done.ok, done.err
    return {line.split("  ", 1)[1]: line.split("  ", 1)[0] for line in done.out.splitlines()}


async def decode_lines(ctx: Tuning) -> list[server_log.Decode]:
    """The server's own decode lines as a burst reads them, after a long answer."""
    await ready(ctx)
    target = await aim(ctx, await surveys.read(ctx))
    async with Api(target.endpoint) as api:
        await api.generate_one(text="The", max_new_tokens=300)
    assert target.log is not None
    return server_log.decodes(await target.log(60.0))
