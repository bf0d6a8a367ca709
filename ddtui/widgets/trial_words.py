"""A sweep as the console writes it: what it is at, the table of its trials, how it ended. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.content import Content

from ddtui.bench import experiment
from ddtui.bench.experiment import ExperimentPlan, Order, Trial
from ddtui.bench.model import Cell
from ddtui.tuning import telling
from ddtui.tuning.experiments import Doing, ExperimentState
from ddtui.widgets.cells import cut
from ddtui.widgets.progress_bar import bar
from ddtui.widgets.row_words import flat
from ddtui.widgets.sheet_words import TRIAL_LOOK
from ddtui.words import number, tokens

RATE = 7  # cells of a rate
TOP = 8  # settings of a ranking that are shown


def head_line(state: ExperimentState, width: int) -> Content:
    """How far it is, or how it ended."""
    if state.state != "running":
        return Content("")
    total = max(1, state.expected, len(state.trials))
    label = f"{telling.NAMES[state.plan.order]}  {state.done}/{total} trials"
    return bar(width, state.done / total, state.eta_seconds, label=label)


def doing_lines(state: ExperimentState, width: int) -> list[Content]:
    """What each host is at."""
    several = len(state.doing) > 1
    return [line for doing in state.doing.values() for line in _doing(doing, width, several)]


def _doing(doing: Doing, width: int, several: bool) -> list[Content]:
    what = experiment.name(doing.trial.setting) if doing.trial is not None else doing.text
    if not what:
        return []
    host = f"{doing.host}  " if several else ""
    lines = [
        Content.assemble(
            (host, "$primary"), ("▶ ", "bold $primary"), (cut(what, width - 2 - len(host)), "bold")
        )
    ]
    if doing.burst is not None:
        cell = doing.burst.cell
        label = (
            f"C={cell.concurrency} ctx={tokens(cell.context)}" if cell is not None else str(doing.burst.state)
        )
        lines.append(bar(width, doing.burst.fraction, doing.burst.eta_seconds, label=f"  {label}"))
    elif doing.progress is not None:
        progress = doing.progress
        label = cut(f"  {progress.phase}: {flat(progress.text)}", max(10, width // 2))
        lines.append(bar(width, progress.fraction, progress.eta_seconds, label=label, colour="$warning"))
    elif doing.text:
        lines.append(Content.styled(cut(f"  {doing.text}", width), "$muted"))
    return lines


def outcome_lines(state: ExperimentState, width: int) -> list[Content]:
    """The end: the sentence, the order of merit, what was left in force."""
    outcome = state.outcome
    if outcome is None:
        if state.state == "running":
            return []
        return [
            Content.styled(
                f"{state.state}: {flat(state.problem) or 'it can be gone on with'}", "bold $warning"
            )
        ]
    lines = [Content.styled(flat(outcome.text), "bold")]
    if outcome.ranking is not None and len(outcome.ranking.rows) > 1:
        ranked = list(telling.ranking(outcome.ranking))
        lines += [
            Content.styled(cut(line, width), "$success" if at == 0 else "")
            for at, line in enumerate(ranked[:TOP])
        ]
        if len(ranked) > TOP:
            lines.append(Content.styled(f"  and {len(ranked) - TOP} more", "$muted"))
    if outcome.left_text:
        lines.append(Content.styled(flat(outcome.left_text), "$muted"))
    return lines


def best_of(trials: Sequence[Trial]) -> Mapping[Cell, float]:
    """The greatest rate of every cell that nothing makes doubtful."""
    best: dict[Cell, float] = {}
    for trial in trials:
        for cell, run in trial.runs.items():
            rate = run.point.output_rate
            if rate is not None and not trial.wrong and not run.point.marks:
                best[cell] = max(best.get(cell, 0.0), rate.value)
    return best


def columns(plan: ExperimentPlan, width: int) -> tuple[list[int], list[Cell]]:
    """The widths of the knobs' columns, and the cells whose rates fit beside them."""
    knobs = [
        max([len(name), *(len(one[at][1]) for one in plan.settings)]) for at, name in enumerate(_knobs(plan))
    ]
    if knobs and plan.order in (Order.AB, Order.ABBA):
        knobs[0] = max(knobs[0], len(AS_FOUND))
    room = width - FIRST - (sum(knobs) + len(knobs) if knobs else len(AS_FOUND)) - STATE
    cells = list(plan.cells)[: max(0, room // (RATE + 1))]
    return knobs, cells


AS_FOUND = "as found"
FIRST = 13  # glyph, number, step
STATE = 10


def table_head(plan: ExperimentPlan, width: int) -> Content:
    """What stands in which column; concurrency × context over the rates, in tok/s."""
    knobs, cells = columns(plan, width)
    names = " ".join(f"{name:>{size}}" for name, size in zip(_knobs(plan), knobs, strict=True))
    rates = "".join(f" {_cell(cell):>{RATE}}" for cell in cells)
    more = f" +{len(plan.cells) - len(cells)}" if len(cells) < len(plan.cells) else " tok/s"
    return Content.styled(
        cut(f"{'':5} {'step':>6} {names or ' ' * len(AS_FOUND)}{rates}{more}", width), "$muted"
    )


def table_row(
    trial: Trial, plan: ExperimentPlan, best: Mapping[Cell, float], width: int, *, shared: bool = False
) -> Content:
    """One trial: its rates; the best of each cell stands out by ▲. `shared`: by several hosts; its own is
    named.
    """
    knobs, cells = columns(plan, width)
    glyph, colour = TRIAL_LOOK[trial.state]
    step = f"{trial.step}" if trial.step is not None else "–"
    if trial.setting:
        name = " ".join(f"{value:>{size}}" for (_, value), size in zip(trial.setting, knobs, strict=False))
    else:
        name = f"{AS_FOUND:<{sum(knobs) + max(0, len(knobs) - 1)}}"
    parts: list[Content | str | tuple[str, str]] = [
        (f"{glyph} ", f"bold {colour}"),
        (f"{trial.number + 1:>3}", "$muted"),
        f" {step:>6} ",
        (name, "bold"),
    ]
    for cell in cells:
        run = trial.runs.get(cell)
        rate = run.point.output_rate if run is not None else None
        if rate is None:
            parts.append((f" {'·' if not trial.state.over else '–':>{RATE}}", "$faint"))
            continue
        doubtful = run is not None and bool(run.point.marks)
        top = not doubtful and cell in best and rate.value >= best[cell]
        mark = "▲" if top else "?" if doubtful else ""
        style = "bold $success" if top else "$warning" if mark else ""
        parts.append((f" {mark + number(rate.value):>{RATE}}", style))
    tail = f" {trial.host}" if shared else ""
    tail += f" {trial.stage}" if trial.stage not in ("grid", "model") else ""
    if trial.text:
        tail += f" {trial.state}: {flat(trial.text)}"
    marks = [mark for run in trial.runs.values() for mark in run.point.marks]
    if marks and not trial.text:
        tail += f" ? {marks[0]}"
    parts.append((tail, "$warning" if trial.text or marks else "$muted"))
    return Content.assemble(*parts)


def _knobs(plan: ExperimentPlan) -> list[str]:
    return [knob.removeprefix("--") for knob, _ in plan.settings[0]] if plan.settings else []


def _cell(cell: Cell) -> str:
    return f"{cell.concurrency}×{tokens(cell.context)}"
