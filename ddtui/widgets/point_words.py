"""The points of a burst or a step as a table: value, 95 % interval, sample count. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from textual.content import Content

from ddtui.bench import gpu_use
from ddtui.bench.model import Burst, BurstState, Estimate, Point
from ddtui.burst_words import accept_said, beside_said, load_place, spread_said
from ddtui.view import RUNNING
from ddtui.widgets.chart_pane import burst_line
from ddtui.words import number, tokens

COLUMNS = ("C", "ctx", "tok/s [95 %]", "accept", "per user", "TTFT ms", "step ms", "ok")


def point_lines(burst: Burst, width: int) -> Content:
    """The burst's points as a table; columns that do not fit go from the right."""
    lines: list[Content] = []
    if burst.state in RUNNING or burst.state is BurstState.FAILED or burst.text:
        lines.append(burst_line(burst, width))
    lines += _wrapped(f"load {load_place(burst.spec.at, burst.rtt_ms)}", width, "$muted", "")
    lines += point_table(burst.points, width)
    if not burst.points and burst.state not in RUNNING:
        lines.append(Content.styled("nothing was measured", "$muted"))
    for warning in burst.warnings:
        lines += _wrapped(f"! {warning}", width, "$warning", "")
    return Content("\n").join(lines)


def point_table(points: Sequence[Point], width: int) -> list[Content]:
    """A head and a line for each point, and its marks below it."""
    rows = [point_cells(point) for point in points]
    sizes = {name: max(len(name), *(len(row[name]) for row in rows), 0) for name in COLUMNS}
    lines: list[Content] = []
    columns: list[str] = []
    used = 0
    for name in COLUMNS:
        used += sizes[name] + 2
        if used > width + 2:
            break
        columns.append(name)
    lines.append(Content.styled("  ".join(name.rjust(sizes[name]) for name in columns), "$muted"))
    for point, row in zip(points, rows, strict=True):
        text = "  ".join(row[name].rjust(sizes[name]) for name in columns)
        lines.append(Content.styled(text, "$foreground" if point.final else "$muted"))
        marks = [*(["preview: too few samples"] if point.preview and point.final else []), *point.marks]
        if point.final:
            gpus = gpu_use.in_words(point.gpus, point.gpus_unknown)
            for words in (spread_said(point), accept_said(point), beside_said(point), gpus):
                lines += _wrapped(words, width, "$muted")
        if marks:
            lines += _wrapped("! " + ", ".join(marks), width, "$warning")
    return lines


def _wrapped(words: str, width: int, colour: str, indent: str = "   ") -> list[Content]:
    """Words below a point, on as many lines as they take."""
    lines = textwrap.wrap(
        words,
        max(20, width),
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,
    )
    return [Content.styled(line, colour) for line in lines]


def point_cells(point: Point) -> dict[str, str]:
    """A point's cells by column."""
    return {
        "C": str(point.cell.concurrency),
        "ctx": tokens(point.cell.context),
        "tok/s [95 %]": interval(point.output_rate, with_n=True),
        "accept": interval(point.accept_length),
        "per user": interval(point.per_user_rate),
        "TTFT ms": interval(point.ttft_ms),
        "step ms": interval(point.step_ms),
        "ok": f"{point.ok}" + (f"/{point.ok + point.failed}" if point.failed else ""),
    }


def interval(estimate: Estimate | None, *, with_n: bool = False) -> str:
    """A value with its interval: `912 [880–940]`; not known: –."""
    if estimate is None:
        return "–"
    text = f"{number(estimate.value)} [{number(estimate.low)}–{number(estimate.high)}]"
    return f"{text} n{estimate.n}" if with_n else text
