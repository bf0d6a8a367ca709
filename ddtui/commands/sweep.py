"""`ddtui sweep PROFILE --grid … | --plan FILE | --resume [ID]`: many settings, unattended."""

from __future__ import annotations

import argparse
from contextlib import AsyncExitStack
from pathlib import Path

from ddtui.bench import grid
from ddtui.bench.experiment import ExperimentPlan, Order
from ddtui.commands import experiment
from ddtui.commands.failure import InputError
from ddtui.commands.opened import tuning, wait
from ddtui.commands.output import emit
from ddtui.profile import Bench
from ddtui.tuning import alike, forecast
from ddtui.tuning import survey as surveys
from ddtui.tuning.ledger import DONE, Ledger


def run(args: argparse.Namespace) -> int:
    if sum(map(bool, (args.grid, args.plan, args.resume is not None))) != 1:
        raise InputError("say what to try: --grid budget=4,8,16 …, or --plan FILE, or --resume")
    return wait(_run(args))


async def _run(args: argparse.Namespace) -> int:
    async with AsyncExitStack() as stack:
        contexts = []
        for name in (args.profile, *args.also):
            given = argparse.Namespace(**{**vars(args), "profile": name})
            contexts.append(await stack.enter_async_context(tuning(given)))
        ctx = contexts[0]
        assert ctx.history is not None
        survey = await surveys.read(ctx)
        await alike.must_be_alike(contexts, survey)
        if args.resume is not None:
            book = Ledger.find(ctx.history, ctx.host.name, ctx.unit, args.resume or None)
            if book.state == DONE:
                raise InputError(f"the sweep {book.id} is done")
            return await experiment.follow("sweep", contexts, book, args, resumed=True)
        plan = _plan(args, ctx.profile.bench)
        ready = await forecast.make(ctx, survey, plan, hosts=len(contexts))
        if args.forecast:
            emit(args.json, "forecast", experiment.report(ready), experiment.forecast_lines(ready))
            return 0
        for one in contexts:
            one.must_write()
        if not await experiment.agreed(contexts, ready, args):
            return 130
        book = Ledger.begin(ready.plan, ctx.history, ctx.host.name, ctx.unit)
        return await experiment.follow("sweep", contexts, book, args)


def _plan(args: argparse.Namespace, bench: Bench) -> ExperimentPlan:
    if args.plan:
        try:
            text = Path(args.plan).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            why = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
            raise InputError(f"{args.plan}: cannot be read: {why}") from None
        return grid.read(text, args.plan, bench)
    return experiment.plan_of(
        args,
        bench,
        Order(args.order),
        settings=grid.expand(grid.parse(args.grid)),
        finish=args.finish,
        objective=args.objective,
        trials=args.trials,
        why=args.why,
    )
