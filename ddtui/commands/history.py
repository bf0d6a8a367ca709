"""`ddtui history [PROFILE]`: the steps, changes and sweeps so far; notes, deletion, export and import."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ddtui.commands.ask import confirm
from ddtui.commands.compare import find_step
from ddtui.commands.failure import InputError
from ddtui.commands.opened import wait
from ddtui.commands.output import emit
from ddtui.commands.status_line import Part
from ddtui.profile import Profile
from ddtui.store import exchange, outputs, sweeps
from ddtui.store.history import History
from ddtui.store.model import Note, Step, StoredBurst, StoredChange
from ddtui.store.outputs import OutputCheck
from ddtui.store.sweeps import StoredSweep
from ddtui.words import plural


def run(args: argparse.Namespace) -> int:
    history = History.open()
    try:
        if args.note:
            return _note(history, args)
        if args.delete:
            return _delete(history, args)
        if args.export:
            return _export(history, args)
        if args.take_in:
            return _import(history, args)
        if args.step:
            return _show(history, args)
        return _list(history, args)
    finally:
        history.close()


def _list(history: History, args: argparse.Namespace) -> int:
    profile: Profile | None = args.load(args.profile) if args.profile else None
    host = profile.connection.host if profile else None
    unit = profile.service.unit if profile else None
    steps = history.steps(host, unit, search=args.search, limit=args.limit)
    changes = [] if args.search else history.changes(host, unit, limit=args.limit)
    swept = [] if args.search else sweeps.sweeps(history, host, unit)
    wrong = outputs.wrong_steps(history, host, unit)
    report = {
        "steps": steps,
        "changes": changes,
        "sweeps": swept,
        "wrong_output": {str(step.number): wrong[step.id] for step in steps if step.id in wrong},
    }
    emit(args.json, "history", report, _lines(steps, changes, swept, args.search, wrong))
    return 0


def _show(history: History, args: argparse.Namespace) -> int:
    """One step whole: its setting, its bursts, what was noted."""
    step = find_step(history, args.step, args)
    bursts = history.bursts(step.host, step.unit, step=step.number)
    notes = history.notes("step", str(step.id))
    quality = history.quality(step.host, step.unit, step=step.number)
    report = {"step": step, "bursts": bursts, "notes": notes, "quality": quality}
    emit(args.json, "history-step", report, _step_lines(step, bursts, notes, outputs.newest(quality)))
    return 0


def _note(history: History, args: argparse.Namespace) -> int:
    word, text = args.note
    step = find_step(history, word, args)
    history.add_note("step", str(step.id), text)
    emit(args.json, "history-note", {"step": step.number, "note": text}, [f"noted on step {step.number}"])
    return 0


def _delete(history: History, args: argparse.Namespace) -> int:
    step = find_step(history, args.delete, args)
    what = f"step {step.number} of {step.host} with {plural(step.bursts, 'burst')}"
    if not args.yes and not wait(confirm(f"Delete {what} and their raw records for good?")):
        raise InputError(f"{what}: not deleted; say --yes where nobody can confirm")
    bursts = history.delete_step(step.id)
    emit(args.json, "history-delete", {"step": step.number, "bursts": bursts}, [f"deleted {what}"])
    return 0


def _export(history: History, args: argparse.Namespace) -> int:
    profile: Profile | None = args.load(args.profile) if args.profile else None
    host = profile.connection.host if profile else None
    if args.export == "-":
        exchange.export(history, sys.stdout, host=host, records=args.records)
        return 0
    told = Part("exporting")
    try:
        counts = exchange.export_to(history, args.export, host=host, records=args.records, tell=told)
    finally:
        told.end()
    emit(
        args.json,
        "history-export",
        {"file": args.export, "counts": counts},
        [f"{args.export}: {_counted(counts)}"],
    )
    return 0


def _import(history: History, args: argparse.Namespace) -> int:
    told = Part("importing")
    try:
        counts = exchange.import_from(history, args.take_in, tell=told)
    finally:
        told.end()
    emit(
        args.json,
        "history-import",
        {"file": args.take_in, "new": counts},
        [f"new: {_counted(counts) or 'nothing'}"],
    )
    return 0


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in counts.items())


def _lines(
    steps: Sequence[Step],
    changes: Sequence[StoredChange],
    swept: Sequence[StoredSweep],
    search: str,
    wrong: Mapping[int, str],
) -> Iterator[str]:
    if not steps and search:
        yield f"No step is found by {search!r}."
    elif not steps:
        yield "No steps yet: a step is a setting that was verified or measured."
    else:
        yield "Steps:"
    for step in steps:
        knobs = "  ".join(f"{name} {'off' if v is None else v}" for name, v in step.setting.knobs.items())
        simulated = "  SIMULATED" if step.simulated else ""
        noted = f"  “{step.note}”" if step.note else ""
        yield (
            f"  {step.number:>4}  {_when(step.at)}  {step.host}  {knobs}  "
            f"{plural(step.bursts, 'burst')}{simulated}{noted}"
        )
        if step.id in wrong:
            yield f"        output WRONG: {wrong[step.id]}"
    if search:
        return
    yield ""
    yield "Changes:" if changes else "No changes yet."
    for change in changes:
        yield f"  {change.id}  {_when(change.at)}  {change.phase}: {change.result}"
    if swept:
        yield ""
        yield "Sweeps:"
    for sweep in swept:
        yield f"  {sweep.id}  {_when(sweep.at)}  {sweep.host}  {sweep.state}"


def _step_lines(
    step: Step, bursts: Sequence[StoredBurst], notes: Sequence[Note], checks: Sequence[OutputCheck]
) -> Iterator[str]:
    setting = step.setting
    simulated = "  SIMULATED" if step.simulated else ""
    yield f"step {step.number} of {step.host}, {step.unit}, since {_when(step.at)}{simulated}"
    for name, value in setting.knobs.items():
        yield f"  {name} {'off' if value is None else value}"
    for label, text in (
        ("SGLang", setting.engine),
        ("model", setting.target),
        ("drafter", setting.drafter),
        ("GPU", setting.gpu),
    ):
        if text:
            yield f"  {label}: {text}"
    for verdict in step.verdicts:
        yield f"  {verdict.get('title')}: {verdict.get('status')}"
    for check in checks:
        yield f"  output{' WRONG' if check.wrong else ''}: {check.text}"
    for burst in bursts:
        cells = len(burst.burst.get("points", ()))
        yield f"  burst {burst.id}  {_when(burst.at)}  {burst.state}  {plural(cells, 'cell')}  {burst.note}"
    for one in notes:
        yield f"  {_when(one.at)}  “{one.text}”"


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
