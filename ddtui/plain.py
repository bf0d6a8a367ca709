"""The console as text: one line per event, for screen readers, dumb terminals and files. Changes nothing.

Each line is `HH:MM:SS kind text`. `told` is pure: what happened between two views, in lines.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from ddtui.bench.model import Burst
from ddtui.desk import AGAIN, Desk, Event, points_in_words, said
from ddtui.host.base import Asker, HostError, Link, NotPermitted
from ddtui.profile import Profile
from ddtui.sanitize import sanitize
from ddtui.session import JournalLine, Session
from ddtui.tuning.model import KnobRow, Verdict
from ddtui.view import RUNNING, View

WARNING = 4  # the least urgent syslog priority that is told
LOAD_EVERY = 10.0  # seconds between two lines about the server's load
BURSTS_EVERY = 15.0  # seconds between two looks for bursts that others ran


@dataclass(frozen=True, slots=True)
class Line:
    """One event."""

    kind: str
    text: str

    def at(self, when: float) -> str:
        flat = sanitize(" ".join(self.text.split()))
        return f"{time.strftime('%H:%M:%S', time.localtime(when))} {self.kind} {flat}"


def told(before: View, after: View) -> Iterator[Line]:
    """What happened from one view to the next, without the server's load."""
    was, now = before.tune, after.tune
    if (was.link.state, was.link.attempt) != (now.link.state, now.link.attempt):
        yield Line("link", link_words(now.link))
    if was.read_only != now.read_only:
        yield Line("host", f"read-only: {now.read_only}" if now.read_only else "changes are possible")
    yield from (Line("host", f"{one} is logged in") for one in now.people if one not in was.people)
    yield from (Line("host", f"{one} has left") for one in was.people if one not in now.people)
    for other in now.others:
        if other not in was.others:
            yield Line("host", other)
    for what in (now.stale_lock, now.cut):
        if what is not None and what not in (was.stale_lock, was.cut):
            yield Line("change", what)
    service = now.service
    if (was.service.active, was.service.sub, was.service.pid) != (service.active, service.sub, service.pid):
        pid = f", pid {service.pid}" if service.pid else ""
        yield Line("service", f"{service.unit} {service.active or 'not read'} ({service.sub}){pid}")
    if service.problem and service.problem != was.service.problem:
        yield Line("service", service.problem)
    for warning in service.warnings:
        if warning not in was.service.warnings:
            yield Line("service", warning)
    server = now.server
    if (was.server.version, was.server.algorithm) != (server.version, server.algorithm):
        yield Line(
            "server", f"SGLang {server.version or '?'}, {server.algorithm or 'no speculative decoding'}"
        )
    if now.step is not None and now.step != was.step:
        yield Line("change", f"the setting in force is step {now.step}")
    rows = {row.name: row for row in was.knobs}
    yield from (Line("knob", knob_words(row)) for row in now.knobs if rows.get(row.name) != row)
    judged = {verdict.subject: verdict for verdict in was.verdicts}
    for verdict in now.verdicts:
        old = judged.get(verdict.subject)
        if old is None or (old.status, old.summary) != (verdict.status, verdict.summary):
            yield Line("check", verdict_words(verdict))
    known = {burst.id for burst in before.bursts}
    for burst in reversed(after.bursts):
        if burst.id not in known and burst.state not in RUNNING:
            yield Line("burst", burst_words(burst))


def link_words(link: Link) -> str:
    speed = f", {link.rtt_ms:.0f} ms" if link.rtt_ms is not None else ""
    why = f": {link.message}" if link.message else ""
    return f"{link.target} {link.state}{speed}{why}"


def knob_words(row: KnobRow) -> str:
    layers = (("unit", row.in_unit), ("running", row.running), ("server", row.server))
    return f"{row.name}: " + ", ".join(f"{name} {value or 'not set'}" for name, value in layers)


def verdict_words(verdict: Verdict) -> str:
    return f"{verdict.title}: {verdict.status}. {verdict.summary}"


def burst_words(burst: Burst) -> str:
    step = f"step {burst.step}, " if burst.step is not None else ""
    return f"{step}{burst.state}: {points_in_words(burst)}"


def load_words(view: View) -> str:
    server = view.tune.server
    return f"{server.running} running, {server.queued or 0} queued"


class Plain:
    """One console without a screen. `write` takes each line."""

    def __init__(
        self, profile: Profile, write: Callable[[str], None], now: Callable[[], float] = time.time
    ) -> None:
        self._write, self._now = write, now
        self._desk = Desk(profile, now=now, keep_lines=1000)
        self._shown = self._desk.view
        self._load, self._load_at = "", 0.0
        self._desk.changed = self._changed
        self._desk.happened = self._happened

    def tell(self, kind: str, text: str, at: float | None = None) -> None:
        self._write(Line(kind, text).at(self._now() if at is None else at))

    async def run(self, session: Session, asker: Asker) -> None:
        """Until cancelled. Raises HostError if there is no first connection."""
        profile = self._desk.view.profile
        marks = [
            word for word, is_so in (("PROD", profile.production), ("SIMULATED", profile.simulated)) if is_so
        ]
        self.tell(
            "ddtui", " ".join([profile.name, *marks, profile.service.unit, "on", profile.connection.host])
        )
        self._desk.attach(session)
        try:
            await self._desk.connect(asker)
            await self._earlier()
            async with asyncio.TaskGroup() as work:
                work.create_task(self._desk.watch())
                work.create_task(self._journal(session))
                work.create_task(self._every(BURSTS_EVERY, self._desk.load_bursts))
        except Exception as error:
            self._desk.refused(error)
            raise
        finally:
            with suppress(TimeoutError, HostError):
                await self._desk.close()

    async def _earlier(self) -> None:
        """What was measured before, in one line."""
        self._desk.changed = lambda view: None
        try:
            await self._desk.load_bursts()
        except Exception as error:
            self.tell("history", said(error))
        self._desk.changed = self._changed
        bursts = self._desk.view.bursts
        self._shown = replace(self._shown, bursts=bursts)
        if bursts:
            self.tell("burst", f"the newest of {len(bursts)}: {burst_words(bursts[0])}")

    def _changed(self, view: View) -> None:
        before = self._shown
        if not view.tune.surveyed and before.tune.link == view.tune.link:
            return
        self._shown = view
        for line in told(before, view):
            self.tell(line.kind, line.text)
        load = load_words(view)
        now = self._now()
        known = view.tune.server.running is not None
        if known and load != self._load and now - self._load_at >= LOAD_EVERY:
            self._load, self._load_at = load, now
            self.tell("load", load)

    def _happened(self, event: Event) -> None:
        if event.title not in ("link", "link lost"):  # told with the link's own line
            self.tell(event.title.replace(" ", "-"), event.text)

    async def _journal(self, session: Session) -> None:
        began = self._now()
        while True:
            try:
                async for lines in session.journal():
                    for line in lines:
                        if line.at >= began and urgent(line):
                            self.tell("journal", line.text, line.at)
            except NotPermitted as error:
                self.tell("journal", said(error))
                return
            except Exception as error:
                self.tell("journal", said(error))
            began = self._now()
            await asyncio.sleep(AGAIN)

    async def _every(self, seconds: float, do: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await do()
            except Exception as error:
                self.tell("history", said(error))
            await asyncio.sleep(seconds)


def urgent(line: JournalLine) -> bool:
    """Whether a line of the journal is worth a line here: a warning or worse."""
    from ddtui.widgets.journal_lines import Level, level_of

    return (
        line.mark
        or line.priority <= WARNING
        or level_of(line.text, line.priority) in (Level.WARNING, Level.ERROR)
    )
