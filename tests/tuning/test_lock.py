"""The lock on a real host: one owner at a time, seen by all, renewed, and taken over only knowingly."""

from __future__ import annotations

import asyncio

import pytest
from testhost_fixture import TestHost
from tuning.conftest import Operator

from ddtui.host.base import NotPermitted
from ddtui.tuning import lock

pytestmark = pytest.mark.realhost
FOLDER = "/var/lib/ddtui/sglang-k26-ddtree.service"


async def test_the_second_operator_sees_who_holds_it_and_what_for(operator: Operator) -> None:
    ann, bob = await operator(who="ann@laptop:11"), await operator("root", who="bob@desk:22")
    async with lock.hold(ann, "sweep 12 steps") as held:
        seen = await lock.look(bob)
        assert seen is not None
        assert (seen.owner, seen.purpose, seen.stale) == ("ann@laptop:11", "sweep 12 steps", False)
        assert seen.age < 30
        with pytest.raises(lock.Locked, match="ann@laptop:11") as refused:
            async with lock.hold(bob, "apply budget 16"):
                raise AssertionError
        assert refused.value.holder.token == held.token
    assert await lock.look(bob) is None
    async with lock.hold(bob, "apply budget 16"):
        pass


async def test_of_many_that_try_at_once_exactly_one_gets_it(operator: Operator) -> None:
    contexts = [await operator(who=f"op{n}@desk:{n}") for n in range(4)]
    won: list[str] = []
    inside = asyncio.Event()

    async def attempt(number: int) -> None:
        try:
            async with lock.hold(contexts[number], "race"):
                won.append(contexts[number].who)
                await inside.wait()
        except lock.Locked:
            if len(won) == 1:
                inside.set()

    await asyncio.wait_for(asyncio.gather(*(attempt(n) for n in range(4))), 60)
    assert len(won) == 1


async def test_nothing_is_left_of_a_lock_that_ended_or_was_refused(
    operator: Operator, testhost: TestHost
) -> None:
    ann, bob = await operator(who="ann@laptop:11"), await operator(who="bob@desk:22")
    async with lock.hold(ann, "apply"):
        with pytest.raises(lock.Locked):
            async with lock.hold(bob, "apply"):
                raise AssertionError
    assert testhost.exec("ls", "-A", FOLDER).stdout.split() == []


async def test_a_stale_lock_is_taken_over_only_by_its_token_and_the_old_owner_finds_out(
    operator: Operator, testhost: TestHost
) -> None:
    ann, bob = await operator(who="ann@laptop:11"), await operator(who="bob@desk:22")
    async with lock.hold(ann, "apply budget 16") as held:
        testhost.exec("touch", "-d", "10 minutes ago", f"{FOLDER}/lock/renewed")
        lock._held.clear()  # as another process sees it
        seen = await lock.look(bob)
        assert seen is not None
        assert seen.stale
        assert 590 < seen.age < 620
        with pytest.raises(lock.Locked):
            async with lock.hold(bob, "look"):
                raise AssertionError
        with pytest.raises(lock.Locked):
            async with lock.hold(bob, "look", take_over="another token"):
                raise AssertionError
        async with lock.hold(bob, "take over", take_over=seen.token):
            with pytest.raises(lock.LockLost, match="bob@desk:22"):
                await held.confirm()
            with pytest.raises(lock.LockLost):
                await held.renew()
    assert await lock.look(ann) is None


async def test_a_renewed_lock_is_fresh_again(operator: Operator, testhost: TestHost) -> None:
    ann, bob = await operator(who="ann@laptop:11"), await operator(who="bob@desk:22")
    async with lock.hold(ann, "sweep") as held:
        testhost.exec("touch", "-d", "10 minutes ago", f"{FOLDER}/lock/renewed")
        await held.renew()
        seen = await lock.look(bob)
        assert seen is not None
        assert not seen.stale


async def test_a_lock_of_a_dead_process_of_this_machine_is_stale_at_once(
    operator: Operator, testhost: TestHost
) -> None:
    import socket

    ann = await operator(who=f"ann@{socket.gethostname()}:999999")
    async with lock.hold(ann, "apply"):
        lock._held.clear()
        seen = await lock.look(ann)
        assert seen is not None
        assert seen.stale


async def test_a_cut_link_does_not_lose_the_lock(operator: Operator, testhost: TestHost) -> None:
    ann, bob = await operator(who="ann@laptop:11"), await operator(who="bob@desk:22")
    async with lock.hold(ann, "apply") as held:
        testhost.ctl("reset")
        await ann.host.connected()
        await bob.host.connected()
        from ddtui.tuning.steady import steadily

        await steadily(ann.host, held.renew)
        seen = await steadily(bob.host, lambda: lock.look(bob))
        assert seen is not None
        assert seen.token == held.token
    assert await lock.look(bob) is None


async def test_without_rights_there_is_no_lock_and_it_says_why(operator: Operator) -> None:
    limited = await operator("limited")
    with pytest.raises(NotPermitted):
        async with lock.hold(limited, "apply"):
            raise AssertionError


async def test_read_only_takes_no_lock(operator: Operator) -> None:
    watcher = await operator(read_only="--read-only was given")
    with pytest.raises(NotPermitted, match="--read-only"):
        async with lock.hold(watcher, "apply"):
            raise AssertionError


async def test_a_folder_that_a_group_owns_takes_no_sudo(operator: Operator, testhost: TestHost) -> None:
    testhost.exec("install", "-d", "-m", "2775", "-g", "limited", FOLDER)
    limited = await operator("limited")
    async with lock.hold(limited, "apply"):
        assert testhost.exec("stat", "-c", "%U", f"{FOLDER}/lock/owner").stdout.strip() == b"limited"
    testhost.exec("chown", "-R", "root:root", FOLDER)
