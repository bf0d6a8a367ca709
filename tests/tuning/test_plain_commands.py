"""A server that a script starts, with a pid file and a log file, on the real host: read, changed, undone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import cast

import pytest
from contract_help import decode_lines, ready
from testhost_fixture import TestHost
from tuning.conftest import UNIT, Operator

from ddtui.host.journal import JournalEntry
from ddtui.host.supervisors.commands import PlainCommands
from ddtui.profile import Commands, Service
from ddtui.tuning import change, doctor, plan, rollback, verdicts
from ddtui.tuning import survey as surveys
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Phase, Status

pytestmark = pytest.mark.realhost
HOME = "/home/tuner/sgl $(x)"  # a folder that no shell may see unquoted
START = """#!/bin/bash
# Starts SGLang and returns.
cd "$(dirname "$0")" || exit 1
export PYTHONPATH=/opt/sglang SGLANG_STANDIN_LOAD_SECONDS=0.6 SGLANG_STANDIN_HEALTH_SECONDS=0.05
setsid /usr/bin/python3 -m sglang.launch_server \\
    --model-path /opt/models/Kimi-K2.6 --trust-remote-code --host 127.0.0.1 --port 30000 --tp-size 8 \\
    --mem-fraction-static 0.88 --context-length 262144 --speculative-algorithm DDTREE \\
    --speculative-draft-model-path /opt/models/Kimi-K2.6-DFlash \\
    --speculative-ddtree-budget 8 --speculative-ddtree-topk-cap 4 >> log 2>&1 < /dev/null &
echo $! > pid
"""
STOP = """#!/bin/bash
kill "$(cat "$(dirname "$0")/pid")"
"""


def by_commands(ctx: Tuning) -> Tuning:
    """The context's service, started by the script in place of systemd."""
    made = Commands(
        start=(f"{HOME}/start",), stop=(f"{HOME}/stop",), pid=("cat", "--", f"{HOME}/pid"), log=f"{HOME}/log"
    )
    service = Service(unit="by-script", commands=made, start_timeout=30, stop_timeout=10)
    return replace(ctx, profile=ctx.profile.model_copy(update={"service": service}))


@pytest.fixture(scope="module", autouse=True)
def script(testhost: TestHost) -> None:
    testhost.exec("systemctl", "stop", UNIT)
    testhost.exec("rm", "-rf", HOME)
    testhost.exec("mkdir", "-p", HOME)
    for name, text in (("start", START), ("stop", STOP)):
        testhost.exec("tee", f"{HOME}/{name}", stdin=text.encode())
        testhost.exec("chmod", "755", f"{HOME}/{name}")
    testhost.exec("chown", "-R", "tuner:", HOME)
    testhost.exec("runuser", "-u", "tuner", "--", f"{HOME}/start")


async def test_every_layer_is_read_without_systemd(operator: Operator) -> None:
    ctx = by_commands(await operator(history=True))
    await ready(ctx)
    survey = await surveys.read(ctx)
    unit = survey.unit.value
    assert unit and unit.lives == "script" and unit.file == f"{HOME}/start", survey.unit
    assert unit.flags["--speculative-ddtree-budget"] == "8"
    assert not any("by-script" in path for path in unit.files)
    assert survey.process.value and survey.process.value.argv[1:3] == ("-m", "sglang.launch_server")
    assert survey.engine.value and survey.engine.value.version == "0.5.11", survey.engine
    assert survey.drafter.value and survey.server.value
    assert survey.journal.value and survey.journal.value.ready, survey.journal
    window = [v for v in verdicts.judge(survey, ctx.profile) if "window" in v.subject]
    assert window and all(v.status is Status.NOT_IN_FORCE for v in window), window
    assert survey.restart_pending is None


async def test_a_change_is_made_in_the_script_verified_and_undone(
    testhost: TestHost, operator: Operator
) -> None:
    ctx = by_commands(await operator(history=True))
    await ready(ctx)
    before = testhost.exec("cat", f"{HOME}/start").stdout
    made = await plan.make(ctx, await surveys.read(ctx), plan.parse_turns(ctx, ["budget=12"], ()))
    assert made.problems == (), made.problems
    assert [edit.path for edit in made.edits] == [f"{HOME}/start"]
    assert made.commands[-2:] == ((f"{HOME}/stop",), (f"{HOME}/start",))
    assert any("how a server ended is not known" in warning for warning in made.warnings)
    steps = [step async for step in change.apply(ctx, made)]
    last = steps[-1]
    assert last.phase is Phase.VERIFIED, last
    assert last.stages == ("write", "check", "drain", "stop", "start", "verify")
    assert Phase.RELOADING not in {step.phase for step in steps}
    after = await surveys.read(ctx)
    assert after.process.value and "12" in after.process.value.argv
    assert b"--speculative-ddtree-budget 12 " in testhost.exec("cat", f"{HOME}/start").stdout
    back = [step async for step in rollback.rollback(ctx)][-1]
    assert back.phase is Phase.VERIFIED, back
    assert testhost.exec("cat", f"{HOME}/start").stdout == before


async def test_a_server_that_dies_at_its_start_is_explained_from_its_log_and_rolled_back(
    testhost: TestHost, operator: Operator
) -> None:
    ctx = by_commands(await operator(history=True))
    await ready(ctx)
    before = testhost.exec("cat", f"{HOME}/start").stdout
    turns = plan.parse_turns(ctx, ["--mem-fraction-static=0.99"], ())
    made = await plan.make(ctx, await surveys.read(ctx), turns)
    seen = [step async for step in change.apply(ctx, made)]
    last = seen[-1]
    assert last.phase is Phase.ROLLED_BACK, last
    assert last.failure and "memory" in last.failure, last
    assert last.evidence
    assert testhost.exec("cat", f"{HOME}/start").stdout == before
    await ready(ctx)


async def test_the_log_is_followed_from_a_cursor_without_gap_or_repeat(
    testhost: TestHost, operator: Operator
) -> None:
    ctx = by_commands(await operator())
    testhost.exec("tee", "-a", f"{HOME}/log", stdin=b"".join(b"line %d\n" % n for n in range(50)))
    supervisor = ctx.supervisor
    tail = await supervisor.lines(ctx.host, lines=50)
    assert [entry.text for entry in tail] == [f"line {n}" for n in range(50)]
    assert tail[0].realtime_us, "of the line before, which has SGLang's own time"
    before = await supervisor.earlier(ctx.host, tail[30].cursor, 10)
    assert [entry.text for entry in before] == [f"line {n}" for n in range(20, 30)]
    seen = []
    stream = supervisor.follow(ctx.host, after=tail[39].cursor, lines=0)
    async with aclosing(cast("AsyncIterator[JournalEntry]", stream)) as entries:  # type: ignore[type-var]
        async for entry in entries:
            seen.append(entry.text)
            if len(seen) == 10:
                testhost.exec("tee", "-a", f"{HOME}/log", stdin=b"\x1b[31mnew <b>[/x]\x07\n")
            if len(seen) == 11:
                break
    assert seen == [*(f"line {n}" for n in range(40, 50)), "new <b>[/x]\u2407"]


async def test_a_burst_reads_the_decode_lines_of_the_log_file(operator: Operator) -> None:
    found = await decode_lines(by_commands(await operator()))
    assert found and all(0 < line.at < 60 and line.rate > 0 for line in found)


async def test_flags_in_the_profiles_own_command_are_refused_with_the_way_out(operator: Operator) -> None:
    ctx = by_commands(await operator())
    command = (
        "/usr/bin/setsid", "/usr/bin/python3", "-m", "sglang.launch_server", "--model-path", "/m",
        "--speculative-ddtree-budget", "8",
    )  # fmt: skip
    made = cast(PlainCommands, ctx.supervisor).made.model_copy(update={"start": command})
    service = ctx.service.model_copy(update={"commands": made})
    ctx = replace(ctx, profile=ctx.profile.model_copy(update={"service": service}))
    found = await plan.make(ctx, await surveys.read(ctx), plan.parse_turns(ctx, ["budget=12"], ()))
    assert any("profile's own command" in problem for problem in found.problems), found.problems


async def test_doctor_says_what_commands_cannot_do(operator: Operator) -> None:
    found = await doctor.examine(by_commands(await operator()))
    said = [check.found for check in found.checks if check.name == "supervisor"]
    assert any("nobody starts a server again" in text for text in said)
    assert found.read_only is None
    assert not any(check.name in ("systemctl", "journalctl") for check in found.checks)
