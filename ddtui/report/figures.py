"""The charts of a report as data: what is drawn, before it is drawn. Pure; the console draws the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ddtui.bench import ranking
from ddtui.bench.compare import length
from ddtui.report.collect import Entry, Report


@dataclass(frozen=True, slots=True)
class Dot:
    """One measured value with its interval."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    label: str = ""
    marked: bool = False  # on the front


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    dots: tuple[Dot, ...]
    about: str = ""  # more of it, where there is room: the knobs that are not the same in all


@dataclass(frozen=True, slots=True)
class Figure:
    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    doubling: bool = False  # each doubling of x is as wide as the next, and the ticks are the values


def all_of(report: Report) -> list[Figure]:
    """Throughput against per-user speed for each context, accept length and step time by budget."""
    contexts = sorted({entry.point.cell.context for entry in report.entries})
    made = [pareto(report, context) for context in contexts]
    made += [accept_by_budget(report), *(step_time_by_budget(report, context) for context in contexts)]
    return [figure for figure in made if any(line.dots for line in figure.lines)]


def pareto(report: Report, context: int) -> Figure:
    """All steps at one context length, from one request at once to many; the front marked. A step with
    wrong output is never on it.
    """
    entries = [entry for entry in report.entries if entry.point.cell.context == context]
    on_front = {
        (name, point.cell)
        for name, point in ranking.front(
            (f"step {e.step.number}", e.point) for e in entries if e.step.id not in report.wrong
        )
    }
    dots: dict[int, list[Dot]] = {step.id: [] for step in report.steps}
    for entry in entries:
        rate, speed = entry.point.output_rate, entry.point.per_user_rate
        if rate is not None and speed is not None:
            marked = (f"step {entry.step.number}", entry.point.cell) in on_front
            label = f"C={entry.point.cell.concurrency}"
            dots[entry.step.id].append(Dot(speed.value, rate.value, rate.low, rate.high, label, marked))
    moved = [
        name for name in report.knobs if len({step.setting.knobs.get(name) for step in report.steps}) > 1
    ]
    lines = [
        Line(
            _name(step.number, step.setting.knobs),
            tuple(sorted(dots[step.id], key=lambda d: d.x)),
            ", ".join(f"{name} {step.setting.knobs.get(name) or 'off'}" for name in moved),
        )
        for step in report.steps
        if dots[step.id]
    ]
    return Figure(
        f"Throughput against speed per user, context {length(context)}",
        "tok/s per user",
        "tok/s",
        tuple(lines),
    )


def accept_by_budget(report: Report) -> Figure:
    """Accept length by budget, a line for each topk; the smallest load of each."""
    return _by_budget(report.entries, "Accept length by budget", "tokens per step", "accept_length", "topk")


def step_time_by_budget(report: Report, context: int) -> Figure:
    """Time of a step by budget at one context length, a line for each concurrency."""
    entries = [entry for entry in report.entries if entry.point.cell.context == context]
    return _by_budget(entries, f"Step time by budget, context {length(context)}", "ms", "step_ms", None)


def _by_budget(entries: Iterable[Entry], title: str, y: str, field: str, knob: str | None) -> Figure:
    groups: dict[str, dict[float, Dot]] = {}
    for entry in sorted(entries, key=_load):
        budget = _budget(entry)
        value = getattr(entry.point, field)
        if budget is None or value is None:
            continue
        cell = entry.point.cell
        name = f"{knob} {entry.step.setting.knobs.get(knob)}" if knob else f"C={cell.concurrency}"
        where = f"step {entry.step.number} at C={cell.concurrency}, context {length(cell.context)}"
        dot = Dot(budget, value.value, value.low, value.high, where)
        groups.setdefault(name, {}).setdefault(budget, dot)
    lines = tuple(
        Line(name, tuple(dots[b] for b in sorted(dots))) for name, dots in groups.items() if len(dots) > 1
    )
    return Figure(title, "budget", y, lines, doubling=True)


def _load(entry: Entry) -> tuple[int, int]:
    cell = entry.point.cell
    return cell.context, cell.concurrency


def _budget(entry: Entry) -> float | None:
    try:
        return float(entry.step.setting.knobs.get("budget") or "")
    except ValueError:
        return None


def _name(number: int, knobs: object) -> str:
    values = dict(knobs) if isinstance(knobs, dict) else {}
    words = " ".join("off" if v is None else str(v) for v in values.values())
    return f"step {number} ({words})" if words else f"step {number}"
