"""The load on the host over SSH, on the demo host and the real one alike: it leaves nothing, cut or not."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from dataclasses import replace

from contract.conftest import Place
from contract_help import ready

from ddtui.bench import burst, load
from ddtui.bench.model import Burst, BurstSpec, BurstState, Cell
from ddtui.bench.target import Target
from ddtui.engine.api import Api
from ddtui.host.base import Host, HostError, LoggedCommand, NobodyToAsk
from ddtui.host.open import open_host
from ddtui.tuning import survey as surveys
from ddtui.tuning.aim import aim
from ddtui.tuning.context import Tuning

SPEC = BurstSpec((Cell(2, 256),), output=48, at="host", requests=6, max_seconds=30)
LONG = replace(SPEC, requests=2000)
PLACES = ("/tmp", "/home/tuner", "/var/tmp", "/dev/shm")


async def aimed(ctx: Tuning) -> Target:
    await ready(ctx)
    return await aim(ctx, await surveys.read(ctx))


async def files(host: Host) -> list[str]:
    done = [await host.run(["ls", "-1A", "--", place]) for place in PLACES]
    return [one.out for one in done]


async def idle(ctx: Tuning) -> None:
    """Until none of the burst's requests runs: the demo host has other customers."""
    async with asyncio.timeout(30):
        async with Api(await ctx.host.endpoint(30000)) as api:
            while True:
                if ((await api.loads()).running or 0) < 2:
                    return
                await asyncio.sleep(0.1)


async def test_a_burst_runs_on_the_host_by_the_services_python_and_leaves_nothing(tuning: Tuning) -> None:
    target = await aimed(tuning)
    before, ran = await files(tuning.host), list[LoggedCommand]()
    end = tuning.host.on_command(ran.append)
    async with asyncio.timeout(90):
        seen = [snapshot async for snapshot in burst.run(SPEC, target)]
    end()
    (point,) = seen[-1].points
    assert seen[-1].state is BurstState.DONE, seen[-1].text
    assert point.place == "host" and point.ok >= 6 and point.failed == 0
    workers = [command.argv for command in ran if command.argv[0] == target.python]
    assert workers == [(target.python, "-c", load.READ)], "everything else goes through stdin"
    assert await files(tuning.host) == before


async def test_a_cancelled_burst_leaves_no_process_on_the_host(tuning: Tuning) -> None:
    target, ran, last = await aimed(tuning), list[LoggedCommand](), None
    end = tuning.host.on_command(ran.append)
    async with asyncio.timeout(90), aclosing(burst.run(LONG, target)) as running:
        async for last in running:
            if last.points and last.points[-1].ok >= 2:
                break
    end()
    assert isinstance(last, Burst)
    (stop,) = [command.argv for command in ran if command.argv[:2] == ("kill", "-TERM")]
    gone = await tuning.host.run(["cat", "--", f"/proc/{stop[-1]}/stat"])
    assert not gone.ok, gone.out
    await idle(tuning)


async def test_a_link_that_is_lost_ends_the_load_on_the_host_by_itself(place: Place, tuning: Tuning) -> None:
    target = await aimed(tuning)
    other = open_host(place.profile.connection, NobodyToAsk())
    await other.connect()
    last: Burst | None = None
    async with asyncio.timeout(90):
        with suppress(HostError):
            async with aclosing(burst.run(LONG, replace(target, host=other))) as running:
                async for last in running:
                    if last.points and last.points[-1].ok >= 2 and other.link.state.value == "connected":
                        await other.close()
    assert last is not None and last.points[-1].ok >= 2
    assert last.state is BurstState.FAILED or last.points[-1].marks, last
    await idle(tuning)
