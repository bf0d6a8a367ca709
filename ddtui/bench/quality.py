"""Whether the output is right, not only fast. Pure; the checks that need a server are in `check_output`.

At temperature 0 speculative decoding must not change what is generated. Two things can make outputs differ
all the same: a near-tie between two tokens, which other batch sizes and kernels may break differently, and
corruption, such as a wrong tree mask. They are told apart by the reference's own margin at the first
difference where the server gives logprobs, and by what follows: a near-tie leads to other good text,
corruption to garbage.
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ddtui.bench.tasks import Task

NEAR_TIE = 0.5  # nats between the two best tokens: closer ones change places by rounding alone
LEAST_TEXT = 64  # characters below which nothing is called garbage
LOOP = 3  # times that a piece must follow itself to be a loop
SURELY = 0.01  # chance by which fewer passed tests may still be luck
MOST_DIFFERENT = 0.25  # of the prompts: more differing outputs than near-ties explain
_FENCE = re.compile(r"^```\w*[^\S\n]*$", re.M)


class Verdict(StrEnum):
    EQUAL = "equal"
    NEAR_TIES = "equal but for near-ties"
    DIFFERENT = "different"
    GARBAGE = "garbage"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Output:
    """What was generated for one prompt."""

    prompt: str  # its name
    text: str
    ids: tuple[int, ...] = ()
    margins: tuple[float, ...] = ()  # nats that the farther of the two tokens is behind the best, if known


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first difference between two outputs of one prompt."""

    prompt: str
    position: int  # in tokens where both have ids, else in characters
    in_tokens: bool
    margin: float | None  # of the reference at that position
    garbage: str  # why what follows is garbage; "" if it is not

    @property
    def near_tie(self) -> bool:
        """Known to be one. Without a margin nobody can tell."""
        return self.margin is not None and self.margin <= NEAR_TIE and not self.garbage


@dataclass(frozen=True, slots=True)
class Quality:
    """The output check of one step."""

    verdict: Verdict
    text: str  # one sentence
    prompts: int
    reference: int | None = None  # step whose outputs were the reference; None: none was there
    divergences: tuple[Divergence, ...] = ()
    garbage: Mapping[str, str] | None = None  # by prompt: why
    tests_passed: int | None = None  # None: not run
    tests_run: int | None = None
    failed_tasks: tuple[str, ...] = ()
    sandbox: str = ""  # what the tests ran in, or why they were not run
    simulated: bool = False

    @property
    def wrong(self) -> bool:
        """Such a step never wins."""
        return self.verdict in (Verdict.GARBAGE, Verdict.DIFFERENT)


def divergence(reference: Output, tested: Output) -> Divergence | None:
    """The first difference; None if one is the other's beginning (a cap cut it) or they are equal."""
    in_tokens = bool(reference.ids and tested.ids)
    one: Sequence[object] = reference.ids if in_tokens else reference.text
    other: Sequence[object] = tested.ids if in_tokens else tested.text
    for position, (expected, got) in enumerate(zip(one, other, strict=False)):
        if expected != got:
            margin = reference.margins[position] if in_tokens and position < len(reference.margins) else None
            return Divergence(reference.prompt, position, in_tokens, margin, garbage(tested.text) or "")
    return None


def garbage(text: str) -> str | None:
    """Why this text is none that a working model writes; None if it may be."""
    if len(text) < LEAST_TEXT:
        return None
    broken = text.count("\ufffd") / len(text)
    if broken > 0.01:
        return f"{100 * broken:.0f} % of its characters are broken UTF-8"
    loop = _loop(text)
    if loop:
        return loop
    counts = Counter(text)
    entropy = -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())
    if entropy < 1.5:
        return f"it has {entropy:.1f} bits per character"
    packed = len(zlib.compress(text.encode(), 9)) / len(text.encode())
    if len(text) >= 512 and packed < 0.08:
        return f"it can be packed to {100 * packed:.0f} %: it repeats itself"
    strange = sum(not (letter.isprintable() or letter in "\n\t\r") for letter in text) / len(text)
    if strange > 0.02:
        return f"{100 * strange:.0f} % of its characters cannot be printed"
    return None


def _loop(text: str) -> str | None:
    """Whether the end of the text, a third of it or more, is one piece over and over."""
    for period in range(1, len(text) // LOOP + 1):
        piece = text[-period:]
        times = 1
        while text.endswith(piece, 0, len(text) - times * period):
            times += 1
        if times >= LOOP and times * period >= max(len(text) / 3, 48) and piece.strip():
            return f"it ends in {piece.strip()[:30]!r} {times} times over"
    return None


def judge(
    tested: Sequence[Output],
    reference: Sequence[Output] = (),
    *,
    reference_step: int | None = None,
    tests: Mapping[str, bool] | None = None,
    sandbox: str = "",
    simulated: bool = False,
    tests_before: Mapping[str, bool] | None = None,
) -> Quality:
    """All of it together. `tests`: by task, whether its tests passed; None: they were not run.
    `tests_before`: the same of the reference.
    """
    bad = {output.prompt: why for output in tested if (why := garbage(output.text))}
    before = {output.prompt: output for output in reference}
    pairs = [(before[output.prompt], output) for output in tested if output.prompt in before]
    found = [difference for pair in pairs if (difference := divergence(*pair)) is not None]
    # a model that loops without speculation loops with it: only what is worse than the reference counts
    fresh = {name: why for name, why in bad.items() if name not in before or not garbage(before[name].text)}
    verdict, text = _verdict(len(tested), len(pairs), found, fresh)
    passed = sum(tests.values()) if tests is not None else None
    if tests:
        text += f"; {passed} of {len(tests)} coding tasks pass their tests"
        lost, won = _turned(tests_before or {}, tests)
        if lost:
            text += f", {lost} that passed with the reference do not" + (
                f", {won} others do now" if won else ""
            )
        if _surely_fewer(lost, won) and verdict is not Verdict.GARBAGE:
            verdict = Verdict.DIFFERENT
    return Quality(
        verdict=verdict,
        text=text,
        prompts=len(tested),
        reference=reference_step if pairs else None,
        divergences=tuple(found),
        garbage=bad,
        tests_passed=passed,
        tests_run=len(tests) if tests is not None else None,
        failed_tasks=tuple(name for name, good in (tests or {}).items() if not good),
        sandbox=sandbox,
        simulated=simulated,
    )


def _turned(before: Mapping[str, bool], now: Mapping[str, bool]) -> tuple[int, int]:
    """How many tasks passed before and fail now, and the other way round."""
    both = before.keys() & now.keys()
    return sum(before[one] > now[one] for one in both), sum(before[one] < now[one] for one in both)


def _surely_fewer(lost: int, won: int) -> bool:
    """Whether so many lost against so many won tasks are no chance (McNemar's exact test, one-sided)."""
    turned = lost + won
    chance = sum(math.comb(turned, k) for k in range(lost, turned + 1)) / 2**turned
    return lost > won and chance < SURELY


def _verdict(
    tested: int, compared: int, found: Sequence[Divergence], fresh: Mapping[str, str]
) -> tuple[Verdict, str]:
    if not tested:
        return Verdict.UNKNOWN, "nothing was generated"
    if len(fresh) > 0.05 * tested:
        name, why = next(iter(fresh.items()))
        return Verdict.GARBAGE, f"{len(fresh)} of {tested} outputs are garbage ({name}: {why})"
    if not compared:
        return Verdict.UNKNOWN, "no garbage, and no reference to compare with"
    if not found:
        return Verdict.EQUAL, f"all {compared} outputs equal the reference's"
    first = min(found, key=lambda one: one.position)
    unit = "token" if first.in_tokens else "character"
    where = f"the first at {unit} {first.position}"
    if all(one.near_tie for one in found):
        return (
            Verdict.NEAR_TIES,
            f"{len(found)} of {compared} outputs differ, each from a near-tie on ({where})",
        )
    known = [one for one in found if one.margin is not None and not one.near_tie]
    if known or len(found) > MOST_DIFFERENT * compared:
        why = f"{len(known)} of them where the reference was sure" if known else "more than near-ties explain"
        return Verdict.DIFFERENT, f"{len(found)} of {compared} outputs differ, {why} ({where})"
    return (
        Verdict.NEAR_TIES,
        f"{len(found)} of {compared} differ ({where}): few enough for near-ties, whose margins are not known",
    )


def program(task: Task, answer: str) -> str:
    """The answer's code followed by the task's tests. An answer may be a chat's, or go on in a code block."""
    parts = [part.strip("\n") for part in _FENCE.split(answer)]
    names = re.findall(r"(?:def|class) (\w+)", task.signature)
    fitting = [part for part in parts if all(re.search(rf"\b(?:def|class) {name}\b", part) for name in names)]
    code = fitting[-1] if fitting else parts[1 if len(parts) > 1 else 0]
    return f"{code}\n\n{task.tests}\n"
