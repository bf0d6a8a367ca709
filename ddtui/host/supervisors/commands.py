"""Commands of the operator's own: they start and stop the server, and print its process id and its log.

Commands: those of the profile, as they stand there; `cat -- /proc/PID/stat`, `kill -s KILL PID`, those of
`processes` and `text_log`.
"""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator
from dataclasses import dataclass

from ddtui.host import processes
from ddtui.host.base import Command, CommandFailed, Host
from ddtui.host.journal import JournalEntry
from ddtui.host.service import ServiceReading, ServiceStatus
from ddtui.host.supervisors import unitless
from ddtui.host.supervisors.base import Argv
from ddtui.host.supervisors.text_log import CommandLog, FileLog
from ddtui.profile import Commands, Service


@dataclass(frozen=True, slots=True)
class PlainCommands:
    """A service by commands."""

    service: Service
    made: Commands
    name: str = "the profile's commands"
    programs: tuple[tuple[Argv, str], ...] = ()

    @property
    def root(self) -> bool:
        return self.made.sudo

    @property
    def lacks(self) -> tuple[str, ...]:
        return (
            "how a server ended is not known (exit status, signal): only its log tells why",
            "nobody starts a server again that died, unless your commands see to it",
            "processes that a dead server leaves behind are not found; its port and its GPU memory are"
            " looked at before a start",
            *(() if self.made.log else ("without `log` in the profile no line of the server is seen",)),
            *(
                ()
                if self.made.kill
                else ("a server that does not stop is ended by a signal to the one process of `pid`",)
            ),
        )

    async def status(self, host: Host) -> ServiceStatus:
        done = await host.run(self.made.pid)
        if done.exit_code == 127:
            raise CommandFailed(
                f"{host.name} has no {self.made.pid[0]}", "correct service.commands.pid in the profile"
            )
        number = next((int(word) for word in done.out.split() if word.isdigit() and int(word) > 1), 0)
        if not number:
            return unitless.status_of(self.service)
        stat, *clock = await host.batch([Command(("cat", "--", f"/proc/{number}/stat")), *processes.CLOCK])
        fields = stat.out.rpartition(")")[2].split()  # proc(5): state is the first after the name
        if not stat.ok or len(fields) < 20 or fields[0] in ("Z", "X"):
            return unitless.status_of(self.service)
        ticks, known = int(fields[19]), processes.read_clock(clock)
        started = known.time_of(ticks) if known else None
        return unitless.status_of(
            self.service,
            active_state="active",
            sub_state="running",
            invocation_id=f"{number}-{ticks}",
            main_pid=number,
            active_enter=started,
            state_change=started,
            exec_main_start=started,
        )

    async def reading(self, host: Host, *, knobs: tuple[str, ...] = (), sudo: bool = False) -> ServiceReading:
        started = unitless.Started(self.made.launch or self.made.start)
        return await unitless.read(host, self.service, await self.status(host), started, knobs, sudo)

    async def text(self, host: Host) -> str:
        words = {"start": self.made.start, "stop": self.made.stop, "pid": self.made.pid}
        lines = [f"{name}: {shlex.join(argv)}" for name, argv in words.items()]
        for word in self.made.launch or self.made.start:
            if word.startswith("/"):
                done = await host.run(("head", "-c", "65536", "--", word))
                if done.ok and b"\0" not in done.stdout:
                    lines += ["", f"# {word}", done.out]
        return "\n".join(["# service.commands of the profile", *lines])

    # its log

    @property
    def _log(self) -> FileLog | CommandLog | None:
        if self.made.log is None:
            return None
        if isinstance(self.made.log, str):
            return FileLog(self.made.log)
        assert self.made.follow is not None
        return CommandLog(self.made.log, self.made.follow)

    async def follow(
        self, host: Host, *, after: str | None = None, lines: int = 100
    ) -> AsyncIterator[JournalEntry]:
        if self._log is None:
            return
        async for entry in self._log.follow(host, after, lines):
            yield entry

    async def lines(
        self,
        host: Host,
        *,
        invocation: str | None = None,
        since: float | None = None,
        until: float | None = None,
        lines: int | None = None,
    ) -> list[JournalEntry]:
        if self._log is None:
            raise CommandFailed("the profile names no log", "service.commands.log names its file")
        if since is None and invocation:
            since = (await self.status(host)).exec_main_start
        return await self._log.lines(host, since, until, lines)

    async def earlier(self, host: Host, before: str, count: int) -> list[JournalEntry]:
        return await self._log.earlier(host, before, count) if self._log else []

    # orders

    verify = reload = reset = restart = None

    @property
    def stop(self) -> Argv:
        return self.made.stop

    @property
    def start(self) -> Argv:
        return self.made.start

    def kill(self, status: ServiceStatus) -> Argv | None:
        if self.made.kill:
            return self.made.kill
        return ("kill", "-s", "KILL", str(status.main_pid)) if status.main_pid else None
