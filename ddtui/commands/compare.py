"""`ddtui compare A B`: two steps of the history, the sentence first."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ddtui.bench import compare as comparing
from ddtui.bench import sides
from ddtui.bench.compare import METRICS, Comparison, NotComparable, Standing
from ddtui.bench.contrast import Answer
from ddtui.commands.failure import InputError
from ddtui.commands.output import emit
from ddtui.store import runs
from ddtui.store.history import History
from ddtui.store.model import Step


def run(args: argparse.Namespace) -> int:
    history = History.open()
    try:
        b = find_step(history, args.b or args.a, args)
        a = find_step(history, args.a, args, like=b) if args.b else _baseline(history, b)
        found = comparing.compare(
            sides.of_step(history, a),
            sides.of_step(history, b),
            restarts=sides.restarts(history, b.host, b.unit),
            knowingly=args.knowingly,
        )
    except NotComparable as refused:
        raise InputError(str(refused)) from None
    finally:
        history.close()
    emit(args.json, "compare", report(found), lines(found))
    return 1 if found.standing is Standing.WORSE else 0


def find_step(history: History, word: str, args: argparse.Namespace, like: Step | None = None) -> Step:
    """The step behind `7` or `HOST/7`; of several with that number the one on the host of `like`, or of the
    profile. Raises InputError."""
    host, _, number = word.rpartition("/")
    if not number.isdigit():
        raise InputError(f"{word!r} is no step: give its number, or HOST/NUMBER; `ddtui history` lists them")
    found = runs.steps_numbered(history, int(number), host or None)
    profile = args.load(args.profile) if args.profile else None
    if profile is not None and not host:
        found = [
            step
            for step in found
            if (step.host, step.unit) == (profile.connection.host, profile.service.unit)
        ]
    if like is not None and not host:
        found = [step for step in found if (step.host, step.unit) == (like.host, like.unit)] or found
    if not found:
        raise InputError(f"there is no step {word} in the history; `ddtui history` lists them")
    if len(found) > 1:
        names = ", ".join(f"{step.host}/{step.number} ({step.unit})" for step in found)
        raise InputError(f"step {word} is not one but {len(found)}: {names}; say which, or --profile")
    return found[0]


def report(found: Comparison) -> dict[str, object]:
    """The comparison as the JSON report has it."""
    return {
        "sentence": found.sentence,
        "standing": found.standing,
        "preview": found.preview,
        "simulated": found.simulated,
        "a": found.a,
        "b": found.b,
        "outputs": found.outputs,
        "cells": [
            {
                "cell": cell.cell,
                "differences": cell.differences,
                "doubts": cell.doubts,
                "values": {
                    metric.key: {"a": getattr(cell.a, metric.key), "b": getattr(cell.b, metric.key)}
                    for metric in METRICS
                },
            }
            for cell in found.cells
        ],
        "warnings": found.warnings,
    }


MARKS = {Answer.BETTER: "▲", Answer.WORSE: "▼", Answer.NO_DIFFERENCE: "·"}


def lines(found: Comparison) -> Iterator[str]:
    """The sentence, then the table."""
    yield found.sentence + ("  SIMULATED" if found.simulated else "")
    yield ""
    head = ("cell", *(metric.label for metric in METRICS), "pairs")
    rows = [head]
    for cell in found.cells:
        words = [comparing.name(cell.cell)]
        for metric in METRICS:
            difference = cell.differences.get(metric.key)
            words.append(
                f"{MARKS[difference.answer]} {comparing.interval(difference)}" if difference else "–"
            )
        headline = cell.headline
        rows.append((*words, str(headline.pairs) if headline and headline.paired else "not paired"))
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    for row in rows:
        yield "  ".join(f"{word:<{width}}" for word, width in zip(row, widths, strict=True)).rstrip()
    yield f"▲ better  ▼ worse  · no difference detectable; {found.b} against {found.a}"
    for cell in found.cells:
        for doubt in cell.doubts:
            yield f"{comparing.name(cell.cell)} is not judged: {doubt}"
    yield from (f"note: {warning}" for warning in found.warnings)


def _baseline(history: History, step: Step) -> Step:
    found = runs.baseline(history, step.host, step.unit)
    if found is None or found.id == step.id:
        raise InputError(f"step {step.number} has no baseline to be compared with; name two steps")
    return found
