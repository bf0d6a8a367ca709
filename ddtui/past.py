"""What was tried and measured so far, as the screens that look back ask for it.

Everything is read and written in a thread: a large history never holds up the console. All methods raise
HistoryError, whose `str()` is one sentence.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from ddtui.bench import compare, effect, experiment, kept, sides
from ddtui.bench.advice import Advice
from ddtui.bench.compare import Comparison
from ddtui.bench.effect import Effects
from ddtui.bench.experiment import ExperimentPlan, Trial
from ddtui.bench.model import Burst, Point
from ddtui.report import collect, figures
from ddtui.report.figures import Figure
from ddtui.store import exchange, listing, runs, series, sweeps
from ddtui.store.history import History
from ddtui.store.listing import BurstRow, ChangeRow, NoteRow, StepRow, SweepRow
from ddtui.store.model import HistoryError, Note, Step
from ddtui.words import plural

T = TypeVar("T")
Row = StepRow | BurstRow | ChangeRow | SweepRow | NoteRow
Kind = Literal["steps", "bursts", "changes", "sweeps", "notes"]
KINDS: tuple[Kind, ...] = ("steps", "bursts", "changes", "sweeps", "notes")


@dataclass(frozen=True, slots=True)
class StepSheet:
    """One step whole."""

    step: Step
    points: tuple[Point, ...]  # the newest of every cell
    bursts: tuple[BurstRow, ...]
    notes: tuple[Note, ...]
    quality: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class BurstSheet:
    burst: Burst
    note: str
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class SweepSheet:
    row: SweepRow
    plan: ExperimentPlan
    trials: tuple[Trial, ...]  # without what was measured
    left: str  # what was left in force


@dataclass(frozen=True, slots=True)
class ChangeSheet:
    row: ChangeRow
    notes: tuple[Note, ...]


Sheet = StepSheet | BurstSheet | SweepSheet | ChangeSheet


@dataclass(frozen=True, slots=True)
class Overview:
    """All steps of a host together."""

    steps: int
    figures: tuple[Figure, ...]
    advice: tuple[Advice, ...]
    simulated: bool


class Past:
    """The history of one host and unit; `everywhere` asks for all hosts."""

    def __init__(self, history: History, host: str, unit: str) -> None:
        self._history, self.host, self.unit = history, host, unit

    async def rows(
        self, kind: Kind, *, search: str = "", everywhere: bool = False, limit: int = listing.MOST
    ) -> list[Row]:
        """What is listed, newest first."""
        lists: Mapping[Kind, Callable[..., Sequence[Row]]] = {
            "steps": listing.steps,
            "bursts": listing.bursts,
            "changes": listing.changes,
            "sweeps": listing.sweeps,
            "notes": listing.notes,
        }
        host, unit = (None, None) if everywhere else (self.host, self.unit)
        return list(await self._do(lists[kind], host, unit, search=search, limit=limit))

    async def steps(self, *, search: str = "", everywhere: bool = False) -> list[StepRow]:
        """Steps that were measured, newest first."""
        host, unit = (None, None) if everywhere else (self.host, self.unit)
        rows = await self._do(listing.steps, host, unit, search=search)
        return [row for row in rows if row.bursts]

    async def sheet(self, row: Row) -> Sheet | None:
        """The thing behind a row, whole. None: it is gone. A note gives what it is on."""

        def read(history: History) -> Sheet | None:
            match row:
                case StepRow():
                    return _step_sheet(history, row.id)
                case BurstRow():
                    return _burst_sheet(history, row)
                case SweepRow():
                    return _sweep_sheet(history, row)
                case ChangeRow():
                    return ChangeSheet(row, tuple(history.notes("change", row.id)))
                case NoteRow():
                    return _step_sheet(history, int(row.of)) if row.subject == "step" else None

        return await self._do(read)

    async def baseline(self) -> int | None:
        """The id of the step that others are compared with."""
        found = await self._do(runs.baseline, self.host, self.unit)
        return found.id if found is not None else None

    async def newest_pair(self) -> tuple[int | None, int | None]:
        """The ids of the baseline (A) and of the step that was measured last (B)."""

        def read(history: History) -> tuple[int | None, int | None]:
            base = runs.baseline(history, self.host, self.unit)
            newest = runs.last_measured(history, self.host, self.unit)
            return (base.id if base else None, newest.id if newest else None)

        return await self._do(read)

    async def compare(self, a: int, b: int, *, knowingly: bool = False) -> Comparison:
        """B against A, by the steps' ids. Raises NotComparable."""

        def read(history: History) -> Comparison:
            one, other = runs.step(history, a), runs.step(history, b)
            if one is None or other is None:
                raise HistoryError("a step of this comparison is gone from the history")
            return compare.compare(
                sides.of_step(history, one),
                sides.of_step(history, other),
                restarts=sides.restarts(history, other.host, other.unit),
                knowingly=knowingly,
            )

        return await self._do(read)

    async def overview(self) -> Overview:
        """Figures and advice from all steps of this host."""

        def read(history: History) -> Overview:
            report = collect.overview(history, self.host, self.unit)
            drawn = tuple(figures.all_of(report))
            return Overview(len(report.steps), drawn, report.advice, report.simulated)

        return await self._do(read)

    async def effect(self, knob: str) -> Effects | None:
        """What the values of this knob gave so far. None: nothing was measured with it."""

        def read(history: History) -> Effects | None:
            steps = [one for one in listing.steps(history, self.host, self.unit) if not one.wrong]
            return effect.of_knob(knob, steps, runs.newest_of_all(history, self.host, self.unit))

        return await self._do(read)

    async def calibrated(self) -> int:
        """How many A/A runs of this host there are."""
        return await self._do(series.count, self.host, self.unit)

    # writing

    async def add_note(self, row: Row, text: str) -> None:
        """A note on what the row is of. On a note: on what that is on."""
        subject, of = _subject(row)
        await self._do(History.add_note, subject, of, text)

    async def delete(self, row: Row) -> str:
        """A step with its bursts, or a burst, and the raw records. Says what was deleted."""

        def remove(history: History) -> str:
            match row:
                case StepRow():
                    return f"step {row.number} with {plural(history.delete_step(row.id), 'burst')}"
                case BurstRow():
                    history.delete_burst(row.id)
                    return f"burst {row.id}"
                case _:
                    raise HistoryError("only steps and bursts can be deleted")

        return await self._do(remove)

    async def export(
        self, name: str, *, everywhere: bool = False, records: bool = False, tell: exchange.Tell
    ) -> Counter[str]:
        """Write a new file; one that is there is left alone. Gives counts by kind."""
        host = None if everywhere else self.host
        return await self._until_cancelled(
            tell, partial(exchange.export_to, self._history, name, host=host, records=records)
        )

    async def take_in(self, name: str, tell: exchange.Tell) -> Counter[str]:
        """Import an export, all or nothing. Gives counts by kind of what was new."""
        return await self._until_cancelled(tell, partial(exchange.import_from, self._history, name))

    async def _until_cancelled(self, tell: exchange.Tell, act: Callable[..., T]) -> T:
        """`act` in a thread, told how far it is; when this is cancelled, it stops at its next line."""
        stopped = threading.Event()

        def told(part: float | None) -> None:
            if stopped.is_set():
                raise HistoryError("stopped")
            tell(part)

        work = asyncio.create_task(asyncio.to_thread(act, tell=told))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            stopped.set()
            with suppress(HistoryError):
                await work  # nothing is left half
            raise

    async def _do(self, act: Callable[..., T], *args: Any, **named: Any) -> T:
        return await asyncio.to_thread(act, self._history, *args, **named)


def _step_sheet(history: History, id: int) -> StepSheet | None:
    step = runs.step(history, id)
    if step is None:
        return None
    return StepSheet(
        step,
        tuple(kept.point_from_plain(run.point) for run in runs.newest(history, step)),
        tuple(listing.bursts(history, step.host, step.unit, step=step.number, limit=50)),
        tuple(history.notes("step", str(step.id))),
        tuple(history.quality(step.host, step.unit, step=step.number)),
    )


def _burst_sheet(history: History, row: BurstRow) -> BurstSheet | None:
    found = history.burst(row.id)
    if found is None:
        return None
    return BurstSheet(kept.from_plain(found.burst), found.note, tuple(history.notes("burst", row.id)))


def _sweep_sheet(history: History, row: SweepRow) -> SweepSheet | None:
    found = sweeps.find(history, row.id)
    if found is None:
        return None
    return SweepSheet(
        row,
        experiment.plan_from_plain(found.sweep["plan"]),
        tuple(experiment.trial_from_plain(trial) for trial in found.trials.values()),
        str(found.sweep.get("left") or ""),
    )


def _subject(row: Row) -> tuple[str, str]:
    match row:
        case StepRow():
            return "step", str(row.id)
        case BurstRow():
            return "burst", row.id
        case ChangeRow():
            return "change", row.id
        case NoteRow():
            return row.subject, row.of
        case SweepRow():
            raise HistoryError("a sweep takes no note; note its steps")
