"""What the server's own log says of a cell: the figures of its `Decode batch` lines. Pure.

One line comes after every 40 decode steps of a rank, and its `gen throughput` is tokens by the time since the
line before: weighted with that time the lines of the steady window make its rate. The token that a prefill
gives is in none of them (real logs of 0.5.11), those that a request's last verify step had too many are.

The journal and docker know a line's time to the microsecond. In a file there is only SGLang's own, which has
whole seconds: the lines of one second are taken as spread over it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ddtui.engine import log

LEAST = 4  # lines: fewer are no mean
DECODE = "Decode batch"


@dataclass(frozen=True, slots=True)
class Decode:
    """One line."""

    at: float
    rate: float  # tok/s since the line before
    accept: float | None
    rank: str = ""


@dataclass(frozen=True, slots=True)
class Logged:
    """The lines of the steady window together; `..._error`: the standard error of the mean."""

    lines: int
    rate: float
    rate_error: float
    accept: float | None = None
    accept_error: float = 0.0


def decodes(said: Iterable[tuple[float, str]]) -> list[Decode]:
    """The decode lines among (when, text)."""
    found = []
    for at, text in said:
        if DECODE not in text:
            continue
        line = log.parse(text)
        rate, accept = line.fields.get("gen_throughput"), line.fields.get("accept_len")
        if line.kind is log.Kind.DECODE and isinstance(rate, int | float):
            known = float(accept) if isinstance(accept, int | float) else None
            found.append(Decode(at, float(rate), known, _group(line.rank)))
    return found


def summary(found: Iterable[Decode], begin: float, end: float) -> Logged | None:
    """Those between the two times, on the lines' clock. None: too few. Ranks of data parallelism add up."""
    by_rank: dict[str, list[Decode]] = defaultdict(list)
    for line in found:
        by_rank[line.rank].append(line)
    ranks = [
        lines for lines in (_inside(lines, begin, end) for lines in by_rank.values()) if len(lines) > LEAST
    ]
    if not ranks:
        return None
    rate = variance = 0.0
    accepts: list[tuple[float, float]] = []  # value, weight
    for lines in ranks:
        spans = [later.at - earlier.at for earlier, later in pairwise(lines)]
        each = [(line.rate, span) for line, span in zip(lines[1:], spans, strict=True) if span > 0]
        mean, error = _mean(each)
        rate, variance = rate + mean, variance + error**2
        accepts += [
            (line.accept, line.rate * span)
            for line, span in zip(lines[1:], spans, strict=True)
            if line.accept is not None and span > 0
        ]
    accept, accept_error = _mean(accepts) if accepts else (None, 0.0)
    return Logged(
        sum(len(lines) - 1 for lines in ranks), rate, math.sqrt(variance), accept or None, accept_error
    )


def _inside(lines: Sequence[Decode], begin: float, end: float) -> list[Decode]:
    """Those that surely fell between the two times."""
    first = lines[0].at
    if any(abs((line.at - first + 0.5) % 1 - 0.5) > 1e-3 for line in lines):
        return [line for line in lines if begin <= line.at <= end]
    many, seen = Counter(round(line.at - first) for line in lines), Counter[int]()
    spread = []
    for line in lines:
        second = round(line.at - first)
        if begin <= line.at <= end - 1:
            spread.append(replace(line, at=line.at + (seen[second] + 0.5) / many[second]))
        seen[second] += 1
    return spread


def _mean(samples: list[tuple[float, float]]) -> tuple[float, float]:
    """The weighted mean and its standard error."""
    weight = sum(w for _, w in samples)
    if not weight:
        return 0.0, 0.0
    mean = sum(value * w for value, w in samples) / weight
    spread = sum(w * (value - mean) ** 2 for value, w in samples) / weight
    return mean, math.sqrt(spread / max(1, len(samples) - 1))


def _group(rank: str | None) -> str:
    """The data-parallel rank of "DP1 TP3": only its first tensor rank writes decode lines."""
    return next((word for word in (rank or "").split() if word.startswith("DP")), "")
