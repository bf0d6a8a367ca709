"""What bursts showed: accept length and time per step against context. Evidence, never a proof by itself.

A window that is in force keeps the draft's time per step flat beyond the window; one that is not lets it
grow. A drafter trained with one that sees more loses acceptance there. Both may have other causes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ddtui.bench.kept import estimate_from_plain
from ddtui.bench.model import Estimate
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Layer, Reading
from ddtui.tuning.survey import Survey

Z95 = 1.96  # standard errors in half of a 95 % interval


@dataclass(frozen=True, slots=True)
class Measured:
    """What the bursts of the setting in force showed."""

    cells: int
    text: tuple[str, ...]  # each a sentence with its uncertainty and sample count


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured cell, as far as the window question needs it."""

    concurrency: int
    context: int
    workload: str
    accept: Estimate | None
    step_ms: Estimate | None


def read(ctx: Tuning, survey: Survey) -> Reading[Measured]:
    """The bursts of this very setting, from the history."""
    from ddtui.store.model import HistoryError
    from ddtui.tuning import steps

    if ctx.history is None:
        return Reading(Layer.MEASURED, problem="no history is kept", read_at=time.time())
    setting = steps.setting_of(ctx, survey)
    if setting is None:
        return Reading(
            Layer.MEASURED, problem="nothing runs that could have been measured", read_at=time.time()
        )
    try:
        number = next(
            (s.number for s in ctx.history.steps(ctx.host.name, ctx.unit) if s.identity == setting.identity),
            None,
        )
        points = ctx.history.points(ctx.host.name, ctx.unit, steps=[number]).get(number, []) if number else []
    except HistoryError as error:
        return Reading(Layer.MEASURED, problem=str(error), read_at=time.time())
    samples = [sample for point in points if (sample := _sample(point))]
    if not samples:
        return Reading(Layer.MEASURED, problem="no burst of this setting yet", read_at=time.time())
    window = survey.drafter.value.window if survey.drafter.value else None
    return Reading(Layer.MEASURED, judge(samples, window), read_at=time.time())


def judge(samples: Sequence[Sample], window: int | None) -> Measured:
    """What the samples say of the window, at the same load: the shortest context against the longest, and how
    the time per step goes on beyond the window.
    """
    lines = []
    loads = dict.fromkeys((s.concurrency, s.workload) for s in samples)
    for concurrency, workload in loads:
        same = sorted(
            (s for s in samples if (s.concurrency, s.workload) == (concurrency, workload)),
            key=lambda s: s.context,
        )
        if len(same) < 2:
            continue
        near, far = same[0], same[-1]
        if window is not None and not near.context <= window < far.context:
            continue
        load = f"C={concurrency}, {workload}"
        if near.accept and far.accept:
            lines.append(_compare("accept length", "", near, far, near.accept, far.accept, load))
        if near.step_ms and far.step_ms:
            lines.append(_compare("time per step", " ms", near, far, near.step_ms, far.step_ms, load))
        if window is None:
            continue
        if beyond := slope([s for s in same if s.context >= window]):
            below = slope([s for s in same if s.context <= window])
            lines.append(_growth(window, beyond, below, load))
        elif far.step_ms:
            lines.append(
                f"a second context beyond {window} would show how the time per step goes on ({load})"
            )
    if not lines:
        lines.append(f"{len(samples)} cells measured, {_too_little(samples, window)}")
    return Measured(len(samples), tuple(lines))


def _too_little(samples: Sequence[Sample], window: int | None) -> str:
    """Why they say nothing of the window, and what would."""
    if window is None:
        return "none of them at two context lengths: they say nothing of a window"
    contexts = [s.context for s in samples]
    if max(contexts) <= window:
        return f"all within {window} tokens: what happens beyond it is to be measured at the same load"
    if min(contexts) > window:
        return f"all beyond {window} tokens: what they are to be held against is to be measured within it"
    return f"none of them at the same load on both sides of {window} tokens: they say nothing of the window"


def slope(samples: Sequence[Sample]) -> Estimate | None:
    """How the time per step grows with the context, in ms per 1,000 tokens, with its 95 % interval.

    A straight line through all of them, each weighed by its own interval. The slope's interval is widened by
    what they scatter beyond their own (Birge's ratio), which two cannot show. None: fewer than two contexts.
    """
    points = [
        (s.context / 1000, s.step_ms.value, max((s.step_ms.high - s.step_ms.low) / (2 * Z95), 1e-9))
        for s in samples
        if s.step_ms is not None
    ]
    if len({context for context, _, _ in points}) < 2:
        return None
    weights = [1 / error**2 for _, _, error in points]
    total = sum(weights)
    middle = sum(w * x for w, (x, _, _) in zip(weights, points, strict=True)) / total
    spread = sum(w * (x - middle) ** 2 for w, (x, _, _) in zip(weights, points, strict=True))
    value = sum(w * (x - middle) * y for w, (x, y, _) in zip(weights, points, strict=True)) / spread
    height = sum(w * y for w, (_, y, _) in zip(weights, points, strict=True)) / total
    left = sum(
        w * (y - height - value * (x - middle)) ** 2 for w, (x, y, _) in zip(weights, points, strict=True)
    )
    scatter = (left / (len(points) - 2)) ** 0.5 if len(points) > 2 else 1.0
    half = Z95 / spread**0.5 * max(1.0, scatter)
    return Estimate(value, value - half, value + half, len(points))


def _growth(window: int, beyond: Estimate, below: Estimate | None, load: str) -> str:
    """A sentence on the time per step beyond the window: as with a window in force, or as without.

    Judged by whole intervals, since the slope below is as uncertain as the one beyond. The target's own
    attention grows with the context either way.
    """
    if below is not None and below.low > max(0.0, beyond.high):
        if beyond.high < 0:
            verdict = "it falls there: as a window in force makes it, and more than that"
        else:
            how = "it grows less" if beyond.low > 0 else "flat"
            verdict = f"{how} there: as a window in force makes it"
    elif beyond.low > 0:
        verdict = "it grows there, as it does where no window limits the drafter (the target's own does too)"
    else:
        verdict = "these samples cannot tell whether it grows there"
    before = f", {_slope(below)} up to it" if below is not None else ""
    here = f"{_slope(beyond)} over {beyond.n} contexts{before}"
    return f"time per step beyond {window} tokens: {here} ({load}): {verdict}"


def _slope(found: Estimate) -> str:
    return f"{found.value:+.2f} [{found.low:+.2f}, {found.high:+.2f}] ms per 1k tokens"


def _compare(what: str, unit: str, near: Sample, far: Sample, a: Estimate, b: Estimate, load: str) -> str:
    """A sentence that says whether two estimates differ, by their 95 % intervals."""
    if a.high < b.low:
        verdict = f"grows by {b.value / a.value - 1:.0%}"
    elif b.high < a.low:
        verdict = f"falls by {1 - b.value / a.value:.0%}"
    else:
        verdict = "no difference that these samples can show"
    return (
        f"{what} {a.value:.2f} [{a.low:.2f}, {a.high:.2f}]{unit} at {near.context} tokens, {b.value:.2f} "
        f"[{b.low:.2f}, {b.high:.2f}]{unit} at {far.context} ({load}, n={a.n} and {b.n}): {verdict}"
    )


def _sample(point: Mapping[str, Any]) -> Sample | None:
    cell = point.get("cell")
    if not isinstance(cell, Mapping):
        return None
    return Sample(
        int(cell["concurrency"]),
        int(cell["context"]),
        str(cell.get("workload", "")),
        estimate_from_plain(point.get("accept_length")),
        estimate_from_plain(point.get("step_ms")),
    )
