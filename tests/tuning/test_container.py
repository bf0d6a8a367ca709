"""A server in a container, its engine and drafter read inside it: real host, with a stand-in for docker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from contract_help import ready
from testhost_fixture import TestHost
from tuning.conftest import UNIT, Operator

from ddtui.tuning import change, plan, verdicts
from ddtui.tuning import survey as surveys
from ddtui.tuning.model import Phase, Status

pytestmark = pytest.mark.realhost
DOCKER = Path(__file__).with_name("standin_docker.sh")
GRANT = "/etc/sudoers.d/docker"
TEXT = """[Unit]
Description=SGLang in a container

[Service]
ExecStartPre=-/usr/bin/docker rm -f kimi
ExecStart=/usr/bin/docker run --rm --name kimi --gpus all -p 127.0.0.1:30000:30000 \\
    -e SGLANG_STANDIN_LOAD_SECONDS=0.6 -e SGLANG_STANDIN_HEALTH_SECONDS=0.05 -v /srv/models:/models \\
    lmsysorg/sglang:v0.5.11 /usr/bin/python3 -m sglang.launch_server \\
    --model-path /models/Kimi-K2.6 --trust-remote-code --host 0.0.0.0 --port 30000 --tp-size 8 \\
    --mem-fraction-static 0.88 --context-length 262144 --speculative-algorithm DDTREE \\
    --speculative-draft-model-path %s --speculative-ddtree-budget 8 --speculative-ddtree-topk-cap 4
ExecStop=/usr/bin/docker stop kimi
"""


@pytest.fixture(scope="module", autouse=True)
def image(testhost: TestHost) -> Iterator[None]:
    """The engine and one drafter are in the image alone; the target and another drafter are mounted."""
    testhost.exec("systemctl", "stop", UNIT)
    testhost.exec("tee", "/usr/bin/docker", stdin=DOCKER.read_bytes())
    testhost.exec("chmod", "755", "/usr/bin/docker")
    testhost.exec("tee", GRANT, stdin=b"tuner ALL=(root) NOPASSWD: /usr/bin/docker\n")
    testhost.exec("mkdir", "-p", "/srv/image")
    testhost.exec("mv", "/opt/sglang", "/srv/image/sglang")
    testhost.exec("cp", "-a", "/opt/models/Kimi-K2.6-DFlash", "/srv/image/drafter")
    testhost.exec("mv", "/opt/models", "/srv/models")
    yield
    testhost.exec("systemctl", "stop", UNIT)


def unit(testhost: TestHost, drafter: str) -> None:
    testhost.exec("rm", "-rf", f"/etc/systemd/system/{UNIT}.d")
    testhost.exec("tee", f"/etc/systemd/system/{UNIT}", stdin=(TEXT % drafter).encode())
    testhost.exec("systemctl", "daemon-reload")
    testhost.exec("systemctl", "restart", UNIT)


async def test_each_layer_of_a_containerised_server_is_read_by_standin_docker(
    testhost: TestHost, operator: Operator
) -> None:
    unit(testhost, "/image/drafter")
    ctx = await operator(history=True)
    await ready(ctx)
    survey = await surveys.read(ctx)
    assert survey.unit.value and survey.unit.value.lives == "docker-run"
    assert survey.process.value, survey.process.problem
    assert survey.process.value.argv[:3] == ("/usr/bin/python3", "-m", "sglang.launch_server")
    assert survey.engine.value, survey.engine.problem
    assert survey.engine.value.version == "0.5.11"
    assert survey.engine.value.location.startswith("/image/sglang/")
    assert survey.drafter.value, survey.drafter.problem
    assert survey.drafter.value.path == "kimi:/image/drafter/config.json"
    assert survey.server.value, survey.server.problem
    assert survey.journal.value, survey.journal.problem
    window = [v for v in verdicts.judge(survey, ctx.profile) if "window" in v.subject]
    assert window and all(v.status is Status.NOT_IN_FORCE for v in window), window


async def test_what_is_mounted_is_read_on_the_host_and_a_knob_is_turned_inside(
    testhost: TestHost, operator: Operator
) -> None:
    unit(testhost, "/models/Kimi-K2.6-DFlash")
    ctx = await operator(history=True)
    await ready(ctx)
    survey = await surveys.read(ctx)
    assert survey.drafter.value and survey.drafter.value.path == "/srv/models/Kimi-K2.6-DFlash/config.json"
    made = await plan.make(ctx, survey, plan.parse_turns(ctx, ["budget=12"], ()))
    assert made.problems == (), made.problems
    last = [step async for step in change.apply(ctx, made)][-1]
    assert last.phase is Phase.VERIFIED, last
    after = await surveys.read(ctx)
    assert after.process.value and "12" in after.process.value.argv


async def test_a_container_that_is_gone_is_said_and_the_unit_is_still_read(
    testhost: TestHost, operator: Operator
) -> None:
    unit(testhost, "/image/drafter")
    ctx = await operator()
    await ready(ctx)
    testhost.exec("systemctl", "stop", UNIT)
    survey = await surveys.read(ctx)
    assert survey.unit.value and survey.unit.value.flags["--speculative-ddtree-budget"] == "8"
    assert survey.engine.problem and "container" in survey.engine.problem, survey.engine
    assert survey.drafter.problem


async def test_a_user_who_may_not_speak_to_docker_is_told_and_reads_the_rest(
    testhost: TestHost, operator: Operator
) -> None:
    unit(testhost, "/models/Kimi-K2.6-DFlash")
    testhost.exec("rm", GRANT)
    ctx = await operator()
    await ready(ctx)
    survey = await surveys.read(ctx)
    assert survey.process.problem and "group docker" in survey.process.problem
    assert survey.engine.problem and "group docker" in survey.engine.problem
    assert survey.drafter.value and survey.server.value
