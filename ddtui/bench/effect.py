"""What a knob did so far: its values side by side, all else equal.

Of all measured steps those are taken that differ in this knob only, on the cell that most of them share.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ddtui.bench.kept import estimate_from_plain
from ddtui.bench.model import Estimate


class MeasuredStep(Protocol):
    """A step in a list."""

    @property
    def number(self) -> int: ...
    @property
    def knobs(self) -> Mapping[str, str | None]: ...


class MeasuredCell(Protocol):
    """The newest point of one cell of a step."""

    @property
    def step(self) -> int: ...
    @property
    def concurrency(self) -> int: ...
    @property
    def context(self) -> int: ...
    @property
    def workload(self) -> str: ...
    @property
    def at(self) -> float: ...
    @property
    def values(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Effect:
    """One value of the knob."""

    value: str | None  # None: without the flag
    step: int
    rate: Estimate  # output tok/s
    accept_length: float | None
    doubt: str = ""  # what makes the rate doubtful


@dataclass(frozen=True, slots=True)
class Effects:
    """The values that were measured on one cell, in their order; `others`: what the other knobs were."""

    concurrency: int
    context: int
    workload: str
    others: tuple[tuple[str, str | None], ...]
    rows: tuple[Effect, ...]


def of_knob(knob: str, steps: Iterable[MeasuredStep], cells: Iterable[MeasuredCell]) -> Effects | None:
    """None: no step with this knob was measured."""
    settings = {step.number: step.knobs for step in steps if knob in step.knobs}
    found: dict[_Key, dict[str | None, MeasuredCell]] = defaultdict(dict)
    for cell in cells:
        if cell.step not in settings or estimate_from_plain(cell.values.get("output_rate")) is None:
            continue
        value = settings[cell.step][knob]
        others = tuple(sorted((k, v) for k, v in settings[cell.step].items() if k != knob))
        kept = found[(others, cell.workload, cell.context, cell.concurrency)]
        if value not in kept or cell.at > kept[value].at:
            kept[value] = cell
    if not found:
        return None
    best = max(found, key=lambda key: (len(found[key]), max(c.at for c in found[key].values()), key[1:]))
    rows = []
    for value, cell in sorted(found[best].items(), key=lambda pair: _order(pair[0])):
        rate = estimate_from_plain(cell.values.get("output_rate"))
        assert rate is not None
        accept = estimate_from_plain(cell.values.get("accept_length"))
        marks = cell.values.get("marks") or ("",)
        rows.append(Effect(value, cell.step, rate, accept.value if accept else None, marks[0]))
    others, workload, context, concurrency = best
    return Effects(concurrency, context, workload, others, tuple(rows))


_Key = tuple[tuple[tuple[str, str | None], ...], str, int, int]  # other knobs, workload, context, concurrency


def _order(value: str | None) -> tuple[int, float, str]:
    """Numbers by size, words after them, without the flag first."""
    if value is None:
        return (0, 0.0, "")
    try:
        return (1, float(value), "")
    except ValueError:
        return (2, 0.0, value)


def best_of(rows: Sequence[Effect]) -> Effect | None:
    """The value with the greatest rate, if it is not doubtful and surely greater than every other: intervals
    do not touch.
    """
    if len(rows) < 2:
        return None
    top = max(rows, key=lambda row: row.rate.value)
    apart = all(row.rate.high < top.rate.low for row in rows if row is not top)
    return top if apart and not top.doubt else None
