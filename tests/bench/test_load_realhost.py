"""The load on a real inference host: whatever becomes of the link, the worker ends and leaves nothing behind."""

from __future__ import annotations

import asyncio
import json

import pytest
from host.real import connected, off_loop, processes, until
from testhost_fixture import TestHost
from tuning.conftest import UNIT, quick

from ddtui.bench import burst, load
from ddtui.bench.model import Burst, BurstSpec, BurstState, Cell
from ddtui.bench.target import Target
from ddtui.host.ssh import SshHost

pytestmark = pytest.mark.realhost

SPEC = BurstSpec((Cell(4, 512),), output=2000, requests=500, at="host")
ASK = "from urllib.request import urlopen as ask; at = 'http://127.0.0.1:30000'; "
LOADS = ASK + "print(ask(at + '/get_load').read().decode())"
READY = (
    ASK
    + """
import time
while True:
    try:
        ask(at + "/model_info")
        break
    except OSError:
        time.sleep(0.1)
"""
)
ABORTED = "POST /abort_request"
MARK = "/run/before-the-burst"
PLACES = ("/home", "/root", "/tmp", "/var/tmp", "/dev/shm", "/opt", "/usr", "/srv", "/etc")


@pytest.fixture(scope="module")
def served(testhost: TestHost) -> TestHost:
    """A server that has loaded."""
    quick(testhost)
    testhost.exec("python3", "-B", "-c", READY)
    testhost.exec("touch", MARK)
    return testhost


async def target(host: SshHost) -> Target:
    return Target(
        await host.endpoint(30000), host=host, python="/usr/bin/python3", address=("127.0.0.1", 30000)
    )


def workers(testhost: TestHost) -> list[str]:
    return processes(testhost, "sys.stdin.readline")


def said(testhost: TestHost, what: str) -> int:
    """In how many lines of this start's journal the server says that."""
    journal = testhost.exec("journalctl", "-u", UNIT, "-o", "cat", "--since", "-2min").stdout.decode()
    return sum(what in line for line in journal.splitlines())


def running(testhost: TestHost) -> int:
    loads = testhost.exec("python3", "-B", "-c", LOADS).stdout
    return sum(int(one["num_reqs"]) for one in json.loads(loads))


def left_behind(testhost: TestHost) -> list[str]:
    """Files that are newer than the burst."""
    found = testhost.exec("find", *PLACES, "-xdev", "-newer", MARK, "!", "-type", "d", check=False).stdout
    return found.decode().splitlines()


async def begun(host: SshHost, testhost: TestHost) -> asyncio.Task[Burst]:
    """A burst that will go on for long, once its first requests run."""

    async def whole() -> Burst:
        return [snapshot async for snapshot in burst.run(SPEC, await target(host))][-1]

    task = asyncio.create_task(whole())
    await until(lambda: running(testhost) == 4, 30)
    assert len(workers(testhost)) == 1
    return task


@pytest.mark.parametrize("cut", [("reset",), ("net", "drop")], ids=["reset", "silence"])
async def test_when_the_link_is_lost_the_worker_ends_by_itself(
    served: TestHost, cut: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "PULSE", 0.3)
    monkeypatch.setattr(load, "PATIENCE", 2.0)
    aborts = said(served, ABORTED)
    async with connected(served) as host, asyncio.timeout(90):
        task = await begun(host, served)
        await off_loop(served.ctl, "refuse", "on")
        await off_loop(served.ctl, *cut)
        try:
            await until(lambda: not workers(served))
            assert running(served) == 0 and said(served, ABORTED) == aborts + 1
            assert left_behind(served) == []
            last = await task
        finally:
            await off_loop(served.ctl, "net", "up")
            await off_loop(served.ctl, "refuse", "off")
    assert last.state is BurstState.FAILED and "link" in last.text
