"""`ddtui bench PROFILE | --url URL`: bursts, here or on the host."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from textwrap import wrap
from urllib.parse import urlsplit

from ddtui.bench import burst as bursts
from ddtui.bench import kept
from ddtui.bench.model import Burst, BurstSpec, BurstState, Cell, Estimate, Point
from ddtui.bench.target import BenchError, Target
from ddtui.burst_words import accept_said, beside_said, first_of, spread_said
from ddtui.commands.ask import confirm
from ddtui.commands.failure import InputError
from ddtui.commands.opened import tuning, wait
from ddtui.commands.output import emit_json, note
from ddtui.commands.status_line import StatusLine, filled
from ddtui.host.base import Endpoint, NotPermitted
from ddtui.profile import Bench, Profile
from ddtui.store.history import History
from ddtui.store.model import Step
from ddtui.tuning import output_check, steps, verdicts
from ddtui.tuning import survey as surveys
from ddtui.tuning.aim import aim
from ddtui.words import clock, number, parse_count, tokens

API_KEY = "DDTUI_API_KEY"  # of a server that is given by its URL alone
WIDTH = 110  # of a line below a point, as wide as the table
COLUMNS = ("C", "context", "workload", "tok/s", "95 %", "tok/s/user", "TTFT ms", "step ms", "accept", "n")


def run(args: argparse.Namespace) -> int:
    if bool(args.profile) == bool(args.url):
        raise InputError("give a profile or --url, one of them: ddtui bench --url http://127.0.0.1:30000")
    try:
        return wait(_on_url(args) if args.url else _on_profile(args))
    except BenchError as problem:
        raise InputError(str(problem)) from None


async def _on_url(args: argparse.Namespace) -> int:
    endpoint = _endpoint(args.url)
    most = max(_counts(args.concurrency) or Bench().concurrency)  # who names a URL decides alone
    target = Target(endpoint, api_key=os.environ.get(API_KEY), max_concurrency=most)
    history, name = History.open(), f"{endpoint.host}:{endpoint.port}"
    try:
        code = 0
        if args.check_output != "only":
            code = await _measure(
                args,
                _spec(args, Bench()),
                target,
                None,
                lambda burst: history.save_burst(name, "", kept.to_plain(burst), note=args.note),
            )
        if args.check_output and code in (0, 1):
            code = max(code, await _check(args, target, history, name, "", None))
        return code
    finally:
        history.close()


async def _on_profile(args: argparse.Namespace) -> int:
    async with tuning(args) as ctx:
        await _allowed(ctx.profile, args)
        survey = await surveys.read(ctx)
        step = steps.keep(ctx, survey, verdicts.judge(survey, ctx.profile))
        target = await aim(ctx, survey)
        history = ctx.history

        def keep(burst: Burst) -> None:
            if history is not None:
                history.save_burst(ctx.host.name, ctx.unit, kept.to_plain(burst), note=args.note)

        code = 0
        if args.check_output != "only":
            spec = _spec(args, ctx.profile.bench)
            code = await _measure(args, spec, target, step.number if step else None, keep)
        if args.check_output and code in (0, 1):
            code = max(code, await _check(args, target, history, ctx.host.name, ctx.unit, step))
        return code


async def _check(
    args: argparse.Namespace, target: Target, history: History | None, host: str, unit: str, step: Step | None
) -> int:
    """The output check; 1: the output is wrong."""
    line = StatusLine()
    try:
        judged = await output_check.check(
            target,
            history,
            host,
            unit,
            step,
            reference=args.reference,
            run_tests=not args.no_tests,
            on_progress=lambda text, part: line.show(f"output check {part:4.0%}  {text}"),
        )
    finally:
        line.end()
    if args.json or not sys.stdout.isatty():
        emit_json("bench-check", {"step": step.number if step else None, "check": judged})
    else:
        simulated = "  SIMULATED" if judged.simulated else ""
        beside = f" (reference: step {judged.reference})" if judged.reference is not None else ""
        print(f"output {'WRONG' if judged.wrong else judged.verdict}: {judged.text}{beside}{simulated}")
        if judged.failed_tasks:
            print(f"    tests fail in: {first_of(judged.failed_tasks, 8)}")
        if judged.sandbox:
            print(f"    sandbox: {judged.sandbox}")
    return 1 if judged.wrong else 0


async def _allowed(profile: Profile, args: argparse.Namespace) -> None:
    """A burst on production slows its users down: only when a person says so."""
    if profile.production and not args.yes:
        question = f"{profile.name} is in production, and a burst slows its users down. Run it?"
        if not await confirm(question):
            raise NotPermitted(
                f"{profile.name} is in production: nothing was sent", "say --yes to run it all the same"
            )


def _spec(args: argparse.Namespace, bench: Bench) -> BurstSpec:
    contexts = _counts(args.context) or bench.context
    concurrencies = _counts(args.concurrency) or bench.concurrency
    workload = args.workload or bench.workload
    given = {
        "output": args.output,
        "requests": args.requests,
        "temperature": args.temperature,
        "max_seconds": args.max_seconds,
    }
    for name, value in given.items():
        if value is not None and (value < 0 or (value == 0 and name != "temperature")):
            raise InputError(f"--{name.replace('_', '-')} {value}: give a number above 0")
    return BurstSpec(
        cells=tuple(Cell(c, context, workload) for context in contexts for c in concurrencies),
        output=args.output or bench.output,
        at=args.at or ("here" if args.url else bench.at),
        requests=args.requests,
        max_seconds=args.max_seconds or bench.max_seconds,
        precision=bench.precision,
        temperature=bench.temperature if args.temperature is None else args.temperature,
        seed=args.seed,
        endpoint=args.endpoint or "generate",
    )


def _counts(text: str | None) -> tuple[int, ...]:
    try:
        return tuple(parse_count(word) for word in text.split(",")) if text else ()
    except ValueError as problem:
        raise InputError(str(problem)) from None


def _endpoint(url: str) -> Endpoint:
    parts = urlsplit(url if "//" in url else f"//{url}")
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("", "http") or not parts.hostname or port is None:
        raise InputError(f"--url {url}: give a server as http://HOST:PORT (bursts do not speak https)")
    return Endpoint(None, parts.hostname, port)


async def _measure(
    args: argparse.Namespace,
    spec: BurstSpec,
    target: Target,
    step: int | None,
    keep: Callable[[Burst], None],
) -> int:
    as_json = args.json or not sys.stdout.isatty()
    cancel = asyncio.Event()
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGINT, cancel.set)  # what was measured is kept and shown
    bar, shown = _Bar(), 0
    last: Burst | None = None
    try:
        async with aclosing(bursts.run(spec, target, step=step, cancel=cancel, on_keep=keep)) as snapshots:
            async for last in snapshots:
                final = [point for point in last.points if point.final]
                for point in final[shown:]:
                    bar.end()
                    if as_json:
                        emit_json("bench-point", {"burst": last.id, "step": step, "point": point})
                    elif not shown:
                        print(_row(COLUMNS))
                    if not as_json:
                        for line in _lines(point):
                            print(line, flush=True)
                    shown += 1
                bar.of(last)
    finally:
        bar.end()
        with suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGINT)
    assert last is not None
    return _close(last, as_json)


def _close(last: Burst, as_json: bool) -> int:
    """The end; the exit code."""
    if as_json:
        emit_json("bench", kept.to_plain(last))
    for warning in last.warnings:
        note(f"note: {warning}")
    if last.state is BurstState.FAILED:
        note(f"ddtui: {last.text}")
        return 1 if last.points else 3
    if not as_json:
        simulated = "  SIMULATED" if last.simulated else ""
        print(f"{'step ' + str(last.step) + '  ' if last.step else ''}raw records: {last.raw}{simulated}")
    if last.state is BurstState.CANCELLED:
        note("interrupted: what was measured is kept")
        return 130
    return 1 if any(point.marks for point in last.points) else 0


def _lines(point: Point) -> Iterator[str]:
    rate = point.output_rate
    yield _row(
        (
            str(point.cell.concurrency),
            tokens(point.cell.context),
            point.cell.workload.rpartition("/")[2][:10],
            _value(rate),
            f"{number(rate.low)}–{number(rate.high)}" if rate else "–",
            _value(point.per_user_rate),
            _value(point.ttft_ms),
            _value(point.step_ms),
            _value(point.accept_length),
            str(point.ok),
        )
    )
    if point.preview and point.ok:
        yield f"    preview: {point.ok} requests are too few for a result"
    said = (spread_said(point), accept_said(point), beside_said(point), *point.marks)
    for words in (*said, *(f"the server: {message}" for message in point.messages)):
        yield from wrap(words, WIDTH, initial_indent="    ", subsequent_indent="      ")


def _row(cells: Sequence[str]) -> str:
    widths = (4, 7, 10, 8, 15, 10, 8, 8, 7, 5)
    return "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def _value(estimate: Estimate | None) -> str:
    return number(estimate.value) if estimate else "–"


class _Bar(StatusLine):
    """A burst's progress; where no line can be drawn over, a line for each new cell."""

    def __init__(self) -> None:
        super().__init__()
        self._told = ""

    def of(self, burst: Burst) -> None:
        if burst.cell is None:
            return
        what = f"C={burst.cell.concurrency} ctx={tokens(burst.cell.context)}"
        if not self.live:
            if what != self._told:
                note(f"{what}: {burst.text}")
                self._told = what
            return
        parts = [what, filled(burst.fraction)]
        if burst.eta_seconds is not None:
            parts.append(f"eta {clock(burst.eta_seconds)}")
        running = burst.points[-1] if burst.points and not burst.points[-1].final else None
        if running is not None and running.output_rate is not None:
            parts.append(f"{number(running.output_rate.value)} tok/s")
        parts.append(burst.text)
        self.show("  ".join(parts))
