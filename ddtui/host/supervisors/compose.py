"""docker compose: one service of a compose file, its container, its log.

Commands: `docker ps -a --no-trunc --filter label=com.docker.compose.service=SERVICE --format FORMAT`, `docker
inspect --type container --format FORMAT ID`, `docker compose -f FILE kill -s SIGTERM|SIGKILL SERVICE`,
`docker compose -f FILE up -d --no-deps SERVICE`, `docker compose -f FILE config --quiet`, `docker compose -f
FILE logs --no-color --no-log-prefix --timestamps [-f] [--since T] SERVICE`, `cat -- FILE`.

A container that is told to end by `kill -s SIGTERM` ends without anyone having to wait, and docker does not
start it again; `up -d` makes a new one if the file says something else by now.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ddtui.host import container
from ddtui.host.base import CommandFailed, Completed, Host, NotPermitted
from ddtui.host.journal import JournalEntry
from ddtui.host.service import ServiceReading, ServiceStatus
from ddtui.host.supervisors import unitless
from ddtui.host.supervisors.base import Argv
from ddtui.host.supervisors.text_log import CommandLog
from ddtui.profile import Compose, Service

_LISTED = '{{.ID}}\t{{.Label "com.docker.compose.project.config_files"}}'
_INSPECTED = "{{.Id}}\t{{.RestartCount}}\t{{json .State}}"
_ENDED_BY_SIGNAL = (0, 130, 137, 143)  # exit codes of a container that was told to end


@dataclass(frozen=True, slots=True)
class DockerCompose:
    """A compose service."""

    service: Service
    made: Compose
    name: str = "docker compose"
    lacks: tuple[str, ...] = (
        "docker throws a container's log away with the container: of a start that was undone, or of the one"
        " before, no line is left",
        "a container has no environment of its own to be compared: a variable that compose passes on is read"
        " from the files alone",
    )
    programs: tuple[tuple[Argv, str], ...] = (
        (("docker", "--version"), "the container"),
        (("docker", "compose", "version"), "starting and stopping it"),
    )

    @property
    def root(self) -> bool:
        return self.made.sudo

    async def status(self, host: Host) -> ServiceStatus:
        label = f"label=com.docker.compose.service={self.made.service}"
        listed = await self._docker(host, "ps", "-a", "--no-trunc", "--filter", label, "--format", _LISTED)
        rows = [line.split("\t") for line in listed.out.splitlines() if line.strip()]
        own = [row[0] for row in rows if self.made.file in (row[1:] or [""])[0].split(",")]
        if not own:
            return unitless.status_of(self.service)
        done = await self._docker(host, "inspect", "--type", "container", "--format", _INSPECTED, own[0])
        try:
            number, restarts, state = done.out.strip().split("\t", 2)
            return self._status(number, int(restarts), json.loads(state))
        except (ValueError, TypeError, KeyError) as error:
            what = f"docker does not say how the container of {self.made.service} is: {error!r}"
            raise CommandFailed(what) from None

    def _status(self, number: str, restarts: int, state: dict[str, Any]) -> ServiceStatus:
        code, word = int(state.get("ExitCode") or 0), str(state.get("Status"))
        started, finished = _time(state.get("StartedAt")), _time(state.get("FinishedAt"))
        killed = bool(state.get("OOMKilled"))
        result = "oom-kill" if killed else "success" if code in _ENDED_BY_SIGNAL else "exit-code"
        active, sub = {
            "running": ("active", "running"),
            "paused": ("active", "paused"),
            "restarting": ("activating", "auto-restart"),
            "removing": ("deactivating", "removing"),
        }.get(word, ("inactive" if result == "success" else "failed", word))
        running = word in ("running", "paused")
        return unitless.status_of(
            self.service,
            active_state=active,
            sub_state=sub,
            result="success" if running else result,
            n_restarts=restarts,
            invocation_id=f"{number[:12]}@{state.get('StartedAt')}" if started else "",
            main_pid=int(state.get("Pid") or 0),
            exec_main_code=0 if running else 1,
            exec_main_status=0 if running else code,
            active_enter=started,
            state_change=started if running else finished or started,
            exec_main_start=started,
            exec_main_exit=None if running else finished,
        )

    async def _docker(self, host: Host, *words: str) -> Completed:
        done = await host.run(("docker", *words), sudo=self.root)
        if done.ok:
            return done
        if done.exit_code == 127:
            raise CommandFailed("the host has no docker", "correct service.compose in the profile")
        if container.denied(done):
            raise NotPermitted(
                f"this user may not speak to docker on {host.name}",
                "the group docker grants it, or `sudo: true` in service.compose with a sudoers line",
            )
        raise CommandFailed(f"docker does not answer about {self.made.service}: {done.last_words}")

    async def reading(self, host: Host, *, knobs: tuple[str, ...] = (), sudo: bool = False) -> ServiceReading:
        folder = self.made.file.rpartition("/")[0]
        started = unitless.Started(self._compose("up", self.made.service), folder, contained=True)
        return await unitless.read(host, self.service, await self.status(host), started, knobs, sudo)

    async def text(self, host: Host) -> str:
        done = await host.run(("cat", "--", self.made.file))
        return f"# {self.made.file}\n{done.out}" if done.ok else done.err

    # its log

    @property
    def _log(self) -> CommandLog:
        read = self._compose("logs", "--no-color", "--no-log-prefix", "--timestamps")
        return CommandLog(read, (*read, "-f"), "--since", (self.made.service,), sudo=self.root)

    def follow(
        self, host: Host, *, after: str | None = None, lines: int = 100
    ) -> AsyncIterator[JournalEntry]:
        return self._log.follow(host, after, lines)

    async def lines(
        self,
        host: Host,
        *,
        invocation: str | None = None,
        since: float | None = None,
        until: float | None = None,
        lines: int | None = None,
    ) -> list[JournalEntry]:
        if since is None and invocation and (started := _time(invocation.partition("@")[2])):
            since = started
        return await self._log.lines(host, since, until, lines)

    async def earlier(self, host: Host, before: str, count: int) -> list[JournalEntry]:
        return await self._log.earlier(host, before, count)

    # orders

    def _compose(self, *words: str) -> Argv:
        return ("docker", "compose", "-f", self.made.file, *words)

    @property
    def verify(self) -> Argv:
        return self._compose("config", "--quiet")

    reload = reset = restart = None

    @property
    def stop(self) -> Argv:
        return self._compose("kill", "-s", "SIGTERM", self.made.service)

    @property
    def start(self) -> Argv:
        return self._compose("up", "-d", "--no-deps", self.made.service)

    def kill(self, status: ServiceStatus) -> Argv:
        return self._compose("kill", "-s", "SIGKILL", self.made.service)


def _time(text: object) -> float | None:
    """docker's RFC 3339 with nanoseconds; its year 1 is never."""
    if not isinstance(text, str) or not text or text.startswith("0001"):
        return None
    head, dot, rest = text.partition(".")
    fraction = rest.rstrip("Z") if dot else "0"
    try:
        return datetime.fromisoformat(head.rstrip("Z") + "+00:00").timestamp() + float(f"0.{fraction}")
    except ValueError:
        return None
