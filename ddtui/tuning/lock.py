"""One change at a time: a lock on the host, with its owner and age, that any console can see.

The lock is a folder that holds the owner's words. It comes into being whole, by one rename: `mv -T` of a
filled folder onto the lock's name fails if a lock is there, and of two that try at once one wins. It is
renewed by writing a file in it; its age is that file's, by the host's own clock.

Commands: `mkdir -p -- DIR`, `tee -- FILE`, `mv -T -- DIR LOCK`, `rm -rf -- DIR`, `cat -- FILE`,
`stat -L -c %Y -- FILE`, `date +%s`.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ddtui.host.base import Command, CommandFailed, Completed, HostError
from ddtui.sanitize import sanitize
from ddtui.tuning import place
from ddtui.tuning.context import Tuning
from ddtui.tuning.place import Place
from ddtui.tuning.steady import demand, steadily

RENEW = 20.0  # seconds between renewals
STALE = 90.0  # seconds without one after which the owner counts as gone
RELEASE_TIMEOUT = 15.0  # seconds, the wait for a lost link included


@dataclass(frozen=True, slots=True)
class LockState:
    """Who holds the lock of a unit."""

    token: str
    owner: str  # user@machine:pid
    boot: str  # boot id of the owner's machine
    purpose: str  # "apply budget=16", "sweep 12 steps"
    taken_at: float  # unix time by the host's clock
    age: float  # seconds since it was last renewed, by the host's clock
    stale: bool  # not renewed for longer than a live owner ever takes, or its process is known to be gone
    ours: bool  # this ddtui holds it


class Locked(HostError):
    """Somebody else holds the lock. `holder` says who, since when and what for."""

    def __init__(self, holder: LockState) -> None:
        self.holder = holder
        since = f"renewed {holder.age:.0f} s ago"
        super().__init__(
            f"{holder.owner} holds the lock on this unit for {holder.purpose!r} ({since})",
            "it is stale and can be taken over knowingly" if holder.stale else "wait until that has ended",
        )


class LockLost(HostError):
    """The lock was taken over by another owner while we held it."""


_held: set[str] = set()  # tokens of this process


def boot_id() -> str:
    """This machine's boot id; empty where there is none (macOS)."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return ""


def look_commands(where: Place) -> tuple[Command, ...]:
    """What to run, in any batch, to see the lock; `read_look` reads the answers."""
    return (
        Command(("cat", "--", where / "lock/owner")),
        Command(("stat", "-L", "-c", "%Y", "--", where / "lock/renewed")),
        Command(("date", "+%s")),
    )


def read_look(done: Sequence[Completed]) -> LockState | None:
    """The lock by the answers to `look_commands`."""
    owner, renewed, now = done
    if not owner.ok:
        return None
    try:
        words = json.loads(owner.stdout)
        token, name = str(words["token"]), sanitize(str(words["owner"]))
        boot, purpose, taken_at = (
            str(words["boot"]),
            sanitize(str(words["purpose"])),
            float(words["taken_at"]),
        )
    except (ValueError, KeyError, TypeError):
        token, name, boot, purpose, taken_at = "", "somebody unknown", "", "something unknown", 0.0
    clock = float(now.out) if now.ok else taken_at
    age = max(0.0, clock - (float(renewed.out) if renewed.ok else taken_at))
    ours = token in _held
    return LockState(
        token=token,
        owner=name,
        boot=boot,
        purpose=purpose,
        taken_at=taken_at,
        age=age,
        stale=not ours and (age > STALE or _gone(name, boot)),
        ours=ours,
    )


def _gone(owner: str, boot: str) -> bool:
    """Whether the owner was a process of this machine, under this boot, that is no more."""
    _, _, rest = owner.rpartition("@")
    machine, _, pid = rest.rpartition(":")
    if machine != socket.gethostname() or not boot or boot != boot_id() or not pid.isdigit():
        return False
    return not Path(f"/proc/{pid}").exists()


async def look(ctx: Tuning, where: Place | None = None) -> LockState | None:
    """Who holds the lock now. None: nobody, which is most of the time and takes one command."""
    commands = look_commands(where or await place.find(ctx))
    (owner,) = await ctx.host.batch(commands[:1])
    return read_look(await ctx.host.batch(commands)) if owner.ok else None


@dataclass(frozen=True, slots=True)
class Held:
    """A lock that we hold."""

    ctx: Tuning
    where: Place
    token: str

    async def confirm(self) -> None:
        """Raises LockLost if the lock is no longer ours. One round trip."""
        state = read_look(await self.ctx.host.batch(look_commands(self.where)))
        if state is None or state.token != self.token:
            by = state.owner if state else "somebody who released it"
            raise LockLost(
                f"the lock was taken over by {by}", "nothing more was changed; look before you go on"
            )

    async def renew(self) -> None:
        """Say that we are alive. Raises LockLost. Two round trips."""
        await self.confirm()
        file = self.where / "lock/renewed"
        done = await self.ctx.host.run(("tee", "--", file), stdin=b"", sudo=self.where.sudo)
        demand(done, "the lock cannot be renewed")


@asynccontextmanager
async def hold(ctx: Tuning, purpose: str, *, take_over: str | None = None) -> AsyncIterator[Held]:
    """Hold the lock, renewed in the background, for as long as the context lasts.

    `take_over`: the token of a stale lock that the operator has seen and decided to take. Raises Locked,
    NotPermitted, CommandFailed. Losing the link does not lose the lock.
    """
    ctx.must_write()
    token = secrets.token_hex(8)
    held = await _take(ctx, token, purpose, take_over)
    _held.add(token)
    renewing = asyncio.create_task(_keep(held))
    try:
        yield held
    finally:
        renewing.cancel()
        with suppress(asyncio.CancelledError, HostError):
            await renewing
        _held.discard(token)
        with suppress(HostError, TimeoutError):  # it goes stale by itself
            async with asyncio.timeout(RELEASE_TIMEOUT):
                await steadily(ctx.host, lambda: _release(held))


async def _keep(held: Held) -> None:
    """Renew for ever. Ends at LockLost: the holder finds out at its next `confirm`."""
    while True:
        await asyncio.sleep(RENEW)
        with suppress(TimeoutError):
            await steadily(held.ctx.host, held.renew)


async def _take(ctx: Tuning, token: str, purpose: str, take_over: str | None) -> Held:
    host = ctx.host
    where = await steadily(host, lambda: place.make(ctx))
    mine = where / f"lock.{token}"

    async def fill() -> None:
        made, clock = await host.batch(
            [Command(("mkdir", "-p", "--", mine), sudo=where.sudo), Command(("date", "+%s"))]
        )
        demand(made, f"the lock in {where.path} cannot be made")
        words = {
            "token": token,
            "owner": ctx.who,
            "boot": boot_id(),
            "purpose": purpose,
            "taken_at": float(clock.out or 0),
        }
        for name, text in (("owner", json.dumps(words) + "\n"), ("renewed", "")):
            done = await host.run(("tee", "--", f"{mine}/{name}"), stdin=text.encode(), sudo=where.sudo)
            demand(done, f"the lock in {where.path} cannot be made")

    async def settle() -> LockState | None:
        """Move it in place; whoever's words are there then has the lock."""
        move = Command(("mv", "-T", "--", mine, where / "lock"), sudo=where.sudo)
        return read_look((await host.batch([move, *look_commands(where)]))[1:])

    await steadily(host, fill)
    if take_over is not None:
        await steadily(host, lambda: _push_aside(ctx, where, token, take_over))
    state = await steadily(host, settle)
    if state is not None and state.token == token:
        return Held(ctx, where, token)
    await host.run(("rm", "-rf", "--", mine), sudo=where.sudo)
    if state is None:
        raise CommandFailed(f"the lock in {where.path} cannot be taken: nothing stands there after the move")
    raise Locked(replace(state, ours=False))


async def _push_aside(ctx: Tuning, where: Place, token: str, stale: str) -> None:
    """Remove the stale lock that the operator saw, and no other one that came meanwhile."""
    state = read_look(await ctx.host.batch(look_commands(where)))
    if state is None or state.token == token:
        return
    if state.token != stale:
        raise Locked(state)
    aside = where / f"lock.{token}.old"
    await ctx.host.batch(
        [
            Command(("mv", "-T", "--", where / "lock", aside), sudo=where.sudo),
            Command(("rm", "-rf", "--", aside, where / f"lock.{stale}"), sudo=where.sudo),
        ]
    )


async def _release(held: Held) -> None:
    where, aside = held.where, held.where / f"lock.{held.token}"
    await held.confirm()
    await held.ctx.host.batch(
        [
            Command(("mv", "-T", "--", where / "lock", aside), sudo=where.sudo),
            Command(("rm", "-rf", "--", aside), sudo=where.sudo),
        ]
    )
