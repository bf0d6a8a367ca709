"""`ddtui rollback PROFILE [--to CHANGE]`: back to the last verified setting, or a named one."""

from __future__ import annotations

import argparse

from ddtui.commands.apply import agreed, ask_kill
from ddtui.commands.opened import tuning, wait
from ddtui.commands.progress import follow
from ddtui.tuning import change, rollback


def run(args: argparse.Namespace) -> int:
    return wait(_run(args))


async def _run(args: argparse.Namespace) -> int:
    async with tuning(args) as ctx:
        ctx.must_write()
        plan = await rollback.make(ctx, args.to)
        if not await agreed(ctx, plan, args):
            return 1 if plan.problems else 130
        return await follow(
            change.apply(ctx, plan, ask_kill=ask_kill), "rollback", args.json, ctx.profile.simulated
        )
