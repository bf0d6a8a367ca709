"""Reading the layers of a real host: few round trips, each layer with its own failure, refreshes only what moved."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
import pytest_asyncio
from contract_help import problems, ready
from testhost_fixture import TestHost
from tuning.conftest import UNIT, Operator, quick

from ddtui.host.base import Command, Completed, Host
from ddtui.tuning import steps, verdicts
from ddtui.tuning import survey as surveys
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Layer, Status

pytestmark = pytest.mark.realhost
DRAFTER = "/opt/models/Kimi-K2.6-DFlash/config.json"


class CountingHost:
    """A host that notes every round trip: a command, a batch, or a connection."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.trips: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.host, name)

    async def run(self, argv: Sequence[str], **how: Any) -> Completed:
        self.trips.append(argv[0])
        return await self.host.run(argv, **how)

    async def batch(self, commands: Sequence[Command], **how: Any) -> list[Completed]:
        self.trips.append(f"batch of {len(commands)}")
        return await self.host.batch(commands, **how)

    async def endpoint(self, port: int, host: str = "127.0.0.1") -> Any:
        self.trips += ["channel", "request"]
        return await self.host.endpoint(port, host)


@pytest.fixture(scope="module", autouse=True)
def quick_server(testhost: TestHost) -> None:
    quick(testhost)


@pytest_asyncio.fixture
async def ann(operator: Operator) -> AsyncIterator[Tuning]:
    ctx = await operator(who="ann@laptop:11", history=True)
    await ready(ctx)
    yield ctx


def counted(ctx: Tuning) -> tuple[Tuning, CountingHost]:
    counter = CountingHost(ctx.host)
    return replace(ctx, host=cast(Host, counter)), counter


async def test_a_first_survey_takes_at_most_eight_round_trips(ann: Tuning) -> None:
    ctx, counter = counted(ann)
    survey = await surveys.read(ctx)
    assert problems(survey) == {}
    assert len(counter.trips) <= 8, counter.trips
    assert survey.round_trips == len(counter.trips)


async def test_a_refresh_of_a_quiet_host_reads_only_the_servers_answer(ann: Tuning) -> None:
    first = await surveys.read(ann)
    ctx, counter = counted(ann)
    again = await surveys.read(ctx, first)
    assert len(counter.trips) == 4, counter.trips  # status, times, and the server's answer
    assert again.unit is first.unit
    assert again.engine is first.engine
    assert again.journal is first.journal
    assert again.server.read_at is not None
    assert first.server.read_at is not None
    assert again.server.read_at > first.server.read_at


async def test_a_changed_config_is_read_again_and_nothing_else(ann: Tuning, testhost: TestHost) -> None:
    first = await surveys.read(ann)
    first = await surveys.read(ann, first)
    kept = testhost.exec("cat", DRAFTER).stdout
    try:
        testhost.exec(
            "tee", DRAFTER, stdin=kept.replace(b'"sliding_window": 2048', b'"sliding_window": 1024')
        )
        again = await surveys.read(ann, first)
    finally:
        testhost.exec("tee", DRAFTER, stdin=kept)
    assert again.drafter.value is not None
    assert again.drafter.value.sliding_window == 1024
    assert again.unit is first.unit
    assert again.engine is first.engine


async def test_a_new_drop_in_is_seen_as_waiting_for_a_reload(ann: Tuning, testhost: TestHost) -> None:
    first = await surveys.read(ann)
    first = await surveys.read(ann, first)
    folder = f"/etc/systemd/system/{UNIT}.d"
    unit = testhost.exec("cat", f"/etc/systemd/system/{UNIT}").stdout.decode()
    start = unit[unit.index("ExecStart=") : unit.index("Restart=")].replace("-budget 8", "-budget 16")
    testhost.exec("mkdir", "-p", folder)
    testhost.exec("tee", f"{folder}/50-hand.conf", stdin=f"[Service]\nExecStart=\n{start}".encode())
    try:
        again = await surveys.read(ann, first)
        judged = {v.subject: v for v in verdicts.judge(again, ann.profile)}
        assert judged["budget"].status is Status.RELOAD_PENDING, judged["budget"]
        assert judged["budget"].value == "16"
        testhost.exec("systemctl", "daemon-reload")
        again = await surveys.read(ann, again)
        judged = {v.subject: v for v in verdicts.judge(again, ann.profile)}
        assert judged["budget"].status is Status.RESTART_PENDING, judged["budget"]
    finally:
        testhost.exec("rm", "-rf", folder)
        testhost.exec("systemctl", "daemon-reload")


async def test_a_sglang_that_is_gone_under_a_running_server_is_the_engines_own_problem(
    ann: Tuning, testhost: TestHost
) -> None:
    testhost.exec("mv", "/opt/sglang/sglang", "/opt/sglang/moved")
    try:
        found = problems(await surveys.read(ann))
    finally:
        testhost.exec("mv", "/opt/sglang/moved", "/opt/sglang/sglang")
    assert set(found) == {Layer.ENGINE}


async def test_a_repo_id_is_resolved_in_the_services_own_cache(ann: Tuning, testhost: TestHost) -> None:
    cache = "/srv/hf/hub/models--moonshotai--Kimi-K2.6-DFlash"
    snapshot = f"{cache}/snapshots/0123456789abcdef0123456789abcdef01234567"
    testhost.exec("mkdir", "-p", f"{cache}/refs", f"{cache}/blobs", snapshot)
    testhost.exec("tee", f"{cache}/refs/main", stdin=snapshot.rpartition("/")[2].encode())
    testhost.exec("cp", DRAFTER, f"{cache}/blobs/aa")
    testhost.exec("ln", "-sf", "../../blobs/aa", f"{snapshot}/config.json")
    folder = f"/etc/systemd/system/{UNIT}.d"
    unit = testhost.exec("cat", f"/etc/systemd/system/{UNIT}").stdout.decode()
    start = unit[unit.index("ExecStart=") : unit.index("Restart=")]
    start = start.replace("/opt/models/Kimi-K2.6-DFlash", "moonshotai/Kimi-K2.6-DFlash")
    testhost.exec("mkdir", "-p", folder)
    text = f"[Service]\nEnvironment=HF_HOME=/srv/hf\nExecStart=\n{start}"
    testhost.exec("tee", f"{folder}/50-hand.conf", stdin=text.encode())
    testhost.exec("systemctl", "daemon-reload")
    testhost.exec("systemctl", "stop", UNIT)
    try:
        survey = await surveys.read(ann)
    finally:
        testhost.exec("rm", "-rf", folder, "/srv/hf")
        testhost.exec("systemctl", "daemon-reload")
        testhost.exec("systemctl", "restart", UNIT)
    assert survey.drafter.value is not None, survey.drafter.problem
    assert survey.drafter.value.path == f"{snapshot}/config.json"
    assert "not running" in (survey.server.problem or "")


async def test_the_step_knows_the_hosts_gpus(ann: Tuning, testhost: TestHost) -> None:
    rows = "".join(f"{n}, GPU-{n}, NVIDIA B200, 183359, 1000, 0, 40, 200.0\n" for n in range(8))
    told = f"#!/bin/sh\ncase \"$*\" in *--query-gpu*) printf '{rows}';; esac\n".replace("\n'", "\\n'")
    testhost.exec("tee", "/usr/local/bin/nvidia-smi", stdin=told.encode())
    testhost.exec("chmod", "755", "/usr/local/bin/nvidia-smi")
    try:
        survey = await surveys.read(ann)
        step = steps.keep(ann, survey, ())
    finally:
        testhost.exec("rm", "/usr/local/bin/nvidia-smi")
    assert step is not None and step.setting.gpu == "8 x NVIDIA B200"
    again = await surveys.read(ann)  # nvidia-smi is gone: the same step all the same
    same = steps.keep(ann, again, ())
    assert again.gpus is not None and again.gpus.problem and same is not None and same.number == step.number
