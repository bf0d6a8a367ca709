"""Runs an experiment unattended: the next trial, put in force, proven, measured, its output looked at; to
the end.

Every trial is written down before it is made and after each cell, so that a cut at any point (console,
link, host) is continued and nothing is measured twice. A start that fails is a result, and the next trial
goes on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from ddtui.bench import burst as bursts
from ddtui.bench import experiment, ranking, search, sides
from ddtui.bench.compare import Comparison, NotComparable, Restarts, Side, Standing, compare, load_key
from ddtui.bench.contrast import Noise
from ddtui.bench.experiment import Ask, ExperimentPlan, Order, Setting, Trial, TrialState
from ddtui.bench.model import Burst, Cell
from ddtui.bench.ranking import Ranking
from ddtui.bench.search import Nothing
from ddtui.host.base import HostError
from ddtui.tuning import ledger as ledgers
from ddtui.tuning.ledger import Ledger
from ddtui.tuning.model import Progress
from ddtui.tuning.rig import Put, Rig

ATTEMPTS = 3  # at a trial's cells, before it counts as failed


@dataclass(frozen=True, slots=True)
class Doing:
    """What one host is at."""

    host: str
    trial: Trial | None = None
    text: str = ""
    progress: Progress | None = None
    burst: Burst | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an experiment."""

    text: str  # the decision in a sentence
    left: Setting | None  # what is in force now; None: not known
    left_text: str
    ranking: Ranking | None = None
    comparison: Comparison | None = None


@dataclass(frozen=True, slots=True)
class ExperimentState:
    """An experiment at one moment."""

    id: str
    plan: ExperimentPlan
    trials: tuple[Trial, ...] = ()
    doing: Mapping[str, Doing] = field(default_factory=dict)  # by host
    expected: int = 0  # trials in all, as far as is known
    eta_seconds: float | None = None
    state: str = ledgers.RUNNING
    outcome: Outcome | None = None
    problem: str = ""  # why it stopped
    error: HostError | None = None  # the same, as it was raised

    @property
    def done(self) -> int:
        return sum(trial.state.over for trial in self.trials)


async def run(
    ledger: Ledger, rigs: Sequence[Rig], *, restarts: Restarts = lambda load, metric: ()
) -> AsyncIterator[ExperimentState]:
    """Run or continue it; the last state is "done" or "stopped". Several rigs share the trials.

    Closing the iterator stops it where it is. `restarts`: the A/A runs of the host, for the verdicts. Raises
    HostError only before anything was done.
    """
    running = _Running(ledger, rigs, restarts)
    work = asyncio.create_task(running.work())
    try:
        while not work.done():
            changed = asyncio.create_task(running.changed.wait())
            await asyncio.wait({work, changed}, return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
            if running.changed.is_set():
                running.changed.clear()
                yield running.state
        await work
        yield running.state
    finally:
        if not work.done():
            work.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait({work})


class _Running:
    def __init__(self, ledger: Ledger, rigs: Sequence[Rig], restarts: Restarts) -> None:
        self.changed = asyncio.Event()
        self._ledger, self._rigs, self._restarts = ledger, rigs, restarts
        self._hosts = {rig.name: rig for rig in rigs}
        self._turn = asyncio.Condition()
        self._resumed = {trial.number for trial in ledger.trials if not trial.state.over}
        self._began = time.monotonic()
        self._spent: list[float] = []  # s of each trial of this session
        self.state = ExperimentState(
            ledger.id,
            ledger.plan,
            tuple(ledger.trials),
            expected=max(len(search.longest(ledger.plan)), len(ledger.trials)),
        )

    def _publish(self, **what: object) -> None:
        self.state = replace(self.state, trials=tuple(self._ledger.trials), **what)  # type: ignore[arg-type]
        self.changed.set()

    def _do(self, rig: Rig, **what: object) -> None:
        doing = replace(self.state.doing.get(rig.name, Doing(rig.name)), **what)  # type: ignore[arg-type]
        self._publish(doing={**self.state.doing, rig.name: doing}, eta_seconds=self._eta())

    def _eta(self) -> float | None:
        left = max(0, self.state.expected - self.state.done)
        if not self._spent:
            return None
        return left * sum(self._spent) / len(self._spent) / len(self._rigs)

    async def work(self) -> None:
        """All of it; what goes wrong on the way is the state "stopped"."""
        begun: list[Rig] = []
        plan = self._ledger.plan
        try:
            for rig in self._rigs:
                purpose = f"{plan.order} {self._ledger.id}, {self.state.expected} trials"
                mark = await rig.begin(purpose, self._ledger.marks.get(rig.name))
                begun.append(rig)
                self._ledger.marks[rig.name] = mark
            self._ledger.save(ledgers.RUNNING)
            try:
                async with asyncio.TaskGroup() as group:
                    for rig in self._rigs:
                        group.create_task(self._trials(rig))
                left = await self._settled()
            except ExceptionGroup as problems:
                raise problems.exceptions[0] from None
            self._ledger.save(ledgers.DONE, outcome=left.text, left=left.left_text)
            self._publish(state=ledgers.DONE, outcome=left, eta_seconds=None)
        except asyncio.CancelledError:
            self._ledger.save(ledgers.STOPPED, problem="interrupted")
            self._publish(state=ledgers.STOPPED, problem="interrupted")
            raise
        except HostError as problem:
            if not begun:
                raise
            self._ledger.save(ledgers.STOPPED, problem=str(problem))
            self._publish(state=ledgers.STOPPED, problem=str(problem), error=problem, eta_seconds=None)
        finally:
            self._keep_noise()
            for rig in begun:
                await rig.end()

    def _keep_noise(self) -> None:
        """Runs of the same setting after restarts are A/A runs for all comparisons to come."""
        for stage in {trial.stage for trial in self._ledger.trials if trial.stage in ("A", "B")}:
            runs = [t for t in self._ledger.trials if t.stage == stage and t.measured and t.runs]
            if len(runs) > 1:
                self._ledger.keep_series(stage, self._side_of(runs[0]).target, runs)

    # trials

    async def _trials(self, rig: Rig) -> None:
        while (trial := await self._next(rig)) is not None:
            began = time.monotonic()
            await self._one(rig, trial)
            self._spent.append(time.monotonic() - began)
            async with self._turn:
                self._turn.notify_all()
        self._do(rig, trial=None, text="", progress=None, burst=None)

    async def _next(self, rig: Rig) -> Trial | None:
        """The next trial, written down: one that was cut, or a new one. None: there is no more."""
        async with self._turn:
            while True:
                for number in sorted(self._resumed):
                    cut = self._ledger.trials[number]
                    if cut.host == rig.name or cut.host not in self._hosts:
                        self._resumed.discard(number)
                        return self._ledger.put(replace(cut, host=rig.name))
                found = search.ask(self._ledger.plan, self._ledger.trials)
                if isinstance(found, Ask):
                    return self._ledger.put(experiment.of_ask(len(self._ledger.trials), found, rig.name))
                if found is Nothing.DONE and all(trial.state.over for trial in self._ledger.trials):
                    self._turn.notify_all()
                    return None
                if not any(not trial.state.over for trial in self._ledger.trials):
                    return None
                await self._turn.wait()

    async def _one(self, rig: Rig, trial: Trial) -> None:
        """One trial to its end."""
        begun = trial.state is TrialState.MEASURING or bool(trial.bursts)  # before a cut
        failures = 0
        while True:
            footing = await rig.footing()
            fresh = trial.fresh and trial.put_at is None
            trial = await self._put(rig, trial, fresh=fresh and not begun)
            if trial.state is not TrialState.MEASURING:
                return
            trial = await self._measure(rig, trial)
            missing = [cell for cell in self._ledger.plan.cells if cell not in trial.runs]
            # what failed while the link or the host was lost says nothing of the setting
            failures += await rig.footing() == footing
            if not missing or failures == ATTEMPTS:
                break
            self._do(rig, trial=trial, text=f"once more: {trial.text}")
        if missing:
            text = trial.text or f"{len(missing)} cells could not be measured"
            self._ledger.put(replace(trial, state=TrialState.FAILED, text=text))
            return
        before = [t for t in self._ledger.trials if t.state is TrialState.MEASURED and t.runs]
        wrong = rig.judge(trial, before[0] if before else None)
        self._ledger.put(replace(trial, state=TrialState.MEASURED, text=wrong, wrong=wrong))
        self._publish()
        if all(t.host != rig.name for t in before) and not wrong and self._checks:
            await rig.check(partial(self._tell, rig), reference=True)

    async def _put(self, rig: Rig, trial: Trial, *, fresh: bool) -> Trial:
        self._do(rig, trial=trial, text=f"{experiment.name(trial.setting)}: putting it in force", burst=None)
        end: Put | None = None
        async with aclosing(rig.put(trial.setting, fresh=fresh)) as steps:  # type: ignore[type-var]
            async for one in steps:
                if isinstance(one, Put):
                    end = one
                else:
                    self._do(rig, progress=one, text=one.text)
        assert end is not None
        return self._ledger.put(
            replace(
                trial,
                state=end.state,
                text=end.text,
                step=end.step,
                ready_seconds=end.ready_seconds or trial.ready_seconds,
                put_at=time.time() if end.state is TrialState.MEASURING else None,
            )
        )

    async def _measure(self, rig: Rig, trial: Trial) -> Trial:
        """All cells that are missing, a burst for each concurrency; what came out doubtful, once more."""
        plan = self._ledger.plan
        for again in (False, True):
            groups: dict[int, list[Cell]] = {}
            for cell in plan.cells:
                if cell not in trial.runs or (again and trial.runs[cell].point.marks):
                    groups.setdefault(plan.requests_of(cell, trial.effort), []).append(cell)
            for requests, cells in groups.items():
                trial = await self._burst(rig, trial, cells, requests)
                if any(cell not in trial.runs for cell in cells):
                    return trial  # look again whether the setting is in force at all
        return trial

    async def _burst(self, rig: Rig, trial: Trial, cells: list[Cell], requests: int) -> Trial:
        id = bursts.new_id()
        trial = self._ledger.put(replace(trial, bursts=(*trial.bursts, id)))
        last: Burst | None = None
        measuring = rig.measure(self._ledger.plan, trial, cells, requests, id)
        async with aclosing(measuring) as snapshots:  # type: ignore[type-var]
            async for last in snapshots:
                self._do(rig, trial=trial, burst=last, progress=None, text=last.text)
        for run in rig.runs([id]):
            trial = ledgers.taken(trial, run)
            if run.point.cell not in trial.runs and run.point.marks:
                trial = replace(trial, text=run.point.marks[0])
        if last is not None and last.text and any(cell not in trial.runs for cell in cells):
            trial = replace(trial, text=trial.text or last.text)
        return self._ledger.put(trial)

    # the end

    @property
    def _checks(self) -> bool:
        return self._ledger.plan.check and self._ledger.plan.finish == "best"

    async def _settled(self) -> Outcome:
        """The decision, left in force. A winner whose output turns out wrong loses to the next one."""
        while True:
            decided = self._decide()
            left = await self._leave(decided)
            rig = self._rigs[0]
            won = [trial for trial in self._ledger.trials if decided.left and trial.setting == decided.left]
            if not won or not self._checks:
                return left
            found = await rig.check(partial(self._tell, rig))
            if not found.wrong:
                return replace(left, left_text=f"{left.left_text}; output: {found.text}")
            for trial in won:
                self._ledger.put(replace(trial, wrong=found.wrong, text=found.wrong))
            self._publish()

    def _tell(self, rig: Rig, text: str) -> None:
        self._do(rig, burst=None, text=text)

    def _decide(self) -> Outcome:
        plan = self._ledger.plan
        if plan.order is Order.CALIBRATE:
            count = sum(trial.measured for trial in self._ledger.trials)
            return Outcome(f"{count} runs of the same setting after restarts", (), "")
        if plan.order in (Order.AB, Order.ABBA):
            return self._decide_ab()
        ranked = ranking.rank(self._ledger.trials, objective=plan.objective, noise=self._noise_of())
        return Outcome(ranked.text, ranked.best.setting if ranked.best else (), "", ranking=ranked)

    def _decide_ab(self) -> Outcome:
        a, b = (self._side(stage) for stage in ("A", "B"))
        if not a.runs or not b.runs:
            failed = next((trial for trial in self._ledger.trials if not trial.measured), None)
            why = f": {failed.state}: {failed.text}" if failed else ""
            return Outcome(f"no verdict{why}", (), "")
        own = self._ledger.plan.order is Order.ABBA
        try:
            found = compare(a, b, restarts=self._restarts, own_noise=own)
        except NotComparable as problem:
            return Outcome(str(problem), (), "")
        winner = self._ledger.plan.settings[0] if found.standing is Standing.BETTER else ()
        return Outcome(found.sentence, winner, "", comparison=found)

    def _side(self, stage: str) -> Side:
        trials = [trial for trial in self._ledger.trials if trial.stage == stage and trial.runs]
        if not trials:
            return Side(stage, {}, {})
        cells = sides.by_cell([run for trial in trials for run in trial.runs.values()])
        wrong = next((trial.wrong for trial in trials if trial.wrong), "")
        return replace(self._side_of(trials[0]), runs=cells, wrong=wrong)

    def _side_of(self, trial: Trial) -> Side:
        """The trial as a side, by the host that it was made on."""
        return self._hosts.get(trial.host, self._rigs[0]).side(trial)

    def _noise_of(self) -> ranking.NoiseOf:
        measured = next((trial for trial in self._ledger.trials if trial.runs), None)
        target = self._side_of(measured).target if measured else ""
        return lambda run, metric: Noise.of(self._restarts(load_key(target, run), metric))

    async def _leave(self, outcome: Outcome) -> Outcome:
        """Put every host on what was asked beforehand."""
        finish = self._ledger.plan.finish
        if finish == "stay":
            return replace(outcome, left=None, left_text="the last setting that was tried stays in force")
        wanted: Setting = outcome.left or () if finish == "best" else ()
        async with asyncio.TaskGroup() as group:
            leaving = [group.create_task(self._leave_one(rig, wanted)) for rig in self._rigs]
        texts = [task.result() for task in leaving]
        if len(self._rigs) > 1:
            texts = [f"{rig.name}: {text}" for rig, text in zip(self._rigs, texts, strict=True)]
        return replace(outcome, left=wanted, left_text="; ".join(texts))

    async def _leave_one(self, rig: Rig, wanted: Setting) -> str:
        """Put one host on it; says how that went."""
        name, end = experiment.name(wanted), Put(TrialState.FAILED)
        self._do(rig, trial=None, burst=None, text=f"leaving {name} in force")
        async with aclosing(rig.put(wanted, fresh=False)) as steps:  # type: ignore[type-var]
            async for one in steps:
                if isinstance(one, Put):
                    end = one
                else:
                    self._do(rig, progress=one, text=one.text)
        if end.state is not TrialState.MEASURING:
            return f"{name} could not be put in force again: {end.text}"
        return f"{name} is in force" + (f" (step {end.step})" if end.step else "")
