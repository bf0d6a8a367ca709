"""What `sweep`, `ab` and `calibrate` share: the time shown first, the question, the progress, the end."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack

from ddtui.bench import experiment, sides
from ddtui.bench.compare import Standing
from ddtui.bench.experiment import ExperimentPlan, Order, Trial, TrialState
from ddtui.bench.grid import cells, count
from ddtui.bench.model import Cell
from ddtui.commands import ask
from ddtui.commands import compare as comparing
from ddtui.commands.failure import InputError, code_of
from ddtui.commands.output import emit_json, note
from ddtui.commands.status_line import StatusLine, filled
from ddtui.profile import Bench
from ddtui.tuning import experiments, ledger, telling
from ddtui.tuning.context import Tuning
from ddtui.tuning.experiments import ExperimentState
from ddtui.tuning.forecast import Forecast
from ddtui.tuning.ledger import Ledger
from ddtui.tuning.rig import HostRig
from ddtui.words import clock, tokens


def counts(text: str | None, option: str) -> tuple[int, ...]:
    """`1,8,32` or `512,8k`. Raises BenchError."""
    return tuple(count(word, option) for word in text.split(",")) if text else ()


def asked_cells(args: argparse.Namespace, bench: Bench) -> tuple[Cell, ...]:
    """The cells of `--concurrency`, `--context` and `--workload`, else the profile's."""
    return cells(
        counts(args.concurrency, "--concurrency") or bench.concurrency,
        counts(args.context, "--context") or bench.context,
        args.workload or bench.workload,
    )


def load_words(args: argparse.Namespace, bench: Bench) -> dict[str, object]:
    """The other words of a plan that the command line gives."""
    return {
        "output": args.output or bench.output,
        "at": args.at or bench.at,
        "temperature": bench.temperature,
        "max_seconds": args.max_seconds or bench.max_seconds,
        "requests": args.requests,
        "seed": args.seed,
    }


async def agreed(contexts: Sequence[Tuning], forecast: Forecast, args: argparse.Namespace) -> bool:
    """Show what it takes, and ask. Raises InputError where nobody can answer."""
    if args.json:
        emit_json("forecast", report(forecast))
    else:
        for line in forecast_lines(forecast):
            note(line)
    if args.yes:
        return True
    if not ask.somebody():
        raise InputError("nobody can confirm here; read what it takes and say --yes")
    production = next((ctx for ctx in contexts if ctx.profile.production), None)
    if production is not None:
        host = production.profile.connection.host
        return await ask.answer(f"This is PRODUCTION. Type the host's name ({host}) to run it: ") == host
    return await ask.confirm("Run it?")


def report(forecast: Forecast) -> dict[str, object]:
    """A forecast as JSON has it."""
    plan = forecast.plan
    return {
        "order": plan.order,
        "settings": [dict(one) for one in plan.settings],
        "skipped": [{"setting": dict(one), "why": why} for one, why in plan.skipped],
        "cells": plan.cells,
        "trials": forecast.trials,
        "restarts": forecast.restarts,
        "start_seconds": forecast.start_seconds,
        "burst_seconds": forecast.burst_seconds,
        "seconds": forecast.seconds,
        "finish": plan.finish,
    }


def forecast_lines(forecast: Forecast) -> Iterator[str]:
    """What it takes, for a person."""
    yield from telling.skipped(forecast)
    yield from telling.forecast(forecast)


async def follow(
    command: str, contexts: Sequence[Tuning], book: Ledger, args: argparse.Namespace, *, resumed: bool = False
) -> int:
    """Run it to its end, and say how it went; the exit code."""
    ctx = contexts[0]
    history = ctx.history
    assert history is not None
    rigs = [HostRig(one, history, take_over=resumed) for one in contexts]
    told: dict[int, TrialState] = {}
    bar = _Bar()
    last: ExperimentState | None = None
    noise = sides.restarts(history, ctx.host.name, ctx.unit)
    if not args.json:
        note(f"{command} {book.id}")
    try:
        async with AsyncExitStack() as stack:
            states = experiments.run(book, rigs, restarts=noise)
            stack.push_async_callback(states.aclose)  # type: ignore[attr-defined]
            async for last in states:
                for trial in last.trials:
                    if trial.state.over and told.get(trial.number) is not trial.state:
                        told[trial.number] = trial.state
                        bar.end()
                        if args.json:
                            emit_json(f"{command}-trial", trial_report(trial))
                        else:
                            shared = len(rigs) > 1
                            lines = telling.trial(trial, len(last.trials), last.expected, shared=shared)
                            print("\n".join(lines), flush=True)
                bar.of(last)
    finally:
        bar.end()
        if last is None or last.state == ledger.RUNNING:
            note(f"stopped; `ddtui sweep {ctx.profile.name} --resume {book.id}` goes on where it was")
    assert last is not None
    return _close(command, last, args, ctx.profile.simulated)


def trial_report(trial: Trial) -> dict[str, object]:
    """A trial as JSON has it."""
    return {
        **experiment.trial_to_plain(trial),
        "setting": dict(trial.setting),
        "points": [run.point for run in trial.runs.values()],
    }


def _close(command: str, last: ExperimentState, args: argparse.Namespace, simulated: bool) -> int:
    outcome = last.outcome
    if args.json:
        emit_json(command, end_report(last, simulated))
    elif outcome is not None:
        print()
        for line in end_lines(last):
            print(line)
        if simulated:
            print("SIMULATED")
    if last.state != ledger.DONE or outcome is None:
        note(f"ddtui: stopped: {last.problem}; continue it with --resume {last.id}")
        return code_of(last.error) or 1 if last.error else 1
    worse = outcome.comparison is not None and outcome.comparison.standing is Standing.WORSE
    lost = "could not be put" in outcome.left_text
    nothing = not any(trial.measured for trial in last.trials)
    return 1 if worse or lost or nothing else 0


def end_report(last: ExperimentState, simulated: bool) -> dict[str, object]:
    """The end as JSON has it."""
    outcome = last.outcome
    ranked = outcome.ranking if outcome else None
    return {
        "id": last.id,
        "state": last.state,
        "order": last.plan.order,
        "problem": last.problem,
        "text": outcome.text if outcome else "",
        "left": dict(outcome.left) if outcome and outcome.left is not None else None,
        "left_text": outcome.left_text if outcome else "",
        "simulated": simulated,
        "preview": ranked.preview if ranked else None,
        "comparison": comparing.report(outcome.comparison) if outcome and outcome.comparison else None,
        "ranking": [
            {
                "setting": dict(row.setting),
                "against_best": row.score,
                "low": row.low,
                "high": row.high,
                "apart": row.apart,
                "trials": row.trials,
                "restarts": row.restarts,
            }
            for row in (ranked.rows if ranked else ())
        ],
        "trials": [trial_report(trial) for trial in last.trials],
        "skipped": [{"setting": dict(one), "why": why} for one, why in last.plan.skipped],
    }


def end_lines(last: ExperimentState) -> Iterator[str]:
    """The end for a person: the sentence first."""
    outcome = last.outcome
    assert outcome is not None
    if outcome.comparison is not None:
        yield from comparing.lines(outcome.comparison)
    else:
        yield outcome.text
    if outcome.ranking is not None and len(outcome.ranking.rows) > 1:
        yield ""
        yield from (f"  {line}" for line in telling.ranking(outcome.ranking))
    if outcome.left_text:
        yield ""
        yield outcome.left_text


class _Bar(StatusLine):
    """An experiment's progress; where no line can be drawn over, a line where something new begins."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[str, str] = {}

    def of(self, state: ExperimentState) -> None:
        for doing in state.doing.values():
            trial = doing.trial
            what = experiment.name(trial.setting) if trial else "leaving the host as asked"
            if doing.burst is not None and doing.burst.cell is not None:
                cell = doing.burst.cell
                what += f"  C={cell.concurrency} ctx={tokens(cell.context)}"
            elif doing.progress is not None and self.live:
                what += f"  {doing.progress.phase.value}"
            if not self.live:
                if self._told.get(doing.host) != what and state.state == ledger.RUNNING:
                    self._told[doing.host] = what
                    note(f"  {what}")
                continue
            part = (
                doing.burst.fraction if doing.burst else doing.progress.fraction if doing.progress else None
            )
            words = [f"{state.done}/{state.expected}", what]
            if part is not None:
                words.append(filled(part))
            if state.eta_seconds is not None:
                words.append(f"all: eta {clock(state.eta_seconds)}")
            self.show("  ".join(words))


def plan_of(args: argparse.Namespace, bench: Bench, order: Order, **words: object) -> ExperimentPlan:
    """A plan with the load that the command line names."""
    return ExperimentPlan(
        cells=asked_cells(args, bench),
        order=order,
        check=not args.no_check,
        **{**load_words(args, bench), **words},  # type: ignore[arg-type]
    )
