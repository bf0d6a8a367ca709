"""The tuning room's tests on the real host: contexts of several operators."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest_asyncio
from testhost_fixture import TestHost

from ddtui import profile
from ddtui.host.base import Asker, NobodyToAsk
from ddtui.host.open import open_host
from ddtui.profile import Connection, Profile
from ddtui.store.history import History
from ddtui.tuning.context import Tuning

UNIT = "sglang-k26-ddtree.service"
Operator = Callable[..., Awaitable[Tuning]]


def profile_of(testhost: TestHost, user: str = "tuner") -> Profile:
    """The demo's profile, led to the real host."""
    connection = Connection(
        host=testhost.info["host"],
        port=testhost.info["port"],
        user=user,
        identity_file=Path(testhost.info["key"]),
        known_hosts=Path(testhost.info["known_hosts"]),
        config=Path("/dev/null"),
        keepalive=1.0,
    )
    return profile.load("demo").model_copy(update={"connection": connection})


@pytest_asyncio.fixture
async def operator(testhost: TestHost, tmp_path: Path) -> AsyncIterator[Operator]:
    """Makes a connected context: `await operator()`, `await operator("asker", who="ann@laptop:1")`."""
    opened: list[Tuning] = []

    async def make(
        user: str = "tuner",
        *,
        who: str | None = None,
        asker: Asker | None = None,
        history: bool = False,
        **fields: object,
    ) -> Tuning:
        asker = asker or NobodyToAsk()
        chosen = profile_of(testhost, user)
        host = open_host(chosen.connection, asker)
        await host.connect()
        store = History.open(tmp_path / f"history-{len(opened)}.sqlite") if history else None
        ctx = Tuning(profile=chosen, host=host, history=store, asker=asker, **fields)  # type: ignore[arg-type]
        opened.append(ctx)
        return replace(ctx, who=who) if who else ctx

    yield make
    for ctx in opened:
        await ctx.host.close()
        if ctx.history:
            ctx.history.close()


def quick(testhost: TestHost, **variables: str) -> None:
    """Let the stand-in load and answer in a moment; `variables`: more of its switches."""
    wanted = {
        "SGLANG_STANDIN_LOAD_SECONDS": "0.6",
        "SGLANG_STANDIN_HEALTH_SECONDS": "0.05",
        **variables,
    }
    lines = "".join(f'Environment="{name}={value}"\n' for name, value in wanted.items())
    folder = f"/run/systemd/system/{UNIT}.d"
    testhost.exec("mkdir", "-p", folder)
    testhost.exec("tee", f"{folder}/70-test.conf", stdin=f"[Service]\n{lines}".encode())
    testhost.exec("systemctl", "daemon-reload")
    testhost.exec("systemctl", "restart", UNIT)
