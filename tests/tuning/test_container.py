"""A server in a container, its engine and drafter read inside it: real host, stand-ins for docker and podman."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from contract_help import ready
from testhost_fixture import TestHost
from tuning.conftest import UNIT, Operator

from ddtui.tuning import change, plan, verdicts
from ddtui.tuning import survey as surveys
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Phase, Status

pytestmark = pytest.mark.realhost
HERE = Path(__file__).parent
GRANT = "/etc/sudoers.d/container"
GENERATOR = "/etc/systemd/system-generators/podman-standin"
QUADLET = "/etc/containers/systemd/kimi.container"
SERVER = """/usr/bin/python3 -m sglang.launch_server \\
    --model-path /models/Kimi-K2.6 --trust-remote-code --host 0.0.0.0 --port 30000 --tp-size 8 \\
    --mem-fraction-static 0.88 --context-length 262144 --speculative-algorithm DDTREE \\
    --speculative-draft-model-path %s --speculative-ddtree-budget 8 --speculative-ddtree-topk-cap 4"""
RUN = f"""[Unit]
Description=SGLang in a container

[Service]
ExecStartPre=-/usr/bin/RUNTIME rm -f kimi
ExecStart=/usr/bin/RUNTIME run --rm --name kimi --gpus all -p 127.0.0.1:30000:30000 \\
    -e SGLANG_STANDIN_LOAD_SECONDS=0.6 -e SGLANG_STANDIN_HEALTH_SECONDS=0.05 -v /srv/models:/models \\
    lmsysorg/sglang:v0.5.11 {SERVER}
ExecStop=/usr/bin/RUNTIME stop kimi
"""
CONTAINER = f"""[Unit]
Description=SGLang in a container

[Container]
Image=lmsysorg/sglang:v0.5.11
Network=host
Volume=/srv/models:/models
Environment=SGLANG_STANDIN_LOAD_SECONDS=0.6
Environment=SGLANG_STANDIN_HEALTH_SECONDS=0.05
Exec={SERVER}
"""
ONCE = "[ -e {1} ] || {0} {1}"


@pytest.fixture(scope="module", params=["docker run", "quadlet"])
def shape(request: pytest.FixtureRequest) -> str:
    """How the container is started."""
    return str(request.param)


@pytest.fixture(scope="module")
def runtime(shape: str) -> str:
    return "docker" if shape == "docker run" else "podman"


@pytest.fixture(scope="module", autouse=True)
def image(testhost: TestHost, shape: str, runtime: str) -> Iterator[None]:
    """The engine and one drafter are in the image alone; the target and another drafter are mounted."""
    testhost.exec("systemctl", "stop", UNIT)
    testhost.exec("tee", f"/usr/bin/{runtime}", stdin=(HERE / "standin_docker.sh").read_bytes())
    testhost.exec("chmod", "755", f"/usr/bin/{runtime}")
    if shape == "quadlet":
        testhost.exec("mkdir", "-p", "/etc/containers/systemd", "/etc/systemd/system-generators")
        testhost.exec("tee", GENERATOR, stdin=(HERE / "standin_quadlet.py").read_bytes())
        testhost.exec("chmod", "755", GENERATOR)
    testhost.exec("mkdir", "-p", "/srv/image")
    for how, to in (
        ("mv /opt/sglang", "/srv/image/sglang"),
        ("cp -a /opt/models/Kimi-K2.6-DFlash", "/srv/image/drafter"),
        ("mv /opt/models", "/srv/models"),
    ):
        testhost.exec("sh", "-c", ONCE.format(how, to))
    yield
    testhost.exec("systemctl", "stop", "kimi.service" if shape == "quadlet" else UNIT)


Start = Callable[[str], Awaitable[Tuning]]


@pytest_asyncio.fixture
async def start(testhost: TestHost, operator: Operator, shape: str, runtime: str) -> Start:
    """Starts the server with a drafter, and connects to its host."""
    testhost.exec("tee", GRANT, stdin=f"tuner ALL=(root) NOPASSWD: /usr/bin/{runtime}\n".encode())

    async def begin(drafter: str) -> Tuning:
        if shape == "quadlet":
            unit = "kimi.service"
            testhost.exec("tee", QUADLET, stdin=(CONTAINER % drafter).encode())
        else:
            unit = UNIT
            testhost.exec("rm", "-rf", f"/etc/systemd/system/{UNIT}.d")
            text = (RUN % drafter).replace("RUNTIME", runtime)
            testhost.exec("tee", f"/etc/systemd/system/{UNIT}", stdin=text.encode())
        testhost.exec("systemctl", "daemon-reload")
        testhost.exec("systemctl", "restart", unit)
        ctx = await operator(history=True)
        service = ctx.profile.service.model_copy(update={"unit": unit})
        ctx = replace(ctx, profile=ctx.profile.model_copy(update={"service": service}))
        await ready(ctx)
        return ctx

    return begin


async def test_each_layer_of_a_containerised_server_is_read_by_standin_docker_or_podman(
    start: Start, shape: str
) -> None:
    ctx = await start("/image/drafter")
    survey = await surveys.read(ctx)
    assert survey.unit.value and survey.unit.value.lives == shape.replace("podman", "docker").replace(
        " ", "-"
    )
    assert survey.process.value, survey.process.problem
    assert survey.process.value.argv[:3] == ("/usr/bin/python3", "-m", "sglang.launch_server")
    assert survey.engine.value, survey.engine.problem
    assert survey.engine.value.version == "0.5.11"
    assert survey.engine.value.location.startswith("/image/sglang/")
    assert survey.drafter.value, survey.drafter.problem
    name = "systemd-kimi" if shape == "quadlet" else "kimi"
    assert survey.drafter.value.path == f"{name}:/image/drafter/config.json"
    assert survey.server.value, survey.server.problem
    assert survey.journal.value, survey.journal.problem
    window = [v for v in verdicts.judge(survey, ctx.profile) if "window" in v.subject]
    assert window and all(v.status is Status.NOT_IN_FORCE for v in window), window


async def test_what_is_mounted_is_read_on_the_host_and_a_knob_is_turned_inside_standin_docker_or_podman(
    start: Start, shape: str
) -> None:
    ctx = await start("/models/Kimi-K2.6-DFlash")
    survey = await surveys.read(ctx)
    assert survey.drafter.value and survey.drafter.value.path == "/srv/models/Kimi-K2.6-DFlash/config.json"
    made = await plan.make(ctx, survey, plan.parse_turns(ctx, ["budget=12"], ()))
    assert made.problems == (), made.problems
    if shape == "quadlet":
        assert [edit.path for edit in made.edits] == [QUADLET]
    last = [step async for step in change.apply(ctx, made)][-1]
    assert last.phase is Phase.VERIFIED, last.failure
    after = await surveys.read(ctx)
    assert after.process.value and "12" in after.process.value.argv
    assert not {v.status for v in verdicts.judge(after, ctx.profile)} & {
        Status.RELOAD_PENDING,
        Status.RESTART_PENDING,
    }


async def test_a_container_that_is_gone_is_said_and_the_unit_is_still_read(
    testhost: TestHost, start: Start
) -> None:
    ctx = await start("/image/drafter")
    testhost.exec("systemctl", "stop", ctx.unit)
    survey = await surveys.read(ctx)
    assert survey.unit.value and survey.unit.value.flags["--speculative-ddtree-budget"] == "8"
    assert survey.engine.problem and "container" in survey.engine.problem, survey.engine
    assert survey.drafter.problem


async def test_a_user_who_may_not_speak_to_the_runtime_is_told_and_reads_the_rest(
    testhost: TestHost, start: Start, runtime: str
) -> None:
    ctx = await start("/models/Kimi-K2.6-DFlash")
    testhost.exec("rm", GRANT)
    survey = await surveys.read(ctx)
    grants = "group docker" if runtime == "docker" else "a sudoers line for podman"
    assert survey.process.problem and grants in survey.process.problem
    assert survey.engine.problem and grants in survey.engine.problem
    assert survey.drafter.value and survey.server.value
