"""The interface to what keeps the server running."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from ddtui.host.base import Host
from ddtui.host.journal import JournalEntry
from ddtui.host.service import ServiceReading, ServiceStatus

Argv = tuple[str, ...]


class Supervisor(Protocol):
    """Reads one service, its log, and says which commands order it. The commands are run by the caller."""

    @property
    def name(self) -> str:
        """As a sentence has it: "systemd", "docker compose", "the profile's commands"."""

    @property
    def root(self) -> bool:
        """Whether its orders take root's rights."""

    @property
    def lacks(self) -> tuple[str, ...]:
        """What cannot be done with it, a sentence each."""

    @property
    def programs(self) -> tuple[tuple[Argv, str], ...]:
        """The programs that it needs on the host: how each is asked for its version, and what it is for."""

    # reading

    async def status(self, host: Host) -> ServiceStatus:
        """What it says of the service. Raises CommandFailed, NotPermitted."""

    async def reading(self, host: Host, *, knobs: tuple[str, ...] = (), sudo: bool = False) -> ServiceReading:
        """Status, launch command and process. `sudo`: files that this user may not read are read as root."""

    async def text(self, host: Host) -> str:
        """What defines the service, to be read by people."""

    # its log

    def follow(
        self, host: Host, *, after: str | None = None, lines: int = 100
    ) -> AsyncIterator[JournalEntry]:
        """Its lines from now on, for ever, beginning with the last `lines` or after the cursor `after`."""

    async def lines(
        self,
        host: Host,
        *,
        invocation: str | None = None,
        since: float | None = None,
        until: float | None = None,
        lines: int | None = None,
    ) -> list[JournalEntry]:
        """Its lines, oldest first: of one start, of a time (unix seconds by the host's clock), the last."""

    async def earlier(self, host: Host, before: str, count: int) -> list[JournalEntry]:
        """Up to `count` lines before the cursor `before`, oldest first."""

    # orders

    @property
    def verify(self) -> Argv | None:
        """Checks the written definition before anything rests on it. None: nothing can."""

    @property
    def reload(self) -> Argv | None:
        """Makes it read its definitions again. None: not needed."""

    @property
    def reset(self) -> Argv | None:
        """Forgets earlier failures, before a restart."""

    @property
    def restart(self) -> Argv | None:
        """Stops and starts as one job, without waiting. None: only apart."""

    @property
    def stop(self) -> Argv: ...

    @property
    def start(self) -> Argv: ...

    def kill(self, status: ServiceStatus) -> Argv | None:
        """Ends a server that does not stop. None: there is nothing to kill."""


def restart_orders(supervisor: Supervisor) -> tuple[Argv, ...]:
    """What brings a changed definition in force, in order, its reload apart."""
    whole = (supervisor.restart,) if supervisor.restart else (supervisor.stop, supervisor.start)
    return tuple(argv for argv in (supervisor.reset, *whole) if argv)
