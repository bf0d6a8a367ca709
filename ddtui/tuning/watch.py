"""Watching a host and its service: one frozen `WatchState` after another, for whoever subscribes.

Every two seconds a cheap look (systemd's status, the times of the files, the lock: two round trips side by
side). A layer is read again only when something moved that it rests on. The server's own load is asked for
every ten seconds, and when something moved: each asking is a line in the server's access log. Whoever acts on
it (a plan, a restart, a burst) asks for itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ddtui.engine.api import ApiError
from ddtui.host import clock, gpu, logins
from ddtui.host.base import HostError, Link, LinkLost, LinkState, Unreachable
from ddtui.sanitize import sanitize
from ddtui.store.model import HistoryError
from ddtui.tuning import change, doctor, layers, lock, place, steps, verdicts
from ddtui.tuning import survey as surveys
from ddtui.tuning.change import Pending
from ddtui.tuning.context import Tuning
from ddtui.tuning.file_times import unit_folders
from ddtui.tuning.lock import LockState
from ddtui.tuning.model import KnobRow, Layer, Verdict
from ddtui.tuning.place import Place
from ddtui.tuning.survey import Survey

if TYPE_CHECKING:
    from ddtui.engine.api import Loads
    from ddtui.host.gpu import GpuLoad
    from ddtui.host.service import ServiceStatus

INTERVAL = 2.0  # seconds
GPUS_EVERY, NO_GPUS_EVERY = 10.0, 120.0  # seconds between looks at the GPUs, and where there are none
LOADS_EVERY = 10.0  # seconds between askings for the server's load
CLOCK_EVERY = 60.0  # seconds between looks at the host's clock
CLOCK_STEP = 1.0  # seconds by which it must differ from what it was, to be news
PEOPLE_EVERY = 60.0  # seconds between looks for who is logged in
PENDING_EVERY = 30.0  # seconds between looks for a change that was cut
NOTICES = 50


@dataclass(frozen=True, slots=True)
class WatchState:
    """Everything known of the host at one moment. Nothing here is younger than its own time."""

    link: Link
    survey: Survey | None = None
    verdicts: tuple[Verdict, ...] = ()
    knobs: tuple[KnobRow, ...] = ()
    status: ServiceStatus | None = None
    status_at: float | None = None  # unix time
    loads: Loads | None = None
    loads_at: float | None = None
    gpus: tuple[GpuLoad, ...] = ()
    gpus_unknown: str = ""  # why there are none: "no nvidia-smi"
    people: tuple[str, ...] = ()  # who is logged in on the host: "ann from 10.0.0.5"
    step: int | None = None  # number of the setting in force, from the history
    lock: LockState | None = None
    pending: Pending | None = None  # a change that was cut
    read_only: str | None = None  # why nothing may be changed
    simulated: bool = False
    problem: str | None = None  # why the last look gave nothing
    ahead: float | None = None  # seconds that the host's clock is ahead of this machine's; None: not known
    notices: tuple[str, ...] = field(
        default=()
    )  # what others did: "12:01:07 …/x.conf was changed", newest last

    @property
    def locked_by_other(self) -> str | None:
        """Who else holds the lock, in words: until that ends, nothing may be changed from here."""
        if self.lock is None or self.lock.ours:
            return None
        return f"{self.lock.owner} is at work here: {self.lock.purpose}"


class Watch:
    """Polls cheaply, surveys when something moved, and survives the loss of the link."""

    def __init__(self, ctx: Tuning, *, interval: float = INTERVAL) -> None:
        self._ctx = ctx
        self._interval = interval
        self._callbacks: list[Callable[[WatchState], None]] = []
        self._state = WatchState(link=ctx.host.link, simulated=ctx.profile.simulated, read_only=_told(ctx))
        self._wake = asyncio.Event()
        self._surveying = asyncio.Lock()
        self._place: Place | None = None
        self._rights_known = False
        self._pending_at = 0.0
        self._loads_at = 0.0  # when the load was asked for, on the monotonic clock
        self._gpus_at: float | None = None
        self._people_at: float | None = None
        self._clock_at: float | None = None
        self._working = 0  # changes of our own that run
        self._worked = 0  # how many have begun or ended

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """What moves on the host within this context is our own doing: it is read, and no news."""
        self._working += 1
        self._worked += 1
        try:
            yield
        finally:
            self._working -= 1
            self._worked += 1
            self._pending_at = 0.0  # a change that was stopped here is cut
            self._wake.set()

    @property
    def state(self) -> WatchState:
        return self._state

    def subscribe(self, callback: Callable[[WatchState], None]) -> Callable[[], None]:
        """Call back with every new state. Returns the function that ends it."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None

    async def run(self) -> None:
        """Watch until cancelled."""
        end = self._ctx.host.on_link(self._on_link)
        try:
            while True:
                if (
                    self._state.link.state is LinkState.CONNECTED
                    or self._ctx.host.link.state is LinkState.CONNECTED
                ):
                    await self._look()
                self._wake.clear()
                try:
                    async with asyncio.timeout(self._interval):
                        await self._wake.wait()
                except TimeoutError:
                    pass
        finally:
            end()

    async def refresh(self, layer: Layer | None = None) -> None:
        """Survey now: all layers, or one."""

        async def now() -> None:
            async with self._surveying:
                if layer is None:
                    await self._survey()
                else:
                    await self._survey(self._state.survey, frozenset({layer}))

        await self._guarded(now)

    # looking

    def _on_link(self, link: Link) -> None:
        was = self._state.link.state
        self._publish(link=link)
        if link.state is LinkState.CONNECTED and was is not LinkState.CONNECTED:
            self._pending_at = 0.0
            self._wake.set()

    async def _look(self) -> None:
        """One look. What fails is said in `problem`; the next look tries again."""
        await self._guarded(self._one_look)

    async def _guarded(self, act: Callable[[], object]) -> None:
        try:
            done = act()
            assert asyncio.iscoroutine(done)
            await done
            self._publish(link=self._ctx.host.link, problem=None)
        except (LinkLost, Unreachable) as error:
            self._publish(link=self._ctx.host.link, problem=sanitize(str(error)))
        except TimeoutError:
            self._publish(link=self._ctx.host.link, problem="the host did not answer in time")
        except HostError as error:
            self._publish(link=self._ctx.host.link, problem=sanitize(str(error)))

    async def _one_look(self) -> None:
        ctx = self._ctx
        if self._place is None:
            self._place = await place.find(ctx)
        if not self._rights_known:
            told = _told(ctx)
            self._publish(read_only=told or await doctor.rights(ctx))
            self._rights_known = True
        await self._read_clock()
        async with self._surveying:
            survey = self._state.survey
            if survey is None or survey.service is None:
                await self._survey()
            else:
                await self._glance(survey)
        await asyncio.gather(self._read_lock(), self._read_loads(), self._read_gpus(), self._read_people())
        if time.monotonic() - self._pending_at > PENDING_EVERY or self._state.pending is not None:
            self._pending_at = time.monotonic()
            self._publish(pending=await change.pending(ctx))

    async def _glance(self, survey: Survey) -> None:
        """systemd's status and the times of the files; the layers that rest on what moved are read again."""
        worked = self._worked
        looked, moved = await layers.look(self._ctx, survey)
        self._publish(status=looked.status, status_at=time.time())
        moved -= {Layer.SERVER, Layer.MEASURED}  # their numbers have a poll of their own
        if looked.status is not None and not looked.status.running:
            moved -= {Layer.PROCESS, Layer.JOURNAL} if survey.status == looked.status else frozenset()
        if survey.server.value is None and looked.status is not None and looked.status.running:
            moved |= {Layer.SERVER}
        if moved:
            # by the times of before the reading: what changes meanwhile is read again at the next look
            await self._survey(looked, moved | {Layer.SERVER, Layer.MEASURED}, worked)
        else:
            self._publish(survey=looked)

    def _notice(self, before: Survey, after: Survey, *, ours: bool) -> None:
        """Say what somebody else changed. `ours`: ddtui itself is at work, on the unit alone."""
        ours = ours or (self._state.lock is not None and self._state.lock.ours)
        own = {*before.unit.value.files, *unit_folders(before)} if ours and before.unit.value else set()
        said = []
        for path, at in after.stamps.items():
            was = before.changed_at.get(path)
            if was is not None and was != at and path not in own:
                said.append(f"{path} {'is gone' if at == 0 else 'is new' if was == 0 else 'was changed'}")
        old, new = before.status, after.status
        if old and new and old.invocation_id != new.invocation_id and not ours:
            said.append("the service was started anew")
        if said:
            clock = time.strftime("%H:%M:%S")
            lines = tuple(f"{clock} {sanitize(text)}" for text in said)
            self._publish(notices=(*self._state.notices, *lines)[-NOTICES:])

    async def _survey(
        self, previous: Survey | None = None, only: frozenset[Layer] | None = None, worked: int | None = None
    ) -> None:
        """Read, judge and publish: all layers, or these anew. One at a time: whoever calls holds the lock.

        `worked`: what `_worked` was when that began which led here.
        """
        worked = self._worked if worked is None else worked
        before, survey = self._state.survey, await surveys.read(self._ctx, previous, only)
        if before is not None:
            self._notice(before, survey, ours=bool(self._working) or self._worked != worked)
        self._loads_at = 0.0
        judged = verdicts.judge(survey, self._ctx.profile)
        self._publish(
            survey=survey,
            verdicts=judged,
            knobs=surveys.knob_rows(survey, self._ctx),
            status=survey.status,
            status_at=survey.at,
            step=self._step(survey, judged),
        )

    def _step(self, survey: Survey, judged: tuple[Verdict, ...]) -> int | None:
        """The step in force: a setting counts once the server itself has answered for it."""
        if survey.server.value is None:
            return None
        try:
            step = steps.keep(self._ctx, survey, judged)
        except HistoryError:
            return self._state.step
        return step.number if step else None

    async def _read_lock(self) -> None:
        assert self._place is not None
        self._publish(lock=await lock.look(self._ctx, self._place))

    async def _read_clock(self) -> None:
        """How the host's clock goes: what systemd says of times is by that."""
        if self._clock_at is not None and time.monotonic() - self._clock_at < CLOCK_EVERY:
            return
        self._clock_at, began = time.monotonic(), time.time()
        try:
            there = await clock.now(self._ctx.host)
        except (LinkLost, Unreachable):
            raise
        except (HostError, TimeoutError):
            return
        ahead = there - (began + time.time()) / 2
        if self._state.ahead is None or abs(ahead - self._state.ahead) > CLOCK_STEP:
            self._publish(ahead=ahead)

    async def _read_gpus(self) -> None:
        every = NO_GPUS_EVERY if self._state.gpus_unknown else GPUS_EVERY
        if self._gpus_at is not None and time.monotonic() - self._gpus_at < every:
            return
        self._gpus_at = time.monotonic()
        try:
            loads, unknown = await gpu.load(self._ctx.host)
        except TimeoutError:
            loads, unknown = (), "nvidia-smi does not answer"
        self._publish(gpus=loads, gpus_unknown=unknown)

    async def _read_people(self) -> None:
        if self._people_at is not None and time.monotonic() - self._people_at < PEOPLE_EVERY:
            return
        self._people_at = time.monotonic()
        with suppress(TimeoutError):
            self._publish(people=await logins.logins(self._ctx.host))

    async def _read_loads(self) -> None:
        survey = self._state.survey
        if (
            survey is None
            or survey.status is None
            or not survey.status.running
            or survey.server.value is None
        ):
            self._publish(loads=None)
            return
        if time.monotonic() - self._loads_at < LOADS_EVERY:
            return
        self._loads_at = time.monotonic()
        try:
            async with await layers.open_api(self._ctx, survey) as api:
                loads = await api.loads()
        except (ApiError, TimeoutError):
            self._publish(loads=None)
            return
        self._publish(loads=loads, loads_at=time.time())

    def _publish(self, **fields: object) -> None:
        state = replace(self._state, **fields)  # type: ignore[arg-type]
        if state == self._state:
            return
        self._state = state
        for callback in tuple(self._callbacks):
            callback(state)


def _told(ctx: Tuning) -> str | None:
    """Why this context is read-only before the host was asked."""
    return ctx.read_only or ("the profile says read_only" if ctx.profile.read_only else None)
