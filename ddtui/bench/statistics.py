"""Intervals, spreads and what makes a series doubtful. Pure; numpy is imported when first needed. Comparisons
are in `contrast`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
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
    groups, each a tenth or more, whose distance is more than 15 % and six times the spread within."""
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
    return 1 + apart if apart > 0.15 and apart * float(y.mean()) > 6 * within else None


def t_two_sided(t: float, df: int) -> float:
    """The chance that Student's t is farther from 0 than this, on either side."""
    return 2 * (1 - _t_below(abs(t), df))


@lru_cache(maxsize=4096)
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
