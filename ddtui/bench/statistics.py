"""Intervals, spreads and the paired comparison. Pure; numpy is imported when first needed.

Reasons and simulations: per-prompt pairing with a bootstrap by prompt (zenbench, Kalibera & Jones), and a
noise floor from repeated restarts of the same setting, because a restart by itself moves the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ddtui.bench.model import Estimate, Spread

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]

RESAMPLES = 2000
CONFIDENCE = 0.95


def spread(samples: Sequence[float]) -> Spread | None:
    """None without samples."""
    import numpy as np

    if not len(samples):
        return None
    values = np.asarray(samples, dtype=np.float64)
    median, p90, p95, p99 = np.percentile(values, [50, 90, 95, 99])
    return Spread(len(values), float(values.mean()), float(median), float(p90), float(p95), float(p99))


def mean(samples: Sequence[float]) -> Estimate | None:
    """The mean with its interval. None without samples."""
    return _estimate([samples], lambda picked: picked[0].mean(axis=1))


def median(samples: Sequence[float]) -> Estimate | None:
    import numpy as np

    return _estimate([samples], lambda picked: np.asarray(np.median(picked[0], axis=1)))


def ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Estimate | None:
    """Sum over sum, resampled by pairs: rates, accept lengths. None if the sum below is 0."""
    if not sum(denominators):
        return None
    return _estimate(
        [numerators, denominators], lambda picked: picked[0].sum(axis=1) / picked[1].sum(axis=1).clip(1e-12)
    )


def scaled(estimate: Estimate, value: float) -> Estimate:
    """The same relative interval around another value."""
    if not estimate.value:
        return Estimate(value, value, value, estimate.n)
    factor = value / estimate.value
    return Estimate(value, estimate.low * factor, estimate.high * factor, estimate.n)


def inverse(estimate: Estimate, of: float) -> Estimate | None:
    """`of` / estimate."""
    if estimate.low <= 0:
        return None
    return Estimate(of / estimate.value, of / estimate.high, of / estimate.low, estimate.n)


def _estimate(
    columns: Sequence[Sequence[float]], statistic: Callable[[list[Array]], Array]
) -> Estimate | None:
    import numpy as np

    n = len(columns[0])
    if not n:
        return None
    values = [np.asarray(column, dtype=np.float64) for column in columns]
    whole = float(statistic([column[None, :] for column in values])[0])
    if n == 1:
        return Estimate(whole, whole, whole, 1)
    picks = np.random.default_rng(n).integers(0, n, size=(RESAMPLES, n))
    edge = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(statistic([column[picks] for column in values]), [edge, 100 - edge])
    return Estimate(whole, float(low), float(high), n)


def drift(times: Sequence[float], values: Sequence[float]) -> float | None:
    """By what part of itself the value changed from the first to the last, if that is surely no chance."""
    import numpy as np

    if len(values) < 16 or min(values) <= 0:
        return None
    x, y = np.asarray(times, dtype=np.float64), np.log(np.asarray(values, dtype=np.float64))
    x = x - x.mean()
    below = float((x**2).sum())
    if not below:
        return None
    slope = float((x * y).sum()) / below
    residual = y - y.mean() - slope * x
    error = math.sqrt(float((residual**2).sum()) / (len(y) - 2) / below)
    change = math.expm1(slope * float(x.max() - x.min()))
    sure = error == 0 or abs(slope) > t_quantile(0.9995, len(y) - 2) * error
    return change if sure and abs(change) > 0.05 else None


def two_modes(values: Sequence[float]) -> float | None:
    """How far apart two modes lie (1.3: one is 30 % above the other), if there are two: the best split in two
    groups, each a tenth or more, whose distance is more than 15 % and five times the spread within."""
    import numpy as np

    y = np.sort(np.asarray(values, dtype=np.float64))
    n = len(y)
    if n < 20 or y[0] <= 0:
        return None
    best: tuple[float, float] | None = None
    least = max(2, n // 10)
    for cut in range(least, n - least + 1):
        below, above = y[:cut], y[cut:]
        within = math.sqrt((cut * float(below.var()) + (n - cut) * float(above.var())) / n)
        if best is None or within < best[0]:
            best = within, float(above.mean() - below.mean()) / float(below.mean())
    if best is None:
        return None
    within, apart = best
    return 1 + apart if apart > 0.15 and apart * float(y.mean()) > 5 * within else None


class Answer(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no difference detectable"


@dataclass(frozen=True, slots=True)
class Difference:
    """B against A as a ratio minus one: 0.11 is +11 %."""

    change: float
    low: float
    high: float
    half_width: float  # of the log ratio: what could have been detected
    answer: Answer
    pairs: int
    floor: float | None  # the noise floor's half-width; None: restart noise unknown
    preview: bool  # fewer than three A/A runs or too few prompts: no verdict to rely on


def compare(
    a: Sequence[float],
    b: Sequence[float],
    *,
    aa_means: Sequence[float] = (),
    restarts: int = 1,
    comparisons: int = 1,
    higher_is_better: bool = True,
    seed: int = 0,
    resamples: int = 10_000,
    least_pairs: int = 32,
) -> Difference | None:
    """Compare values of the same prompts under A and B (a[i] and b[i] belong together; all above 0).

    `aa_means`: means of A/A runs of this host, model and load. `restarts`: per arm (2 for A B B A).
    `comparisons`: how many cells are judged together (Bonferroni). None without pairs.
    """
    import numpy as np

    if not a or len(a) != len(b) or min(a) <= 0 or min(b) <= 0:
        return None
    logs = np.log(np.asarray(b, dtype=np.float64)) - np.log(np.asarray(a, dtype=np.float64))
    n = len(logs)
    level = 1 - (1 - CONFIDENCE) / comparisons
    middle = float(logs.mean())
    rng = np.random.default_rng(seed)
    means = logs[rng.integers(0, n, size=(resamples, n))].mean(axis=1)
    edge = 50 * (1 - level)
    low, high = np.percentile(means, [edge, 100 - edge])
    paired = float(high - low) / 2
    # a percentile bootstrap of few pairs is too narrow by about the ratio of t to z and of n-1 to n
    if n > 1:
        tail = (1 + level) / 2
        paired *= t_quantile(tail, n - 1) / t_quantile(tail, 10**6) * math.sqrt(n / (n - 1))
    floor = noise_floor(aa_means, restarts=restarts, level=level)
    half = max(paired, floor or 0.0)
    if abs(middle) <= half:
        answer = Answer.NO_DIFFERENCE
    else:
        answer = Answer.BETTER if (middle > 0) is higher_is_better else Answer.WORSE
    return Difference(
        change=math.expm1(middle),
        low=math.expm1(middle - half),
        high=math.expm1(middle + half),
        half_width=half,
        answer=answer,
        pairs=n,
        floor=floor,
        preview=floor is None or n < least_pairs,
    )


def noise_floor(aa_means: Sequence[float], *, restarts: int = 1, level: float = CONFIDENCE) -> float | None:
    """Half-width that restarts alone explain: t(m-1) x sqrt(2) x SD of the logs of m A/A run means, over
    sqrt(restarts per arm). None below three runs."""
    m = len(aa_means)
    if m < 3 or min(aa_means) <= 0:
        return None
    logs = [math.log(value) for value in aa_means]
    middle = sum(logs) / m
    deviation = math.sqrt(sum((value - middle) ** 2 for value in logs) / (m - 1))
    return t_quantile((1 + level) / 2, m - 1) * math.sqrt(2) * deviation / math.sqrt(restarts)


def t_quantile(p: float, df: int) -> float:
    """Student's t: the value below which a part p (above a half) lies."""
    low, high = 0.0, 1.0
    while _t_below(high, df) < p:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_below(middle, df) < p else (low, middle)
    return (low + high) / 2


def _t_below(t: float, df: int) -> float:
    return 1 - _beta(df / (df + t * t), df / 2, 0.5) / 2


def _beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Lentz)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(1 - x, b, a)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    tiny = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    result = d
    for m in range(1, 400):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + step * d
            c = 1 + step / c
            d = 1 / (d if abs(d) > tiny else tiny)
            c = c if abs(c) > tiny else tiny
            result *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return front * result / a
