"""Every container of a host, as docker and podman list them to this user.

Commands: `docker ps -a --no-trunc --format FORMAT`, as this user, else as root where that is granted; `podman
ps -a --no-trunc --format json`. The labels are those that docker compose and podman's systemd generator set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ddtui.host import container
from ddtui.host.base import Command, Completed, Host

FILES, SERVICE = "com.docker.compose.project.config_files", "com.docker.compose.service"
UNIT = "PODMAN_SYSTEMD_UNIT"
FIELDS = ("{{.ID}}", "{{.Names}}", "{{.State}}", f'{{{{.Label "{FILES}"}}}}', f'{{{{.Label "{SERVICE}"}}}}')
DOCKER = ("docker", "ps", "-a", "--no-trunc", "--format", "\t".join((*FIELDS, "{{.Image}} {{.Command}}")))
PODMAN = ("podman", "ps", "-a", "--no-trunc", "--format", "json")
LISTS = (Command(DOCKER, secret=True), Command(PODMAN, secret=True))
_OF = re.compile(r"(?:docker|libpod|cri-containerd|crio)[-/](?:payload-)?([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Listed:
    """One container, running or not."""

    id: str
    name: str
    running: bool
    words: str  # image and command, as they are listed
    files: tuple[str, ...] = ()  # of the compose project that made it
    service: str = ""  # of that project
    unit: str = ""  # the systemd unit that made it
    sudo: bool = False  # root alone may see it


@dataclass(frozen=True, slots=True)
class Containers:
    listed: tuple[Listed, ...] = ()
    problem: str = ""  # why there may be more, in a sentence


async def of(host: Host, answers: Sequence[Completed]) -> Containers:
    """What the answers to LISTS say; docker is asked again as root where it speaks to root alone."""
    docker, podman = answers
    docker, sudo = await container.or_as_root(docker, host.batch, secret=True)
    problem = ""
    if not docker.ok and container.denied(docker):
        problem = "docker is here, and this user may not speak to it: the group docker grants that"
    rows = [line.split("\t") for line in docker.out.splitlines()] if docker.ok else []
    found = [_by_docker(row, sudo) for row in rows if len(row) == len(FIELDS) + 1]
    return Containers((*found, *_by_podman(podman)), problem)


def _by_docker(row: Sequence[str], sudo: bool) -> Listed:
    number, name, state, files, service, words = row
    paths = tuple(path for path in files.split(",") if path)
    return Listed(number, name, state in ("running", "paused"), words, paths, service, sudo=sudo)


def _by_podman(done: Completed) -> list[Listed]:
    try:
        rows = json.loads(done.out) if done.ok else []
        return [
            Listed(
                str(row["Id"]),
                str((row.get("Names") or [""])[0]),
                row.get("State") in ("running", "paused"),
                " ".join(map(str, (row.get("Image"), *(row.get("Command") or ())))),
                unit=str((row.get("Labels") or {}).get(UNIT) or ""),
            )
            for row in rows
        ]
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        return []


def of_cgroup(text: str) -> str:
    """The id of the container that a process runs in, by /proc/PID/cgroup; "" for none."""
    found = _OF.search(text)
    return found[1] if found else ""
