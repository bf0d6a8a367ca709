"""Watching a real host: what moved is read again, the link may go, others are seen; and an idle host costs little."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from contract_help import ready
from testhost_fixture import TestHost
from tuning.conftest import UNIT, Operator, quick

from ddtui.host import clock
from ddtui.host.base import Host, LinkState, LoggedCommand
from ddtui.tuning import lock
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Status
from ddtui.tuning.watch import Watch, WatchState

pytestmark = pytest.mark.realhost
DRAFTER = "/opt/models/Kimi-K2.6-DFlash/config.json"


@pytest.fixture(scope="module", autouse=True)
def quick_server(testhost: TestHost) -> None:
    quick(testhost)


class Seen:
    """A watch that runs, and waits for states."""

    def __init__(self, ctx: Tuning) -> None:
        self.watch = Watch(ctx, interval=0.2)
        self.states: list[WatchState] = []
        self._came = asyncio.Event()
        self.watch.subscribe(self._on)

    def _on(self, state: WatchState) -> None:
        self.states.append(state)
        self._came.set()

    async def until(self, fits: Callable[[WatchState], bool]) -> WatchState:
        async with asyncio.timeout(60):
            while not fits(self.watch.state):
                self._came.clear()
                await self._came.wait()
        return self.watch.state


@pytest_asyncio.fixture
async def seen(operator: Operator) -> AsyncIterator[Seen]:
    ctx = await operator(who="ann@laptop:11", history=True)
    await ready(ctx)
    watching = Seen(ctx)
    task = asyncio.create_task(watching.watch.run())
    yield watching
    task.cancel()
    await asyncio.wait([task])


def status_of(state: WatchState, subject: str) -> Status | None:
    return next((v.status for v in state.verdicts if v.subject == subject), None)


async def test_the_first_states_hold_everything_that_is_known(seen: Seen) -> None:
    state = await seen.until(lambda s: s.loads is not None and s.step is not None)
    assert state.link.state is LinkState.CONNECTED
    assert state.survey is not None
    assert status_of(state, "window.flag") is Status.NOT_IN_FORCE
    assert {row.name for row in state.knobs} == {"budget", "topk", "window"}
    assert state.step == 1
    assert state.read_only is None
    assert (state.lock, state.pending, state.problem) == (None, None, None)


@pytest.fixture
def two_hours_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    read = clock.now

    async def later(host: Host) -> float:
        return await read(host) + 7200

    monkeypatch.setattr(clock, "now", later)


async def test_how_far_the_host_s_clock_is_off_is_known_with_the_first_status(
    two_hours_ahead: None, seen: Seen
) -> None:
    first = await seen.until(lambda s: s.status is not None)
    assert first.ahead == pytest.approx(7200, abs=5)


async def test_a_config_that_changes_turns_the_verdict_and_is_noticed(seen: Seen, testhost: TestHost) -> None:
    await seen.until(lambda s: bool(s.verdicts))
    kept = testhost.exec("cat", DRAFTER).stdout
    await asyncio.sleep(0.5)  # a look at the times before the change
    try:
        testhost.exec(
            "tee", DRAFTER, stdin=kept.replace(b'"sliding_window": 2048', b'"sliding_window": 1024')
        )
        state = await seen.until(
            lambda s: bool(
                s.survey and s.survey.drafter.value and s.survey.drafter.value.sliding_window == 1024
            )
        )
    finally:
        testhost.exec("tee", DRAFTER, stdin=kept)
    assert any(DRAFTER in notice for notice in state.notices)


async def test_a_restart_by_hand_is_noticed_and_the_new_process_is_read(
    seen: Seen, testhost: TestHost
) -> None:
    first = await seen.until(lambda s: bool(s.verdicts))
    assert first.survey is not None
    assert first.survey.process.value is not None
    pid = first.survey.process.value.pid
    testhost.exec("systemctl", "restart", UNIT)
    state = await seen.until(
        lambda s: bool(s.survey and s.survey.process.value and s.survey.process.value.pid != pid)
    )
    assert any("started anew" in notice for notice in state.notices)
    await seen.until(lambda s: status_of(s, "budget") is Status.IN_FORCE)


async def test_a_lost_link_is_said_and_what_was_known_stays_with_its_age(
    seen: Seen, testhost: TestHost
) -> None:
    known = await seen.until(lambda s: bool(s.verdicts) and s.loads is not None)
    testhost.ctl("refuse", "on")
    testhost.ctl("reset")
    try:
        lost = await seen.until(lambda s: s.link.state is not LinkState.CONNECTED)
        assert lost.survey is known.survey
        assert lost.verdicts
        assert lost.status_at is not None
    finally:
        testhost.ctl("refuse", "off")
    at = lost.status_at
    back = await seen.until(lambda s: s.problem is None and (s.status_at or 0) > at)
    assert back.link.state is LinkState.CONNECTED


async def test_another_operator_at_work_is_seen_with_what_he_does(seen: Seen, operator: Operator) -> None:
    await seen.until(lambda s: bool(s.verdicts))
    bob = await operator("root", who="bob@desk:22")
    async with lock.hold(bob, "sweep 12 steps"):
        lock._held.clear()  # as another process sees it
        state = await seen.until(lambda s: s.lock is not None)
        assert state.locked_by_other == "bob@desk:22 is at work here: sweep 12 steps"
    await seen.until(lambda s: s.lock is None)


async def test_an_idle_look_takes_few_commands_and_never_the_probe(seen: Seen) -> None:
    await seen.until(lambda s: bool(s.verdicts) and s.loads is not None)
    ran: list[LoggedCommand] = []
    end = seen.watch._ctx.host.on_command(ran.append)
    at = seen.watch.state.status_at or 0
    await seen.until(lambda s: (s.status_at or 0) > at)
    first = len(ran)
    at = seen.watch.state.status_at or 0
    await seen.until(lambda s: (s.status_at or 0) > at)
    end()
    assert len(ran) - first <= 8, [command.argv for command in ran]
    assert not any("python" in command.argv[0] for command in ran)
    assert not any(command.argv[0] == "journalctl" for command in ran)


async def test_refreshing_one_layer_leaves_the_others(seen: Seen) -> None:
    from ddtui.tuning.model import Layer

    before = (await seen.until(lambda s: bool(s.verdicts))).survey
    await seen.watch.refresh(Layer.SERVER)
    after = seen.watch.state.survey
    assert before is not None
    assert after is not None
    assert (after.server.read_at or 0) > (before.server.read_at or 0)
    assert after.engine is before.engine
    await seen.watch.refresh()
    assert seen.watch.state.survey is not None
    assert seen.watch.state.survey.engine is not before.engine


async def test_a_read_only_profile_is_said_at_once(operator: Operator) -> None:
    ctx = await operator(read_only="--read-only was given")
    assert Watch(ctx).state.read_only == "--read-only was given"


async def test_a_host_without_rights_is_read_only_by_itself_and_says_why(operator: Operator) -> None:
    watching = Seen(await operator("limited"))
    task = asyncio.create_task(watching.watch.run())
    try:
        state = await watching.until(lambda s: s.read_only is not None)
    finally:
        task.cancel()
        await asyncio.wait([task])
    assert "restart --no-block" in (state.read_only or "")
