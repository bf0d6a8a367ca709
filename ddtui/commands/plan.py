"""`ddtui plan PROFILE --set …`: what would change. Changes nothing."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ddtui.commands.failure import InputError
from ddtui.commands.opened import tuning, wait
from ddtui.commands.output import emit
from ddtui.commands.status_line import Waiting
from ddtui.tuning import plan as plans
from ddtui.tuning import survey as surveys
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Plan
from ddtui.words import clock


def run(args: argparse.Namespace) -> int:
    return wait(_run(args))


async def _run(args: argparse.Namespace) -> int:
    async with tuning(args) as ctx:
        plan = await make(ctx, args)
    emit(args.json, "plan", report(plan), lines(plan))
    return 1 if plan.problems else 0


async def make(ctx: Tuning, args: argparse.Namespace) -> Plan:
    """The plan for `--set` and `--unset`. Raises InputError, PlanError, HostError."""
    if not args.sets and not args.unsets:
        raise InputError("nothing to change; say what with --set KNOB=VALUE or --unset KNOB")
    turns = plans.parse_turns(ctx, args.sets, args.unsets)
    async with Waiting("making the plan", surveys.usual_seconds(ctx.host.link)):
        return await plans.make(ctx, await surveys.read(ctx), turns, args.why)


def report(plan: Plan) -> dict[str, object]:
    """The plan as the JSON report has it; file contents only as the redacted diff."""
    return {
        "unit": plan.unit,
        "turns": plan.turns,
        "files": [{"path": edit.path, "ours": edit.ours} for edit in plan.edits],
        "diff": plan.diff,
        "commands": plan.commands,
        "interrupts": plan.interrupts,
        "last_starts": plan.last_starts,
        "problems": plan.problems,
        "warnings": plan.warnings,
    }


def lines(plan: Plan) -> Iterator[str]:
    """The plan as a person reads it."""
    from shlex import join

    yield from plan.diff.splitlines() or ["nothing changes on disk"]
    yield ""
    yield "Commands:"
    yield from (f"  {join(command)}" for command in plan.commands)
    yield ""
    yield f"Interrupts: {plan.interrupts}"
    starts = ", ".join(clock(seconds) for seconds in plan.last_starts)
    yield f"Last starts took: {starts}" if starts else "How long a start takes is not known yet."
    yield from (f"Note: {text}" for text in plan.warnings)
    yield from (f"Cannot be applied: {text}" for text in plan.problems)
