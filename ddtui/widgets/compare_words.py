"""A comparison as the console writes it: the sentence, the table, one cell whole, the heat map. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from textual.content import Content

from ddtui.bench import compare
from ddtui.bench.compare import METRICS, CellComparison, Comparison, Metric, Standing
from ddtui.bench.contrast import Answer, Difference
from ddtui.bench.model import Estimate
from ddtui.widgets.cells import cut
from ddtui.widgets.heat_map import TONES, Heat, Tone
from ddtui.words import number

STANDINGS = {
    Standing.BETTER: ("▲", "$success"),
    Standing.WORSE: ("▼", "$error"),
    Standing.MIXED: ("▲▼", "$warning"),
    Standing.NO_DIFFERENCE: ("·", "$muted"),
    Standing.NOT_JUDGED: ("?", "$warning"),
}
TONE_OF: dict[Answer, Tone] = {Answer.BETTER: "better", Answer.WORSE: "worse", Answer.NO_DIFFERENCE: "same"}
STRONG = 0.25  # a difference that is shaded as strongly as can be
CELL = 15  # cells of the table's first column, at least


def sentence(found: Comparison) -> Content:
    """The answer first."""
    glyph, colour = STANDINGS[found.standing]
    tail = Content.styled("  SIMULATED", "bold $accent") if found.simulated else Content("")
    return Content.assemble((f"{glyph} ", f"bold {colour}"), (found.sentence, "bold"), tail)


def outputs(found: Comparison) -> Content:
    """What stands out beside the sentence, which says how the outputs are: that they differ, and warnings."""
    check = found.outputs
    lines = []
    if check.equal != check.compared:
        lines.append(Content.assemble(("✗ ", "bold $error"), (check.text, "$error")))
    lines += [Content.styled(f"! {warning}", "$warning") for warning in found.warnings]
    return Content("\n").join(lines)


def rotated(first: int) -> tuple[Metric, ...]:
    """The metrics with this one first."""
    return (*METRICS[first:], *METRICS[:first])


def head(cells: Sequence[CellComparison], width: int, first: int) -> Content:
    """The table's head; columns that do not fit go from the right."""
    name, columns = _columns(cells, width, first)
    words = "".join(f"  {metric.label:<{size}}" for metric, size in columns)
    left = len(METRICS) - len(columns)
    more = f" +{left}" if left else ""
    return Content.styled(cut(f"{'cell':<{name}}{words}{more}", width), "$muted")


def row(cell: CellComparison, cells: Sequence[CellComparison], width: int, first: int) -> Content:
    """One cell of the table."""
    name, columns = _columns(cells, width, first)
    parts: list[Content | tuple[str, str]] = [(f"{compare.name(cell.cell):<{name}}", "bold")]
    for metric, size in columns:
        difference = cell.differences.get(metric.key)
        text, colour = difference_words(cell, difference)
        parts.append((f"  {text:<{size}}", colour))
    return Content.assemble(*parts)


def difference_words(cell: CellComparison, difference: Difference | None) -> tuple[str, str]:
    """`▲ +11 % [8, 14]` and its colour."""
    if difference is None:
        return "–", "$muted"
    glyph, colour = TONES[tone(cell, difference)]
    return f"{glyph} {compare.interval(difference)}", colour


def tone(cell: CellComparison, difference: Difference | None) -> Tone:
    if difference is None or cell.doubts:
        return "doubtful"
    return TONE_OF[difference.answer]


def heats(cells: Sequence[CellComparison], metric: Metric) -> list[Heat]:
    """The differences under one metric, by concurrency and context."""
    found = []
    for cell in cells:
        difference = cell.differences.get(metric.key)
        text = compare.percent(difference.change) if difference is not None else "–"
        strength = min(1.0, abs(difference.change) / STRONG) if difference is not None else 0.0
        found.append(Heat(cell.cell, text, tone(cell, difference), min(0.99, strength)))
    return found


def whole(cell: CellComparison, width: int) -> Content:
    """One cell whole: A and B with their intervals, and the difference, under every metric."""
    lines = [Content.styled(cut(compare.name(cell.cell), width), "bold")]
    label = max(len(metric.label) for metric in METRICS)
    for metric in METRICS:
        one: Estimate | None = getattr(cell.a, metric.key)
        other: Estimate | None = getattr(cell.b, metric.key)
        text, colour = difference_words(cell, cell.differences.get(metric.key))
        values = f"{_estimate(one):<15} → {_estimate(other):<15}"
        line = Content.assemble((f"{metric.label:<{label}} ", "$muted"), values)
        if width - line.cell_length >= len(text) + 1:
            line = Content.assemble(line, (f" {text}", colour))
        else:
            line = Content.assemble(line, (f" {text[:1]}", colour))
        lines.append(line.truncate(width))
    headline = cell.headline
    if headline is not None:
        pairs = (
            f"{headline.pairs} prompts, paired" if headline.paired else "not paired: the raw records are gone"
        )
        floor = (
            f", restarts alone ±{100 * headline.floor:.1f} %"
            if headline.floor is not None
            else ", the noise of restarts is not known"
        )
        lines += [Content.styled(line, "$muted") for line in textwrap.wrap(pairs + floor, width)]
    lines += [Content.styled(f"! not judged: {doubt}", "$warning") for doubt in cell.doubts]
    return Content("\n").join(lines)


def legend(metric: Metric) -> Content:
    better = "more is better" if metric.higher_is_better else "less is better"
    return Content.styled(
        f"▲ better  ▼ worse  · no difference  ? not judged\n{metric.label}: {better}", "$muted"
    )


def _columns(cells: Sequence[CellComparison], width: int, first: int) -> tuple[int, list[tuple[Metric, int]]]:
    """The width of the first column, and the metrics that fit with theirs."""
    name = max(CELL, *(len(compare.name(cell.cell)) for cell in cells), 0)
    room = width - name - 3
    columns: list[tuple[Metric, int]] = []
    for metric in rotated(first):
        words = [difference_words(cell, cell.differences.get(metric.key))[0] for cell in cells]
        size = max(len(metric.label), *(len(word) for word in words), 0)
        room -= size + 2
        if room < 0 and columns:
            break
        columns.append((metric, size))
    return name, columns


def _estimate(one: Estimate | None) -> str:
    return f"{number(one.value)} [{number(one.low)}–{number(one.high)}]" if one is not None else "–"
