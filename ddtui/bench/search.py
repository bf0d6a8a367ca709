"""Which setting to try next: a pure function of the plan and of the trials so far, so that a sweep that
was cut goes on where it was.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum

from ddtui.bench import ranking
from ddtui.bench.experiment import Ask, ExperimentPlan, Order, Setting, Trial

# rounds of successive halving: effort of the bursts, and the part of the settings that goes on to the next
RUNGS = (("short", 0.125, 1 / 4), ("middle", 0.5, 1 / 3), ("long", 1.0, 0.0))
LEAST = 3  # settings that go on, at least


class Nothing(Enum):
    """Why there is no next trial."""

    WAIT = "trials that run now decide what comes next"
    DONE = "all is measured"


def ask(plan: ExperimentPlan, trials: Sequence[Trial]) -> Ask | Nothing:
    """The next trial. `trials`: all that were begun, those that run among them."""
    match plan.order:
        case Order.GRID:
            return _all(plan.settings, trials, "grid")
        case Order.HALVING:
            return _halving(plan, trials)
        case Order.MODEL:
            from ddtui.bench import model_search

            return model_search.ask(plan, trials)
        case Order.AB | Order.ABBA:
            return _ab(plan, trials)
        case Order.CALIBRATE:
            at = len(trials)
            if at >= (plan.trials or LEAST):
                return Nothing.DONE
            return Ask((), "A", fresh=True)


def longest(plan: ExperimentPlan) -> list[Ask]:
    """About what a whole experiment will ask, for the forecast: who goes on is not known yet, how many is."""
    count = len(plan.settings)
    match plan.order:
        case Order.HALVING:
            asks = []
            for stage, effort, part in RUNGS:
                asks += [Ask(one, stage, effort, fresh=stage != "short") for one in plan.settings[:count]]
                count = _goes_on(count, part)
            return asks
        case Order.MODEL:
            return [Ask(one, "model") for one in plan.settings[: min(count, plan.trials or count)]]
        case Order.GRID:
            return [Ask(one, "grid") for one in plan.settings]
        case _:
            asks, trials = [], list[Trial]()
            while isinstance(found := ask(plan, trials), Ask):
                asks.append(found)
                trials.append(Trial(len(trials), found.setting, found.stage))
            return asks


def _all(
    settings: Sequence[Setting], trials: Sequence[Trial], stage: str, effort: float = 1.0
) -> Ask | Nothing:
    """The first of the settings that this stage has not tried."""
    begun = [trial for trial in trials if trial.stage == stage]
    tried = {trial.setting for trial in begun}
    for one in settings:
        if one not in tried:
            earlier = any(trial.setting == one and trial.stage != stage for trial in trials)
            return Ask(one, stage, effort, fresh=earlier)
    return Nothing.DONE if all(trial.state.over for trial in begun) else Nothing.WAIT


def _halving(plan: ExperimentPlan, trials: Sequence[Trial]) -> Ask | Nothing:
    settings: Sequence[Setting] = plan.settings
    so_far: list[Trial] = []
    for stage, effort, part in RUNGS:
        found = _all(settings, trials, stage, effort)
        if found is not Nothing.DONE:
            return found
        so_far += [trial for trial in trials if trial.stage == stage]
        keep = _goes_on(len(settings), part)
        if not keep:
            return Nothing.DONE
        best = ranking.in_order(so_far, plan.objective)
        settings = [one for one in best if one in settings][:keep]
        if len(settings) < 2:
            return Nothing.DONE
    return Nothing.DONE


def _goes_on(count: int, part: float) -> int:
    return min(count, max(LEAST, math.ceil(count * part))) if part else 0


def _ab(plan: ExperimentPlan, trials: Sequence[Trial]) -> Ask | Nothing:
    """A, B, and to confirm B and A again; the setting B stands in the plan, A is what was found."""
    pattern = "AB" if plan.order is Order.AB else "ABBA"
    at = len(trials)
    if at >= len(pattern) or any(not trial.measured for trial in trials if trial.state.over):
        return Nothing.DONE
    stage = pattern[at]
    return Ask(plan.settings[0] if stage == "B" else (), stage, fresh=at > 0)
