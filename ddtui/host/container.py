"""The container that a service's server runs in, and commands inside it.

Its processes are not under the unit's cgroup, and its files are not the host's. Commands: `docker top NAME
-o pid`, `podman top NAME hpid`, `docker exec -i NAME COMMAND…`, and for a compose service, whose container
has a name of compose's choosing, `docker ps --no-trunc --filter label=com.docker.compose.service=SERVICE
--format FORMAT`. Each as this user (group docker), else as root where that is granted.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ddtui.host.base import Command, Completed, NotPermitted
from ddtui.host.unit.container import on_host
from ddtui.host.unit.read import UnitReading

__all__ = ["Container", "Found", "find", "on_host", "published", "python_of"]

RUNTIMES = ("docker", "podman", "nerdctl")
_FORMAT = '{{.Names}}\t{{.Label "com.docker.compose.project.config_files"}}'
# Of docker and nerdctl. podman shows each user its own containers only, as if there were no others.
_DENIED = re.compile(rb"permission denied|root privileges|must be root|rootless containerd", re.IGNORECASE)
_NOT_OWN = re.compile(rb"no such container", re.IGNORECASE)
Batch = Callable[[Sequence[Command]], Coroutine[Any, Any, list[Completed]]]


@dataclass(frozen=True, slots=True)
class Container:
    """A running container."""

    runtime: str  # docker, podman, nerdctl
    name: str
    sudo: bool = False  # only root may speak to the runtime

    def exec(self, argv: Sequence[str]) -> Command:
        """The command, inside; its stdin is handed on."""
        return Command((self.runtime, "exec", "-i", self.name, *argv), sudo=self.sudo)


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of a service's container."""

    container: Container | None = None
    pids: Completed | None = None  # what lists its processes, by the host's numbers
    problem: str = ""  # why there is none, in a sentence


async def find(unit: UnitReading, batch: Batch) -> Found:
    """The running container of a unit that starts one. Raises what the link raises."""
    assert unit.inside is not None
    made = unit.inside
    runtime, name = str(made["runtime"]), made["name"]
    if runtime not in RUNTIMES:
        return Found(problem=f"the container is started by {runtime}, which ddtui cannot ask")
    if unit.compose:
        return await _of_compose(unit.compose, runtime, batch)
    if not name:
        return Found(problem=f"{runtime} names the container itself: give it a name (--name) in the unit")
    return await _running(Container(runtime, str(name)), batch)


async def _of_compose(compose: Mapping[str, Any], runtime: str, batch: Batch) -> Found:
    service = str(compose["service"])
    label = f"label=com.docker.compose.service={service}"
    done, sudo = await _asked((runtime, "ps", "--no-trunc", "--filter", label, "--format", _FORMAT), batch)
    if not done.ok:
        return Found(problem=f"{runtime} does not list the containers of {service}: {_said(done)}")
    rows = [line.split("\t") for line in done.out.splitlines() if line.strip()]
    files = {str(path) for path in compose["files"]}
    own = [row for row in rows if len(row) > 1 and files & set(row[1].split(","))] or rows
    if not own:
        return Found(problem=f"no container of the compose service {service} runs")
    if len(own) > 1:
        names = ", ".join(row[0] for row in own)
        return Found(problem=f"several containers run the compose service {service}: {names}")
    return await _running(Container(runtime, own[0][0], sudo), batch)


async def _running(container: Container, batch: Batch) -> Found:
    columns = ("hpid",) if container.runtime == "podman" else ("-o", "pid")
    done, sudo = await _asked((container.runtime, "top", container.name, *columns), batch)
    if not done.ok:
        what = f"{container.runtime} does not tell the processes of the container {container.name}"
        return Found(problem=f"{what}: {_said(done)}")
    return Found(Container(container.runtime, container.name, sudo), done)


async def _asked(argv: tuple[str, ...], batch: Batch) -> tuple[Completed, bool]:
    (done,) = await batch([Command(argv)])
    return await or_as_root(done, batch)


async def or_as_root(done: Completed, batch: Batch, *, secret: bool = False) -> tuple[Completed, bool]:
    """The answer, or that which root gets where only root is told; and whether root had to ask."""
    if not done.ok and (denied(done) or _anothers(done)):
        try:
            (again,) = await batch([Command(done.argv, sudo=True, secret=secret)])
        except NotPermitted:
            return done, False
        if again.ok:
            return again, True
    return done, False


def denied(done: Completed) -> bool:
    """Whether the runtime speaks to root alone, or to its group."""
    return _DENIED.search(done.stderr) is not None


def _anothers(done: Completed) -> bool:
    """Whether it may be another user's container."""
    return done.argv[0] == "podman" and _NOT_OWN.search(done.stderr) is not None


def _said(done: Completed) -> str:
    if done.exit_code == 127:
        return "there is no such program on the host"
    if _anothers(done):
        return f"{done.last_words} (of this user's; a sudoers line for podman lets root's be seen)"
    if denied(done):
        return "this user may not speak to it; the group docker, or a sudoers line for it, grants that"
    return done.last_words


def python_of(unit: UnitReading, argv: Sequence[str] | None) -> str:
    """The interpreter inside, by the running process's command line, else the unit's."""
    for words in (argv, unit.launch_argv):
        first = words[0] if words else ""
        if posixpath.basename(first).startswith("python"):
            return first
    return "python3"


def published(unit: UnitReading, port: int) -> int:
    """The port of the host that leads to this port in the container; itself where none is published.

    Docker's forms: [[IP:]HOST:]CONTAINER[/PROTOCOL]; a range or a port of docker's choosing is not followed.
    """
    made: Mapping[str, Any] = unit.inside or {}
    for one in made.get("ports", ()):
        words = str(one).partition("/")[0].rsplit(":", 2)
        if len(words) > 1 and words[-1] == str(port) and words[-2].isdigit():
            return int(words[-2])
    return port
