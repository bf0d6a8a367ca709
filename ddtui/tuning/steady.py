"""Doing one thing on a host although the link may break meanwhile: wait for the link, then do it again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ddtui.host.base import CommandFailed, Completed, Host, HostError, LinkLost, NotPermitted, Unreachable

T = TypeVar("T")

PATIENCE = 900.0  # seconds without a link until a wait is given up
PAUSE = 0.2  # seconds before trying again: a link that flaps must not spin


async def steadily(
    host: Host,
    act: Callable[[], Awaitable[T]],
    *,
    patience: float = PATIENCE,
    lost: Callable[[HostError], None] | None = None,
) -> T:
    """What `act` gives, begun again after every loss of the link. `act` must bear being done twice.

    `lost` is told of every loss. Raises what `act` raises otherwise, and the loss itself when the link stays
    away for `patience` seconds or is refused.
    """
    loop = asyncio.get_running_loop()
    deadline: float | None = None
    while True:
        began = loop.time()
        try:
            return await act()
        except (LinkLost, Unreachable) as error:
            if lost:
                lost(error)
            deadline = loop.time() + patience if deadline is None else deadline
            if loop.time() - began > patience / 10:  # it held for a while: this is a new loss
                deadline = loop.time() + patience
            await asyncio.sleep(PAUSE)
            try:
                async with asyncio.timeout_at(deadline):
                    await host.connected()
            except TimeoutError:
                raise error from None


def demand(done: Completed, what: str) -> Completed:
    """`done` if it succeeded. Raises NotPermitted or CommandFailed with the command's own words."""
    if done.ok:
        return done
    said = done.err.strip().splitlines()
    words = said[-1].strip() if said else f"exit code {done.exit_code}"
    denied = (
        "permission denied",
        "not permitted",
        "access denied",
        "authentication required",
        "read-only file",
    )
    if any(word in words.lower() for word in denied) or "sudo:" in done.err:
        raise NotPermitted(f"{what}: {words}", "`ddtui doctor` prints the rights that are needed")
    raise CommandFailed(f"{what}: {words}")
