"""`ddtui report [PROFILE]`: steps of the history as a document or a file for other tools."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ddtui.bench import compare, sides
from ddtui.bench.compare import NotComparable
from ddtui.commands.compare import find_step
from ddtui.commands.failure import InputError
from ddtui.commands.output import note
from ddtui.profile import Profile
from ddtui.report import files, page
from ddtui.report.collect import Report, collect
from ddtui.store import runs, sweeps
from ddtui.store.history import History
from ddtui.store.model import Step

ENDINGS = {".md": "md", ".html": "html", ".htm": "html", ".csv": "csv", ".json": "json"} | {
    ".parquet": "parquet",
    ".jsonl": "bench-serving",
}
LAST = 40  # steps of a report for which none are named


def run(args: argparse.Namespace) -> int:
    ending = Path(args.output).suffix if args.output else ""
    form = args.format or ENDINGS.get(ending, "md")
    if form == "parquet" and not args.output:
        raise InputError("Parquet goes to a file: name it with -o FILE")
    history = History.open()
    try:
        steps = _steps(history, args)
        if not steps:
            raise InputError("no step was measured yet: `ddtui bench` or `ddtui sweep` measures")
        made = collect(history, steps, title=args.title, sentences=_sentences(history, steps, args))
    finally:
        history.close()
    if made.simulated:
        note("SIMULATED: these numbers come from a model")
    _write(made, form, args)
    return 0


def _write(made: Report, form: str, args: argparse.Namespace) -> None:
    if form == "parquet":
        try:
            files.write_parquet(made, Path(args.output))
        except OSError as problem:
            raise InputError(f"{args.output}: cannot be written: {problem.strerror}") from None
        return
    forms: dict[str, Callable[[Report], str]] = {
        "md": page.markdown,
        "html": page.html,
        "csv": files.as_csv,
        "json": files.as_json,
        "bench-serving": lambda one: files.as_bench_serving(one, details=args.details),
    }
    text = forms[form](made)
    if not args.output or args.output == "-":
        sys.stdout.write(text)
        return
    try:
        Path(args.output).write_text(text, "utf-8")
    except OSError as problem:
        raise InputError(f"{args.output}: cannot be written: {problem.strerror}") from None


def _steps(history: History, args: argparse.Namespace) -> list[Step]:
    if args.steps:
        return [find_step(history, word.strip(), args) for word in args.steps.split(",")]
    profile: Profile | None = args.load(args.profile) if args.profile else None
    host = profile.connection.host if profile else None
    unit = profile.service.unit if profile else None
    wanted: set[tuple[str, int]] | None = None
    if args.sweep:
        found = sweeps.find(history, args.sweep)
        if found is None:
            raise InputError(f"there is no sweep {args.sweep!r} in the history; `ddtui history` lists them")
        trials = found.trials.values()
        wanted = {(trial.get("host") or found.host, trial["step"]) for trial in trials if trial.get("step")}
    measured = [step for step in history.steps(host, unit) if step.bursts]
    if wanted is not None:
        return sorted(
            (step for step in measured if (step.host, step.number) in wanted), key=lambda s: s.number
        )
    return sorted(measured[:LAST], key=lambda step: (step.host, step.number))


def _sentences(history: History, steps: Sequence[Step], args: argparse.Namespace) -> list[str]:
    """Each step against the baseline, where they can be compared."""
    first = steps[0]
    against = (
        find_step(history, args.against, args)
        if args.against
        else runs.baseline(history, first.host, first.unit) or first
    )
    a = sides.of_step(history, against)
    found = []
    for step in steps:
        if step.id == against.id or (step.host, step.unit) != (against.host, against.unit):
            continue
        try:
            noise = sides.restarts(history, step.host, step.unit)
            found.append(compare.compare(a, sides.of_step(history, step), restarts=noise).sentence)
        except NotComparable as problem:
            found.append(f"step {step.number} against {a.name}: {problem}")
    return found
