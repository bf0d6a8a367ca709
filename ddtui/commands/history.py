"""`ddtui history [PROFILE]`: the steps and changes so far."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence

from ddtui.commands.output import emit
from ddtui.profile import Profile
from ddtui.store.history import History
from ddtui.store.model import Step, StoredChange


def run(args: argparse.Namespace) -> int:
    profile: Profile | None = args.load(args.profile) if args.profile else None
    host = profile.connection.host if profile else None
    unit = profile.service.unit if profile else None
    history = History.open()
    try:
        steps, changes = history.steps(host, unit), history.changes(host, unit)
    finally:
        history.close()
    emit(args.json, "history", {"steps": steps, "changes": changes}, _lines(steps, changes))
    return 0


def _lines(steps: Sequence[Step], changes: Sequence[StoredChange]) -> Iterator[str]:
    yield "Steps:" if steps else "No steps yet: a step is a setting that was verified or measured."
    for step in steps:
        knobs = "  ".join(f"{name} {value}" for name, value in step.setting.knobs.items())
        simulated = "  SIMULATED" if step.simulated else ""
        yield f"  {step.number:>4}  {_when(step.at)}  {step.host}  {knobs}{simulated}"
    yield ""
    yield "Changes:" if changes else "No changes yet."
    for change in changes:
        yield f"  {change.id}  {_when(change.at)}  {change.phase}: {change.result}"


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
