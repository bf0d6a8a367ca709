"""Aims a burst at the service: how its server is reached from here and on the host, and the bounds on the
load.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from ddtui.bench.target import Target
from ddtui.host import clock
from ddtui.host.base import Host
from ddtui.host.journal import JournalEntry
from ddtui.host.supervisors.systemd import Systemd
from ddtui.host.supervisors.text_log import FileLog
from ddtui.host.unit.read import UnitReading
from ddtui.tuning import layers
from ddtui.tuning.context import Tuning
from ddtui.tuning.survey import Survey

MOST_LINES = 5_000  # of the server's log that are read after a cell
FILE = "file:"

Lines = Callable[[float], Awaitable[list[JournalEntry]]]  # the server's, since a time by the host's clock


async def aim(ctx: Tuning, survey: Survey) -> Target:
    """The service's server as a burst's target. Raises HostError."""
    host, port = layers.address(ctx, survey)
    unit, drafter = survey.unit.value, survey.drafter.value
    lines = _lines(ctx, unit)
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
        log=partial(_log, ctx.host, lines) if lines else None,
    )


def _lines(ctx: Tuning, unit: UnitReading | None) -> Lines | None:
    """Where the server's lines are read. None: nowhere that can be read."""
    if isinstance(ctx.supervisor, Systemd) and unit is not None and unit.log != "journal":
        if not unit.log.startswith(FILE):
            return None
        file = FileLog(unit.log.removeprefix(FILE))
        return lambda since: file.lines(ctx.host, since, None, MOST_LINES)
    return lambda since: ctx.supervisor.lines(ctx.host, since=since, lines=MOST_LINES)


async def _log(host: Host, lines: Lines, seconds: float) -> list[tuple[float, str]]:
    """The server's log of the last so many seconds, as (seconds ago, line). Raises HostError."""
    now = await clock.now(host)
    return [(now - entry.realtime_us / 1e6, entry.text) for entry in await lines(now - seconds)]
