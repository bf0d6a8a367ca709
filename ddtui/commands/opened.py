"""A host, connected, with the history beside it: what every command on a profile begins with."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from ddtui.commands.ask import TerminalAsker
from ddtui.commands.status_line import Waiting
from ddtui.profile import Profile
from ddtui.tuning.context import Tuning

T = TypeVar("T")


@asynccontextmanager
async def tuning(args: argparse.Namespace) -> AsyncIterator[Tuning]:
    """The context of the profile named in `args`, connected. Raises ProfileError, HostError, HistoryError."""
    from ddtui.host.open import open_host
    from ddtui.store.history import History

    profile: Profile = args.load(args.profile)
    connecting = Waiting(f"connecting to {profile.connection.host}", profile.connection.connect_timeout)
    asker = TerminalAsker(before=connecting.stop)
    history = History.open()
    host = open_host(profile.connection, asker)
    try:
        async with connecting:
            await host.connect()
        yield Tuning(
            profile=profile,
            host=host,
            history=history,
            asker=asker,
            read_only="the profile says read_only" if profile.read_only else None,
        )
    finally:
        await host.close()
        history.close()


def wait(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; Ctrl-C cancels it, lets it clean up, and is raised as KeyboardInterrupt."""
    return asyncio.run(work)
