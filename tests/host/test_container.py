"""Finding a service's container by what docker, podman and compose answer."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ddtui.host import container
from ddtui.host.base import Command, Completed, NotPermitted
from ddtui.host.unit.read import UnitReading

DENIED = "permission denied while trying to connect to the Docker daemon socket"


def unit(inside: dict[str, Any] | None, compose: dict[str, Any] | None = None) -> UnitReading:
    return cast("UnitReading", SimpleNamespace(inside=inside, compose=compose, launch_argv=None))


class Runtime:
    """Answers by the command's words; None: only root may ask."""

    def __init__(self, answers: dict[str, str | None], *, root: bool = True) -> None:
        self.answers, self.root = answers, root
        self.asked: list[Command] = []

    async def batch(self, commands: Sequence[Command]) -> list[Completed]:
        self.asked += commands
        return [self.one(command) for command in commands]

    def one(self, command: Command) -> Completed:
        text = self.answers.get(" ".join(command.argv[:3]), "")
        if command.sudo and not self.root:
            raise NotPermitted("sudo")
        if text is None and not command.sudo:
            return Completed(command.argv, 1, b"", DENIED.encode(), 0.0)
        return Completed(command.argv, 0, (text or "PID\n7\n").encode(), b"", 0.0)


DOCKER = {"runtime": "docker", "name": "kimi", "mounts": [], "ports": ["127.0.0.1:8000:30000"], "env": {}}


async def test_a_named_container_is_found_and_a_command_runs_inside() -> None:
    runtime = Runtime({})
    found = await container.find(unit(DOCKER), runtime.batch)
    assert found.container and not found.container.sudo
    assert found.container.exec(("cat", "--", "/x")).argv == (
        "docker",
        "exec",
        "-i",
        "kimi",
        "cat",
        "--",
        "/x",
    )
    assert runtime.asked[0].argv == ("docker", "top", "kimi", "-o", "pid")


async def test_podman_tells_the_hosts_numbers() -> None:
    runtime = Runtime({})
    await container.find(unit({**DOCKER, "runtime": "podman"}), runtime.batch)
    assert runtime.asked[0].argv == ("podman", "top", "kimi", "hpid")


async def test_what_only_root_may_ask_is_asked_as_root_from_then_on() -> None:
    found = await container.find(unit(DOCKER), Runtime({"docker top kimi": None}).batch)
    assert found.container and found.container.exec(("id",)).sudo


async def test_no_right_to_ask_says_what_grants_it() -> None:
    found = await container.find(unit(DOCKER), Runtime({"docker top kimi": None}, root=False).batch)
    assert found.container is None and "the group docker" in found.problem


async def test_a_compose_service_is_found_by_its_labels_whatever_its_name() -> None:
    compose = {"files": ["/srv/kimi/compose.yaml"], "service": "sglang"}
    rows = "other-sglang-1\t/srv/other/compose.yaml\nmy name\t/srv/kimi/compose.yaml\n"
    found = await container.find(unit(DOCKER, compose), Runtime({"docker ps --no-trunc": rows}).batch)
    assert found.container and found.container.name == "my name"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("\n", "no container of the compose service sglang runs"),
        ("a-1\t/a/x.yaml\nb-1\t/b/x.yaml\n", "several containers run the compose service sglang: a-1, b-1"),
    ],
)
async def test_a_compose_service_without_one_container_is_said(rows: str, said: str) -> None:
    compose = {"files": ["/srv/kimi/compose.yaml"], "service": "sglang"}
    found = await container.find(unit(DOCKER, compose), Runtime({"docker ps --no-trunc": rows}).batch)
    assert found.container is None and found.problem == said


@pytest.mark.parametrize(
    ("ports", "here"),
    [
        ([], 30000),
        (["30000:30000"], 30000),
        (["8000:30000"], 8000),
        (["127.0.0.1:8000:30000/tcp"], 8000),
        (["[::1]:8000:30000"], 8000),
        (["9000:9000", "8000:30000"], 8000),
        (["30000"], 30000),
        (["8000-8010:30000-30010"], 30000),
    ],
)
def test_the_published_port_is_the_hosts(ports: list[str], here: int) -> None:
    assert container.published(unit({**DOCKER, "ports": ports}), 30000) == here
