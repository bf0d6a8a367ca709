"""Reaching the real test host as one of its users."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from host.people import Person
from testhost_fixture import TestHost

from ddtui.host.base import Link, LinkState
from ddtui.host.ssh import SshHost
from ddtui.profile import Connection


def settings(testhost: TestHost, user: str = "tuner", **more: Any) -> Connection:
    """Connection settings for a user, with the rig's key and known_hosts; keepalive is quick."""
    info = testhost.info
    default = {
        "host": info["host"],
        "port": info["port"],
        "user": user,
        "identity_file": Path(info["key"]),
        "known_hosts": Path(info["known_hosts"]),
        "keepalive": 0.4,
        "connect_timeout": 3.0,
    }
    return Connection(**{**default, **more})


@asynccontextmanager
async def connected(
    testhost: TestHost, user: str = "tuner", person: Person | None = None, **more: Any
) -> AsyncIterator[SshHost]:
    host = SshHost(settings(testhost, user, **more), person or Person())
    try:
        await host.connect()
        yield host
    finally:
        await host.close()


async def off_loop(call: Any, *words: Any, **options: Any) -> Any:
    """An order to the rig, which blocks, while the link goes on living."""
    return await asyncio.to_thread(call, *words, **options)


def reached(host: SshHost, state: LinkState) -> asyncio.Future[Link]:
    """Done as soon as the link next enters the state."""
    future: asyncio.Future[Link] = asyncio.get_running_loop().create_future()

    def see(link: Link) -> None:
        if link.state is state and not future.done():
            future.set_result(link)

    host.on_link(see)
    return future


def processes(testhost: TestHost, pattern: str) -> list[str]:
    """Command lines on the host that match."""
    found = testhost.exec("pgrep", "-af", pattern, check=False).stdout.decode().splitlines()
    return [line for line in found if "pgrep" not in line]


async def until(holds: Callable[[], bool], seconds: float = 15.0) -> None:
    """Wait until something that the rig can see holds."""
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(holds):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def restart_sshd(testhost: TestHost) -> None:
    """Have sshd read its settings again; sessions live on."""
    testhost.exec("systemctl", "restart", "ssh")
    testhost.wait_ssh()
