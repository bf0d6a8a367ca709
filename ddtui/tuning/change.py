"""Plan → apply → watch → verify, or roll back: a change of a live server that survives a cut at any point.

What will be done next stands in the host's record before it is done. Files change by rename. systemd reloads,
and what it holds then is compared with the plan before anything restarts. So a cut leaves old files or new
ones, an old server or a new one, and `pending` tells any console which; it can finish the change or undo it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from ddtui.tuning import lock as locks
from ddtui.tuning import place, plan, record
from ddtui.tuning.context import Tuning
from ddtui.tuning.lock import Held
from ddtui.tuning.model import ChangeRecord, Phase, Plan, Progress
from ddtui.tuning.place import Place
from ddtui.tuning.running import Run
from ddtui.tuning.starting import AskKill, Stuck

__all__ = ["AskKill", "Pending", "Stuck", "apply", "pending", "restart", "resume"]


@dataclass(frozen=True, slots=True)
class Pending:
    """A change that was cut: found in the host's own record."""

    record: ChangeRecord
    on_disk: str  # "before", "after", "between", "by hand"
    text: str  # what happened, in a sentence


async def apply(
    ctx: Tuning,
    what: Plan,
    *,
    roll_back: bool = True,
    ask_kill: AskKill | None = None,
    held: Held | None = None,
    take_over: str | None = None,
) -> AsyncIterator[Progress]:
    """Carry the plan out. The last Progress has a final phase.

    Raises PlanError for a plan with problems, StalePlan, Locked, NotPermitted, HostError: nothing changed.
    `ask_kill` is asked when the old server does not stop within the profile's limit; without it, systemd's
    own limit is waited for. `held`: a lock that the caller (a sweep) already has. `take_over`: the token of a
    stale lock. Closing the iterator leaves the change where it is: `pending` finds it.
    """
    ctx.must_write()
    if what.problems:
        raise plan.PlanError(f"this plan cannot be applied: {what.problems[0]}")

    async def job(run: Run, where: Place) -> None:
        _none_pending(await record.read(ctx, where))
        await plan.check_fresh(ctx, what)
        await run.forward(record.begin(ctx, what), what.edits, fresh=True)

    purpose = f"{'roll back' if what.restores is not None else 'apply'} {plan.describe(what.turns)}"
    async for progress in _under_lock(ctx, purpose, job, roll_back, ask_kill, held, take_over):
        yield progress


async def restart(
    ctx: Tuning,
    *,
    ask_kill: AskKill | None = None,
    why: str = "",
    held: Held | None = None,
    take_over: str | None = None,
) -> AsyncIterator[Progress]:
    """Restart the service as it is configured, after a daemon-reload, and watch it until it is ready."""
    ctx.must_write()

    async def job(run: Run, where: Place) -> None:
        _none_pending(await record.read(ctx, where))
        await run.forward(await run.plain_restart(why), (), fresh=True)

    async for progress in _under_lock(ctx, "restart", job, False, ask_kill, held, take_over):
        yield progress


async def pending(ctx: Tuning) -> Pending | None:
    """The change that was cut and is neither finished nor undone. None: none, or it is being made."""
    where = await place.find(ctx)
    if not where.exists:
        return None
    records, holder = await asyncio.gather(record.read(ctx, where), locks.look(ctx))
    cut = record.unfinished(records)
    if cut is None or (holder is not None and not holder.stale):
        return None
    on_disk = await record.on_disk(ctx, cut)
    return Pending(
        cut,
        on_disk,
        f"the change {cut.id} ({plan.describe(cut.turns)}) by {cut.who} was cut while {cut.phase.value}; "
        + {
            "before": "the files are as before it",
            "after": "the files are as it wants them",
            "between": "some of its files are written and some are not",
            "by hand": "its files were changed by hand since",
        }[on_disk],
    )


async def resume(
    ctx: Tuning,
    cut: Pending,
    *,
    undo: bool = False,
    roll_back: bool = True,
    ask_kill: AskKill | None = None,
    take_over: str | None = None,
) -> AsyncIterator[Progress]:
    """Finish a cut change, or undo it; one that was being rolled back is only undone. Raises as `apply`."""
    ctx.must_write()
    undo = undo or cut.record.phase is Phase.ROLLING_BACK

    async def job(run: Run, where: Place) -> None:
        now = record.unfinished(await record.read(ctx, where))
        if now is None or now.id != cut.record.id:
            raise plan.StalePlan(f"the change {cut.record.id} was finished or undone meanwhile", "look again")
        edits = await record.kept_edits(ctx, where, now) if await record.has_files(ctx, where, now) else ()
        if undo or (not edits and now.files):
            await run.back(now, edits, "undone after a cut")
        else:
            await run.forward(now, edits, fresh=False)

    purpose = f"{'undo' if undo else 'finish'} the change {cut.record.id}"
    if take_over is None and (holder := await locks.look(ctx)) is not None and holder.stale:
        take_over = holder.token if holder.owner == cut.record.who else None
    async for progress in _under_lock(ctx, purpose, job, roll_back, ask_kill, None, take_over):
        yield progress


def _none_pending(records: tuple[ChangeRecord, ...]) -> None:
    """Raises PlanError if an earlier change is neither finished nor undone."""
    cut = record.unfinished(records)
    if cut is not None:
        raise plan.PlanError(
            f"the change {cut.id} by {cut.who} was cut while {cut.phase.value}", "finish it or undo it first"
        )


async def _under_lock(
    ctx: Tuning,
    purpose: str,
    job: Callable[[Run, Place], Awaitable[None]],
    roll_back: bool,
    ask_kill: AskKill | None,
    held: Held | None,
    take_over: str | None,
) -> AsyncIterator[Progress]:
    """Run the job under the lock, in a task of its own; what it says comes out here."""
    said: asyncio.Queue[Progress | None] = asyncio.Queue()

    async def work() -> None:
        async with AsyncExitStack() as stack:
            run = Run(ctx, said.put_nowait, roll_back=roll_back, ask_kill=ask_kill)
            run.say(Phase.LOCKING, "taking the lock on the host")
            if held is None:
                mine = await stack.enter_async_context(locks.hold(ctx, purpose, take_over=take_over))
            else:
                mine = held
            run.held, run.where = mine, mine.where
            await job(run, mine.where)

    task = asyncio.create_task(work())
    task.add_done_callback(lambda _: said.put_nowait(None))
    try:
        while (progress := await said.get()) is not None:
            yield progress
        await task
    finally:
        if not task.done():
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
