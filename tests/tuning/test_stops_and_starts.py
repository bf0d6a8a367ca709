"""Servers that do not stop, do not get ready, or find their place taken: on a real host."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import replace

import pytest
import pytest_asyncio
from contract_help import all_files, ready
from testhost_fixture import TestHost
from tuning.conftest import UNIT, Operator, quick

from ddtui.tuning import change, plan, starting
from ddtui.tuning import survey as surveys
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Phase, Plan, Progress

pytestmark = pytest.mark.realhost
EXTRA = f"/run/systemd/system/{UNIT}.d/80-extra.conf"


@pytest.fixture(autouse=True)
def put_right(testhost: TestHost) -> Iterator[None]:
    """Each test has the unit's own behaviour again."""
    quick(testhost)
    yield
    testhost.exec("rm", "-rf", EXTRA, f"/etc/systemd/system/{UNIT}.d", f"/var/lib/ddtui/{UNIT}")
    testhost.exec("systemctl", "daemon-reload")
    testhost.exec("systemctl", "kill", "-s", "SIGKILL", UNIT, check=False)


@pytest_asyncio.fixture
async def ann(operator: Operator) -> Tuning:
    return await operator(who="ann@laptop:11")


def extra(testhost: TestHost, text: str) -> None:
    """More of the operator's own settings, in force after a restart."""
    testhost.exec("tee", EXTRA, stdin=f"[Service]\n{text}\n".encode())
    testhost.exec("systemctl", "daemon-reload")
    testhost.exec("systemctl", "restart", UNIT)


def limits(ctx: Tuning, **service: float | bool) -> Tuning:
    """The context under a profile with other limits."""
    changed = ctx.profile.service.model_copy(update=service)
    return replace(ctx, profile=ctx.profile.model_copy(update={"service": changed}))


async def planned(ctx: Tuning, *sets: str) -> Plan:
    return await plan.make(ctx, await surveys.read(ctx), plan.parse_turns(ctx, sets, ()))


async def follow(progress: AsyncIterator[Progress]) -> list[Progress]:
    async with aclosing(progress) as steps:  # type: ignore[type-var]
        return [one async for one in steps]


async def test_a_server_that_never_stops_is_killed_only_when_the_operator_says_so(
    ann: Tuning, testhost: TestHost
) -> None:
    extra(testhost, "TimeoutStopSec=infinity\nKillMode=mixed\nEnvironment=SGLANG_STANDIN_FAIL=stop_hangs")
    await ready(ann)
    ctx = limits(ann, stop_timeout=1.0)
    asked: list[change.Stuck] = []

    async def answer(stuck: change.Stuck) -> bool:
        asked.append(stuck)
        return len(asked) > 1

    steps = await follow(change.apply(ctx, await planned(ctx, "budget=12"), ask_kill=answer))
    assert steps[-1].phase is Phase.VERIFIED, steps[-1]
    assert len(asked) == 2
    assert asked[1].seconds > asked[0].seconds
    draining = [step for step in steps if step.phase is Phase.DRAINING]
    assert draining
    assert draining[-1].running


async def test_the_profile_may_say_that_a_stuck_server_is_killed(ann: Tuning, testhost: TestHost) -> None:
    extra(testhost, "TimeoutStopSec=infinity\nKillMode=mixed\nEnvironment=SGLANG_STANDIN_FAIL=stop_hangs")
    await ready(ann)
    ctx = limits(ann, stop_timeout=1.0, kill_when_stuck=True)
    steps = await follow(change.restart(ctx))
    assert steps[-1].phase is Phase.VERIFIED, steps[-1]


async def test_up_is_not_ready_and_a_start_that_hangs_is_rolled_back(ann: Tuning, testhost: TestHost) -> None:
    await ready(ann)
    before = await all_files(ann)
    ctx = limits(ann, start_timeout=6.0)
    made = await planned(ctx, "budget=12")
    (edit,) = made.edits
    assert edit.after is not None
    hanging = edit.after + b"Environment=SGLANG_STANDIN_FAIL=hang_warmup\n"
    steps = await follow(change.apply(ctx, replace(made, edits=(replace(edit, after=hanging),))))
    assert steps[-1].phase is Phase.ROLLED_BACK, steps[-1]
    assert "ready" in (steps[-1].failure or "")
    assert any("not ready" in step.text for step in steps if step.phase is Phase.STARTING)
    assert await all_files(ann) == before


async def test_children_that_a_stop_leaves_behind_are_waited_for_and_killed_before_the_start(
    ann: Tuning, testhost: TestHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra(testhost, "KillMode=process\nExecStartPost=/bin/sh -c 'setsid sleep 1000 & exit 0'")
    await ready(ann)
    asked: list[change.Stuck] = []

    async def answer(stuck: change.Stuck) -> bool:
        asked.append(stuck)
        return True

    monkeypatch.setattr(starting, "CLEAR_WITHIN", 1.0)
    steps = await follow(change.apply(ann, await planned(ann, "budget=12"), ask_kill=answer))
    assert steps[-1].phase is Phase.VERIFIED, steps[-1]
    assert any("live on" in stuck.text for stuck in asked)
    assert any("live on" in step.text for step in steps)


async def test_a_taken_port_is_seen_before_a_start_that_would_load_and_hang(
    ann: Tuning, testhost: TestHost
) -> None:
    await ready(ann)
    before = await all_files(ann)
    testhost.exec("systemctl", "stop", UNIT)
    listener = "import socket,time; s=socket.create_server(('127.0.0.1',30000)); time.sleep(60)"
    testhost.exec("systemd-run", "--unit=squatter", "/usr/bin/python3", "-c", listener)
    try:
        steps = await follow(change.apply(ann, await planned(ann, "budget=12")))
    finally:
        testhost.exec("systemctl", "stop", "squatter")
    assert steps[-1].phase is Phase.FAILED, steps[-1]
    assert "port 30000 is taken" in (steps[-1].failure or "")
    assert await all_files(ann) == before


async def test_a_second_start_knows_how_long_the_first_one_took(ann: Tuning) -> None:
    await ready(ann)
    await follow(change.restart(ann))
    steps = await follow(change.restart(ann))
    etas = [step.eta_seconds for step in steps if step.phase is Phase.STARTING]
    assert any(eta is not None for eta in etas)
