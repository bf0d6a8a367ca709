"""From trials to a decision: scores on the cells that all share, who is not told apart from the best, the
front. Pure.

A setting's score is the mean over the cells of the log of its rate against the other settings', paired by
prompt where the raw records allow; rounds (stages) are compared each within itself, since a round's bursts
have their own length. Restarts count: a setting that was measured after three restarts is known better
than one after one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ddtui.bench import compare, contrast
from ddtui.bench.compare import METRICS, Metric, Run
from ddtui.bench.contrast import Contrast, Noise
from ddtui.bench.experiment import Objective, Setting, Trial, cheapness, name
from ddtui.bench.model import Cell, Point

NEAR_TIE = 0.005  # scores closer than this go to the cheaper setting (a smaller budget costs less at load)
OBJECTIVES: Mapping[Objective, Metric] = {"throughput": METRICS[0], "per-user": METRICS[1]}


@dataclass(frozen=True, slots=True)
class Row:
    """One setting in the order of merit."""

    setting: Setting
    score: float  # against the best: −0.03 is 3 % slower in the geometric mean over the cells
    trials: tuple[int, ...]
    cells: Mapping[Cell, Point]
    low: float = 0.0  # of the score's interval
    high: float = 0.0
    apart: bool = False  # surely slower than the best, by an interval that knows of restarts
    restarts: int = 1


@dataclass(frozen=True, slots=True)
class Ranking:
    """All settings that were measured, the best first."""

    rows: tuple[Row, ...]
    text: str  # the decision in a sentence
    preview: bool  # the noise of restarts is not known, or there are too few prompts

    @property
    def best(self) -> Row | None:
        return self.rows[0] if self.rows else None


NoiseOf = Callable[[Run, str], Noise | None]


def rank(
    trials: Sequence[Trial], *, objective: Objective = "throughput", noise: NoiseOf = lambda run, metric: None
) -> Ranking:
    """The settings in order of merit. Those whose output is wrong, that lack cells, or whose numbers are
    doubtful are left out: where all are doubtful, nothing is the best.
    """
    whole = _clean(_whole(trials))
    metric = OBJECTIVES[objective]
    by_setting: dict[Setting, list[Trial]] = {}
    for trial in whole:
        by_setting.setdefault(trial.setting, []).append(trial)
    scores = scored(whole, metric)
    order = sorted(by_setting, key=lambda one: -scores[one])
    left_out = _left_out(trials, by_setting)
    if not order:
        return Ranking((), f"no setting is the best; {left_out or 'nothing was measured'}", preview=True)
    near = [one for one in order if scores[order[0]] - scores[one] <= NEAR_TIE]
    best = min(near, key=lambda one: (cheapness(one), -scores[one]))
    order.remove(best)
    order.insert(0, best)
    contrasts = [_contrast(by_setting[best], by_setting[one], metric, noise) for one in order[1:]]
    known = [made for made in contrasts if made is not None]
    judged = dict(zip(map(id, known), contrast.judge(known), strict=True))
    rows = [_row(best, by_setting[best], 0.0)]
    unknown, few = not known, False
    for one, made in zip(order[1:], contrasts, strict=True):
        row = _row(one, by_setting[one], math.expm1(scores[one] - scores[best]))
        if made is not None:
            difference = judged[id(made)]
            unknown |= made.noise is None
            few |= made.pairs < contrast.LEAST_PAIRS
            row = Row(
                row.setting, row.score, row.trials, row.cells, difference.low, difference.high,
                difference.answer is contrast.Answer.WORSE, row.restarts,
            )  # fmt: skip
        rows.append(row)
    text = _text(rows, objective, unknown, few) + (f"; {left_out}" if left_out else "")
    return Ranking(tuple(rows), text, unknown or few)


def in_order(trials: Sequence[Trial], objective: Objective = "throughput") -> list[Setting]:
    """The settings, the best first, by their scores alone; doubtful ones only where all are."""
    whole = _whole(trials)
    scores = scored(_clean(whole) or whole, OBJECTIVES[objective])
    return sorted(scores, key=lambda one: -scores[one])


def scored(trials: Sequence[Trial], metric: Metric = METRICS[0]) -> dict[Setting, float]:
    """Log scores of settings, each round centred on the settings that all rounds share. Trials have the
    same cells.
    """
    stages: dict[str, dict[Setting, list[Trial]]] = {}
    for trial in trials:
        stages.setdefault(trial.stage, {}).setdefault(trial.setting, []).append(trial)
    settings = {trial.setting for trial in trials}
    shared = set.intersection(*(set(stage) for stage in stages.values())) if stages else set()
    if not shared:  # nothing in common: the last word of each
        shared = settings
    total: dict[Setting, float] = dict.fromkeys(settings, 0.0)
    weight: dict[Setting, float] = dict.fromkeys(settings, 0.0)
    for stage in stages.values():
        raw = _raw([trial for same in stage.values() for trial in same], metric)
        middle = _mean([raw[one] for one in stage if one in shared] or list(raw.values()))
        for one, same in stage.items():
            total[one] += len(same) * (raw[one] - middle)
            weight[one] += len(same)
    return {one: total[one] / weight[one] for one in settings}


def _raw(trials: Sequence[Trial], metric: Metric) -> dict[Setting, float]:
    """Mean log rate over the cells, on the prompts that all of these trials measured."""
    found: dict[Setting, list[float]] = {}
    by_trial = [0.0] * len(trials)
    for cell in trials[0].runs:
        values = compare.means([trial.runs[cell] for trial in trials], (metric,))
        for at, trial in enumerate(trials):
            value = values[at].get(metric.key)
            if value is None:
                estimate = getattr(trial.runs[cell].point, metric.key)
                value = estimate.value if estimate else 1e-9
            by_trial[at] += math.log(max(value, 1e-9)) / len(trials[0].runs)
    for trial, value in zip(trials, by_trial, strict=True):
        found.setdefault(trial.setting, []).append(value)
    return {one: _mean(values) for one, values in found.items()}


def _contrast(a: Sequence[Trial], b: Sequence[Trial], metric: Metric, noise: NoiseOf) -> Contrast | None:
    """All cells together, in the rounds that both have: the mean of the cells' log ratios."""
    stages = [stage for stage in {t.stage: None for t in a} if any(t.stage == stage for t in b)]
    if not stages:
        return None
    stage = stages[-1]  # the longest bursts
    one = [trial for trial in a if trial.stage == stage]
    other = [trial for trial in b if trial.stage == stage]
    made = []
    noises = []
    for cell in one[0].runs:
        found = compare.contrast_of([t.runs[cell] for t in one], [t.runs[cell] for t in other], metric)
        if found is None:
            return None
        made.append(found)
        noises.append(noise(one[0].runs[cell], metric.key))
    known = [item for item in noises if item is not None]
    together = (
        # one restart moves all cells alike, so their noise does not average out
        Noise(_mean([item.deviation for item in known]), min(item.freedom for item in known))
        if len(known) == len(noises)
        else None
    )
    return Contrast(
        middle=_mean([item.middle for item in made]),
        error=math.sqrt(sum(item.error**2 for item in made)) / len(made),
        pairs=min(item.pairs for item in made),
        freedom=min(item.freedom for item in made),
        noise=together,
        restarts=min(len(one), len(other)) * len(stages),
        paired=all(item.paired for item in made),
    )


def _row(one: Setting, trials: Sequence[Trial], score: float) -> Row:
    last = trials[-1]
    return Row(
        setting=one,
        score=score,
        trials=tuple(trial.number for trial in trials),
        cells={cell: run.point for cell, run in last.runs.items()},
        restarts=len(trials),
    )


def _whole(trials: Sequence[Trial]) -> list[Trial]:
    """The trials whose output is not wrong, with all cells that any has."""
    good = [trial for trial in trials if trial.measured and trial.runs]
    cells = set.union(*(set(trial.runs) for trial in good)) if good else set()
    return [trial for trial in good if set(trial.runs) == cells]


def _clean(trials: Sequence[Trial]) -> list[Trial]:
    """Those without doubts, of settings whose last word, the longest burst, has none either."""
    last = {trial.setting: trial for trial in trials}
    return [trial for trial in trials if not _doubt(trial) and not _doubt(last[trial.setting])]


def _doubt(trial: Trial) -> str:
    """The first of what makes its numbers doubtful; empty: nothing."""
    return next((mark for run in trial.runs.values() for mark in run.point.marks), "")


def _left_out(trials: Sequence[Trial], ranked: Mapping[Setting, object]) -> str:
    """Which settings were measured and are not ranked, and why."""
    out = {trial.setting: trial for trial in trials if trial.measured and trial.setting not in ranked}
    if not out:
        return ""
    one, trial = next(iter(out.items()))
    more = f" and {len(out) - 1} more" if len(out) > 1 else ""
    return f"not ranked: {name(one)} ({_doubt(trial) or 'not all cells were measured'}){more}"


def _text(rows: Sequence[Row], objective: Objective, unknown: bool, few: bool) -> str:
    best = rows[0]
    what = "throughput" if objective == "throughput" else "speed per user"
    cells = f"{len(best.cells)} cell{'s' if len(best.cells) > 1 else ''}"
    text = f"best {what} over {cells}: {name(best.setting)}"
    others = [row for row in rows[1:] if not row.apart]
    if len(rows) > 1 and not others:
        surely = "" if unknown or few else "surely "
        text += f", {surely}ahead of the next ({name(rows[1].setting)}, {compare.percent(rows[1].score)})"
    elif others:
        names = "; ".join(f"{name(row.setting)} ({compare.percent(row.score)})" for row in others[:3])
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        text += f", not told apart from {names}{more}"
    if unknown and len(rows) > 1:
        text += "; the noise of restarts is not known here (ddtui calibrate)"
    if few:
        text += f"; a preview: fewer than {contrast.LEAST_PAIRS} prompts"
    return text


def front(points: Iterable[tuple[str, Point]]) -> tuple[tuple[str, Point], ...]:
    """The Pareto front of throughput against per-user speed: no other is at least as good in both and
    better in one. By rising speed per user. Doubtful points are not on it.
    """
    known = [
        (label, point, point.output_rate.value, point.per_user_rate.value)
        for label, point in points
        if point.output_rate is not None and point.per_user_rate is not None and not point.marks
    ]
    best: list[tuple[str, Point]] = []
    top = -math.inf
    for label, point, rate, _ in sorted(known, key=lambda item: (-item[3], -item[2])):
        if rate > top:
            best.append((label, point))
            top = rate
    return tuple(reversed(best))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
