"""Many changes one after another, good ones and failing ones, with the connection cut at random points.

After each: the host is in the old or in the new state, the operator's own files are byte for byte as before, and
nothing of ddtui's is left in /tmp or beside the units. The number is DDTUI_CHANGES (12), the seed DDTUI_SEED (1):

    DDTUI_CHANGES=200 .venv/bin/pytest tests/tuning/test_random_changes.py -s
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

import pytest
from contract_help import ready
from testhost_fixture import TestHost
from tuning.conftest import UNIT, Operator, quick

from ddtui.tuning import change, lock, plan, rollback
from ddtui.tuning import survey as surveys
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Phase, Progress
from ddtui.tuning.steady import steadily

pytestmark = pytest.mark.realhost
CHANGES = int(os.environ.get("DDTUI_CHANGES", "12"))
SEED = int(os.environ.get("DDTUI_SEED", "1"))
FOLDER = f"/etc/systemd/system/{UNIT}.d"
OURS = f"{FOLDER}/zzz-ddtui.conf"
THEIRS = (
    f"/etc/systemd/system/{UNIT}",
    f"{FOLDER}/20-site.conf",
    f"/run/systemd/system/{UNIT}.d/70-test.conf",
)


@dataclass(frozen=True)
class State:
    """What must be old or new as a whole."""

    drop_in: bytes | None
    argv: tuple[bytes, ...]


def state(testhost: TestHost) -> State:
    """The host's own look, past ssh."""
    kept = testhost.exec("cat", OURS, check=False)
    pid = testhost.exec("systemctl", "show", UNIT, "-p", "MainPID", "--value").stdout.decode().strip()
    argv = testhost.exec("cat", f"/proc/{pid}/cmdline", check=False).stdout.split(b"\0")
    return State(kept.stdout if kept.returncode == 0 else None, tuple(argv))


def theirs(testhost: TestHost) -> bytes:
    return testhost.exec("sha256sum", *THEIRS).stdout


def left_over(testhost: TestHost) -> list[str]:
    """What ddtui must not leave: temporary files, in /tmp or beside the units."""
    found = testhost.exec("find", "/tmp", "/etc/systemd", "-name", "*ddtui*").stdout.decode().split()
    return [path for path in found if path != OURS]


def wish(rng: random.Random) -> tuple[list[str], list[str]]:
    """(sets, unsets) of a random change; some of them make a start fail."""
    if rng.random() < 0.2:
        return [rng.choice(["--mem-fraction-static=0.9995", "--context-length=99999999"])], []
    choices = {
        "budget": ["4", "7", "8", "12", "16", "32"],
        "topk": ["1", "2", "4", "8"],
        "window": ["512", "2048", "4096"],
        "--max-running-requests": ["16", "32", "48"],
    }
    names = rng.sample(list(choices), rng.randint(1, 2))
    sets, unsets = [], []
    for name in names:
        if name == "window" and rng.random() < 0.3:
            unsets.append(name)
        else:
            sets.append(f"{name}={rng.choice(choices[name])}")
    return sets, unsets


async def run_cut(steps: AsyncIterator[Progress], testhost: TestHost, rng: random.Random) -> Progress | None:
    """Follow a change; after a random number of steps cut the link or let the console die. Its end, if it came."""
    how, when = rng.choice(["reset", "drop", "die"]), rng.randint(1, 25)
    last: Progress | None = None
    async with aclosing(steps) as following:  # type: ignore[type-var]
        count = 0
        async for one in following:
            last = one
            count += 1
            if count != when:
                continue
            if how == "die":
                testhost.ctl("reset")  # and nobody goes on
                return None
            if how == "reset":
                testhost.ctl("reset")
            else:
                testhost.ctl("net", "drop")
                await asyncio.sleep(rng.random() * 0.5)
                testhost.ctl("net", "up")
    return last


async def test_after_every_change_the_host_is_old_or_new(operator: Operator, testhost: TestHost) -> None:
    rng = random.Random(SEED)
    testhost.exec("mkdir", "-p", FOLDER)
    testhost.exec("tee", f"{FOLDER}/20-site.conf", stdin=b"[Service]\nEnvironment=SITE='a b' # kept\n")
    quick(testhost)
    ctx = await operator(who="ann@laptop:11", history=True)
    await ready(ctx)
    own = theirs(testhost)
    ends: dict[str, int] = {}
    for number in range(CHANGES):
        sets, unsets = wish(rng)
        made = await plan.make(ctx, await surveys.read(ctx), plan.parse_turns(ctx, sets, unsets))
        if made.problems:
            ends["refused"] = ends.get("refused", 0) + 1
            continue
        old = state(testhost)
        steps = change.apply(ctx, made)
        if rng.random() < 1 / 3:
            last = await run_cut(steps, testhost, rng)
        else:
            last = [one async for one in steps][-1]
        await steadily(ctx.host, lambda: ctx.host.run(("id", "-u")))  # the link is there again
        if last is None or not last.phase.final:
            _, last = await settle(ctx, testhost, old, made.edits[0].after, rng)
        ends[last.phase.value] = ends.get(last.phase.value, 0) + 1
        now = state(testhost)
        new = State(made.edits[0].after, tuple(word.encode() for word in (*made.argv_after, "")))
        if last.phase is Phase.VERIFIED:
            assert now == new, (number, sets, unsets, last)
        else:
            assert last.phase in (Phase.ROLLED_BACK, Phase.FAILED), (number, sets, unsets, last)
            assert now == old, (number, sets, unsets, last)
        assert theirs(testhost) == own, (number, sets, unsets)
        assert left_over(testhost) == [], (number, sets, unsets)
        assert await lock.look(ctx) is None
        assert await change.pending(ctx) is None
    print(f"{CHANGES} changes with seed {SEED}: {ends}")
    assert all(entry.phase.final for entry in await rollback.changes(ctx))


async def settle(
    ctx: Tuning, testhost: TestHost, old: State, wanted: bytes | None, rng: random.Random
) -> tuple[change.Pending | None, Progress]:
    """A console died in the middle: the file is old or new as a whole, and the next console finishes or undoes."""
    assert state(testhost).drop_in in (old.drop_in, wanted)
    if (holder := await lock.look(ctx)) is not None:
        await take_away(ctx, testhost, holder)
    cut = await change.pending(ctx)
    if cut is None and state(testhost) == old:  # it was cut before anything was written down
        return None, Progress(Phase.FAILED, "cut before it began")
    if cut is None:  # it was over by the host's record, and nobody was left to be told
        return None, Progress((await rollback.changes(ctx))[-1].phase, "over before the cut")
    last = [one async for one in change.resume(ctx, cut, undo=rng.random() < 0.5)][-1]
    return cut, last


async def take_away(ctx: Tuning, testhost: TestHost, holder: lock.LockState) -> None:
    """The dead console's lock, as it is after it went stale; its last command may still remove it by itself."""
    testhost.exec("touch", "-c", "-d", "10 minutes ago", f"/var/lib/ddtui/{UNIT}/lock/renewed", check=False)
    async with lock.hold(ctx, "take over", take_over=holder.token):
        pass
