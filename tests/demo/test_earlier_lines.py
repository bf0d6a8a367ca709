"""Earlier lines of the journal and the host's clock, through the console's session on the demo host."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

from ddtui.demo import launch
from ddtui.host.base import NobodyToAsk
from ddtui.live import LiveSession
from ddtui.session import JournalLine


def test_the_lines_before_a_line_are_those_that_were_written_before_it() -> None:
    with launch.start() as demo:
        asyncio.run(_read_back(LiveSession(demo.profile)))


async def _read_back(session: LiveSession) -> None:
    await session.connect(NobodyToAsk())
    try:
        known: list[JournalLine] = []
        async with aclosing(session.journal()) as batches:  # type: ignore[type-var]
            async for batch in batches:
                known.extend(batch)
                if len(known) >= 30:
                    break
        earlier = await session.earlier_lines(known[20].cursor, 10)
        assert [line.text for line in earlier] == [line.text for line in known[10:20]]
        assert [line.cursor for line in earlier] == [line.cursor for line in known[10:20]]
        assert await session.earlier_lines(known[0].cursor, 10) == []
        assert abs(await session.host_time() - time.time()) < 60
    finally:
        await session.close()
