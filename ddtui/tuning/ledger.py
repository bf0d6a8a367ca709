"""An experiment as it is written down: plan and trials, each before it is made, so that a cut loses
nothing.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ddtui.bench.compare import Run, load_key, means
from ddtui.bench.experiment import (
    ExperimentPlan,
    Trial,
    plan_from_plain,
    plan_to_plain,
    trial_from_plain,
    trial_to_plain,
    with_run,
)
from ddtui.bench.sides import runs_of
from ddtui.store import runs as stored
from ddtui.store import series, sweeps
from ddtui.store.history import History
from ddtui.store.model import HistoryError

RUNNING, DONE, STOPPED = "running", "done", "stopped"


def new_id() -> str:
    """Sortable: UTC time and a random tail."""
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime()) + "-" + secrets.token_hex(2)


class Ledger:
    """One experiment. Without a history it is kept in memory alone."""

    def __init__(self, id: str, plan: ExperimentPlan, history: History | None, host: str, unit: str) -> None:
        self.id = id
        self.plan = plan
        self.trials: list[Trial] = []
        self.marks: dict[str, str] = {}  # by host: what it was found in
        self.state = RUNNING
        self._history, self._host, self._unit = history, host, unit

    @classmethod
    def begin(cls, plan: ExperimentPlan, history: History | None, host: str, unit: str) -> Ledger:
        made = cls(new_id(), plan, history, host, unit)
        made.save()
        return made

    @classmethod
    def find(cls, history: History, host: str, unit: str, id: str | None = None) -> Ledger:
        """The experiment of that id (or the last one that is not done), to be continued. Raises
        HistoryError.
        """
        if id is None:
            open_ones = [one for one in sweeps.sweeps(history, host, unit) if one.state != DONE]
            if not open_ones:
                raise HistoryError(f"there is no unfinished sweep of {unit} on {host} in the history")
            id = open_ones[0].id
        found = sweeps.find(history, id)
        if found is None:
            raise HistoryError(f"there is no sweep {id!r} in the history; `ddtui history` lists them")
        made = cls(id, plan_from_plain(found.sweep["plan"]), history, found.host, found.unit)
        made.marks = dict(found.sweep.get("marks", {}))
        made.state = found.state
        made.trials = [_filled(history, trial_from_plain(kept)) for kept in found.trials.values()]
        return made

    def save(self, state: str | None = None, **more: Any) -> None:
        """The plan and how it stands."""
        self.state = state or self.state
        if self._history is not None:
            kept: Mapping[str, Any] = {"plan": plan_to_plain(self.plan), "marks": self.marks, **more}
            sweeps.save(self._history, self._host, self._unit, self.id, kept, state=self.state)

    def put(self, trial: Trial) -> Trial:
        """Write a trial down, new or changed."""
        if trial.number == len(self.trials):
            self.trials.append(trial)
        else:
            self.trials[trial.number] = trial
        if self._history is not None:
            sweeps.save_trial(self._history, self.id, trial.number, trial_to_plain(trial))
        return trial

    def keep_series(self, stage: str, target: str, trials: Sequence[Trial]) -> None:
        """Keep the means of these trials' runs, of one setting after a restart each."""
        if self._history is None:
            return
        loads: dict[str, list[dict[str, float]]] = {}
        for cell in set.intersection(*(set(trial.runs) for trial in trials)):
            runs = [trial.runs[cell] for trial in trials]
            loads[load_key(target, runs[0])] = means(runs)
        series.save(self._history, self._host, self._unit, f"{self.id}/{stage}", loads)


def _filled(history: History, trial: Trial) -> Trial:
    """The trial with what its bursts measured."""
    found: Sequence[Run] = runs_of(stored.of_bursts(history, trial.bursts)) if trial.bursts else []
    filled = replace(trial, cells=())
    for run in found:
        filled = taken(filled, run)
    return replace(filled, bursts=trial.bursts)


def taken(trial: Trial, run: Run) -> Trial:
    """The trial with this run, unless it counts for nothing or is more doubtful than the one that is
    there.
    """
    there = trial.runs.get(run.point.cell)
    if not acceptable(run) or (there is not None and len(run.point.marks) >= len(there.point.marks)):
        return trial
    return with_run(trial, run)


def acceptable(run: Run) -> bool:
    """Whether a cell counts as measured: a rate, and not a server that went away meanwhile."""
    point = run.point
    lost = any(mark.startswith(("failures", "nothing measured")) for mark in point.marks)
    return point.final and point.output_rate is not None and not lost
