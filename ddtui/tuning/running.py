"""One change as it runs: its steps, forward and back, each written down on the host before it is taken."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from ddtui import redact
from ddtui.engine.api import ApiError
from ddtui.engine.failure import Failure
from ddtui.engine.startup import Phase as StartPhase
from ddtui.host import files
from ddtui.host.base import CommandFailed, HostError, NotPermitted
from ddtui.host.service import ServiceStatus
from ddtui.sanitize import sanitize
from ddtui.store.model import HistoryError
from ddtui.tuning import ground, layers, plan, record, starting, steps, verdicts, weights
from ddtui.tuning import survey as surveys
from ddtui.tuning.context import Tuning
from ddtui.tuning.lock import Held
from ddtui.tuning.model import ChangeRecord, FileEdit, Phase, Progress, Verdict
from ddtui.tuning.place import Place
from ddtui.tuning.stages import stages
from ddtui.tuning.starting import AskKill, Earlier, Glance, Outcome
from ddtui.tuning.steady import demand, steadily
from ddtui.tuning.survey import Survey
from ddtui.tuning.weights import Weights

SETTLE = 3.0  # seconds within which a ready server's own answers must have come


class Refused(HostError):
    """A step showed that the change must not go on; the running server has not been touched."""


class ByHand(HostError):
    """A file was changed by hand meanwhile; ddtui will not overwrite it."""


class Run:
    """The steps of one change. `where` and `held` are set once the lock is held."""

    where: Place
    held: Held

    def __init__(
        self,
        ctx: Tuning,
        tell: Callable[[Progress], None],
        *,
        roll_back: bool = True,
        ask_kill: AskKill | None = None,
    ) -> None:
        self.ctx, self.roll_back, self.ask_kill = ctx, roll_back, ask_kill
        self._tell = tell
        self._began = time.monotonic()
        self._last = Progress(Phase.PLANNED, "")
        self._change: str | None = None
        self._writes = False

    # words

    def say(self, phase: Phase, text: str, **more: object) -> None:
        """Publish where the change is."""
        self._last = Progress(
            phase=phase,
            text=text,
            elapsed=time.monotonic() - self._began,
            change=self._change,
            stages=stages(self.ctx.supervisor, writes=self._writes),
            **more,  # type: ignore[arg-type]
        )
        self._tell(self._last)

    def _lost(self, error: HostError) -> None:
        """The link is gone: say so, in the phase that it is."""
        last = replace(
            self._last,
            text=f"{self._last.text.removesuffix(_LOST)}{_LOST}",
            elapsed=time.monotonic() - self._began,
            eta_seconds=None,
        )
        self._tell(last)

    async def _write_down(self, entry: ChangeRecord, phase: Phase, result: str = "") -> ChangeRecord:
        """Make sure that the lock is ours, then put the next step into the host's record."""
        await steadily(self.ctx.host, self.held.confirm, lost=self._lost)
        entry = record.move(entry, phase, result)
        await record.write(self.ctx, self.where, entry)
        return entry

    # forward

    async def forward(self, entry: ChangeRecord, edits: Sequence[FileEdit], *, fresh: bool) -> None:
        """All steps to a verified change. What goes wrong before the restart leaves everything as before; a
        start that fails is rolled back. `fresh` False: some of the steps may have been taken before a cut."""
        self._change, self._writes = entry.id, bool(edits)
        way_back = record.shell_way_back(self.where, entry, self.ctx.supervisor)
        if fresh:
            if edits:
                await steadily(
                    self.ctx.host,
                    lambda: record.keep_files(self.ctx, self.where, entry, edits),
                    lost=self._lost,
                )
            entry = await self._write_down(entry, Phase.PLANNED)
        try:
            if edits and entry.phase not in (Phase.STARTING, Phase.VERIFYING):
                entry = await self._write_files(entry, edits, way_back)
            if entry.phase not in (Phase.STARTING, Phase.VERIFYING):
                entry = await self._reload(entry)
                await self._check_ground()
        except (Refused, ByHand, NotPermitted, CommandFailed) as error:
            await self._withdraw(entry, edits, error)
            return
        before = await self._status()
        begun = (
            entry.phase in (Phase.STARTING, Phase.VERIFYING)  # before a cut
            and before.invocation_id != entry.invocation
            and before.active_state in ("active", "activating")
        )
        if not begun:
            entry = replace(entry, invocation=before.invocation_id)
        entry = await self._write_down(entry, Phase.STARTING)
        outcome = await self._restart(entry.invocation, before, begun=begun, phase=Phase.STARTING)
        if outcome.ready:
            await self._verify(entry, outcome, way_back)
            return
        await self._failed(entry, edits, outcome, way_back)

    async def plain_restart(self, why: str) -> ChangeRecord:
        """The record of a restart that changes nothing."""
        status = await self._status()
        if not status.exists:
            raise plan.PlanError(f"{self.ctx.supervisor.name} knows no {self.ctx.unit}")
        return ChangeRecord(
            id=record.new_id(),
            at=time.time(),
            who=self.ctx.who,
            unit=self.ctx.unit,
            turns=(),
            why=why,
            files=(),
            argv_before=(),
            argv_after=(),
            phase=Phase.PLANNED,
            result="",
            invocation=status.invocation_id,
        )

    async def _write_files(
        self, entry: ChangeRecord, edits: Sequence[FileEdit], way_back: tuple[str, ...]
    ) -> ChangeRecord:
        names = ", ".join(edit.path for edit in edits)
        self.say(Phase.WRITING, f"writing {names}", way_back=way_back)
        complaints = await self._complaints()
        entry = await self._write_down(entry, Phase.WRITING)
        await self._put(edits, lambda edit: (edit.before, edit.after))
        new = [line for line in await self._complaints() if line not in complaints]
        ours = [line for line in new if self.ctx.unit in line or any(edit.path in line for edit in edits)]
        if ours:
            raise Refused(f"systemd-analyze verify complains about the new unit: {ours[0]}")
        return entry

    async def _put(
        self,
        edits: Sequence[FileEdit],
        change: Callable[[FileEdit], tuple[bytes | None, bytes | None]],
    ) -> None:
        """Bring every file from one content to the other, by rename. Raises ByHand where it is neither."""
        host = self.ctx.host
        paths = [edit.path for edit in edits]
        sudo = await steadily(host, lambda: files.take_root(host, paths), lost=self._lost)
        now = await steadily(host, lambda: self._read(paths, sudo), lost=self._lost)
        for edit in edits:
            old, new = change(edit)
            if now[edit.path] not in (old, new):
                raise ByHand(f"{edit.path} was changed by hand meanwhile", "it was left as it is; look at it")
        for edit in edits:
            _, new = change(edit)
            if now[edit.path] == new:
                continue
            await steadily(host, lambda: self._put_one(edit, new, sudo[edit.path]), lost=self._lost)  # noqa: B023

    async def _put_one(self, edit: FileEdit, content: bytes | None, sudo: bool) -> None:
        host, folder = self.ctx.host, edit.path.rpartition("/")[0]
        if content is None:
            await files.remove(host, edit.path, sudo=sudo)
            if edit.ours:  # the folder that was made for it, if nothing else is in it
                await host.run(("rm", "-d", "--", folder), sudo=sudo)
            return
        if edit.ours:
            demand(await host.run(("mkdir", "-p", "--", folder), sudo=sudo), f"{folder} cannot be made")
        like = edit.path if edit.before is not None else edit.like
        await files.write_atomically(host, edit.path, content, sudo=sudo, like=like)

    async def _read(self, paths: Sequence[str], sudo: dict[str, bool]) -> dict[str, bytes | None]:
        plain = await files.read(self.ctx.host, [path for path in paths if not sudo[path]])
        rooted = await files.read(self.ctx.host, [path for path in paths if sudo[path]], sudo=True)
        return {**plain, **rooted}

    async def _complaints(self) -> list[str]:
        """What the supervisor's own check says of what stands on disk. Empty where it has none."""
        words = self.ctx.supervisor.verify
        if words is None:
            return []
        done = await steadily(self.ctx.host, lambda: self.ctx.host.run(words, timeout=60.0), lost=self._lost)
        return [sanitize(line) for line in done.err.splitlines() if line.strip()]

    async def _reload(self, entry: ChangeRecord) -> ChangeRecord:
        if self.ctx.supervisor.reload:
            self.say(Phase.RELOADING, "systemd reloads its units")
            entry = await self._write_down(entry, Phase.RELOADING)
            await starting.reload(self.ctx)
        self.say(Phase.CHECKING, f"comparing what {self.ctx.supervisor.name} would start with the plan")
        entry = await self._write_down(entry, Phase.CHECKING)
        loaded = await steadily(
            self.ctx.host, lambda: self.ctx.supervisor.reading(self.ctx.host), lost=self._lost
        )
        if loaded.status.load_state != "loaded":
            raise Refused(
                f"systemd does not take the new unit: {loaded.status.load_error or loaded.status.load_state}"
            )
        held = loaded.loaded_exec
        if entry.loads and held is not None and not record.loaded_as(entry.loads, held):
            raise Refused("the command line that systemd loaded is not the one that was planned")
        return entry

    async def _check_ground(self) -> None:
        """A service that does not run may be down because something is in its way: a start would load for
        minutes and then hang. Raises Refused."""
        status = await self._status()
        if status.running or status.sub_state == "auto-restart":
            return
        _, port = layers.address(self.ctx, await self._survey(None))
        found = await steadily(self.ctx.host, lambda: ground.look(self.ctx, status, port), lost=self._lost)
        if not found.clear:
            raise Refused(
                f"the service does not run, and cannot: {found.words(port)}", "end what is in the way"
            )

    async def _withdraw(self, entry: ChangeRecord, edits: Sequence[FileEdit], why: HostError) -> None:
        """Put the files back before anything was restarted."""
        try:
            await self._put(edits, lambda edit: (edit.after, edit.before))
            await starting.reload(self.ctx)
        except HostError as error:
            entry = await self._write_down(entry, Phase.STRANDED, f"{why}; {error}")
            self._keep(entry)
            self.say(Phase.STRANDED, "the files could not be put back", failure=f"{why}; {error}")
            return
        entry = await self._write_down(entry, Phase.FAILED, str(why))
        self._keep(entry)
        self.say(
            Phase.FAILED,
            "nothing was changed: the files are as before, and the server was not touched",
            failure=str(why),
            advice=why.hint or None,
        )

    # the restart

    async def _status(self) -> ServiceStatus:
        return await steadily(
            self.ctx.host, lambda: self.ctx.supervisor.status(self.ctx.host), lost=self._lost
        )

    async def _restart(self, old: str, before: ServiceStatus, *, begun: bool, phase: Phase) -> Outcome:
        """Restart, unless that has begun before a cut, and watch. `old`: the invocation that was to end."""
        survey = await self._survey(None)
        last = plan.last_starts(self.ctx)
        earlier = Earlier(last[0] if last else None, await self._timings())
        lines = starting.Lines(self.ctx)
        apart = None
        await lines.begin(before.invocation_id if begun else None)

        def tell(glance: Glance) -> None:
            stopping = Phase.DRAINING if glance.running else Phase.STOPPING
            shown = phase if phase is Phase.ROLLING_BACK else stopping if glance.stopping else phase
            self.say(
                shown,
                glance.text,
                fraction=glance.fraction,
                eta_seconds=glance.eta,
                running=glance.running,
            )

        try:
            if not begun:
                requests = await self._requests(survey)
                drained = f"; {requests} requests still run and are drained" if requests else ""
                tell(
                    Glance(
                        True,
                        f"{self.ctx.supervisor.name}: told to restart {self.ctx.unit}{drained}",
                        running=requests,
                    )
                )
                apart = await starting.restart(self.ctx, before)
            return await starting.watch(
                self.ctx,
                lines,
                old,
                layers.address(self.ctx, survey),
                tell,
                apart=apart,
                ask_kill=self.ask_kill,
                drafter=survey.drafter.value is not None,
                weights=await self._weights(survey),
                earlier=earlier,
                lost=self._lost,
            )
        finally:
            await lines.end()

    async def _requests(self, survey: Survey) -> int | None:
        """How many requests run, by the server's own numbers. None: it does not say."""
        with suppress(HostError, ApiError, TimeoutError):
            async with await layers.open_api(self.ctx, survey, timeout=3.0) as api:
                return (await api.loads()).running
        return None

    async def _timings(self) -> dict[StartPhase, float]:
        """When each phase of the last start that got ready was entered, by the host's record."""
        with suppress(HostError, ValueError):
            for entry in reversed(await record.read(self.ctx, self.where)):
                if entry.timings:
                    return {StartPhase(name): at for name, at in entry.timings.items()}
        return {}

    async def _weights(self, survey: Survey) -> Weights | None:
        with suppress(HostError, TimeoutError):
            total = await weights.size_of(self.ctx, layers.argument(survey, "--model-path") or "")
            return Weights(self.ctx, total) if total else None
        return None

    async def _survey(self, previous: Survey | None) -> Survey:
        return await steadily(self.ctx.host, lambda: surveys.read(self.ctx, previous), lost=self._lost)

    async def _verify(self, entry: ChangeRecord, outcome: Outcome, way_back: tuple[str, ...]) -> None:
        """Survey again: is every turned knob in force?"""
        timings = {str(phase): round(at, 3) for phase, at in outcome.start.timings().items()}
        entry = replace(entry, seconds_to_ready=outcome.seconds, timings=timings)
        entry = await self._write_down(entry, Phase.VERIFYING)
        self.say(Phase.VERIFYING, f"ready after {outcome.seconds:.0f} s; reading every layer again")
        survey, judged = await self._judged(entry)
        wrong = [verdict for verdict in judged if not verdict.fine]
        seconds = f"ready after {outcome.seconds:.1f} s"
        if wrong:
            text = "; ".join(f"{verdict.title}: {verdict.status.value}" for verdict in wrong)
            entry = await self._write_down(entry, Phase.UNVERIFIED, f"{seconds}; {text}")
        else:
            text = f"{plan.describe(entry.turns)}: in force" if entry.turns else "the server is ready"
            entry = await self._write_down(entry, Phase.VERIFIED, f"{seconds}; {text}")
        step = self._keep(entry, survey)
        number = f", step {step}" if step is not None else ""
        self.say(
            entry.phase,
            f"{seconds}{number}; {text}",
            fraction=1.0,
            verdicts=judged,
            way_back=way_back if entry.files else (),
        )

    async def _judged(self, entry: ChangeRecord) -> tuple[Survey, tuple[Verdict, ...]]:
        """The survey after a start. What the server's own layers do not say yet gets a moment to come."""
        survey = await self._survey(None)
        deadline = time.monotonic() + SETTLE
        while True:
            judged = self._verdicts(entry, survey)
            if all(v.fine for v in judged) or time.monotonic() > deadline:
                return survey, judged
            await asyncio.sleep(0.5)
            survey = await self._survey(survey)

    def _verdicts(self, entry: ChangeRecord, survey: Survey) -> tuple[Verdict, ...]:
        judged = tuple(verdicts.judge_turn(survey, self.ctx.profile, turn) for turn in entry.turns)
        same = verdicts.runs_as(survey, entry.argv_after) if entry.argv_after else None
        return (*judged, *((same,) if same is not None and not same.fine else ()))

    # back

    async def _failed(
        self, entry: ChangeRecord, edits: Sequence[FileEdit], outcome: Outcome, way_back: tuple[str, ...]
    ) -> None:
        """The new server did not get ready."""
        cause = outcome.failure
        assert cause is not None
        self._start_kept(None, str(cause.kind))
        if not edits or not self.roll_back:
            entry = await self._write_down(entry, Phase.STRANDED, cause.cause)
            self._keep(entry)
            text = (
                "it was left as it is, as asked" if edits else "nothing was changed that could be rolled back"
            )
            self.say(Phase.STRANDED, f"the server did not start; {text}", way_back=way_back, **_why(cause))
            return
        await self.back(entry, edits, cause.cause, cause)

    async def back(
        self, entry: ChangeRecord, edits: Sequence[FileEdit], why: str, cause: Failure | None = None
    ) -> None:
        """Put the files back; if the server was restarted with the change, restart it with the old setting,
        and verify that too."""
        self._change = entry.id
        explained = _why(cause) if cause else {}
        self.say(Phase.ROLLING_BACK, "putting the files back as they were", **explained)
        entry = await self._write_down(entry, Phase.ROLLING_BACK, why)
        way_back = record.shell_way_back(self.where, entry, self.ctx.supervisor)
        try:
            await self._put(edits, lambda edit: (edit.after, edit.before))
            await starting.reload(self.ctx)
        except HostError as error:
            entry = await self._write_down(entry, Phase.STRANDED, f"{why}; {error}")
            self._keep(entry)
            self.say(
                Phase.STRANDED, f"the files could not be put back: {error}", way_back=way_back, **explained
            )
            return
        before = await self._status()
        if before.invocation_id == entry.invocation and before.active_state == "active":
            entry = await self._write_down(entry, Phase.ROLLED_BACK, f"{why}; the server was not touched")
            self._keep(entry)
            self.say(
                Phase.ROLLED_BACK, "the files are as before; the server was never restarted", **explained
            )
            return
        outcome = await self._restart(before.invocation_id, before, begun=False, phase=Phase.ROLLING_BACK)
        if not outcome.ready:
            again = outcome.failure
            words = again.cause if again else "it did not get ready"
            entry = await self._write_down(entry, Phase.STRANDED, f"{why}; rolled back, and then: {words}")
            self._keep(entry)
            self.say(
                Phase.STRANDED,
                f"the files are as before, and the server does not start with them either: {words}",
                way_back=way_back,
                **(explained or (_why(again) if again else {})),
            )
            return
        survey = await self._survey(None)
        same = verdicts.runs_as(survey, entry.argv_before) if entry.argv_before else None
        if same is not None and not same.fine:
            entry = await self._write_down(entry, Phase.STRANDED, f"{why}; {same.summary}")
            self._keep(entry, survey)
            self.say(Phase.STRANDED, f"rolled back, but {same.summary}", way_back=way_back, **explained)
            return
        entry = await self._write_down(entry, Phase.ROLLED_BACK, why)
        self._keep(entry, survey)
        self.say(
            Phase.ROLLED_BACK,
            f"the setting before is in force again, ready after {outcome.seconds:.1f} s",
            fraction=1.0,
            **explained,
        )

    # the local history

    def _keep(self, entry: ChangeRecord, survey: Survey | None = None) -> int | None:
        """Keep the change in the local history; the step it led to. A failing history stops nothing."""
        history = self.ctx.history
        if history is None:
            return None
        number = None
        with suppress(HistoryError):
            if survey is not None:
                step = steps.keep(self.ctx, survey, verdicts.judge(survey, self.ctx.profile))
                number = step.number if step else None
                if entry.phase in (Phase.VERIFIED, Phase.UNVERIFIED):
                    self._start_kept(entry.seconds_to_ready, "ready", number)
            history.save_change(self.ctx.host.name, self.ctx.unit, record.plain(entry), step=number)
        return number

    def _start_kept(self, seconds: float | None, result: str, step: int | None = None) -> None:
        if self.ctx.history is not None:
            with suppress(HistoryError):
                self.ctx.history.save_start(
                    self.ctx.host.name, self.ctx.unit, seconds, step=step, result=result
                )


_LOST = "; the link is lost, waiting for it"


def _why(cause: Failure) -> dict[str, object]:
    """A failure as a Progress has it."""
    return {
        "failure": redact.redact(sanitize(cause.cause)),
        "evidence": tuple(redact.redact(sanitize(line)) for line in cause.evidence),
        "advice": cause.advice or None,
    }
