"""`ddtui apply PROFILE --set …`: plan, confirm, apply, restart, wait, verify."""

from __future__ import annotations

import argparse

from ddtui.commands import ask
from ddtui.commands import plan as planned
from ddtui.commands.failure import InputError
from ddtui.commands.opened import tuning, wait
from ddtui.commands.output import emit_json, note
from ddtui.commands.progress import follow
from ddtui.tuning import change
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Plan


def run(args: argparse.Namespace) -> int:
    return wait(_run(args))


async def _run(args: argparse.Namespace) -> int:
    async with tuning(args) as ctx:
        ctx.must_write()
        plan = await planned.make(ctx, args)
        if not await agreed(ctx, plan, args):
            return 1 if plan.problems else 130
        return await follow(
            change.apply(ctx, plan, roll_back=not args.no_rollback, ask_kill=ask_kill),
            "apply",
            args.json,
            ctx.profile.simulated,
        )


async def agreed(ctx: Tuning, plan: Plan, args: argparse.Namespace) -> bool:
    """Show the plan and ask; with `--yes` only show it. Raises InputError if nobody can answer."""
    if args.json:
        emit_json("plan", planned.report(plan))
    else:
        for line in planned.lines(plan):
            note(line)
    if plan.problems:
        return False
    if args.yes:
        return True
    if not ask.somebody():
        raise InputError("nobody can confirm here; read the plan and say --yes")
    if ctx.profile.production:
        host = ctx.profile.connection.host
        return await ask.answer(f"This is PRODUCTION. Type the host's name ({host}) to apply: ") == host
    return await ask.confirm("Apply this?")


async def ask_kill(stuck: change.Stuck) -> bool:
    """Whether to kill a server that does not stop."""
    note(stuck.text)
    return await ask.confirm("Kill it?")
