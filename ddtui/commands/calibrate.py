"""`ddtui calibrate PROFILE`: restart and measure the setting in force, again and again: the noise of
restarts.
"""

from __future__ import annotations

import argparse

from ddtui.bench import contrast
from ddtui.bench.experiment import PROMPTS, Order
from ddtui.commands import experiment
from ddtui.commands.failure import InputError
from ddtui.commands.opened import tuning, wait
from ddtui.tuning import forecast
from ddtui.tuning import survey as surveys
from ddtui.tuning.ledger import Ledger


def run(args: argparse.Namespace) -> int:
    if args.runs < contrast.LEAST_RUNS:
        raise InputError(
            f"--runs {args.runs}: the noise of restarts needs {contrast.LEAST_RUNS} runs or more"
        )
    return wait(_run(args))


async def _run(args: argparse.Namespace) -> int:
    async with tuning(args) as ctx:
        assert ctx.history is not None
        wanted = experiment.plan_of(
            args,
            ctx.profile.bench,
            Order.CALIBRATE,
            settings=(),
            finish="stay",
            requests=args.requests or PROMPTS,
            trials=args.runs,
        )
        ready = await forecast.make(ctx, await surveys.read(ctx), wanted)
        ctx.must_write()
        if not await experiment.agreed([ctx], ready, args):
            return 130
        book = Ledger.begin(ready.plan, ctx.history, ctx.host.name, ctx.unit)
        return await experiment.follow("calibrate", [ctx], book, args)
