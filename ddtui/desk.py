"""The operator's desk: what the console shows and what it has running, without a terminal.

Publishes one frozen View after another. Its coroutines are run as workers by the app; cancelling one stops
what it does, and what was reached is kept.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar, cast

from ddtui.actions.action import Action, why_not
from ddtui.bench.model import Burst, BurstSpec, BurstState
from ddtui.host.base import (
    Asker,
    HostKeyRefused,
    Link,
    LinkState,
    LoggedCommand,
    NotAuthenticated,
    NotPermitted,
)
from ddtui.profile import Knob, KnobKind, Profile
from ddtui.redact import redact
from ddtui.sanitize import sanitize
from ddtui.session import JournalLine, Session
from ddtui.tuning.model import Op, Phase, Progress, Turn
from ddtui.view import RUNNING, ChangeKind, ChangeView, TuneView, View, next_value
from ddtui.widgets.journal_memory import JournalMemory
from ddtui.widgets.journal_store import JournalStore, Reading

if TYPE_CHECKING:
    from ddtui.tuning.experiments import ExperimentState

T = TypeVar("T")
AGAIN = 3.0  # seconds before something that ended is begun again
QUIET = 10.0  # seconds in which the same event is not told again
EARLIER_LINES = 2000  # that are read from the host's journal at once
EARLIER_READS = 25  # to get back to a time
KEPT_COMMANDS = 2000
KEPT_BURSTS = 50


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened that the operator should hear of once."""

    severity: Literal["information", "warning", "error"]
    title: str
    text: str
    at: float
    alert: bool = False  # worth hearing of away from the screen: a burst or change ended, the link was lost


class Desk:
    """The state of one console on one profile. `changed` and `happened` are set by whoever shows it."""

    def __init__(
        self,
        profile: Profile,
        *,
        now: Callable[[], float] = time.time,
        keep_lines: int = 200_000,
    ) -> None:
        self._session: Session | None = None
        self.now = now
        self.store = JournalStore(keep_lines)
        self.memory = JournalMemory.of(profile.connection.host or "local", profile.service.unit)
        self.commands: deque[LoggedCommand] = deque(maxlen=KEPT_COMMANDS)
        self.events: deque[Event] = deque(maxlen=500)
        self.changed: Callable[[View], None] = lambda view: None
        self.happened: Callable[[Event], None] = lambda event: None
        self.disk_closed: str | None = None  # why nothing may be written on this machine
        self.keymap: Mapping[str, str] = {}  # the operator's own keys: action id → keys
        link = Link(LinkState.CONNECTING, profile.connection.host, since=now())
        simulated, read_only = profile.simulated, "the profile says so" if profile.read_only else None
        self.view = View(profile, TuneView(link, simulated=simulated, read_only=read_only))
        self._seen_notices = 0
        self._earlier_took: float | None = None  # seconds that a reading of earlier lines took
        self.pair: tuple[int | None, int | None] = (None, None)  # ids of the steps that are compared, A and B

    @property
    def session(self) -> Session:
        """The session. RuntimeError before there is one."""
        if self._session is None:
            raise RuntimeError("the console has no session yet")
        return self._session

    @property
    def attached(self) -> bool:
        return self._session is not None

    def attach(self, session: Session) -> None:
        """Work through this session from now on."""
        self._session = session
        session.on_view(self._tune_changed)
        session.on_command(self.commands.append)
        self.publish(replace(self.view, tune=session.now))

    async def close(self, limit: float = 3.0) -> None:
        """Close the session, within `limit` seconds."""
        if self._session is not None:
            async with asyncio.timeout(limit):
                await self._session.close()

    # the view

    def publish(self, view: View) -> None:
        if view != self.view:
            self.view = view
            self.changed(view)

    def tell(
        self,
        severity: Literal["information", "warning", "error"],
        title: str,
        text: str,
        *,
        alert: bool = False,
    ) -> None:
        """An event: kept, and told; the same one again and again is told once in a while."""
        event = Event(severity, title, text, self.now(), alert)
        again = any(
            (title, text) == (other.title, other.text) and event.at - other.at < QUIET
            for other in self.events
        )
        self.events.append(event)
        if not again:
            self.happened(event)

    def mark(self, text: str) -> None:
        """A line of ddtui's own in the journal, at the host's time, and this machine's where that differs."""
        here, ahead = self.now(), self.store.ahead
        clock = f" here {clock_utc(here)}" if abs(ahead) >= 1 else ""
        self.store.append([JournalLine(here + ahead, f"── {text} ──{clock}", mark=True)])

    def _tune_changed(self, tune: TuneView) -> None:
        before = self.view.tune
        self.store.ahead = tune.ahead
        if before.link.state is LinkState.CONNECTED and tune.link.state in (
            LinkState.LOST,
            LinkState.RETRYING,
        ):
            self.mark("link lost")
            text = tune.link.message or "reconnecting by itself; nothing is lost"
            self.tell("warning", "link lost", text, alert=True)
        elif (
            before.surveyed
            and before.link.state is not LinkState.CONNECTED
            and tune.link.state is LinkState.CONNECTED
        ):
            self.mark("link is back")
            self.tell("information", "link", "the link is back", alert=True)
        for notice in tune.notices[self._seen_notices :]:
            self.tell("information", "host", notice)
        self._seen_notices = len(tune.notices)
        self.publish(replace(self.view, tune=tune))

    def why_not(self, action: Action) -> str | None:
        """Why this action cannot be done now; None: it can."""
        view = self.view
        return why_not(
            action.needs,
            connected=view.connected,
            read_only=view.tune.read_only,
            changing=view.changing,
            bursting=view.burst is not None,
            turned=bool(view.turns),
            trying=view.trying,
            disk_closed=self.disk_closed,
        )

    # knobs

    def turn(self, turn: Turn) -> None:
        """A wish; not applied before it was reviewed."""
        self.publish(self.view.with_turn(turn))

    def undo_turns(self) -> None:
        self.publish(self.view.without_turns())

    def nudge(self, name: str, by: int) -> str | None:
        """Turn a knob to its next preset up or down, or by one. Gives why not, if it cannot be."""
        knob, row = self.view.knob_of(name), self.view.row_of(name)
        if knob is None or row is None:
            return f"{name}: no such knob"
        if knob.kind is KnobKind.TEXT:
            return f"{name} is text: e edits it"
        value = nudged(knob, next_value(self.view, row), by)
        if value is None:
            return f"{name} is at the end of its range"
        self.turn(value)
        return None

    # work; each is one worker's body

    async def connect(self, asker: Asker) -> None:
        await self.session.connect(asker)

    def refused(self, error: Exception) -> None:
        """No connection came about: nothing on the screen may say that one is coming."""
        link = self.view.tune.link
        if link.state in (LinkState.CONNECTING, LinkState.RETRYING):
            final = isinstance(error, (NotAuthenticated, HostKeyRefused))
            state = LinkState.REFUSED if final else LinkState.LOST
            link = replace(link, state=state, message=said(error), since=self.now())
            self.publish(replace(self.view, tune=replace(self.view.tune, link=link)))

    async def watch(self) -> None:
        """Keep reading until cancelled. What fails is told, and tried again."""
        while True:
            try:
                await self.session.watch()
            except Exception as error:
                self.tell("error", "reading the host", said(error))
            await asyncio.sleep(AGAIN)

    async def follow_journal(self) -> None:
        """Fill the store until cancelled. What fails is told, and tried again unless it is not permitted."""
        while True:
            try:
                async with _closing(self.session.journal()) as lines:
                    async for batch in lines:
                        self.store.append(batch, self.now())
            except NotPermitted as error:
                self.mark(f"the journal cannot be read: {said(error)}")
                return
            except Exception as error:
                self.mark(f"the journal stopped: {said(error)}")
                self.tell("error", "journal", said(error))
            await asyncio.sleep(AGAIN)

    async def load_earlier(self, until: float | None = None) -> None:
        """Read the lines before the oldest one from the host; with `until`, back to that time (unix)."""
        store = self.store
        if store.reading or store.whole:
            return
        store.reading = reading = Reading(self.now(), self._earlier_took if until is None else None)
        store.changed()
        newest = store.times[0] if store.times else 0.0
        try:
            for _ in range(1 if until is None else EARLIER_READS):
                before = store.oldest
                if before is None:
                    break
                if not store.room:
                    self.tell("information", "journal", f"no more than {len(store):,} lines are kept here")
                    break
                lines = await self.session.earlier_lines(before, EARLIER_LINES)
                if store.oldest != before:  # the oldest were dropped meanwhile: these would leave a hole
                    break
                if not lines:
                    store.whole = True
                    break
                store.prepend(lines)
                if until is not None and newest > until:
                    reading.part = (newest - lines[0].at) / (newest - until)
                if until is None or lines[0].at <= until:
                    break
        except Exception as error:
            self.tell("warning", "earlier lines", said(error))
        else:
            if until is None:
                self._earlier_took = self.now() - reading.began
        finally:
            store.reading = None
            store.changed()

    async def mark_by_hand(self, text: str) -> None:
        """A marker with the host's time and this machine's."""
        here = self.now()
        try:
            there = await self.session.host_time()
            clock = f"host {clock_utc(there)}, here {clock_utc(here)}"
        except Exception as error:
            there, clock = here, f"here {clock_utc(here)}; the host's clock is not known: {said(error)}"
        text = sanitize(redact(text))
        self.store.append([JournalLine(there, f"── {text} ── {clock}", mark=True)])

    async def load_bursts(self) -> None:
        """What the history has of this host."""
        earlier = await self.session.earlier_bursts()
        known = {burst.id for burst in self.view.bursts}
        self._keep_bursts((*self.view.bursts, *(burst for burst in earlier if burst.id not in known)))

    async def change(self, kind: ChangeKind, title: str, steps: AsyncIterator[Progress]) -> None:
        """Run a change to its end, showing where it is. Cancelling leaves it where it is, for `resume`."""
        started, stopped = self.now(), False
        self.mark(f"{kind} {title}".strip())
        turned = self.view.turns
        progress = Progress(Phase.PLANNED, "starting")
        self.publish(replace(self.view, change=ChangeView(kind, title, progress, started_at=started)))
        try:
            async with _closing(steps) as progresses:
                async for progress in progresses:
                    self.publish(
                        replace(self.view, change=ChangeView(kind, title, progress, started_at=started))
                    )
        except asyncio.CancelledError:
            stopped = True
            goes_on, waits = "the host goes on with what it has begun", "the change can be finished or undone"
            after = goes_on if kind == "restart" else waits
            progress = replace(progress, phase=Phase.FAILED, failure=f"stopped here; {after}")
            raise
        except Exception as error:
            progress = replace(
                progress, phase=Phase.FAILED, failure=said(error), advice=getattr(error, "hint", "") or None
            )
        finally:
            progress = replace(progress, elapsed=max(progress.elapsed, self.now() - started))
            done = ChangeView(kind, title, progress, done=True, started_at=started)
            good = progress.phase in (Phase.VERIFIED, Phase.UNVERIFIED)
            turns = {} if good and kind == "apply" and self.view.turns == turned else self.view.turns
            self.publish(replace(self.view, change=done, turns=turns))
            self.mark(f"{kind} {title}: {progress.phase}".replace("  ", " "))
            severity: Literal["information", "warning", "error"] = "information" if good else "error"
            text = progress.failure or progress.phase.value
            self.tell(severity, f"{kind} {title}".strip(), text, alert=not stopped)

    async def burst(self, spec: BurstSpec) -> None:
        """Run a burst. Cancelling it stops the load and keeps what was measured."""
        latest: Burst | None = None
        self.mark("burst")
        try:
            async with _closing(self.session.burst(spec)) as snapshots:
                async for latest in snapshots:
                    self._show_burst(latest)
        except asyncio.CancelledError:
            if latest is not None:
                latest = replace(
                    latest, state=BurstState.CANCELLED, text="stopped by the operator", cell=None
                )
                self._show_burst(latest)
            raise
        except Exception as error:
            if latest is not None:
                latest = replace(latest, state=BurstState.FAILED, text=said(error), cell=None)
                self._show_burst(latest)
            self.tell("error", "burst", said(error), alert=True)
        finally:
            self.mark(f"burst {latest.state}" if latest is not None else "burst did not start")
            if latest is not None and latest.state is BurstState.DONE:
                self.tell("information", "burst", "done: " + points_in_words(latest), alert=True)
            elif latest is not None and latest.state is BurstState.FAILED:
                self.tell("error", "burst failed", latest.text, alert=True)

    async def experiment(self, title: str, states: AsyncIterator[ExperimentState]) -> None:
        """Run a sweep, an A/B or a calibration to its end, showing where it is. Cancelling it stops it where
        it is; it can be gone on with."""
        latest: ExperimentState | None = None
        self.mark(title)
        try:
            async with _closing(states) as snapshots:
                async for latest in snapshots:
                    self._show_experiment(latest)
        except asyncio.CancelledError:
            if latest is not None:
                latest = replace(latest, state="stopped", problem="stopped by the operator", eta_seconds=None)
            raise
        except Exception as error:
            if latest is not None:
                latest = replace(latest, state="stopped", problem=said(error), eta_seconds=None)
            else:
                self.tell("error", title, said(error))
        finally:
            if latest is not None:
                self._experiment_ended(title, latest)

    def _show_experiment(self, state: ExperimentState) -> None:
        self.publish(replace(self.view, experiment=state))
        for doing in state.doing.values():
            if doing.burst is not None:
                self._show_burst(doing.burst)

    def _experiment_ended(self, title: str, last: ExperimentState) -> None:
        ended = tuple(
            replace(burst, state=BurstState.CANCELLED, cell=None) if burst.state in RUNNING else burst
            for burst in self.view.bursts
        )
        left = dict(last.outcome.left or ()) if last.outcome is not None else {}
        turns = {  # a wish that was tried and kept is no wish any more
            name: turn
            for name, turn in self.view.turns.items()
            if left.get(name) != ("off" if turn.op is Op.UNSET else turn.value or "on")
        }
        self.publish(replace(self.view, experiment=last, bursts=ended, turns=turns))
        self.mark(f"{title}: {last.state}")
        if last.outcome is not None:
            self.tell("information", title, last.outcome.text, alert=True)
        else:
            self.tell(
                "warning", f"{title} {last.state}", last.problem or "it can be gone on with", alert=True
            )

    def _show_burst(self, burst: Burst) -> None:
        self._keep_bursts((burst, *(other for other in self.view.bursts if other.id != burst.id)))

    def _keep_bursts(self, bursts: tuple[Burst, ...]) -> None:
        self.publish(replace(self.view, bursts=bursts[:KEPT_BURSTS]))


def clock_utc(at: float) -> str:
    return time.strftime("%H:%M:%S UTC", time.gmtime(at))


def said(error: BaseException) -> str:
    """An exception in words."""
    return str(error) or type(error).__name__


def _closing(iterator: AsyncIterator[T]) -> aclosing[AsyncGenerator[T, None]]:
    """Close an async generator for sure, also when its consumer is cancelled."""
    return aclosing(cast("AsyncGenerator[T, None]", iterator))


def nudged(knob: Knob, now: str | None, by: int) -> Turn | None:
    """The turn to the next preset up or down, else by one; None at the end of the range."""
    if knob.kind is KnobKind.SWITCH:
        on = by > 0
        return Turn(knob.name, Op.SET, None) if on else Turn(knob.name, Op.UNSET)
    try:
        value = float(now) if now else None
    except ValueError:
        value = None
    presets = sorted(float(preset) for preset in knob.presets if not isinstance(preset, str))
    if presets and value is not None:
        beyond = [p for p in presets if p > value] if by > 0 else [p for p in reversed(presets) if p < value]
        if not beyond:
            return None
        return Turn(knob.name, Op.SET, f"{beyond[0]:g}")
    if value is None:
        first = presets[0] if presets else (knob.min if knob.min is not None else 1.0)
        return Turn(knob.name, Op.SET, f"{first:g}") if by > 0 else None
    value += by if knob.kind is KnobKind.INT else by * 0.1
    if (knob.min is not None and value < knob.min) or (knob.max is not None and value > knob.max):
        return None
    return Turn(knob.name, Op.SET, f"{value:g}")


def fault(knob: Knob, text: str) -> str | None:
    """What is wrong with this value for the knob, in a sentence; None: nothing."""
    if knob.kind is KnobKind.TEXT:
        return None if text.strip() else f"{knob.name} needs a value"
    if knob.kind is KnobKind.SWITCH:
        return None if text in ("on", "off") else f"{knob.name} is a switch: on or off"
    try:
        value = float(int(text)) if knob.kind is KnobKind.INT else float(text)
    except ValueError:
        kind = "whole number" if knob.kind is KnobKind.INT else "number"
        return f"{text!r} is no {kind}"
    if value != value or value in (float("inf"), float("-inf")):
        return f"{text!r} is no number"
    if knob.min is not None and value < knob.min:
        return f"{knob.name} is at least {knob.min:g}"
    if knob.max is not None and value > knob.max:
        return f"{knob.name} is at most {knob.max:g}"
    return None


def points_in_words(burst: Burst) -> str:
    """The burst's best headline: its greatest output rate with interval and sample count."""
    rated = [(point, point.output_rate) for point in burst.points if point.output_rate is not None]
    if not rated:
        return "no point was measured"
    point, rate = max(rated, key=lambda pair: pair[1].value)
    return (
        f"{len(burst.points)} points, best {rate.value:,.0f} tok/s at C={point.cell.concurrency} (n={rate.n})"
    )
