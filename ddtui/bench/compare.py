"""Two steps side by side on the cells they share: what differs, by how much, how surely, and in one
sentence. Pure.

A comparison is refused where it would not be one: another model, GPU, kind of host, workload or place of
the load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ddtui.bench import contrast
from ddtui.bench.contrast import Answer, Contrast, Difference, Noise
from ddtui.bench.model import Cell, Estimate, Point
from ddtui.bench.samples import Sample, Samples


class NotComparable(Exception):
    """Two steps that must not be compared: one sentence with the reason."""

    def __init__(self, reasons: Sequence[str], knowingly: bool) -> None:
        self.reasons = tuple(reasons)
        hint = "; compare them knowingly if you must (--knowingly)" if knowingly else ""
        super().__init__(f"not comparable: {'; '.join(reasons)}{hint}")


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that is compared, and what of a sample makes it: two sums, or values of their own."""

    key: str  # the point's field
    label: str
    higher_is_better: bool
    above: str  # fields of Sample
    below: str | None

    def pair(self, sample: Sample) -> tuple[float, float] | None:
        """Numerator and denominator of one prompt; None where one is not known."""
        above = getattr(sample, self.above)
        below = getattr(sample, self.below) if self.below else 1
        return None if above is None or below is None else (float(above), float(below))


THROUGHPUT = Metric("output_rate", "throughput", True, "tokens", "slot")
METRICS = (
    THROUGHPUT,
    Metric("per_user_rate", "per user", True, "after", "decode"),
    Metric("ttft_ms", "TTFT", False, "ttft", None),
    Metric("tpot_ms", "TPOT", False, "decode", "after"),
    Metric("accept_length", "accept length", True, "committed", "verify_steps"),
)


@dataclass(frozen=True, slots=True)
class Run:
    """One cell of one step, measured once: after one start of the server."""

    burst: str
    point: Point
    output: int  # tokens asked for per request
    temperature: float
    endpoint: str
    salt: str | None = None
    samples: Samples = field(default_factory=dict)  # empty: the raw records are gone
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: a step with what was measured of it."""

    name: str  # "step 7"
    knobs: Mapping[str, str | None]
    runs: Mapping[Cell, tuple[Run, ...]]  # several of a cell: one after each restart
    host: str = ""
    target: str = ""
    engine: str = ""
    drafter: str = ""
    gpu: str = ""
    simulated: bool = False
    wrong: str = ""  # why its output is known to be wrong

    @property
    def setting(self) -> str:
        return ", ".join(f"{name} {'off' if v is None else v}" for name, v in self.knobs.items())


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """Whether greedy outputs of the same prompts are the same."""

    compared: int
    equal: int
    text: str


class Standing(StrEnum):
    """All cells together."""

    BETTER = "better"
    WORSE = "worse"
    MIXED = "better in some cells, worse in others"
    NO_DIFFERENCE = "no difference detectable"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class CellComparison:
    """One cell: the differences by metric key; one that could not be had is absent."""

    cell: Cell
    a: Point
    b: Point
    differences: Mapping[str, Difference]
    doubts: tuple[str, ...] = ()  # why this cell cannot win or lose

    @property
    def headline(self) -> Difference | None:
        return self.differences.get(THROUGHPUT.key)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The whole answer: the sentence first."""

    a: str
    b: str
    sentence: str
    standing: Standing
    cells: tuple[CellComparison, ...]
    outputs: OutputCheck
    preview: bool
    simulated: bool
    warnings: tuple[str, ...] = ()


def load_key(target: str, run: Run) -> str:
    """What A/A runs must share with a comparison so that their noise is its noise: model, cell, load,
    prompts.
    """
    cell, point = run.point.cell, run.point
    return (
        f"{target} {cell.workload} C={cell.concurrency} ctx={cell.context} out={run.output} at={point.place} "
        f"{run.endpoint} T={run.temperature:g} {point.prompts}{' simulated' if run.simulated else ''}"
    )


Restarts = Callable[[str, str], Sequence[Sequence[float]]]
"""Means of A/A runs by load key and metric key, a group for each setting."""


def compare(
    a: Side,
    b: Side,
    *,
    restarts: Restarts = lambda load, metric: (),
    knowingly: bool = False,
    own_noise: bool = False,
) -> Comparison:
    """B against A. `own_noise`: several runs of a cell are restarts of the same setting and count as A/A
    runs too.

    Raises NotComparable.
    """
    reasons, warnings = _differ(a, b)
    shared = sorted(
        set(a.runs) & set(b.runs), key=lambda cell: (cell.workload, cell.context, cell.concurrency)
    )
    if not shared:
        raise NotComparable([f"{a.name} and {b.name} have no cell in common"], knowingly=False)
    cells = []
    for cell in shared:
        problem = _other_load(a.runs[cell][0], b.runs[cell][0])
        if problem is None or knowingly:
            cells.append(cell)
        if problem is not None:
            what = f"{name(cell)}: {problem}"
            (warnings if knowingly or len(shared) > 1 else reasons).append(what)
    if not cells:
        reasons.append("; ".join(warnings) if warnings else "no cell was measured in the same way")
    if reasons and not (knowingly and cells):
        raise NotComparable(reasons, knowingly=True)
    compared = _cells(a, b, cells, restarts, own_noise)
    outputs = _outputs(a, b, cells)
    judged = [cell for cell in compared if not cell.doubts and cell.headline]
    preview = not judged or any(cell.headline.preview for cell in judged if cell.headline)
    standing = _standing([cell.headline.answer for cell in judged if cell.headline])
    if b.wrong:
        standing = Standing.WORSE
    elif a.wrong:  # what is wrong wins over nothing
        standing = Standing.BETTER
    warnings = [*reasons, *warnings]
    return Comparison(
        a=a.name,
        b=b.name,
        sentence=_sentence(a, b, compared, outputs, preview),
        standing=standing,
        cells=compared,
        outputs=outputs,
        preview=preview,
        simulated=a.simulated or b.simulated,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def means(runs: Sequence[Run], metrics: Sequence[Metric] = METRICS) -> list[dict[str, float]]:
    """The runs' values by metric key, over the prompts that all of them measured: A/A runs."""
    found: list[dict[str, float]] = [{} for _ in runs]
    for metric in metrics:
        common = _common([run.samples for run in runs], metric)
        for run, values in zip(runs, found, strict=True):
            pairs = [pair for at in common if (pair := metric.pair(run.samples[at])) is not None]
            below = sum(pair[1] for pair in pairs)
            estimate: Estimate | None = getattr(run.point, metric.key)
            if len(pairs) > 1 and below > 0:
                values[metric.key] = sum(pair[0] for pair in pairs) / below
            elif estimate is not None and not run.samples:
                values[metric.key] = estimate.value
    return found


def contrast_of(
    a: Sequence[Run], b: Sequence[Run], metric: Metric, noise: Noise | None = None
) -> Contrast | None:
    """One cell under one metric: paired by prompt where the raw records are there."""
    restarts = min(len(a), len(b))
    common = _common([run.samples for run in (*a, *b)], metric)
    if len(common) > 1:
        above_a, below_a = _sums(a, common, metric)
        above_b, below_b = _sums(b, common, metric)
        if metric.below is None:
            return contrast.of_values(above_a, above_b, noise=noise, restarts=restarts)
        return contrast.of_sums(above_a, below_a, above_b, below_b, noise=noise, restarts=restarts)
    one, other = getattr(a[0].point, metric.key), getattr(b[0].point, metric.key)
    if one is None or other is None:
        return None
    return contrast.of_estimates(one, other, noise=noise)


def name(cell: Cell) -> str:
    """A cell in few words: C=8 ctx=8k code."""
    return f"C={cell.concurrency} ctx={length(cell.context)} {cell.workload.rpartition('/')[2]}"


def length(context: int) -> str:
    """A context length as engineers write it: 512, 8k, 128k."""
    return f"{context // 1024}k" if context >= 1024 and context % 1024 == 0 else str(context)


def percent(ratio: float) -> str:
    """+11 %, −3.2 %: a digit after the point where it matters."""
    value = 100 * ratio
    digits = 0 if abs(value) >= 9.5 else 1
    return f"{value:+.{digits}f} %".replace("-", "−")


def interval(difference: Difference) -> str:
    """+11 % [8, 14]."""
    low, high = 100 * difference.low, 100 * difference.high
    digits = 0 if abs(difference.change) >= 0.095 else 1
    return f"{percent(difference.change)} [{low:.{digits}f}, {high:.{digits}f}]".replace("-", "−")


# within


def _differ(a: Side, b: Side) -> tuple[list[str], list[str]]:
    """What forbids the comparison, and what to know about it."""
    reasons, warnings = [], []
    if a.simulated != b.simulated:
        reasons.append("one is simulated and the other is not")
    for what, one, other in (("model", a.target, b.target), ("GPU", a.gpu, b.gpu)):
        if one and other and one != other:
            reasons.append(f"another {what}: {one} and {other}")
    for what, one, other in (
        ("host", a.host, b.host),
        ("SGLang", a.engine, b.engine),
        ("drafter", a.drafter, b.drafter),
    ):
        if one and other and one != other:
            warnings.append(f"another {what}: {one} and {other}")
    warnings += [f"the output of {side.name} is wrong: {side.wrong}" for side in (a, b) if side.wrong]
    return reasons, warnings


def _other_load(a: Run, b: Run) -> str | None:
    """How the load of two runs of a cell differs."""
    for what, one, other in (
        ("place of the load", a.point.place, b.point.place),
        ("workload: other prompts", a.point.prompts, b.point.prompts),
        ("output length", a.output, b.output),
        ("temperature", a.temperature, b.temperature),
        ("endpoint", a.endpoint, b.endpoint),
    ):
        if one != other and one != "" and other != "":
            return f"another {what} ({one} and {other})"
    return None


def _cells(
    a: Side, b: Side, cells: Sequence[Cell], restarts: Restarts, own_noise: bool
) -> tuple[CellComparison, ...]:
    found: dict[Cell, dict[str, Difference]] = {cell: {} for cell in cells}
    doubts = {cell: _doubts(a.runs[cell], b.runs[cell]) for cell in cells}
    own = {
        (cell, side.name): means(side.runs[cell]) if own_noise and len(side.runs[cell]) > 1 else []
        for cell in cells
        for side in (a, b)
    }
    for metric in METRICS:
        contrasts: dict[Cell, Contrast] = {}
        for cell in cells:
            groups = list(restarts(load_key(a.target, a.runs[cell][0]), metric.key))
            groups += [
                [run[metric.key] for run in own[cell, side.name] if metric.key in run] for side in (a, b)
            ]
            made = contrast_of(a.runs[cell], b.runs[cell], metric, Noise.of(groups))
            if made is not None:
                contrasts[cell] = made
        for together in (  # a doubtful cell is shown, and takes no part in the correction for many
            [cell for cell in contrasts if not doubts[cell]],
            *([cell] for cell in contrasts if doubts[cell]),
        ):
            judged = contrast.judge(
                [contrasts[cell] for cell in together], higher_is_better=metric.higher_is_better
            )
            for cell, difference in zip(together, judged, strict=True):
                found[cell][metric.key] = difference
    return tuple(
        CellComparison(cell, a.runs[cell][0].point, b.runs[cell][0].point, found[cell], doubts[cell])
        for cell in cells
    )


def _doubts(a: Sequence[Run], b: Sequence[Run]) -> tuple[str, ...]:
    marks = [f"A: {mark}" for run in a for mark in run.point.marks]
    marks += [f"B: {mark}" for run in b for mark in run.point.marks]
    return tuple(dict.fromkeys(marks))


def _common(runs: Sequence[Samples], metric: Metric) -> list[int]:
    """The prompts that every run measured, with what the metric needs."""
    first, *others = runs
    return [at for at in sorted(first) if all(at in run and metric.pair(run[at]) for run in (first, *others))]


def _sums(runs: Sequence[Run], prompts: Iterable[int], metric: Metric) -> tuple[list[float], list[float]]:
    """Each prompt's sums over the runs of one arm."""
    above, below = [], []
    for at in prompts:
        pairs = [pair for run in runs if (pair := metric.pair(run.samples[at])) is not None]
        above.append(sum(pair[0] for pair in pairs))
        below.append(sum(pair[1] for pair in pairs))
    return above, below


def _outputs(a: Side, b: Side, cells: Sequence[Cell]) -> OutputCheck:
    compared = equal = 0
    salted = warm = False
    for cell in cells:
        one, other = a.runs[cell][0], b.runs[cell][0]
        salted |= one.salt != other.salt or one.salt is None
        warm |= one.temperature > 0 or other.temperature > 0
        if one.salt is None or one.salt != other.salt or one.temperature or other.temperature:
            continue
        for at in set(one.samples) & set(other.samples):
            if one.samples[at].output and other.samples[at].output:
                compared += 1
                equal += one.samples[at].output == other.samples[at].output
    if not compared:
        why = (
            "temperature above 0" if warm else "each burst had its own prompts' beginnings" if salted else ""
        )
        return OutputCheck(0, 0, f"outputs not compared{f' ({why})' if why else ''}")
    if equal == compared:
        return OutputCheck(compared, equal, f"outputs equal ({compared} prompts)")
    return OutputCheck(compared, equal, f"outputs differ in {compared - equal} of {compared} prompts")


def _standing(answers: Sequence[Answer]) -> Standing:
    better, worse = Answer.BETTER in answers, Answer.WORSE in answers
    if better and worse:
        return Standing.MIXED
    if better or worse:
        return Standing.BETTER if better else Standing.WORSE
    return Standing.NO_DIFFERENCE if answers else Standing.NOT_JUDGED


def _sentence(a: Side, b: Side, cells: Sequence[CellComparison], outputs: OutputCheck, preview: bool) -> str:
    """step 7 (budget 16, topk 4) against step 6: throughput +11 % [8, 14] at C=1, …; outputs equal."""
    loads = list(dict.fromkeys((cell.cell.workload, cell.cell.context) for cell in cells))
    several = len({load[0] for load in loads}) > 1
    parts = []
    for load in loads:
        group = [cell for cell in cells if (cell.cell.workload, cell.cell.context) == load]
        words = _phrases(group)
        if len(loads) > 1:
            kind = f"{load[0].rpartition('/')[2]} " if several else ""
            words = f"at {kind}{length(load[1])} context {words}"
        parts.append(words)
    text = f"{b.name} ({b.setting}) against {a.name}: throughput {'; '.join(parts)}; {outputs.text}"
    if b.wrong:
        text = f"{b.name} ({b.setting}) gives wrong output: {b.wrong}; {text}"
    elif a.wrong:
        text = f"{a.name} gives wrong output: {a.wrong}; {text}"
    if preview:
        text += "; a preview, no verdict to rely on"
        if any(cell.headline and cell.headline.floor is None for cell in cells):
            text += ": the noise of restarts is not known here (ddtui calibrate)"
    return text


def _phrases(group: Sequence[CellComparison]) -> str:
    words: list[str] = []
    same: list[CellComparison] = []
    for one in group:
        difference = one.headline
        if one.doubts or difference is None:
            why = one.doubts[0] if one.doubts else "no rate"
            words.append(f"not judged at C={one.cell.concurrency} ({why})")
        elif difference.answer is Answer.NO_DIFFERENCE:
            same.append(one)
        else:
            words.append(f"{interval(difference)} at C={one.cell.concurrency}")
    if same:
        width = max(one.headline.half_width for one in same if one.headline)
        where = " and ".join(f"C={one.cell.concurrency}" for one in same)
        words.append(f"no difference detectable at ±{100 * width:.1f} % at {where}")
    return ", ".join(words)
