"""systemd: a system or user unit, its journal, its orders.

Commands: `systemctl [--user] daemon-reload`, `reset-failed UNIT`, `restart|stop|start --no-block UNIT`,
`kill -s SIGKILL UNIT`, `cat UNIT --no-pager`; `systemd-analyze [--user] verify UNIT`; those of `service` and
`journal`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from ddtui.host import journal
from ddtui.host import service as services
from ddtui.host.base import Host
from ddtui.host.journal import JournalEntry
from ddtui.host.service import ServiceReading, ServiceStatus
from ddtui.host.supervisors.base import Argv
from ddtui.profile import Scope, Service


@dataclass(frozen=True, slots=True)
class Systemd:
    """A unit."""

    service: Service
    name: str = "systemd"
    lacks: tuple[str, ...] = ()
    programs: tuple[tuple[Argv, str], ...] = (
        (("systemctl", "--version"), "reading and restarting the unit"),
        (("journalctl", "--version"), "the journal"),
    )

    @property
    def root(self) -> bool:
        return self.service.scope is Scope.SYSTEM

    async def status(self, host: Host) -> ServiceStatus:
        return await services.read_status(host, self.service)

    async def reading(self, host: Host, *, knobs: tuple[str, ...] = (), sudo: bool = False) -> ServiceReading:
        return await services.read_service(host, self.service, knobs=knobs, sudo=sudo)

    async def text(self, host: Host) -> str:
        done = await host.run(self._systemctl("cat", self.service.unit, "--no-pager"))
        return done.out if done.ok else done.err

    def follow(
        self, host: Host, *, after: str | None = None, lines: int = 100
    ) -> AsyncIterator[JournalEntry]:
        return journal.follow(host, self.service.unit, self.service.scope, after=after, lines=lines)

    async def lines(
        self,
        host: Host,
        *,
        invocation: str | None = None,
        since: float | None = None,
        until: float | None = None,
        lines: int | None = None,
    ) -> list[JournalEntry]:
        unit, scope = self.service.unit, self.service.scope
        return await journal.read(
            host, unit, scope, invocation=invocation, since=since, until=until, lines=lines
        )

    async def earlier(self, host: Host, before: str, count: int) -> list[JournalEntry]:
        return await journal.earlier(host, self.service.unit, self.service.scope, before, count)

    def _systemctl(self, *words: str) -> Argv:
        return ("systemctl", *(() if self.root else ("--user",)), *words)

    @property
    def verify(self) -> Argv:
        return ("systemd-analyze", *(() if self.root else ("--user",)), "verify", self.service.unit)

    @property
    def reload(self) -> Argv:
        return self._systemctl("daemon-reload")

    @property
    def reset(self) -> Argv:
        return self._systemctl("reset-failed", self.service.unit)

    @property
    def restart(self) -> Argv:
        return self._systemctl("restart", "--no-block", self.service.unit)

    @property
    def stop(self) -> Argv:
        return self._systemctl("stop", "--no-block", self.service.unit)

    @property
    def start(self) -> Argv:
        return self._systemctl("start", "--no-block", self.service.unit)

    def kill(self, status: ServiceStatus) -> Argv:
        return self._systemctl("kill", "-s", "SIGKILL", self.service.unit)
