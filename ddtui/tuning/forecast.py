"""What an experiment will take, before it starts: which settings are forbidden, how many restarts, how
long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ddtui.bench import grid, search
from ddtui.bench.experiment import OFF, ON, ExperimentPlan, Order, Setting, name
from ddtui.bench.model import Cell
from ddtui.bench.target import BenchError
from ddtui.store import runs as stored
from ddtui.tuning import outlook, plan, said, verdicts
from ddtui.tuning.context import Tuning
from ddtui.tuning.rig import REFUSALS, turn
from ddtui.tuning.survey import Survey


@dataclass(frozen=True, slots=True)
class Forecast:
    """A plan that is ready to run, and what it takes."""

    plan: ExperimentPlan  # completed, without what is forbidden
    trials: int
    restarts: int
    start_seconds: float | None  # of one start, by the last ones; None: none is known
    burst_seconds: float  # of all bursts
    known_cells: int  # of the plan's cells, those that were measured before

    @property
    def seconds(self) -> float | None:
        """In all. None: no start is known."""
        return None if self.start_seconds is None else self.restarts * self.start_seconds + self.burst_seconds


async def make(ctx: Tuning, survey: Survey, wanted: ExperimentPlan, *, hosts: int = 1) -> Forecast:
    """Changes nothing. Raises PlanError for an unknown knob, BenchError for cells beyond the profile's
    limits.
    """
    most = max((cell.concurrency for cell in wanted.cells), default=0)
    if most > ctx.profile.bench.max_concurrency:
        raise BenchError(
            f"{most} requests at once are more than the {ctx.profile.bench.max_concurrency} that the profile "
            "allows (bench.max_concurrency)"
        )
    if wanted.order is Order.MODEL:
        from ddtui.bench import model_search

        model_search.must_be_installed()
    found = as_found(ctx, survey, wanted.settings)
    settings, skipped = [], list(wanted.skipped)
    for one in grid.complete(wanted.settings, found):
        why = await forbidden(ctx, survey, one) if one != _all_found(one, found) else None
        if why is None:
            settings.append(one)
        else:
            skipped.append((one, why))
    if wanted.settings and not settings:
        raise BenchError(f"no setting is left: {name(skipped[0][0])}: {skipped[0][1]}")
    ready = replace(wanted, settings=tuple(settings), skipped=tuple(skipped))
    asks = search.longest(ready)
    first_stands = bool(asks) and not asks[0].fresh and _all_found(asks[0].setting, found) == asks[0].setting
    restarts = len(asks) - first_stands + hosts * (ready.finish != "stay")
    starts = plan.last_starts(ctx)
    times = stored.seconds(ctx.history, ctx.host.name, ctx.unit) if ctx.history is not None else {}
    bursts = sum(_seconds(ready, cell, ask.effort, times) for ask in asks for cell in ready.cells)
    return Forecast(
        plan=ready,
        trials=len(asks),
        restarts=restarts,
        start_seconds=sum(starts) / len(starts) / hosts if starts else None,
        burst_seconds=bursts / hosts,
        known_cells=sum((cell.concurrency, cell.context, cell.workload) in times for cell in ready.cells),
    )


async def forbidden(ctx: Tuning, survey: Survey, one: Setting) -> str | None:
    """Why the profile or the installed SGLang forbids a setting; None: nothing known forbids it."""
    service, unit = plan.changeable(survey)
    wishes, problems = plan.read_wishes(ctx, survey, [turn(item) for item in one])
    if problems:
        return problems[0]
    words = [(wish.target, str(wish.turn.op), wish.turn.value) for wish in wishes]
    change = await outlook.of_turns(ctx.host, service, words, said.table(survey) or None)
    before = unit.launch_argv or ()
    found, _ = plan.checked(ctx, survey, before, change.launch_argv_after or before, change)
    return next((text for text in found if any(word in text for word in REFUSALS)), None)


def as_found(ctx: Tuning, survey: Survey, settings: Sequence[Setting]) -> dict[str, str]:
    """The value in the unit of every knob that the settings name. Raises PlanError."""
    unit = survey.unit.value
    values: dict[str, str] = {}
    for knob_name in dict.fromkeys(knob for one in settings for knob, _ in one):
        try:
            knob = verdicts.knob_of(ctx.profile, knob_name)
        except KeyError:
            plan.parse_turns(ctx, [f"{knob_name}=0"], [])  # says which knobs there are
            raise
        if knob.flag:
            value = said.by_unit(survey, knob.flag).value
        else:
            value = unit.environment.get(knob.env or "") if unit else None
        values[knob_name] = OFF if value is None else ON if value == said.ON else value
    return values


def _all_found(one: Setting, found: Mapping[str, str]) -> Setting:
    return tuple((knob, found.get(knob, OFF)) for knob, _ in one)


def _seconds(
    ready: ExperimentPlan, cell: Cell, effort: float, times: Mapping[tuple[int, int, str], float]
) -> float:
    """Of one cell's burst: as measured before, else at most what the plan allows it."""
    known = times.get((cell.concurrency, cell.context, cell.workload))
    if known is None:
        return ready.max_seconds
    whole = ready.requests_of(cell) + cell.concurrency
    return min(ready.max_seconds, known * (ready.requests_of(cell, effort) + cell.concurrency) / whole)
