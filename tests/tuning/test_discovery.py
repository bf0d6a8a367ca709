"""Finding units: what each of the host's answers is taken for. On a scripted host."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ddtui.host.base import Command, Completed, HostError
from ddtui.profile import Connection, Scope
from ddtui.tuning import discovery
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
    with pytest.raises(HostError, match="systemd does not answer"):
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
        "process 77 runs SGLang, and no service owns it: ddtui tunes what systemd runs",
    )


async def test_a_host_without_sglang_says_so() -> None:
    host = Scripted(
        {
            "systemctl list-unit": "ssh.service enabled\n",
            "systemctl show ssh": "Id=ssh.service\n",
            "ps ": "1 init\n",
        }
    )
    assert (await discovery.find(host)).notes == ("no unit here runs SGLang",)  # type: ignore[arg-type]


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
