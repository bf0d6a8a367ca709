"""What an experiment works on: a host that can be brought into a setting and measured there.

`HostRig` is a real one: settings go in by the same safe change path as by hand, and are measured by
bursts. What was cut before, by whatever, it finds: a change under way is finished first, a lock of ours
that was left is taken over, and a setting that is in force already is not applied again.

Commands, beside those of changes and bursts: `cat -- /proc/sys/kernel/random/boot_id`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Protocol

from ddtui.bench import burst as bursts
from ddtui.bench import kept, quality, samples, sides
from ddtui.bench.compare import Run, Side
from ddtui.bench.experiment import OFF, ON, ExperimentPlan, Setting, Trial, TrialState
from ddtui.bench.model import Burst, BurstSpec, BurstState, Cell
from ddtui.bench.target import BenchError
from ddtui.engine.api import ApiError
from ddtui.host.base import HostError
from ddtui.store import runs as stored
from ddtui.store.history import History
from ddtui.tuning import change, lock, output_check, place, plan, record, rollback, steps, verdicts
from ddtui.tuning import survey as surveys
from ddtui.tuning.aim import aim
from ddtui.tuning.context import Tuning
from ddtui.tuning.lock import Held
from ddtui.tuning.model import ChangeRecord, Op, Phase, Plan, Progress, Turn
from ddtui.tuning.plan import PlanError, StalePlan
from ddtui.tuning.steady import steadily
from ddtui.tuning.survey import Survey

ATTEMPTS = 3  # at a change, when something moved meanwhile or the host was rebooted
BOOT_ID = "/proc/sys/kernel/random/boot_id"
REFUSALS = ("SGLang would refuse", "must be at", "must be a", "needs a value", "has no --")
SAME = "nothing would change"


class Stopped(HostError):
    """The host is in a state in which an experiment must not go on."""


@dataclass(frozen=True, slots=True)
class Put:
    """How a setting went in. `state` MEASURING: it is in force."""

    state: TrialState
    text: str = ""
    step: int | None = None
    ready_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """What the output check found. `wrong`: why such a setting must not win; empty: it may."""

    text: str = ""
    wrong: str = ""


class Rig(Protocol):
    """A host, real or simulated."""

    @property
    def name(self) -> str: ...

    async def begin(self, purpose: str, mark: str | None) -> str:
        """Make ready; gives the mark of the setting that it is in, to which `()` leads back. `mark`: of
        before a cut.
        """
        ...

    async def end(self) -> None: ...

    async def footing(self) -> str:
        """Another one whenever the link or the host was lost meanwhile."""
        ...

    def put(self, setting: Setting, *, fresh: bool) -> AsyncIterator[Progress | Put]:
        """Bring a setting in force and prove it; the last item is the Put. `fresh`: after a restart."""
        ...

    def measure(
        self, experiment: ExperimentPlan, trial: Trial, cells: Sequence[Cell], requests: int, burst_id: str
    ) -> AsyncIterator[Burst]:
        """Measure these cells; every finished one is kept before the next snapshot comes."""
        ...

    def runs(self, bursts: Sequence[str]) -> list[Run]:
        """What these bursts measured."""
        ...

    def side(self, trial: Trial) -> Side:
        """The trial as one side of a comparison, without its runs."""
        ...

    def judge(self, trial: Trial, reference: Trial | None) -> str:
        """Why the output of a measured trial is wrong, by what its bursts wrote; empty if it is not."""
        ...

    async def check(self, tell: Callable[[str], None], *, reference: bool = False) -> Checked:
        """The whole output check of the setting in force. `reference`: only if there is none to compare with
        yet.
        """
        ...


class HostRig:
    """A host as an experiment uses it, between `begin` and `end`."""

    def __init__(self, ctx: Tuning, history: History, *, take_over: bool = False) -> None:
        self.ctx = ctx
        self._history = history
        self._take_over = take_over
        self._stack = AsyncExitStack()
        self._held: Held | None = None
        self._mark = rollback.START
        self._survey: Survey | None = None

    @property
    def name(self) -> str:
        return self.ctx.host.name

    async def begin(self, purpose: str, mark: str | None) -> str:
        """Finish what was cut, take the lock. Raises Locked, NotPermitted, HostError."""
        self.ctx.must_write()
        holder = await steadily(self.ctx.host, lambda: lock.look(self.ctx))
        ours = holder is not None and (self._take_over or holder.owner == self.ctx.who)
        token = holder.token if holder is not None and holder.stale and ours else None
        cut = await steadily(self.ctx.host, lambda: change.pending(self.ctx))
        if cut is not None:
            async for _ in change.resume(self.ctx, cut, take_over=token):
                pass
            token = None
        self._held = await self._stack.enter_async_context(lock.hold(self.ctx, purpose, take_over=token))
        records = await self._records()
        stack = record.in_force(records)
        self._mark = mark or (stack[-1].id if stack else rollback.START)
        return self._mark

    async def end(self) -> None:
        await self._stack.aclose()

    async def footing(self) -> str:
        boot = await self._boot()  # waits until there is a link
        return f"{boot} {self.ctx.host.link.since}"

    async def put(self, setting: Setting, *, fresh: bool) -> AsyncIterator[Progress | Put]:
        """As the protocol says. Raises Stopped where the server is left without a working setting."""
        turns = tuple(map(turn, setting))
        last: Progress | None = None
        for attempt in range(ATTEMPTS):
            boot = await self._boot()
            try:
                going = await self._change(await self._look(), turns, fresh)
                if isinstance(going, Put):
                    yield going
                    return
                if going is None:
                    break
                async for last in going:
                    yield last
            except StalePlan:
                if attempt == ATTEMPTS - 1:
                    raise
                continue
            assert last is not None
            # a start that the host's own reboot ended says nothing of the setting
            if last.phase is Phase.VERIFIED or await self._boot() == boot:
                break
        if last is not None and last.phase is not Phase.VERIFIED:
            yield _not_put(last)
            return
        survey = await self._look()
        wrong = [v for t in turns if not (v := verdicts.judge_turn(survey, self.ctx.profile, t)).fine]
        if wrong:
            yield Put(TrialState.NOT_IN_FORCE, f"{wrong[0].title}: {wrong[0].status}: {wrong[0].summary}")
            return
        step = steps.keep(self.ctx, survey, verdicts.judge(survey, self.ctx.profile))
        ready = plan.last_starts(self.ctx)[:1] if last is not None else ()
        yield Put(TrialState.MEASURING, "", step.number if step else None, ready[0] if ready else None)

    async def _change(
        self, survey: Survey, turns: tuple[Turn, ...], fresh: bool
    ) -> AsyncIterator[Progress] | Put | None:
        """What brings the setting in force: a change or a restart under way; a Put: it cannot be; None: it
        is.
        """
        restart = change.restart(self.ctx, held=self._held, why="experiment")
        if turns:
            stands = all(verdicts.judge_turn(survey, self.ctx.profile, one).fine for one in turns)
        else:
            stack = record.in_force(await self._records())
            stands = (stack[-1].id if stack else rollback.START) == self._mark
        if stands:
            up = survey.status is not None and survey.status.running and survey.server.value is not None
            return restart if fresh or not up else None
        try:
            wanted = await self._plan(survey, turns)
        except PlanError as problem:
            return Put(TrialState.REFUSED, str(problem))
        if any(text.startswith(SAME) for text in wanted.problems):
            return restart
        if wanted.problems:
            if all(any(word in text for word in REFUSALS) for text in wanted.problems):
                return Put(TrialState.REFUSED, wanted.problems[0])
            raise Stopped(f"the setting cannot be applied: {wanted.problems[0]}")
        return change.apply(self.ctx, wanted, held=self._held)

    async def _plan(self, survey: Survey, turns: tuple[Turn, ...]) -> Plan:
        if turns:
            return await plan.make(self.ctx, survey, turns, why="experiment")
        return await rollback.make(self.ctx, self._mark)

    async def measure(
        self, experiment: ExperimentPlan, trial: Trial, cells: Sequence[Cell], requests: int, burst_id: str
    ) -> AsyncIterator[Burst]:
        """Raises BenchError for cells that must not be sent at all."""
        survey = self._survey or await self._look()
        target = await aim(self.ctx, survey)
        spec = BurstSpec(
            cells=tuple(cells),
            output=experiment.output,
            at=experiment.at,
            requests=requests,
            max_seconds=experiment.max_seconds,
            temperature=experiment.temperature,
            seed=experiment.seed,
            endpoint=experiment.endpoint,
            salt=experiment.salt,
        )
        finished = -1
        running = bursts.run(spec, target, burst_id=burst_id, step=trial.step)
        try:
            async for burst in running:
                done = burst.state in (BurstState.DONE, BurstState.FAILED)
                final = tuple(point for point in burst.points if point.final)
                if len(final) > finished or done:
                    finished = len(final)
                    self._history.save_burst(
                        self.ctx.host.name,
                        self.ctx.unit,
                        kept.to_plain(replace(burst, points=final) if done else kept.unfinished(burst)),
                        note=f"{trial.stage}, trial {trial.number}",
                    )
                yield burst
        finally:
            await running.aclose()

    def runs(self, bursts: Sequence[str]) -> list[Run]:
        return sides.runs_of(stored.of_bursts(self._history, bursts)) if bursts else []

    def judge(self, trial: Trial, reference: Trial | None) -> str:
        """Garbage in the output of the trial's smallest cell, told by what the reference wrote there."""
        if not trial.runs:
            return ""
        cell = min(trial.runs)
        outputs = samples.outputs(self._raw(trial, cell), cell)
        before = samples.outputs(self._raw(reference, cell), cell) if reference else []
        judged = quality.judge(outputs, before, reference_step=reference.step if reference else None)
        if trial.step is not None and outputs:
            self._history.save_quality(
                self.ctx.host.name, self.ctx.unit, trial.step, {**_plain(judged), "of": "burst"}
            )
        return judged.text if judged.verdict is quality.Verdict.GARBAGE else ""

    async def check(self, tell: Callable[[str], None], *, reference: bool = False) -> Checked:
        """As the protocol says. A check that cannot be made is said, and is no verdict."""
        host, unit = self.ctx.host.name, self.ctx.unit
        survey = await self._look()
        step = steps.keep(self.ctx, survey, verdicts.judge(survey, self.ctx.profile))
        wanted = output_check.target_of(step)
        if reference and output_check.has_reference(self._history, host, unit, wanted):
            return Checked()
        target = await aim(self.ctx, survey)
        try:
            judged = await output_check.check(
                target,
                self._history,
                host,
                unit,
                step,
                on_progress=lambda text, part: tell(f"checking the output: {part:.0%}, {text}"),
            )
        except (BenchError, ApiError) as problem:
            return Checked(f"the output could not be checked: {problem}")
        return Checked(judged.text, judged.text if judged.wrong else "")

    def _raw(self, trial: Trial | None, cell: Cell) -> str:
        if trial is None or cell not in trial.runs:
            return ""
        wanted = trial.runs[cell].burst
        return next((run.raw for run in stored.of_bursts(self._history, [wanted]) if run.raw), "")

    def side(self, trial: Trial) -> Side:
        numbered = (
            stored.steps_numbered(self._history, trial.step, self.ctx.host.name)
            if trial.step is not None
            else []
        )
        step = next((one for one in numbered if one.unit == self.ctx.unit), None)
        return sides.described(step) if step else Side(trial.stage, dict(trial.setting), {})

    async def _look(self) -> Survey:
        self._survey = await steadily(self.ctx.host, lambda: surveys.read(self.ctx))
        if self._survey.status is not None and self._survey.status.active_state == "activating":
            await asyncio.sleep(0.5)
        return self._survey

    async def _boot(self) -> str:
        """The host's boot id; empty where it cannot be read."""
        done = await steadily(self.ctx.host, lambda: self.ctx.host.run(("cat", "--", BOOT_ID)))
        return done.out.strip() if done.ok else ""

    async def _records(self) -> tuple[ChangeRecord, ...]:
        async def read() -> tuple[ChangeRecord, ...]:
            return await record.read(self.ctx, await place.find(self.ctx))

        return await steadily(self.ctx.host, read)


def turn(one: tuple[str, str]) -> Turn:
    """A value of a setting as a wish: off takes the flag away, on gives a switch."""
    knob, value = one
    if value == OFF:
        return Turn(knob, Op.UNSET)
    return Turn(knob, Op.SET, None if value == ON else value)


def _not_put(last: Progress) -> Put:
    cause = last.failure or last.text
    if last.phase is Phase.UNVERIFIED:
        return Put(TrialState.NOT_IN_FORCE, last.text)
    if last.phase in (Phase.ROLLED_BACK, Phase.FAILED):
        return Put(TrialState.FAILED, cause)
    raise Stopped(f"{last.text}: {cause}" if last.failure else last.text, last.advice or "")


def _plain(judged: quality.Quality) -> dict[str, object]:
    return {"verdict": judged.verdict.value, "text": judged.text, "prompts": judged.prompts}
