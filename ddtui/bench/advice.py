"""What to try next, from what was measured: each piece of advice with its evidence. Advice, not magic.
Pure.

A knob's effect is read off pairs of settings that differ in nothing else, on the same cell. Two things
decide the speed of one stream: how many tokens a step commits (accept length) and how long the step takes;
a larger tree buys the first and pays with the second, the more the higher the load. A block drafter of block
size L+1 drafts L positions: no step commits more than L+1 tokens, a budget below L cannot reach the whole
depth, and with topk 1 the tree is a chain, of which L nodes are all there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ddtui.bench.compare import length
from ddtui.bench.model import Estimate, Point

FLAT = 0.03  # of the accept length: a doubling that gains less has no more to give
GROWS = 0.05
CELL = re.compile(r"C=\d+, context \w+")
BLOCKS = ("DFLASH", "DDTREE")  # algorithms whose drafter drafts a block at once
SIZES = ("budget", "topk")  # knobs that buy accept length; others are never advised up or down by number


@dataclass(frozen=True, slots=True)
class Observation:
    """One cell of one setting."""

    knobs: Mapping[str, str | None]
    point: Point
    name: str  # "step 7"
    block: int | None = None  # the drafter's block size, where it is known


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to try, why, and the lines that it rests on."""

    text: str
    knob: str
    value: str | None  # None: nothing to set, only to know
    evidence: tuple[str, ...]


def block_of(flags: Mapping[str, Any]) -> int | None:
    """The drafter's block size by the server's resolved flags: a block drafter drafts a block at once."""
    if str(flags.get("speculative_algorithm")).upper() not in BLOCKS:
        return None
    given = str(flags.get("speculative_dflash_block_size") or flags.get("speculative_num_draft_tokens"))
    return int(given) if given.isdecimal() else None


def advise(seen: Sequence[Observation]) -> tuple[Advice, ...]:
    """Advice by knob and cell, the same said once."""
    good = [one for one in seen if one.point.accept_length is not None and not one.point.marks]
    found: dict[tuple[str, str | None, str], Advice] = {}
    for knob in SIZES:
        for line in _lines(good, knob):
            for advice in (_saturation(knob, line), _price(knob, line)):
                if advice is not None:
                    found.setdefault((advice.knob, advice.value, advice.text), advice)
    for advice in _window(good):
        found.setdefault((advice.knob, advice.value, advice.text), advice)
    return tuple(found.values())


def grouped(advice: Sequence[Advice]) -> tuple[Advice, ...]:
    """The same advice from several cells or settings once, with where else it holds among its evidence."""
    groups: dict[tuple[str, str | None, str], list[Advice]] = {}
    for one in advice:
        groups.setdefault((one.knob, one.value, one.text.partition(" at ")[0]), []).append(one)
    found = []
    for first, *others in groups.values():
        cells = list(dict.fromkeys(cell for one in others for cell in CELL.findall(one.text)))
        also = f"the same at {'; '.join(cells[:6])}" + (
            f" and {len(cells) - 6} more" if len(cells) > 6 else ""
        )
        found.append(replace(first, evidence=(*first.evidence, also) if cells else first.evidence))
    return tuple(found)


Line = list[tuple[float, Observation]]


def _lines(seen: Iterable[Observation], knob: str) -> list[Line]:
    """Observations that differ in this knob alone, by rising value; two or more."""
    groups: dict[tuple[object, ...], dict[float, Observation]] = {}
    for one in seen:
        value = _number(one.knobs.get(knob))
        if value is None:
            continue
        others = tuple(sorted((name, v) for name, v in one.knobs.items() if name != knob))
        key = (one.point.cell, one.point.place, others)
        groups.setdefault(key, {})[value] = one
    return [sorted(group.items()) for group in groups.values() if len(group) > 1]


def _saturation(knob: str, line: Line) -> Advice | None:
    """Where the accept length stops growing, or that it has not stopped yet."""
    cell, block = line[0][1].point.cell, line[0][1].block
    where = f"at {_others(line[0][1], knob)}C={cell.concurrency}, context {length(cell.context)}"
    evidence = tuple(
        f"{one.name}: {knob} {value:g}: accept length {_estimate(one.point.accept_length)}"
        for value, one in line
    )
    for (value, one), (more, other) in pairwise(line):
        gain = _gain(one.point.accept_length, other.point.accept_length)
        if gain is not None and gain < FLAT and all(_little(one, later) for _, later in line if _ > value):
            text = f"accept length saturates at {knob} {value:g} {where}: {more:g} gives {100 * gain:+.1f} %"
            if knob == "budget" and block is not None and value >= block - 1 and _chain(one):
                text += f" (a chain of {block - 1} drafted tokens is all that block size {block} has)"
            return Advice(text.replace("-", "−"), knob, f"{value:g}", evidence)
    (value, one), (last, other) = line[-2:]
    gain = _gain(one.point.accept_length, other.point.accept_length)
    pays = _gain(one.point.per_user_rate, other.point.per_user_rate)
    further = _next(knob, last, other)
    if gain is not None and gain > GROWS and pays is not None and pays > 0 and further is not None:
        grown = f"{100 * gain:+.0f} % over {value:g}"
        text = f"accept length still grows at {knob} {last:g} {where} ({grown}): try {further:g}"
        if block is not None:
            evidence += (f"block size {block}: at most {block} tokens a step, {block - 1} nodes deep",)
        return Advice(text, knob, f"{further:g}", evidence)
    return None


def _next(knob: str, last: float, one: Observation) -> float | None:
    """The value after the last one that can still give more. None: the block is used up."""
    if one.block is None:
        return 2 * last
    most = Estimate(one.block, one.block, one.block, 0)
    left = _gain(one.point.accept_length, most)
    if left is not None and left < GROWS:
        return None
    depth = one.block - 1
    if knob != "budget":
        return 2 * last
    if _chain(one):
        return min(2 * last, depth) if last < depth else None
    return max(2 * last, depth)


def _chain(one: Observation) -> bool:
    return one.knobs.get("topk") == "1"


def _price(knob: str, line: Line) -> Advice | None:
    """From where on a step costs more than it commits."""
    cell = line[0][1].point.cell
    for (value, one), (more, other) in pairwise(line):
        gain = _gain(one.point.accept_length, other.point.accept_length)
        cost = _gain(one.point.step_ms, other.point.step_ms)
        if gain is None or cost is None or not _apart(one.point.step_ms, other.point.step_ms):
            continue
        if cost > max(gain, 0) + FLAT:
            text = (
                f"beyond {knob} {value:g} a step costs more than it commits at {_others(one, knob)}"
                f"C={cell.concurrency}, context {length(cell.context)}: "
                f"{more:g} takes {100 * cost:+.0f} % time for {100 * gain:+.0f} % tokens"
            )
            evidence = tuple(
                f"{o.name}: {knob} {v:g}: step {_estimate(o.point.step_ms)} ms, accept length "
                f"{_estimate(o.point.accept_length)}"
                for v, o in line
            )
            return Advice(text, knob, f"{value:g}", evidence)
    return None


def _window(seen: Sequence[Observation]) -> list[Advice]:
    """Acceptance that falls with the context where no window is set."""
    found = []
    groups: dict[tuple[object, ...], dict[int, Observation]] = {}
    for one in seen:
        if "window" in one.knobs and one.knobs["window"] is None:
            key = (
                one.point.cell.concurrency,
                one.point.cell.workload,
                tuple(sorted(one.knobs.items(), key=str)),
            )
            groups.setdefault(key, {})[one.point.cell.context] = one
    tried = {one.knobs["window"] for one in seen if one.knobs.get("window") is not None}
    for group in groups.values():
        near, far = group[min(group)], group[max(group)]
        loss = _gain(near.point.accept_length, far.point.accept_length)
        if loss is not None and loss < -0.15 and _apart(far.point.accept_length, near.point.accept_length):
            text = (
                f"without a window the accept length falls by {-100 * loss:.0f} % from {length(min(group))} "
                f"to {length(max(group))} context: the drafter was perhaps trained with a window; "
                + ("it was tried: compare" if tried else "try its own sliding_window")
            )
            evidence = tuple(
                f"{one.name}: context {length(c)}: accept length {_estimate(one.point.accept_length)}"
                for c, one in sorted(group.items())
            )
            found.append(Advice(text, "window", sorted(tried, key=str)[0] if tried else None, evidence))
            break
    return found


def _little(one: Observation, later: Observation) -> bool:
    gain = _gain(one.point.accept_length, later.point.accept_length)
    return gain is not None and gain < 2 * FLAT


def _gain(a: Estimate | None, b: Estimate | None) -> float | None:
    return b.value / a.value - 1 if a is not None and b is not None and a.value else None


def _apart(a: Estimate | None, b: Estimate | None) -> bool:
    """Whether b is surely above a, by the two intervals."""
    return a is not None and b is not None and b.low > a.high


def _others(one: Observation, knob: str) -> str:
    words = [f"{name} {'off' if v is None else v}" for name, v in one.knobs.items() if name != knob]
    return "".join(f"{word}, " for word in words)


def _estimate(one: Estimate | None) -> str:
    return f"{one.value:.3g} [{one.low:.3g}, {one.high:.3g}] n={one.n}" if one is not None else "unknown"


def _number(value: str | None) -> float | None:
    try:
        return float(value) if value is not None else None
    except ValueError:
        return None
