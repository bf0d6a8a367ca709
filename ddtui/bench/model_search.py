"""Model-based search by Optuna, where it is installed (`pip install 'ddtui[sweep]'`): for spaces too large
for a grid. Nothing is asked of the network.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from ddtui.bench import ranking
from ddtui.bench.experiment import Ask, ExperimentPlan, Setting, Trial
from ddtui.bench.search import Nothing
from ddtui.bench.target import BenchError

FIRST = 5  # settings drawn at random, spread over the space, before the model is asked
TRIES = 20


def ask(plan: ExperimentPlan, trials: Sequence[Trial]) -> Ask | Nothing:
    """The next of `plan.settings`. Raises BenchError where Optuna is not installed."""
    limit = min(len(plan.settings), plan.trials or len(plan.settings))
    tried = {trial.setting for trial in trials}
    if len(trials) >= limit:
        return Nothing.DONE if all(trial.state.over for trial in trials) else Nothing.WAIT
    left = [one for one in plan.settings if one not in tried]
    if not left:
        return Nothing.DONE
    order = random.Random(plan.seed)
    spread = list(plan.settings)
    order.shuffle(spread)
    if len(trials) < FIRST:
        return Ask(next(one for one in spread if one not in tried), "model")
    return Ask(_suggested(plan, trials, left), "model")


def must_be_installed() -> None:
    """Raises BenchError with what to do."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise BenchError(
            "the order `model` needs Optuna: pip install 'ddtui[sweep]', or take --order grid or halving"
        ) from None


def _suggested(plan: ExperimentPlan, trials: Sequence[Trial], left: Sequence[Setting]) -> Setting:
    must_be_installed()
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    knobs = list(dict.fromkeys(knob for one in plan.settings for knob, _ in one))
    values = {
        knob: sorted({dict(one).get(knob, "") for one in plan.settings}, key=_in_order) for knob in knobs
    }
    space: dict[str, Any] = {
        knob: optuna.distributions.IntDistribution(0, len(values[knob]) - 1) for knob in knobs
    }
    sampler = optuna.samplers.TPESampler(seed=plan.seed + len(trials), n_startup_trials=FIRST)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    measured = [trial for trial in trials if trial.measured and trial.runs]
    scores = ranking.scored(measured, ranking.OBJECTIVES[plan.objective]) if measured else {}
    worst = min(scores.values(), default=0.0) - 0.5  # what failed is far from good
    for trial in trials:
        if trial.state.over:
            place = {knob: values[knob].index(dict(trial.setting).get(knob, "")) for knob in knobs}
            study.add_trial(
                optuna.trial.create_trial(
                    params=place, distributions=space, value=scores.get(trial.setting, worst)
                )
            )
    for _ in range(TRIES):
        suggested = study.ask(space).params
        for one in left:
            if all(values[knob][suggested[knob]] == dict(one).get(knob, "") for knob in knobs):
                return one
    return random.Random(plan.seed + len(trials)).choice(list(left))


def _in_order(value: str) -> tuple[int, float, str]:
    try:
        return 0, float(value), ""
    except ValueError:
        return 1, 0.0, value
