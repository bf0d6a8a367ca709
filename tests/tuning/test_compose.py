"""A service of docker compose, changed, verified and rolled back: real host, with a stand-in for docker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from contract_help import decode_lines, ready
from testhost_fixture import TestHost
from tuning.conftest import UNIT, Operator

from ddtui.host.base import NotPermitted
from ddtui.host.journal import JournalEntry
from ddtui.profile import Compose, Service
from ddtui.tuning import change, discovery, doctor, plan
from ddtui.tuning import survey as surveys
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Phase

pytestmark = pytest.mark.realhost
DOCKER = Path(__file__).with_name("standin_compose.py")
FILE = "/srv/sglang/compose.yaml"
TEXT = """# the operator's own words stay
services:
  kimi:
    image: lmsysorg/sglang:v0.5.11
    network_mode: host
    environment:
      PYTHONPATH: /opt/sglang
      SGLANG_STANDIN_LOAD_SECONDS: 0.6
      SGLANG_STANDIN_HEALTH_SECONDS: 0.05
    command: /usr/bin/python3 -m sglang.launch_server --model-path /opt/models/Kimi-K2.6 --trust-remote-code \
--host 127.0.0.1 --port 30000 --tp-size 8 --mem-fraction-static 0.88 --context-length 262144 \
--speculative-algorithm DDTREE --speculative-draft-model-path /opt/models/Kimi-K2.6-DFlash \
--speculative-ddtree-budget 8 --speculative-ddtree-topk-cap 4
"""


def by_compose(ctx: Tuning, *, sudo: bool = True) -> Tuning:
    made = Compose(file=FILE, service="kimi", sudo=sudo)
    service = Service(unit="kimi", compose=made, start_timeout=30, stop_timeout=10)
    return replace(ctx, profile=ctx.profile.model_copy(update={"service": service}))


@pytest.fixture(scope="module", autouse=True)
def project(testhost: TestHost) -> Iterator[None]:
    testhost.exec("systemctl", "stop", UNIT)
    testhost.exec("mkdir", "-p", "/srv/sglang")
    for path, content in (("/usr/bin/docker", DOCKER.read_bytes()), (FILE, TEXT.encode())):
        testhost.exec("tee", path, stdin=content)
    testhost.exec("chmod", "755", "/usr/bin/docker")
    testhost.exec("tee", "/etc/sudoers.d/docker", stdin=b"tuner ALL=(root) NOPASSWD: /usr/bin/docker\n")
    testhost.exec("docker", "compose", "-f", FILE, "up", "-d", "--no-deps", "kimi")
    yield
    testhost.exec("docker", "compose", "-f", FILE, "kill", "-s", "SIGKILL", "kimi")


async def test_every_layer_of_a_compose_service_is_read_by_standin_docker(operator: Operator) -> None:
    ctx = by_compose(await operator(history=True))
    await ready(ctx)
    survey = await surveys.read(ctx)
    assert survey.unit.value and survey.unit.value.lives == "compose", survey.unit
    assert survey.unit.value.flag_sources["--speculative-ddtree-budget"].file == FILE
    assert survey.process.value and survey.process.value.argv[1:3] == ("-m", "sglang.launch_server")
    assert survey.engine.value and survey.engine.value.version == "0.5.11", survey.engine
    assert survey.drafter.value and survey.server.value
    assert survey.journal.value and survey.journal.value.ready, survey.journal


async def test_a_burst_reads_the_decode_lines_by_standin_docker(operator: Operator) -> None:
    found = await decode_lines(by_compose(await operator()))
    assert found and all(0 < line.at < 60 and line.rate > 0 for line in found)


async def test_the_service_is_found_with_its_drafter_and_port_and_tried_by_standin_docker(
    operator: Operator,
) -> None:
    ctx = by_compose(await operator())
    await ready(ctx)
    found = next(one for one in (await discovery.find(ctx.host)).units if one.compose)
    assert found.compose == Compose(file=FILE, service="kimi", sudo=True)
    assert (found.unit, found.running, found.port) == ("kimi", True, 30000)
    assert found.drafter == "/opt/models/Kimi-K2.6-DFlash" and found.pid
    tested = await discovery.test(ctx.host, discovery.draft("mine", ctx.profile.connection, found))
    assert tested.problems == () and [knob.name for knob in tested.profile.knobs] == [
        "budget",
        "topk",
        "window",
    ]


async def test_a_change_in_the_compose_file_makes_a_new_container_and_a_failing_one_is_undone_by_standin_docker(
    testhost: TestHost, operator: Operator
) -> None:
    ctx = by_compose(await operator(history=True))
    await ready(ctx)
    old = (await ctx.supervisor.status(ctx.host)).invocation_id
    made = await plan.make(ctx, await surveys.read(ctx), plan.parse_turns(ctx, ["budget=12"], ()))
    assert made.problems == (), made.problems
    assert [edit.path for edit in made.edits] == [FILE]
    assert made.commands[-2][-5:] == (FILE, "kill", "-s", "SIGTERM", "kimi")
    assert made.commands[-1][-4:] == ("up", "-d", "--no-deps", "kimi")
    last = [step async for step in change.apply(ctx, made)][-1]
    assert last.phase is Phase.VERIFIED, last
    assert (await ctx.supervisor.status(ctx.host)).invocation_id != old
    good = testhost.exec("cat", FILE).stdout
    assert good == TEXT.replace("budget 8", "budget 12").encode()
    turns = plan.parse_turns(ctx, ["--mem-fraction-static=0.99"], ())
    made = await plan.make(ctx, await surveys.read(ctx), turns)
    last = [step async for step in change.apply(ctx, made)][-1]
    assert last.phase is Phase.ROLLED_BACK, last
    assert last.failure and "memory" in last.failure and last.evidence, last
    assert testhost.exec("cat", FILE).stdout == good


async def test_the_log_goes_on_in_the_next_container_by_standin_docker(
    testhost: TestHost, operator: Operator
) -> None:
    ctx = by_compose(await operator())
    await ready(ctx)
    known = await ctx.supervisor.lines(ctx.host, lines=3)
    assert len({entry.cursor for entry in known}) == 3
    stream = ctx.supervisor.follow(ctx.host, after=known[0].cursor, lines=0)
    seen: list[JournalEntry] = []
    restarted = False
    async with aclosing(cast("AsyncIterator[JournalEntry]", stream)) as entries:  # type: ignore[type-var]
        async for entry in entries:
            seen.append(entry)
            if len(seen) == 2 and not restarted:
                restarted = True
                compose = ("docker", "compose", "-f", FILE)
                testhost.exec(*compose, "kill", "-s", "SIGKILL", "kimi")
                testhost.exec(*compose, "up", "-d", "--no-deps", "kimi")
            if "server_args" in entry.text:
                break
    assert [entry.cursor for entry in seen[:2]] == [entry.cursor for entry in known[1:]]
    assert len({entry.cursor for entry in seen}) == len(seen)


async def test_a_user_without_dockers_group_is_told_what_grants_it_by_standin_docker(
    operator: Operator,
) -> None:
    ctx = by_compose(await operator(), sudo=False)
    with pytest.raises(NotPermitted, match="may not speak to docker"):
        await ctx.supervisor.status(ctx.host)
    survey = await surveys.read(ctx)
    assert survey.unit.problem and "docker" in survey.unit.problem


async def test_doctor_prints_the_lines_that_compose_needs_by_standin_docker(operator: Operator) -> None:
    ctx = by_compose(await operator())
    await ready(ctx)
    found = await doctor.examine(ctx)
    assert any(line.endswith(f"docker compose -f {FILE} up -d --no-deps kimi") for line in found.sudoers)
    assert any(check.name == "supervisor" and "log" in check.found for check in found.checks)
