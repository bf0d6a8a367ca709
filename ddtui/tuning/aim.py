"""Aims a burst at the service: how its server is reached from here and on the host, and the bounds on the
load.
"""

from __future__ import annotations

from functools import partial

from ddtui.bench.target import Target
from ddtui.host import clock
from ddtui.tuning import layers
from ddtui.tuning.context import Tuning
from ddtui.tuning.survey import Survey

MOST_LINES = 20_000  # of the journal that are read after a cell


async def aim(ctx: Tuning, survey: Survey) -> Target:
    """The service's server as a burst's target. Raises HostError."""
    host, port = layers.address(ctx, survey)
    unit, drafter = survey.unit.value, survey.drafter.value
    return Target(
        endpoint=await ctx.host.endpoint(port, host),
        api_key=ctx.api_key,
        host=ctx.host,
        python=unit.python if unit is not None else None,
        address=(host, port),
        rtt_ms=ctx.host.link.rtt_ms,
        max_concurrency=ctx.profile.bench.max_concurrency,
        vocab_size=drafter.vocab_size if drafter is not None else None,  # the drafter shares the target's
        simulated=ctx.profile.simulated,
        log=partial(_log, ctx) if unit is None or unit.log == "journal" else None,
    )


async def _log(ctx: Tuning, seconds: float) -> list[tuple[float, str]]:
    """The journal of the last so many seconds, as (seconds ago, line). Raises HostError."""
    now = await clock.now(ctx.host)
    entries = await ctx.supervisor.lines(ctx.host, since=now - seconds, lines=MOST_LINES)
    return [(now - entry.realtime_us / 1e6, entry.text) for entry in entries]
