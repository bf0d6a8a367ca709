"""Back to the last verified setting, or to that of a named change, from the host's own record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from ddtui.engine.flags import FlagTable
from ddtui.host import files
from ddtui.sanitize import sanitize
from ddtui.tuning import change, outlook, place, plan, record, said, verdicts
from ddtui.tuning import survey as surveys
from ddtui.tuning.change import AskKill
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import ChangeRecord, FileEdit, Op, Phase, Plan, Progress, Turn
from ddtui.tuning.place import Place
from ddtui.tuning.plan import PlanError

START = "start"  # names the setting before every change


async def changes(ctx: Tuning) -> tuple[ChangeRecord, ...]:
    """All changes in the host's record, oldest first."""
    return await record.read(ctx, await place.find(ctx))


async def make(ctx: Tuning, to: str | None = None) -> Plan:
    """The plan that leads back: to the last verified setting before the present one, or to the setting that
    change `to` established ("start": the one before every change). Raises PlanError if there is none."""
    where = await place.find(ctx)
    survey, records = await asyncio.gather(surveys.read(ctx), record.read(ctx, where))
    service, unit = plan.changeable(survey)
    stack = record.in_force(records)
    target = _target(stack, records, to)
    undone = stack[stack.index(target) + 1 :] if target else stack
    edits, problems = await _edits(ctx, where, undone)
    after = await outlook.of_files(ctx.host, service, {edit.path: edit.after for edit in edits})
    goal = (
        f"change {target.id} ({plan.describe(target.turns)})" if target else "before every change of ddtui's"
    )
    return await plan.complete(
        ctx,
        survey,
        turns=_turns(ctx, said.table(survey), undone, after.launch_argv or ()),
        edits=edits,
        argv_before=unit.launch_argv or (),
        argv_after=after.launch_argv or (),
        exec_start_after=after.exec_start or (),
        problems=problems,
        warnings=[f"back to the setting {goal}", *(sanitize(text) for text in after.warnings)],
        why="",
        restores=target.id if target else "",
    )


async def rollback(
    ctx: Tuning, to: str | None = None, *, ask_kill: AskKill | None = None
) -> AsyncIterator[Progress]:
    """`make` and `change.apply` in one. Ends in VERIFIED, UNVERIFIED, FAILED, ROLLED_BACK or STRANDED."""
    ctx.must_write()
    async for progress in change.apply(ctx, await make(ctx, to), ask_kill=ask_kill):
        yield progress


def _target(
    stack: Sequence[ChangeRecord], records: Sequence[ChangeRecord], to: str | None
) -> ChangeRecord | None:
    """The change whose setting is to be in force again; None: the setting before all of them."""
    if not stack:
        raise PlanError("there is nothing to roll back: no change of ddtui's is in force on this host")
    if to is None:
        return next((entry for entry in reversed(stack[:-1]) if entry.phase is Phase.VERIFIED), None)
    if to == START:
        return None
    named = [entry for entry in stack if entry.id == to or (len(to) >= 4 and entry.id.endswith(to))]
    if not named:
        known = any(entry.id == to for entry in records)
        reason = "is not part of the present setting" if known else "is not in the host's record"
        raise PlanError(f"the change {to} {reason}", "changes in force: " + ", ".join(e.id for e in stack))
    if named[-1] is stack[-1]:
        raise PlanError(f"the change {to} is the last one; its setting is in force")
    return named[-1]


async def _edits(
    ctx: Tuning, where: Place, undone: Sequence[ChangeRecord]
) -> tuple[tuple[FileEdit, ...], list[str]]:
    """The files as they were before the oldest of these changes; and what stands against restoring them."""
    kept = [await record.kept_edits(ctx, where, entry) for entry in undone]
    goal: dict[str, FileEdit] = {}  # the oldest edit of each file: its `before` is where to go
    known: dict[str, set[bytes | None]] = {}  # what ddtui itself ever put there, or found there
    for edit in (edit for edits in kept for edit in edits):
        goal.setdefault(edit.path, edit)
        known.setdefault(edit.path, set()).update((edit.before, edit.after))
    now = await files.read(ctx.host, list(goal)) if goal else {}
    problems, edits = [], []
    for path, first in goal.items():
        if now[path] not in known[path]:
            problems.append(f"{path} was changed by hand since; going back would lose that")
        if now[path] != first.before:
            edits.append(FileEdit(path, now[path], first.before, first.ours, first.like))
    return tuple(edits), problems


def _turns(
    ctx: Tuning, table: FlagTable, undone: Sequence[ChangeRecord], argv: Sequence[str]
) -> tuple[Turn, ...]:
    """What going back does to the knobs that those changes turned."""
    after = table.resolve(argv)
    turns: dict[str, Turn] = {}
    for turn in (turn for entry in undone for turn in entry.turns):
        try:
            knob = verdicts.knob_of(ctx.profile, turn.knob)
        except KeyError:  # a knob of another profile
            continue
        if knob.flag is None:
            continue
        value = said.as_text(after.get(table.accepted(knob.flag) or knob.flag))
        if value is None:
            turns[turn.knob] = Turn(turn.knob, Op.UNSET)
        else:
            turns[turn.knob] = Turn(turn.knob, Op.SET, None if value == said.ON else value)
    return tuple(turns.values())
