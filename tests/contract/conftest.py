"""Two hosts, one suite: the embedded demo host and the real test host."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
import quick_demo
from testhost_fixture import boot
from tuning.conftest import quick

from ddtui import profile
from ddtui.host.base import Host, NobodyToAsk
from ddtui.host.open import open_host
from ddtui.profile import Connection, Profile
from ddtui.store.history import History
from ddtui.tuning.context import Tuning


@dataclass(frozen=True)
class Place:
    """A host to hold to the contract: its name, and the profile that leads there."""

    name: str
    profile: Profile


@pytest.fixture(
    scope="module",
    params=["demo", pytest.param("real", marks=pytest.mark.realhost)],
)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A fresh host of either kind, for one module."""
    if request.param == "demo":
        with quick_demo.start() as demo:
            yield Place("demo", demo.profile)
        return
    module = request.module.__name__.rpartition(".")[2]
    for host in boot(f"{os.getpid()}-contract-{module}"[:40]):
        quick(host)
        connection = Connection(
            host=host.info["host"],
            port=host.info["port"],
            user="tuner",
            identity_file=Path(host.info["key"]),
            known_hosts=Path(host.info["known_hosts"]),
            config=Path("/dev/null"),
        )
        yield Place("real", profile.load("demo").model_copy(update={"connection": connection}))


@pytest_asyncio.fixture
async def host(place: Place) -> AsyncIterator[Host]:
    """Connected."""
    connected = open_host(place.profile.connection, NobodyToAsk())
    await connected.connect()
    yield connected
    await connected.close()


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    opened = History.open(tmp_path / "history.sqlite")
    yield opened
    opened.close()


@pytest.fixture
def tuning(place: Place, host: Host, history: History) -> Tuning:
    return Tuning(profile=place.profile, host=host, history=history)
