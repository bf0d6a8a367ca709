"""The session on a real host: the tuning, bench and store rooms behind the console's one door."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, aclosing, nullcontext
from typing import TYPE_CHECKING, cast

from ddtui.bench import burst as bursts
from ddtui.bench import kept
from ddtui.bench.model import Burst, BurstSpec
from ddtui.engine import log
from ddtui.host import clock
from ddtui.host.base import Asker, Host, HostError, Link, LinkState, LoggedCommand
from ddtui.host.journal import JournalEntry
from ddtui.host.open import open_host
from ddtui.profile import Profile
from ddtui.redact import redact
from ddtui.sanitize import sanitize
from ddtui.session import AskKill, JournalLine
from ddtui.store.history import History
from ddtui.store.model import HistoryError
from ddtui.tuning import change, layers, plan, rollback
from ddtui.tuning import survey as surveys
from ddtui.tuning.aim import aim
from ddtui.tuning.change import Stuck
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Plan, Progress, Turn
from ddtui.tuning.survey import Survey
from ddtui.tuning.watch import Watch, WatchState
from ddtui.view import Decode, TuneView
from ddtui.viewing import tune_view
from ddtui.words import time_of_day

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ddtui.bench.experiment import ExperimentPlan
    from ddtui.bench.quality import Quality
    from ddtui.past import Past
    from ddtui.tuning.experiments import ExperimentState
    from ddtui.tuning.forecast import Forecast

EARLIER_LINES = 2000  # of the journal, shown at once
EARLIER_BURSTS = 50


class LiveSession:
    """One profile's work. `host` and `history` are made on connecting unless given, and then closed here."""

    def __init__(
        self,
        profile: Profile,
        *,
        read_only: bool = False,
        host: Host | None = None,
        history: History | None = None,
        refresh: float = 2.0,
    ) -> None:
        self.profile = profile
        self._refresh = refresh
        self._read_only = "asked for on the command line" if read_only else None
        if self._read_only is None and profile.read_only:
            self._read_only = "the profile says so"
        self._given_host, self._history = host, history
        self._own_history = history is None
        self._ctx: Tuning | None = None
        self._watch: Watch | None = None
        self._ends: list[Callable[[], None]] = []
        self._on_view: Callable[[TuneView], None] = lambda view: None
        self._on_command: Callable[[LoggedCommand], None] = lambda command: None
        self._trouble: tuple[str, ...] = ()  # of ddtui's own, for the notices
        link = Link(LinkState.CONNECTING, profile.connection.host)
        self._view = TuneView(link, simulated=profile.simulated, read_only=self._read_only)

    @property
    def now(self) -> TuneView:
        return self._view

    def on_view(self, callback: Callable[[TuneView], None]) -> None:
        self._on_view = callback

    def on_command(self, callback: Callable[[LoggedCommand], None]) -> None:
        self._on_command = callback

    # connecting

    async def connect(self, asker: Asker) -> None:
        await self._end()
        if self._history is None and self._own_history:
            try:
                self._history = await asyncio.to_thread(History.open)
            except HistoryError as error:  # tuning goes on without it; that is said
                self._own_history = False
                self._trouble = (f"no history: {error}",)
        host = self._given_host or open_host(self.profile.connection, asker)
        self._ctx = Tuning(self.profile, host, self._history, asker, self._read_only)
        self._watch = Watch(self._ctx, interval=self._refresh)
        self._ends = [
            host.on_command(lambda command: self._on_command(command)),
            host.on_link(self._link_changed),
            self._watch.subscribe(self._watched),
        ]
        await host.connect()

    def _link_changed(self, link: Link) -> None:
        if self._watch is not None:
            self._show(self._watch.state, link)

    def _watched(self, state: WatchState) -> None:
        self._show(state, self.ctx.host.link)

    def _show(self, state: WatchState, link: Link) -> None:
        view = tune_view(state, link, self.profile, self._trouble)
        if view != self._view:
            self._view = view
            self._on_view(view)

    @property
    def ctx(self) -> Tuning:
        if self._ctx is None:
            raise RuntimeError("not connected yet")
        return self._ctx

    async def watch(self) -> None:
        assert self._watch is not None
        await self._watch.run()

    async def refresh(self) -> None:
        assert self._watch is not None
        await self._watch.refresh()

    # the journal

    async def journal(self) -> AsyncIterator[Sequence[JournalLine]]:
        entries = self.ctx.supervisor.follow(self.ctx.host, lines=EARLIER_LINES)
        async with aclosing(cast("AsyncGenerator[JournalEntry, None]", entries)) as stream:
            async for entry in stream:
                yield (journal_line(entry),)

    async def earlier_lines(self, before: str, count: int) -> Sequence[JournalLine]:
        entries = await self.ctx.supervisor.earlier(self.ctx.host, before, count)
        return [journal_line(entry) for entry in entries]

    async def host_time(self) -> float:
        return await clock.now(self.ctx.host)

    # texts to be read

    async def unit_text(self, file: str) -> Sequence[str]:
        lines = _safe(await self.ctx.supervisor.text(self.ctx.host))
        if file.startswith("/") and f"# {file}" not in lines:
            own = await self.ctx.host.run(("cat", "--", file))
            lines += ["", f"# {sanitize(file)}", *_safe(own.out if own.ok else own.err)]
        return lines

    async def start_lines(self) -> Sequence[str]:
        status = (await self._survey()).status
        if status is None or not status.invocation_id:
            return ()
        entries = await layers.start_entries(self.ctx, status)
        return [f"{time_of_day(entry.realtime_us / 1e6)} {entry.text}" for entry in entries]

    # changes

    async def _survey(self) -> Survey:
        state = self._watch.state if self._watch is not None else None
        if state is not None and state.survey is not None:
            return state.survey
        return await surveys.read(self.ctx)

    async def plan(self, turns: Sequence[Turn]) -> Plan:
        return await plan.make(self.ctx, await self._survey(), turns)

    async def plan_back(self) -> Plan:
        return await rollback.make(self.ctx)

    @property
    def _stale(self) -> str | None:
        """The token of a lock that was left behind; the console has asked whether to take it over."""
        lock = self._watch.state.lock if self._watch is not None else None
        return lock.token if lock is not None and lock.stale and not lock.ours else None

    def apply(self, what: Plan, ask_kill: AskKill) -> AsyncIterator[Progress]:
        return self._then_read(
            change.apply(self.ctx, what, ask_kill=_asking(ask_kill), take_over=self._stale)
        )

    def restart(self, ask_kill: AskKill) -> AsyncIterator[Progress]:
        return self._then_read(change.restart(self.ctx, ask_kill=_asking(ask_kill), take_over=self._stale))

    def resume(self, *, undo: bool, ask_kill: AskKill) -> AsyncIterator[Progress]:
        return self._then_read(self._resume(undo, ask_kill))

    async def _resume(self, undo: bool, ask_kill: AskKill) -> AsyncIterator[Progress]:
        cut = await change.pending(self.ctx)
        if cut is None:
            raise HostError("the change that was cut has been finished or undone meanwhile")
        steps = change.resume(self.ctx, cut, undo=undo, ask_kill=_asking(ask_kill), take_over=self._stale)
        async with aclosing(cast("AsyncGenerator[Progress, None]", steps)) as progresses:
            async for progress in progresses:
                yield progress

    async def _then_read(self, steps: AsyncIterator[Progress]) -> AsyncIterator[Progress]:
        """The steps, and then every layer again: the end of a change and its verdicts come together."""
        with self._at_work():
            async with aclosing(cast("AsyncGenerator[Progress, None]", steps)) as progresses:
                async for progress in progresses:
                    yield progress
            await self.refresh()

    def _at_work(self) -> AbstractContextManager[None]:
        """While this session itself changes the host."""
        return self._watch.at_work() if self._watch is not None else nullcontext()

    # bursts

    async def burst(self, spec: BurstSpec) -> AsyncIterator[Burst]:
        target = await aim(self.ctx, await self._survey())
        step = self._watch.state.step if self._watch is not None else None
        async with aclosing(bursts.run(spec, target, step=step, on_keep=self._keep)) as snapshots:
            async for snapshot in snapshots:
                yield snapshot

    def _keep(self, burst: Burst) -> None:
        if self._history is not None:
            self._history.save_burst(self.ctx.host.name, self.ctx.unit, kept.to_plain(burst))

    async def check_output(self, tell: Callable[[str, float], None]) -> Quality:
        from ddtui.tuning import output_check, steps, verdicts

        survey, ctx = await self._survey(), self.ctx
        step = steps.keep(ctx, survey, verdicts.judge(survey, ctx.profile))
        target = await aim(ctx, survey)
        return await output_check.check(
            target, self._history, ctx.host.name, ctx.unit, step, on_progress=tell
        )

    async def earlier_bursts(self) -> Sequence[Burst]:
        if self._history is None:
            return ()
        history, ctx = self._history, self.ctx
        stored = await asyncio.to_thread(
            lambda: history.bursts(ctx.host.name, ctx.unit, limit=EARLIER_BURSTS)
        )
        return [kept.from_plain(one.burst) for one in stored]

    # decisions

    @property
    def past(self) -> Past | None:
        from ddtui.past import Past

        if self._history is None or self._ctx is None:
            return None
        return Past(self._history, self.ctx.host.name, self.ctx.unit)

    async def forecast(self, wanted: ExperimentPlan, *, hosts: int = 1) -> Forecast:
        from ddtui.tuning import forecast

        return await forecast.make(self.ctx, await self._survey(), wanted, hosts=hosts)

    async def experiment(
        self, what: ExperimentPlan | str, *, also: Sequence[Profile] = (), asker: Asker | None = None
    ) -> AsyncIterator[ExperimentState]:
        from ddtui.bench import sides
        from ddtui.tuning import alike, experiments
        from ddtui.tuning.ledger import Ledger
        from ddtui.tuning.rig import HostRig

        history, ctx = self._history, self.ctx
        if history is None:
            raise HistoryError("there is no history to write it down in: " + "; ".join(self._trouble))
        resumed = isinstance(what, str)
        async with AsyncExitStack() as stack:
            contexts = [ctx]
            for profile in also:
                host = open_host(profile.connection, asker or ctx.asker)
                stack.push_async_callback(host.close)
                await host.connect()
                contexts.append(Tuning(profile, host, history, asker or ctx.asker))
            if also:
                await alike.must_be_alike(contexts, await self._survey())
            if isinstance(what, str):
                book = await asyncio.to_thread(Ledger.find, history, ctx.host.name, ctx.unit, what)
            else:
                book = await asyncio.to_thread(Ledger.begin, what, history, ctx.host.name, ctx.unit)
            rigs = [HostRig(one, history, take_over=resumed) for one in contexts]
            noise = sides.restarts(history, ctx.host.name, ctx.unit)
            states = experiments.run(book, rigs, restarts=noise)
            stack.enter_context(self._at_work())
            async with aclosing(cast("AsyncGenerator[ExperimentState, None]", states)) as snapshots:
                async for state in snapshots:
                    yield state
            await self.refresh()

    # the end

    async def _end(self) -> None:
        for end in self._ends:
            end()
        self._ends = []
        if self._ctx is not None and self._given_host is None:
            await self._ctx.host.close()

    async def close(self) -> None:
        try:
            await self._end()
        finally:
            if self._history is not None and self._own_history:
                self._history.close()


def _asking(ask: AskKill) -> change.AskKill:
    """The tuning room's question in words."""

    async def asked(stuck: Stuck) -> bool:
        return await ask(stuck.text)

    return asked


def journal_line(entry: JournalEntry) -> JournalLine:
    """An entry as the console shows it."""
    at = entry.realtime_us / 1e6
    decode: Decode | None = None
    if "Decode batch" in entry.text:
        line = log.parse(entry.text)
        if line.kind is log.Kind.DECODE and line.rank in (None, "", "TP0", "DP0 TP0"):
            decode = Decode(
                at,
                _number(line.fields.get("gen_throughput")),
                _number(line.fields.get("accept_len")),
                _count(line.fields.get("running_req")),
                _count(line.fields.get("queue_req")),
                whole=not (line.rank or "").startswith("DP"),
            )
    cursor = "" if entry.gap else entry.cursor
    return JournalLine(at, entry.text, entry.priority, decode, entry.gap, entry.spans, cursor, entry.pid)


def _safe(text: str) -> list[str]:
    return [sanitize(redact(line)) for line in text.splitlines()]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
