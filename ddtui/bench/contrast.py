"""The statistics of A against B: paired by prompt, never surer than restarts allow, corrected for many.
Pure.

A restart by itself moves the numbers, so that many prompts alone prove nothing: the half-width of a
difference is the larger of the interval over prompts and of t(m-1) x sqrt(2) x SD of m run means of one
setting over restarts (A/A runs), over the square root of k restarts in each arm. Why: Kalibera & Jones
(ISMM'13), zenbench, and the simulation in benchmarks/false_wins.py: without the floor a restart SD of 2 %
gives a third of false wins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ddtui.bench import statistics
from ddtui.bench.model import Estimate
from ddtui.bench.statistics import t_quantile, t_two_sided

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]

RESAMPLES = 4000
ALPHA = 0.045  # false verdicts: a hair below 5 %, so that no case in the simulation goes beyond 6 %
LEAST_PAIRS = 32
LEAST_RUNS = 3  # A/A runs below which restart noise counts as unknown
MANY = 10**6  # degrees of freedom of an interval that is taken as given


class Answer(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no difference detectable"


@dataclass(frozen=True, slots=True)
class Noise:
    """How far restarts alone move the log of a run's mean."""

    deviation: float
    freedom: int  # degrees of freedom: runs less settings

    @classmethod
    def of(cls, groups: Sequence[Sequence[float]]) -> Noise | None:
        """From run means, grouped by setting: each group's runs differ by restarts alone. None below three
        runs of one setting (or as much in several).
        """
        squares, freedom = 0.0, 0
        for group in groups:
            if len(group) < 2 or min(group) <= 0:
                continue
            logs = [math.log(value) for value in group]
            middle = sum(logs) / len(logs)
            squares += sum((value - middle) ** 2 for value in logs)
            freedom += len(logs) - 1
        if freedom < LEAST_RUNS - 1:
            return None
        return cls(math.sqrt(squares / freedom), freedom)


@dataclass(frozen=True, slots=True)
class Contrast:
    """B against A before a verdict: logs of ratios."""

    middle: float
    error: float  # standard error over prompts
    pairs: int
    freedom: int  # of that error
    noise: Noise | None = None
    restarts: int = 1  # of each arm
    paired: bool = True

    def half_width(self, level: float) -> float:
        """What could have been detected at this confidence."""
        tail = (1 + level) / 2
        return max(t_quantile(tail, self.freedom) * self.error, self.floor(level) or 0.0)

    def floor(self, level: float) -> float | None:
        """The half-width that restarts alone explain. None: not known."""
        if self.noise is None:
            return None
        return t_quantile((1 + level) / 2, self.noise.freedom) * self._shaken

    @property
    def chance(self) -> float:
        """The p-value: the level at which the half-width reaches the difference."""
        found = _chance(self.middle, self.error, self.freedom)
        if self.noise is not None:
            found = max(found, _chance(self.middle, self._shaken, self.noise.freedom))
        return found

    @property
    def _shaken(self) -> float:
        assert self.noise is not None
        return math.sqrt(2) * self.noise.deviation / math.sqrt(self.restarts)


def _chance(middle: float, error: float, freedom: int) -> float:
    if error <= 0:
        return 0.0 if middle else 1.0
    return t_two_sided(middle / error, freedom)


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
    paired: bool
    preview: bool  # restart noise unknown, not paired, or too few prompts: no verdict to rely on


def of_values(a: Sequence[float], b: Sequence[float], **more: Any) -> Contrast | None:
    """The mean log ratio of values of the same prompts (a[i] and b[i] belong together). None without two
    pairs, or with values that are not above 0.
    """
    import numpy as np

    if len(a) != len(b) or len(a) < 2 or min(a) <= 0 or min(b) <= 0:
        return None
    logs = np.log(np.asarray(b, dtype=np.float64)) - np.log(np.asarray(a, dtype=np.float64))
    n = len(logs)
    spread = (_weights(n) @ logs / n).std()
    return Contrast(float(logs.mean()), _unbiased(float(spread), n), n, n - 1, **more)


def of_sums(
    a: Sequence[float], over_a: Sequence[float], b: Sequence[float], over_b: Sequence[float], **more: Any
) -> Contrast | None:
    """The log ratio of two ratios of sums over the same prompts: rates, accept lengths. None without two
    pairs, or where a sum is not above 0.
    """
    import numpy as np

    n = len(a)
    if n < 2 or not n == len(over_a) == len(b) == len(over_b):
        return None
    columns = np.column_stack([b, over_a, a, over_b]).astype(np.float64)
    totals = columns.sum(axis=0)
    if (totals <= 0).any():
        return None
    sums = np.maximum(_weights(n) @ columns, 1e-12)
    logs = np.log(sums[:, 0] * sums[:, 1]) - np.log(sums[:, 2] * sums[:, 3])
    middle = float(np.log(totals[0] * totals[1]) - np.log(totals[2] * totals[3]))
    return Contrast(middle, _unbiased(float(logs.std()), n), n, n - 1, **more)


def of_estimates(a: Estimate, b: Estimate, **more: Any) -> Contrast | None:
    """Where prompts cannot be paired: from the two intervals. None for values that are not above 0."""
    if min(a.low, b.low) <= 0:
        return None
    halves = [math.log(one.high / one.low) / 2 for one in (a, b)]
    error = math.hypot(*halves) / t_quantile((1 + statistics.CONFIDENCE) / 2, MANY)
    return Contrast(
        math.log(b.value / a.value), error, min(a.n, b.n), max(1, min(a.n, b.n) - 1), paired=False, **more
    )


def judge(
    contrasts: Sequence[Contrast], *, higher_is_better: bool = True, alpha: float = ALPHA
) -> list[Difference]:
    """Verdicts on contrasts that are judged together: the chance of any false one is at most `alpha`
    (Holm). Each interval is at the level at which its contrast was judged, so it leaves out 0 exactly
    where the verdict does.
    """
    order = sorted(range(len(contrasts)), key=lambda at: contrasts[at].chance)
    verdicts: dict[int, Difference] = {}
    going = True
    part = alpha
    for rank, at in enumerate(order):
        one = contrasts[at]
        if going:
            part = alpha / (len(contrasts) - rank)
            going = one.chance < part
        half = one.half_width(1 - part)
        answer = Answer.NO_DIFFERENCE
        if going and abs(one.middle) > half:
            answer = Answer.BETTER if (one.middle > 0) is higher_is_better else Answer.WORSE
        verdicts[at] = Difference(
            change=math.expm1(one.middle),
            low=math.expm1(one.middle - half),
            high=math.expm1(one.middle + half),
            half_width=half,
            answer=answer,
            pairs=one.pairs,
            floor=one.floor(1 - part),
            paired=one.paired,
            preview=one.noise is None or not one.paired or one.pairs < LEAST_PAIRS,
        )
    return [verdicts[at] for at in range(len(contrasts))]


def _unbiased(spread: float, n: int) -> float:
    """A bootstrap's spread is too narrow by the square root of (n-1)/n."""
    return spread * math.sqrt(n / (n - 1))


@lru_cache(maxsize=16)
def _weights(n: int) -> Array:
    """How often each of n prompts comes in each resample: the same for every comparison of n prompts."""
    import numpy as np

    drawn = np.random.default_rng(n).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
    weights: Array = drawn.astype(np.float64)
    return weights
