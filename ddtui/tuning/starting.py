"""A restart from the order to readiness: the old server drains and stops, the new one loads, warms up,
answers.

systemd's restart is one job: what stops and what starts cannot be torn apart by a cut link. Only where a stop
may leave processes behind (KillMode) it is stop, look at the ground, start. What is watched:
- the invocation id: a new one is a new start, and a second new one means that the first start died;
- the journal of the new invocation, for SGLang's own milestones and for the cause of a failure;
- the health endpoint: ready is a generated token, twice, under one invocation. HTTP that answers is not
ready.

Commands: the orders of the supervisor.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from ddtui.engine import failure as failures
from ddtui.engine import log
from ddtui.engine.api import Api, ApiError, Health
from ddtui.engine.failure import Cause, Failure
from ddtui.engine.startup import Phase as StartPhase
from ddtui.engine.startup import Start
from ddtui.host import clock
from ddtui.host.base import Completed, HostError
from ddtui.host.journal import JournalEntry
from ddtui.host.service import ServiceStatus
from ddtui.tuning import ground
from ddtui.tuning.context import Tuning
from ddtui.tuning.steady import demand, steadily
from ddtui.tuning.weights import Weights

POLL = 0.5  # seconds between looks at systemd
SHORTEST = 0.1
HEALTH_EVERY = 1.0
HEALTH_TIMEOUT = 8.0
ORDER_TIMEOUT = 120.0  # a supervisor without a queue of its own stops and starts while it is waited for
READY_FOR = 1.0  # seconds at least between the two answers that make a server ready
GONE_GRACE = 6.0  # seconds that a restart may rest between stop and start
CLEAR_WITHIN = 20.0  # seconds for the old server's children to go and for GPU memory to come back
WEIGHTS_EVERY = 2.0
KEPT_LINES = 20_000
LAST_LINES = 0.5  # seconds without a line after a server's end that make its journal whole
LAST_WORD = 4.0  # seconds at most that systemd's own line on the end is waited for
_END = re.compile(r"Main process exited|Failed with result|Deactivated successfully")


@dataclass(frozen=True, slots=True)
class Stuck:
    """The server does not stop: what is known, for the question whether to kill it."""

    seconds: float
    running: int | None  # requests that still run, by the server's own count
    text: str


AskKill = Callable[[Stuck], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Glance:
    """A restart at one moment."""

    stopping: bool  # the old server is still there
    text: str
    fraction: float | None = None
    eta: float | None = None
    running: int | None = None  # requests that still run in the old server


@dataclass(frozen=True, slots=True)
class Earlier:
    """What is known of earlier starts."""

    seconds: float | None = None  # to ready, of the last one
    timings: Mapping[StartPhase, float] = field(default_factory=dict)  # of the last one that kept them


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a restart ended."""

    ready: bool
    invocation: str
    seconds: float  # from the new server's start to readiness, or to its end
    failure: Failure | None = None
    start: Start = field(default_factory=Start)


async def order(ctx: Tuning, argv: tuple[str, ...]) -> Completed:
    """One order to the supervisor, with root's rights where it takes them."""
    return await ctx.host.run(argv, sudo=ctx.root, timeout=ORDER_TIMEOUT)


async def reload(ctx: Tuning) -> None:
    """daemon-reload, however often the link breaks. Raises NotPermitted, CommandFailed."""
    argv = ctx.supervisor.reload
    if argv:
        done = await steadily(ctx.host, lambda: order(ctx, argv))
        demand(done, f"{ctx.supervisor.name} does not reload")


class Lines:
    """The service's journal from a moment on, followed in the background across cuts of the link."""

    def __init__(self, ctx: Tuning) -> None:
        self._ctx = ctx
        self._entries: list[JournalEntry] = []
        self._task: asyncio.Task[None] | None = None
        self.came = asyncio.Event()

    async def begin(self, invocation: str | None = None) -> None:
        """Follow from here on; `invocation`: and that invocation's lines so far."""
        host, supervisor = self._ctx.host, self._ctx.supervisor
        last: str | None = None
        with suppress(HostError, TimeoutError):
            if invocation:
                self._entries = await steadily(host, lambda: supervisor.lines(host, invocation=invocation))
            else:
                tail = await steadily(host, lambda: supervisor.lines(host, lines=1))
                last = tail[-1].cursor if tail else None
            if self._entries:
                last = self._entries[-1].cursor
        self._task = asyncio.create_task(self._follow(last))

    async def _follow(self, after: str | None) -> None:
        with suppress(HostError):  # not readable: health and systemd are enough to go on
            async for entry in self._ctx.supervisor.follow(self._ctx.host, after=after, lines=0):
                self._entries.append(entry)
                del self._entries[:-KEPT_LINES]
                self.came.set()

    def of(self, invocation: str, since: float | None) -> list[JournalEntry]:
        """The lines of one invocation; lines that carry none count by their time."""
        return [
            entry
            for entry in self._entries
            if entry.invocation == invocation
            or (not entry.invocation and since is not None and entry.realtime_us / 1e6 >= since - 1)
        ]

    async def wait(self, seconds: float) -> None:
        """Until a line comes, at most `seconds`."""
        self.came.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.came.wait()

    async def settle(self, invocation: str) -> None:
        """Until the last lines of a start that has ended are here.

        journald takes a dead process's lines after systemd already calls it dead, and the link takes its
        time too: so until systemd's own word on the end has come and then none for LAST_LINES seconds.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + LAST_WORD
        while (left := until - loop.time()) > 0:
            ended = any(e.invocation == invocation and _END.search(e.text) for e in self._entries)
            count = len(self._entries)
            await self.wait(min(LAST_LINES, left))
            if ended and len(self._entries) == count:
                return

    async def end(self) -> None:
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task


async def restart(ctx: Tuning, before: ServiceStatus) -> Mapping[str, ground.Held] | None:
    """Order the restart, once: after a cut it is not ordered again if it has already begun.

    Not None: only the stop was ordered, since it may leave processes behind, and `watch` orders the start;
    what the old server held of each GPU.
    """

    async def act() -> Mapping[str, ground.Held] | None:
        supervisor = ctx.supervisor
        now = await supervisor.status(ctx.host)
        apart: Mapping[str, ground.Held] | None = None
        if supervisor.restart is None or (now.running and ground.leaves_processes(now)):
            apart = await ground.held(ctx, now)
        if now.invocation_id != before.invocation_id or now.active_state == "deactivating":
            return apart
        if supervisor.reset:
            await order(ctx, supervisor.reset)  # nothing to reset is no failure
        if apart is None and supervisor.restart:
            demand(await order(ctx, supervisor.restart), f"{ctx.unit} cannot be restarted")
        elif now.running:
            demand(await order(ctx, supervisor.stop), f"{ctx.unit} cannot be stopped")
        return apart

    return await steadily(ctx.host, act)


async def watch(
    ctx: Tuning,
    lines: Lines,
    old: str,
    endpoint: tuple[str, int],
    say: Callable[[Glance], None],
    *,
    apart: Mapping[str, ground.Held] | None = None,
    ask_kill: AskKill | None = None,
    drafter: bool = True,
    weights: Weights | None = None,
    earlier: Earlier | None = None,
    lost: Callable[[HostError], None] | None = None,
) -> Outcome:
    """Watch a restart to readiness or failure. `old`: the invocation that was running when it was ordered.

    `apart`: what `restart` gave. `weights`: how far they are loaded. `earlier`: what is known of
    earlier starts. `lost` is told of every loss of the link; the watch goes on after it.
    """
    watching = _Watching(
        ctx, lines, old, endpoint, say, apart, ask_kill, drafter, weights, earlier or Earlier(), lost
    )
    return await watching.run()


class _Watching:
    """One restart, watched."""

    def __init__(
        self,
        ctx: Tuning,
        lines: Lines,
        old: str,
        endpoint: tuple[str, int],
        say: Callable[[Glance], None],
        apart: Mapping[str, ground.Held] | None,
        ask_kill: AskKill | None,
        drafter: bool,
        weights: Weights | None,
        earlier: Earlier,
        lost: Callable[[HostError], None] | None,
    ) -> None:
        self.ctx, self.lines, self.old, self.endpoint = ctx, lines, old, endpoint
        self.say, self.apart, self.ask_kill, self.lost = say, apart, ask_kill, lost
        self.weights, self.earlier = weights, earlier
        self.clock = asyncio.get_running_loop().time
        self.began = self.clock()  # of the restart
        self.stop_deadline = self.began + ctx.service.stop_timeout
        self.gone_since: float | None = None
        self.new: str | None = None  # the new invocation
        self.new_since = self.began
        self.host_since: float | None = None  # of the new invocation, by the host's clock
        self.start = Start(drafter=drafter)
        self.seen = 0  # lines of the new invocation that `start` has seen
        self.healthy: tuple[float, int] | None = None  # since when it answers, and systemd's MainPID then
        self.next_health = 0.0
        self.next_weights = 0.0

    async def run(self) -> Outcome:
        while True:
            status = await steadily(
                self.ctx.host, lambda: self.ctx.supervisor.status(self.ctx.host), lost=self.lost
            )
            if self.new is None and status.invocation_id in ("", self.old):
                failed = await self._stopping(status)
            else:
                await self._weigh()
                if self.new is not None and (self._over(status) or status.invocation_id != self.new):
                    await self.lines.settle(self.new)
                failed = self._starting(status)
                if failed is None and await self._ready(status):
                    assert self.healthy is not None
                    seconds = self.healthy[0] - self.new_since
                    return Outcome(True, self.new or "", seconds, None, self.start.ready(seconds))
            if failed is not None:
                return Outcome(False, self.new or self.old, self.clock() - self.new_since, failed, self.start)
            await self.lines.wait(max(min(POLL, self.next_health - self.clock()), SHORTEST))

    # the old server

    async def _stopping(self, status: ServiceStatus) -> Failure | None:
        """The old invocation is still systemd's last word: it drains, stops, or nothing follows."""
        waited = self.clock() - self.began
        if status.active_state in ("active", "deactivating", "reloading", "activating"):
            self.gone_since = None
            running = self._draining()
            if running:
                text = f"draining: {running} request{'s' if running > 1 else ''} still run"
            else:
                text = f"the old server is stopping ({status.sub_state})"
            self.say(Glance(True, text, running=running))
            if self.clock() > self.stop_deadline:
                await self._kill(waited, running)
            return None
        self.gone_since = self.gone_since or self.clock()
        if self.apart is not None:
            return await self._start_apart(status)
        self.say(Glance(True, "the old server is gone"))
        if self.clock() - self.gone_since < GONE_GRACE:
            return None
        return self._explain(status) or Failure(
            Cause.UNKNOWN,
            f"the old server ended and {self.ctx.supervisor.name} started no new one"
            f" ({status.active_state}, {status.result})",
            (),
            "look at the journal and at the unit's dependencies",
        )

    async def _start_apart(self, status: ServiceStatus) -> Failure | None:
        """The stop is over: start as soon as the ground is clear."""
        _, port = self.endpoint
        look = partial(ground.look, self.ctx, status, port, self.apart)
        found = await steadily(self.ctx.host, look, lost=self.lost)
        assert self.gone_since is not None
        waited = self.clock() - self.gone_since
        in_time = waited < CLEAR_WITHIN
        if not found.clear or (found.unfreed_mib and in_time):
            self.say(Glance(True, f"waiting before the start: {found.words(port)}"))
            if in_time:
                return None
        if not found.clear:
            if found.leftovers and await self._may_kill(Stuck(waited, None, found.words(port))):
                self.gone_since = self.clock()
                return None
            kind = Cause.GPU_HELD if found.leftovers else Cause.PORT_IN_USE
            return Failure(
                kind, f"the new server was not started: {found.words(port)}", (), "end those processes"
            )

        async def act() -> None:
            now = await self.ctx.supervisor.status(self.ctx.host)
            if now.invocation_id in (self.old, "") and not now.running:
                self.host_since = await clock.now(self.ctx.host)
                demand(await order(self.ctx, self.ctx.supervisor.start), f"{self.ctx.unit} cannot be started")

        await steadily(self.ctx.host, act, lost=self.lost)
        self.apart, self.gone_since = None, self.clock()
        return None

    def _draining(self) -> int | None:
        """Requests that still run, by the old server's own count in its journal."""
        for entry in reversed(self.lines.of(self.old, None)):
            line = log.parse(entry.text)
            if line.kind is log.Kind.DRAINING and isinstance(line.fields.get("remaining"), int):
                return int(line.fields["remaining"])
        return None

    async def _kill(self, waited: float, running: int | None) -> None:
        """The limit is over: ask, and kill if told so; else wait for as long again."""
        limit = self.ctx.service.stop_timeout
        self.stop_deadline = self.clock() + limit
        what = f", {running} requests still run by its own count" if running else ""
        await self._may_kill(Stuck(waited, running, f"the old server does not stop: {waited:.0f} s{what}"))
        self.stop_deadline = self.clock() + limit

    async def _may_kill(self, stuck: Stuck) -> bool:
        """Kill what does not end, if the profile or the operator says so."""
        told = self.ctx.service.kill_when_stuck or (self.ask_kill is not None and await self.ask_kill(stuck))
        if told:
            await steadily(self.ctx.host, self._kill_now, lost=self.lost)
        return told

    async def _kill_now(self) -> None:
        supervisor = self.ctx.supervisor
        argv = supervisor.kill(await supervisor.status(self.ctx.host))
        if argv:
            await order(self.ctx, argv)

    # the new server

    @staticmethod
    def _over(status: ServiceStatus) -> bool:
        return status.active_state in ("failed", "inactive") or status.sub_state == "auto-restart"

    def _starting(self, status: ServiceStatus) -> Failure | None:
        if self.new is None:
            self.new, self.new_since = status.invocation_id, self.clock()
            self.host_since = status.exec_main_start or status.state_change
        if status.invocation_id not in (self.new, ""):
            return self._explain(status) or Failure(
                Cause.CRASH_LOOP,
                f"the new server died and {self.ctx.supervisor.name} has started it once more",
                (),
                "read the journal of the first of these starts",
            )
        elapsed = self.clock() - self.new_since
        mine = self.lines.of(self.new, self.host_since)
        for entry in mine[self.seen :]:
            at = entry.realtime_us / 1e6 - self.host_since if self.host_since else elapsed
            self.start = self.start.see(log.parse(entry.text), max(at, 0.0))
            if self.start.ready_line_seen and self.healthy is None:
                self.next_health = 0.0  # it says so itself: ask at once
        grown, self.seen = len(mine) > self.seen, len(mine)
        if self._over(status):
            return self._explain(status) or Failure(
                Cause.UNKNOWN,
                f"the new server ended ({status.result}, exit status {status.exec_main_status})",
                tuple(entry.text for entry in mine[-5:]),
                "read the journal of this start",
            )
        if elapsed > self.ctx.service.start_timeout:
            limit = self.ctx.service.start_timeout
            return self._explain(status, timed_out=True) or Failure(
                Cause.TIMEOUT,
                f"the new server is not ready after {limit:.0f} s; it is {self.start.text}",
                tuple(entry.text for entry in mine[-5:]),
                "raise start_timeout in the profile if starts take that long here",
            )
        if grown and (hung := self._hung()) is not None:
            return hung
        self.say(Glance(False, self.start.text, self.start.fraction, self._eta(elapsed)))
        return None

    def _hung(self) -> Failure | None:
        """A server that systemd calls active and that will never be ready: its port was taken."""
        assert self.new is not None
        found = failures.explain([entry.text for entry in self.lines.of(self.new, self.host_since)])
        return found if found and found.kind is Cause.PORT_IN_USE else None

    async def _weigh(self) -> None:
        """How far the target's weights are, by another source than the journal."""
        if self.weights is None or self.start.phase is not StartPhase.TARGET_WEIGHTS:
            return
        if self.clock() < self.next_weights:
            return
        self.next_weights = self.clock() + WEIGHTS_EVERY
        with suppress(HostError, TimeoutError):
            share = await self.weights.share()
            if share is not None:
                self.start = self.start.loaded(share)

    def _eta(self, elapsed: float) -> float | None:
        if self.earlier.timings:
            found = self.start.eta(elapsed, self.earlier.timings)
            if found is not None:
                return found
        if self.earlier.seconds is None or elapsed > self.earlier.seconds:
            return None
        return self.earlier.seconds - elapsed

    def _explain(self, status: ServiceStatus, *, timed_out: bool = False) -> Failure | None:
        mine = self.lines.of(self.new or "", self.host_since) if self.new or self.host_since else []
        return failures.explain(
            [entry.text for entry in mine],
            result=status.result,
            exit_status=status.exec_main_status,
            restarts=status.n_restarts,
            active_state=status.active_state,
            timed_out=timed_out,
        )

    async def _ready(self, status: ServiceStatus) -> bool:
        """Whether the health endpoint has answered twice, some time apart, for this very process."""
        if status.main_pid == 0 or self.clock() < self.next_health:
            return False
        host, port = self.endpoint
        try:
            async with Api(await self.ctx.host.endpoint(port, host), self.ctx.api_key) as api:
                health = await api.health(timeout=HEALTH_TIMEOUT)
        except (ApiError, HostError, TimeoutError):
            health = Health.DOWN
        now = self.clock()
        if health is not Health.READY:
            self.healthy, self.next_health = None, now + HEALTH_EVERY
            return False
        if self.healthy is None or self.healthy[1] != status.main_pid:
            self.healthy = (now, status.main_pid)
        self.next_health = self.healthy[0] + READY_FOR
        return now - self.healthy[0] >= READY_FOR
