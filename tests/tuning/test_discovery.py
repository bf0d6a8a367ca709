"""Finding units: what each of the host's answers is taken for. On a scripted host."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from ddtui import profile
from ddtui.host.base import Command, Completed, HostError
from ddtui.profile import Compose, Connection, Scope
from ddtui.tuning import discovery, written
from ddtui.tuning.discovery import Found


class Scripted:
    """A host that answers by the command's words; anything else is not there."""

    name = "scripted"

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers

    async def run(self, argv: Sequence[str], **how: object) -> Completed:
        words = " ".join(argv)
        for start, out in self.answers.items():
            if words.startswith(start):
                return Completed(tuple(argv), 0, out.encode(), b"", 0.0)
        return Completed(tuple(argv), 1, b"", b"No such file or directory\n", 0.0)

    async def batch(self, commands: Sequence[Command], **how: object) -> list[Completed]:
        return [await self.run(command.argv) for command in commands]


async def test_a_host_without_systemd_says_so() -> None:
    with pytest.raises(HostError, match="systemd does not answer, and there is no docker"):
        await discovery.find(Scripted({}))  # type: ignore[arg-type]


async def test_a_server_outside_any_service_is_told() -> None:
    host = Scripted(
        {
            "systemctl list-unit": "ssh.service enabled\n",
            "systemctl show ssh.service": "Id=ssh.service\nDescription=OpenSSH\n",
            "ps ": "  1 /sbin/init\n  77 python3 -m sglang.launch_server --model-path /m\n",
            "cat -- /proc/77/cgroup": "0::/user.slice/user-1000.slice/session-3.scope\n",
        }
    )
    findings = await discovery.find(host)  # type: ignore[arg-type]
    assert findings.units == ()
    assert findings.notes == (
        "process 77 runs SGLang outside any service: a profile can name the commands that start and stop it "
        "(service.commands)",
    )


async def test_processes_of_one_kind_are_told_in_one_sentence() -> None:
    host = docker_host("")
    host.answers["ps "] = "  77 python3 -m sglang.launch_server\n  78 python3 -m sglang.launch_server\n"
    host.answers["cat -- /proc/7"] = host.answers.pop("cat -- /proc/77/cgroup").replace("docker", "kubepods")
    (note,) = (await discovery.find(host)).notes  # type: ignore[arg-type]
    assert note.startswith("processes 77, 78 run SGLang in a pod of Kubernetes: ")


async def test_on_a_host_without_sglang_nothing_is_found() -> None:
    host = Scripted(
        {
            "systemctl list-unit": "ssh.service enabled\n",
            "systemctl show ssh": "Id=ssh.service\n",
            "ps ": "1 init\n",
        }
    )
    assert (await discovery.find(host)) == discovery.Findings(())  # type: ignore[arg-type]


FILE = "/srv/llm/compose.yaml"
COMPOSE = """services:
  kimi:
    image: lmsysorg/sglang:v0.5.11
    command: python3 -m sglang.launch_server --model-path /m/Kimi --port 30001
      --speculative-algorithm EAGLE3 --speculative-draft-model-path /m/Draft
"""
ID = "ab" * 32
IN_DOCKER = f"0::/system.slice/docker-{ID}.scope\n"


def docker_row(files: str = FILE, service: str = "kimi", name: str = "llm-kimi-1") -> str:
    words = 'lmsysorg/sglang:v0.5.11 "python3 -m sglang.launch_server"'
    return "\t".join((ID, name, "running", files, service, words)) + "\n"


def docker_host(listed: str, **more: str) -> Scripted:
    """systemd knows docker alone; process 77 runs SGLang in a container."""
    return Scripted(
        {
            "systemctl list-unit": "docker.service enabled\n",
            "systemctl show docker.service": "Id=docker.service\nDescription=Docker\n",
            "ps ": "  77 python3 -m sglang.launch_server --model-path /m/Kimi\n",
            "cat -- /proc/77/cgroup": IN_DOCKER,
            "docker ps -a --no-trunc --filter": f"{ID}\t{FILE}\n",
            "docker ps -a": listed,
            "docker inspect": f'{ID}\t0\t{{"Status":"running","Pid":77,"StartedAt":"2026-05-28T12:00:00.1Z"}}\n',
            "head -c 4194304 -- /srv/llm/compose.yaml": COMPOSE,
            "id -u": "1000\n",
            "id -un": "me\n",
            **more,
        }
    )


async def test_a_service_of_docker_compose_is_found_with_its_file_model_drafter_and_port() -> None:
    findings = await discovery.find(docker_host(docker_row()))  # type: ignore[arg-type]
    (found,) = findings.units
    assert found.compose == Compose(file=FILE, service="kimi") and found.by == "compose"
    assert (found.unit, found.running, found.port) == ("kimi", True, 30001)
    assert (found.model, found.algorithm, found.drafter) == ("/m/Kimi", "EAGLE3", "/m/Draft")
    assert findings.notes == ()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (docker_row("", "", "mine"), "in the container mine, which no service made: a profile can name"),
        (docker_row(f"{FILE},/srv/b.yaml"), f"as kimi of docker compose, by {FILE}, /srv/b.yaml; a profile"),
        (docker_row("compose.yaml"), "a profile names one compose file, by its whole path"),
    ],
)
async def test_a_container_that_no_profile_can_name_is_told_with_the_way_that_is_left(
    row: str, said: str
) -> None:
    findings = await discovery.find(docker_host(row))  # type: ignore[arg-type]
    assert findings.units == () and len(findings.notes) == 1
    assert findings.notes[0].startswith("process 77 runs SGLang ") and said in findings.notes[0]


async def test_a_docker_that_speaks_to_root_alone_is_told() -> None:
    class Denied(Scripted):
        async def run(self, argv: Sequence[str], **how: object) -> Completed:
            if argv[0] == "docker":
                return Completed(tuple(argv), 1, b"", b"permission denied while trying to connect\n", 0.0)
            return await super().run(argv, **how)

    findings = await discovery.find(Denied(docker_host("").answers))  # type: ignore[arg-type]
    assert findings.notes[0].startswith("process 77 runs SGLang in a container that this user may not see")
    assert findings.notes[1].startswith("docker is here, and this user may not speak to it")


@pytest.mark.parametrize(
    ("cgroup", "label", "said"),
    [
        (
            f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope\n",
            "",
            "in a pod of Kubernetes: ",
        ),
        (f"0::/machine.slice/libpod-{ID}.scope\n", "", "in the container by-hand, which no service made: "),
        (f"0::/system.slice/sglang.service/libpod-payload-{ID}\n", "sglang.service", None),
    ],
)
async def test_a_podman_container_is_a_quadlets_or_told(cgroup: str, label: str, said: str | None) -> None:
    labels = {"PODMAN_SYSTEMD_UNIT": label} if label else None
    one = {"Id": ID, "Names": ["by-hand"], "State": "running", "Image": "sglang", "Labels": labels}
    listed = json.dumps([one])
    host = docker_host("", **{"podman ps": listed, "cat -- /proc/77/cgroup": cgroup})
    notes = (await discovery.find(host)).notes  # type: ignore[arg-type]
    assert len(notes) == (said is not None) and all(said is not None and said in note for note in notes)


def test_what_docker_compose_runs_is_written_as_a_profile_that_reads_back(tmp_path: Path) -> None:
    compose = Compose(file=FILE, service="kimi", sudo=True)
    found = Found("kimi", Scope.SYSTEM, "kimi", "active", "running", "/m/Kimi", "EAGLE3", compose=compose)
    made = discovery.draft("mine", Connection(host="h"), found)
    assert profile.parse(written.as_yaml(made), tmp_path / "mine.yaml") == made
    assert made.service.compose == compose


def test_templates_are_no_units_and_a_name_comes_once() -> None:
    lists = [
        Completed((), 0, b"a@.service static\nb.service enabled\n\n", b"", 0.0),
        Completed(
            (), 0, b"b.service loaded active running B\na@1.service loaded active running A\n", b"", 0.0
        ),
    ]
    assert discovery._names(lists) == ["b.service", "a@1.service"]


@pytest.mark.parametrize(
    ("cgroup", "owner"),
    [
        ("0::/system.slice/sglang.service\n", "sglang.service"),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/llm.service\n", "llm.service"),
        ("0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", ""),
        ("3:cpu:/x\n1:name=systemd:/system.slice/a.service/inner\n", "a.service"),
    ],
)
def test_a_process_belongs_to_the_innermost_service_of_its_cgroup(cgroup: str, owner: str) -> None:
    assert discovery._owner(cgroup) == owner


@pytest.mark.parametrize(
    ("algorithm", "knobs"),
    [
        ("DDTREE", ["budget", "topk", "window"]),
        ("DFLASH", ["block", "window"]),
        ("EAGLE3", ["steps", "topk", "tokens"]),
        ("NEXTN", ["steps", "topk", "tokens"]),
        (None, ["requests"]),
    ],
)
def test_the_knobs_are_those_of_the_algorithm(algorithm: str | None, knobs: list[str]) -> None:
    found = Found("a.service", Scope.USER, "A", "active", "running", "/m/Model", algorithm)
    made = discovery.draft("a", Connection(host="h"), found)
    assert [knob.name for knob in made.knobs] == knobs
    assert made.service.scope is Scope.USER and made.about.startswith("Model")
