"""Aims a burst at the service: how its server is reached from here and on the host, and the bounds on the
load.
"""

from __future__ import annotations

from ddtui.bench.target import Target
from ddtui.tuning import layers
from ddtui.tuning.context import Tuning
from ddtui.tuning.survey import Survey


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
    )
