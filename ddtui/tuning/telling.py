"""Sweeps, A/B and calibrations in words: what one will take, each trial, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator

from ddtui.bench import compare, experiment
from ddtui.bench.experiment import Order, Trial
from ddtui.bench.ranking import Ranking
from ddtui.tuning.forecast import Forecast
from ddtui.words import clock, duration, number, plural, tokens

NAMES = {
    Order.GRID: "sweep",
    Order.HALVING: "sweep",
    Order.MODEL: "sweep",
    Order.AB: "A/B",
    Order.ABBA: "A/B",
    Order.CALIBRATE: "calibration",
}
FINISHES = {
    "best": "the best is left in force",
    "first": "the setting as found is put back",
    "stay": "the last setting stays in force",
}


def forecast(made: Forecast) -> Iterator[str]:
    """What it takes, without what is skipped."""
    plan = made.plan
    yield (
        f"{plural(made.trials, 'trial')} of {plural(len(plan.cells), 'cell')}, "
        f"{plural(made.restarts, 'restart')} of the server"
    )
    bursts = f"bursts of {duration(made.burst_seconds)} in all"
    if made.known_cells < len(plan.cells):
        bursts = f"bursts of at most {duration(made.burst_seconds)} in all"
    if made.seconds is None:
        yield f"{bursts}; how long a start takes is not known yet"
    else:
        start = duration(made.start_seconds or 0)
        yield f"about {duration(made.seconds)}: {bursts}, starts of {start} by the last ones"
    yield f"at the end {FINISHES[plan.finish]}"


def skipped(made: Forecast) -> Iterator[str]:
    """The settings that will not be tried, each with its reason."""
    for one, why in made.plan.skipped:
        yield f"skipped: {experiment.name(one)}: {why}"


def trial(one: Trial, begun: int, expected: int, *, shared: bool = False) -> Iterator[str]:
    """A finished trial: how it went, then its cells. `shared`: by several hosts; its own is named."""
    step = f"  step {one.step}" if one.step is not None else ""
    step += f"  on {one.host}" if shared else ""
    ready = f"  ready after {clock(one.ready_seconds)}" if one.ready_seconds else ""
    head = f"{one.number + 1} of {max(expected, begun)}  {experiment.name(one.setting)}  {one.stage}"
    yield f"{head}{step}{ready}  {one.state}" + (f": {one.text}" if one.text else "")
    for cell, run in one.runs.items():
        rate, accept = run.point.output_rate, run.point.accept_length
        marks = f"  {'; '.join(run.point.marks)}" if run.point.marks else ""
        speed = f"{number(rate.value)} tok/s" if rate else "no rate"
        accepted = f"  accept {number(accept.value)}" if accept else ""
        yield f"    C={cell.concurrency} ctx={tokens(cell.context)}  {speed}{accepted}{marks}"


def ranking(made: Ranking) -> Iterator[str]:
    """The settings in order of merit, each against the best."""
    for row in made.rows:
        against = "best" if row is made.best else compare.percent(row.score)
        span = f"[{100 * row.low:.1f}, {100 * row.high:.1f}]" if row.high != row.low else ""
        slower = "slower" if made.preview else "surely slower"
        surely = slower if row.apart else "" if row is made.best else "not told apart"
        yield f"{against:>8}  {span:<16}  {experiment.name(row.setting)}  {surely}".rstrip()
