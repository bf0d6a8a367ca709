"""`ddtui ab PROFILE --set …`: measure what is in force (A), apply B, measure it, decide, leave the winner."""

from __future__ import annotations

import argparse

from ddtui.bench import contrast
from ddtui.bench.experiment import OFF, ON, PROMPTS, Order
from ddtui.commands import experiment
from ddtui.commands.failure import InputError
from ddtui.commands.opened import tuning, wait
from ddtui.commands.output import note
from ddtui.store import series
from ddtui.tuning import forecast, plan
from ddtui.tuning import survey as surveys
from ddtui.tuning.ledger import Ledger


def run(args: argparse.Namespace) -> int:
    if not args.sets and not args.unsets:
        raise InputError("say what B is with --set KNOB=VALUE or --unset KNOB")
    return wait(_run(args))


async def _run(args: argparse.Namespace) -> int:
    async with tuning(args) as ctx:
        assert ctx.history is not None
        turns = plan.parse_turns(ctx, args.sets, args.unsets)
        b = [(turn.knob, turn.value if turn.value is not None else ON) for turn in turns if turn.op == "set"]
        b += [(turn.knob, OFF) for turn in turns if turn.op == "unset"]
        wanted = experiment.plan_of(
            args,
            ctx.profile.bench,
            Order.ABBA if args.confirm else Order.AB,
            settings=(tuple(b),),
            finish=args.finish,
            requests=args.requests or PROMPTS,
            why=args.why,
        )
        survey = await surveys.read(ctx)
        if all(forecast.as_found(ctx, survey, (tuple(b),)).get(knob) == value for knob, value in b):
            raise InputError("B is the setting that the unit has already: there is nothing to compare")
        ready = await forecast.make(ctx, survey, wanted)
        ctx.must_write()
        known = series.count(ctx.history, ctx.host.name, ctx.unit)
        if known < contrast.LEAST_RUNS:
            note(
                f"{known} A/A runs of this host are known: the verdict will be a preview; "
                f"`ddtui calibrate {ctx.profile.name}` makes them"
            )
        if not await experiment.agreed([ctx], ready, args):
            return 130
        book = Ledger.begin(ready.plan, ctx.history, ctx.host.name, ctx.unit)
        return await experiment.follow("ab", [ctx], book, args)
