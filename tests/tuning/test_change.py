"""Changing a live service on a real host: old or new, never between, whatever happens on the way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
import pytest_asyncio
from contract_help import all_files, ready
from testhost_fixture import TestHost
from tuning.conftest import UNIT, Operator, quick

from ddtui.host.base import NotPermitted
from ddtui.tuning import change, lock, plan, rollback, verdicts
from ddtui.tuning import survey as surveys
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Phase, Plan, Progress, Status

pytestmark = pytest.mark.realhost
DROP_IN = f"/etc/systemd/system/{UNIT}.d/zzz-ddtui.conf"
STATE = f"/var/lib/ddtui/{UNIT}"
OOM = "--mem-fraction-static=0.9995"  # parses, and the start fails


@pytest.fixture(scope="module", autouse=True)
def quick_server(testhost: TestHost) -> None:
    """The stand-in loads in a moment, by a drop-in below all others: the operator's own file in these tests."""
    quick(testhost)


@pytest_asyncio.fixture
async def ann(operator: Operator, testhost: TestHost) -> AsyncIterator[Tuning]:
    """An operator of a host that no change was made on."""
    ctx = await operator(who="ann@laptop:11", history=True)
    await ready(ctx)
    yield ctx
    changed = testhost.exec("test", "-e", f"/etc/systemd/system/{UNIT}.d", check=False).returncode == 0
    testhost.exec("rm", "-rf", f"/etc/systemd/system/{UNIT}.d", STATE)
    if changed:
        testhost.exec("systemctl", "daemon-reload")
        testhost.exec("systemctl", "reset-failed", UNIT, check=False)
        testhost.exec("systemctl", "restart", UNIT)


async def planned(ctx: Tuning, *sets: str, unsets: tuple[str, ...] = ()) -> Plan:
    return await plan.make(ctx, await surveys.read(ctx), plan.parse_turns(ctx, sets, unsets))


async def follow(progress: AsyncIterator[Progress]) -> list[Progress]:
    async with aclosing(progress) as steps:  # type: ignore[type-var]
        return [one async for one in steps]


async def cut_at(progress: AsyncIterator[Progress], phase: Phase) -> None:
    """The console goes away as soon as the change is in that phase."""
    async with aclosing(progress) as steps:  # type: ignore[type-var]
        async for one in steps:
            if one.phase is phase:
                return
    raise AssertionError(f"never {phase}")


async def running(ctx: Tuning, knob: str) -> str | None:
    rows = surveys.knob_rows(await surveys.read(ctx), ctx)
    return next(row.running for row in rows if row.name == knob)


def left_in_tmp(testhost: TestHost) -> list[str]:
    found = testhost.exec("find", "/tmp", "/etc/systemd", "-name", "*ddtui*").stdout.decode().split()
    return [path for path in found if path != DROP_IN]


async def test_a_good_change_is_applied_verified_and_recorded(ann: Tuning, testhost: TestHost) -> None:
    steps = await follow(change.apply(ann, await planned(ann, "budget=12", "window=2048")))
    last = steps[-1]
    assert last.phase is Phase.VERIFIED, last
    assert {v.subject: v.status for v in last.verdicts} == {
        "budget": Status.IN_FORCE,
        "window.flag": Status.IN_FORCE,
    }
    order = list(dict.fromkeys(step.phase for step in steps))
    expected = [
        Phase.LOCKING,
        Phase.WRITING,
        Phase.RELOADING,
        Phase.CHECKING,
        Phase.STOPPING,
        Phase.STARTING,
        Phase.VERIFYING,
        Phase.VERIFIED,
    ]
    assert [phase for phase in order if phase in expected] == expected
    (entry,) = await rollback.changes(ann)
    assert (entry.id, entry.who, entry.phase) == (last.change, "ann@laptop:11", Phase.VERIFIED)
    assert entry.seconds_to_ready is not None
    assert await change.pending(ann) is None
    assert await lock.look(ann) is None
    assert ann.history is not None
    assert len(ann.history.changes()) == 1
    assert ann.history.last_starts(ann.host.name, ann.unit)[0].seconds == pytest.approx(
        entry.seconds_to_ready
    )
    assert left_in_tmp(testhost) == []


async def test_the_shell_way_back_works_without_ddtui(ann: Tuning, testhost: TestHost) -> None:
    before = await all_files(ann)
    steps = await follow(change.apply(ann, await planned(ann, "budget=12")))
    for command in steps[-1].way_back:
        testhost.exec("sh", "-c", command.replace("sudo ", ""))
    assert await all_files(ann) == before


async def test_a_start_that_fails_is_explained_and_rolled_back(ann: Tuning, testhost: TestHost) -> None:
    before = await all_files(ann)
    steps = await follow(change.apply(ann, await planned(ann, OOM)))
    assert steps[-1].phase is Phase.ROLLED_BACK, steps[-1]
    assert steps[-1].failure
    assert steps[-1].evidence
    assert await all_files(ann) == before
    (entry,) = await rollback.changes(ann)
    assert entry.phase is Phase.ROLLED_BACK
    assert await running(ann, "budget") == "8"
    assert left_in_tmp(testhost) == []
    with pytest.raises(plan.PlanError, match="nothing to roll back"):
        await rollback.make(ann)


async def test_a_failed_start_is_left_as_it_is_if_so_asked_and_can_be_rolled_back_later(ann: Tuning) -> None:
    before = await all_files(ann)
    steps = await follow(change.apply(ann, await planned(ann, OOM), roll_back=False))
    assert steps[-1].phase is Phase.STRANDED, steps[-1]
    assert steps[-1].way_back
    assert await all_files(ann) != before
    steps = await follow(rollback.rollback(ann))
    assert steps[-1].phase is Phase.VERIFIED, steps[-1]
    assert await all_files(ann) == before


async def test_rolling_back_goes_to_the_last_verified_setting(ann: Tuning) -> None:
    await follow(change.apply(ann, await planned(ann, "budget=12")))
    middle = await all_files(ann)
    await follow(change.apply(ann, await planned(ann, "budget=16")))
    steps = await follow(rollback.rollback(ann))
    assert steps[-1].phase is Phase.VERIFIED, steps[-1]
    assert await all_files(ann) == middle
    assert await running(ann, "budget") == "12"


async def test_another_machine_goes_back_to_before_every_change(ann: Tuning, operator: Operator) -> None:
    start = await all_files(ann)
    first = await follow(change.apply(ann, await planned(ann, "budget=12")))
    await follow(change.apply(ann, await planned(ann, "topk=2")))
    bob = await operator("root", who="bob@desk:22")
    assert [turn.knob for turn in (await rollback.make(bob, first[-1].change)).turns] == ["topk"]
    steps = await follow(rollback.rollback(bob, rollback.START))
    assert steps[-1].phase is Phase.VERIFIED, steps[-1]
    assert await all_files(bob) == start
    entries = await rollback.changes(bob)
    assert (entries[-1].who, entries[-1].restores) == ("bob@desk:22", "")
    with pytest.raises(plan.PlanError):
        await rollback.make(bob)


async def test_a_file_changed_by_hand_since_is_not_overwritten_by_a_roll_back(
    ann: Tuning, testhost: TestHost
) -> None:
    await follow(change.apply(ann, await planned(ann, "budget=12")))
    testhost.exec("sh", "-c", f"echo '# by hand' >> {DROP_IN}")
    made = await rollback.make(ann)
    assert any("by hand" in problem for problem in made.problems), made
    with pytest.raises(plan.PlanError):
        await follow(change.apply(ann, made))


@pytest.mark.parametrize(
    "phase",
    [Phase.WRITING, Phase.STARTING, Phase.VERIFYING],
)
@pytest.mark.parametrize("undo", [False, True], ids=["finish", "undo"])
async def test_a_console_that_goes_away_leaves_a_change_that_another_one_finishes_or_undoes(
    ann: Tuning, operator: Operator, testhost: TestHost, phase: Phase, undo: bool
) -> None:
    before = await all_files(ann)
    await cut_at(change.apply(ann, await planned(ann, "budget=12")), phase)
    bob = await operator("root", who="bob@desk:22")
    cut = await change.pending(bob)
    assert cut is not None
    assert "ann@laptop:11" in cut.text
    assert cut.on_disk in ("before", "after")
    with pytest.raises(plan.PlanError, match="was cut"):
        await follow(change.restart(bob))
    steps = await follow(change.resume(bob, cut, undo=undo))
    assert steps[-1].phase is (Phase.ROLLED_BACK if undo else Phase.VERIFIED), steps[-1]
    assert await running(bob, "budget") == ("8" if undo else "12")
    if undo:
        assert await all_files(bob) == before
    assert await change.pending(bob) is None
    assert left_in_tmp(testhost) == []


@pytest.mark.parametrize("phase", [Phase.WRITING, Phase.STARTING])
async def test_a_link_cut_on_the_way_is_waited_for_and_the_change_goes_on(
    ann: Tuning, testhost: TestHost, phase: Phase
) -> None:
    cut = False
    last: Progress | None = None
    async for one in change.apply(ann, await planned(ann, "budget=12")):
        if one.phase is phase and not cut:
            testhost.ctl("reset")
            cut = True
        last = one
    assert cut
    assert last is not None
    assert last.phase is Phase.VERIFIED, last
    (entry,) = await rollback.changes(ann)
    assert entry.phase is Phase.VERIFIED


async def test_two_operators_do_not_change_one_service_at_once(ann: Tuning, operator: Operator) -> None:
    bob = await operator("root", who="bob@desk:22")
    hers, his = await planned(ann, "budget=12"), await planned(bob, "budget=16")
    refused = 0
    async for one in change.apply(ann, hers):
        if one.phase is Phase.STARTING and not refused:
            with pytest.raises(lock.Locked, match="ann@laptop:11"):
                await follow(change.apply(bob, his))
            refused += 1
    assert refused == 1
    with pytest.raises(plan.StalePlan):
        await follow(change.apply(bob, his))
    assert await lock.look(bob) is None
    assert await running(ann, "budget") == "12"


async def test_a_service_started_anew_since_makes_a_plan_stale(ann: Tuning, testhost: TestHost) -> None:
    made = await planned(ann, "budget=12")
    testhost.exec("systemctl", "restart", UNIT)
    with pytest.raises(plan.StalePlan, match="started anew"):
        await follow(change.apply(ann, made))


async def test_a_unit_that_systemd_does_not_take_is_put_back_before_anything_restarts(
    ann: Tuning, testhost: TestHost
) -> None:
    from dataclasses import replace

    made = await planned(ann, "budget=12")
    (edit,) = made.edits
    broken = replace(
        edit, after=b"[Service]\nExecStart=\nExecStart=no-such-program --x\nExecStart=/bin/true\n"
    )
    before, status = (
        await all_files(ann),
        testhost.exec("systemctl", "show", UNIT, "-p", "InvocationID").stdout,
    )
    steps = await follow(change.apply(ann, replace(made, edits=(broken,))))
    assert steps[-1].phase is Phase.FAILED, steps[-1]
    assert await all_files(ann) == before
    assert testhost.exec("systemctl", "show", UNIT, "-p", "InvocationID").stdout == status


async def test_a_drop_in_that_sorts_after_ours_is_noticed_before_the_restart(
    ann: Tuning, testhost: TestHost
) -> None:
    """What systemd loaded is compared with the plan: the plan's command line must be the one that counts."""
    from dataclasses import replace

    made = await planned(ann, "budget=12")
    wrong = replace(made, exec_start_after=(("/usr/bin/python3", "-m", "sglang.launch_server"),))
    before, status = (
        await all_files(ann),
        testhost.exec("systemctl", "show", UNIT, "-p", "InvocationID").stdout,
    )
    steps = await follow(change.apply(ann, wrong))
    assert steps[-1].phase is Phase.FAILED, steps[-1]
    assert "not the one that was planned" in (steps[-1].failure or "")
    assert await all_files(ann) == before
    assert testhost.exec("systemctl", "show", UNIT, "-p", "InvocationID").stdout == status


async def test_read_only_refuses_every_write(operator: Operator, ann: Tuning) -> None:
    made = await planned(ann, "budget=12")
    watcher = ann.with_read_only("--read-only was given")
    for refused in (change.apply(watcher, made), change.restart(watcher), rollback.rollback(watcher)):
        with pytest.raises(NotPermitted, match="--read-only"):
            await follow(refused)


async def test_a_user_without_rights_changes_nothing_and_is_told(ann: Tuning, operator: Operator) -> None:
    limited = await operator("limited")
    before = await all_files(ann)
    made = await planned(limited, "budget=12")
    with pytest.raises(NotPermitted):
        await follow(change.apply(limited, made))
    assert await all_files(ann) == before


async def test_sudo_with_a_password_is_asked_once_for_a_whole_change(
    ann: Tuning, operator: Operator, testhost: TestHost
) -> None:
    class OnePerson:
        asked = 0

        async def secret(self, prompt: str, *, purpose: str) -> str | None:
            OnePerson.asked += 1
            return str(testhost.info["asker_password"])

        async def trust(self, key: object) -> bool:
            return False

    carol = await operator("asker", asker=OnePerson())
    steps = await follow(change.apply(carol, await planned(carol, "budget=12")))
    assert steps[-1].phase is Phase.VERIFIED, steps[-1]
    assert OnePerson.asked == 1


async def test_a_restart_is_an_action_of_its_own_and_undone_by_nothing(ann: Tuning) -> None:
    steps = await follow(change.restart(ann, why="drained a GPU"))
    assert steps[-1].phase is Phase.VERIFIED, steps[-1]
    (entry,) = await rollback.changes(ann)
    assert (entry.why, entry.files, entry.turns) == ("drained a GPU", (), ())
    with pytest.raises(plan.PlanError, match="nothing to roll back"):
        await rollback.make(ann)


async def test_a_knob_that_is_taken_away_is_gone_from_the_process(ann: Tuning) -> None:
    steps = await follow(change.apply(ann, await planned(ann, unsets=("topk",))))
    assert steps[-1].phase is Phase.VERIFIED, steps[-1]
    assert await running(ann, "topk") is None


async def test_a_hostile_value_reaches_the_server_as_it_is_and_nothing_else_happens(
    ann: Tuning, testhost: TestHost
) -> None:
    value = "a \"b\" 'c' $HOME ${PATH} $(touch /tmp/ddtui-x) `id` %i %% \\n \\ ; & | * ? ! \u00e9 \U0001f600\ttab\nline"
    made = await planned(ann, f"--served-model-name={value}")
    assert made.problems == ()
    steps = await follow(change.apply(ann, made))
    assert steps[-1].phase is Phase.VERIFIED, steps[-1]
    pid = testhost.exec("systemctl", "show", UNIT, "-p", "MainPID", "--value").stdout.decode().strip()
    argv = testhost.exec("cat", f"/proc/{pid}/cmdline").stdout.split(b"\0")
    assert argv[argv.index(b"--served-model-name") + 1] == value.encode()
    assert left_in_tmp(testhost) == []


async def test_a_flag_in_an_environment_file_is_changed_there_and_comes_back_byte_for_byte(
    ann: Tuning, testhost: TestHost
) -> None:
    path = "/etc/sglang/args.env"
    content = b"# budget by hand, do not touch\nSGLANG_ARGS='--speculative-ddtree-budget 8   --speculative-ddtree-topk-cap 4'\n"
    unit = testhost.exec("cat", f"/etc/systemd/system/{UNIT}").stdout.decode()
    start = unit[unit.index("ExecStart=") : unit.index("Restart=")]
    for flag in ("--speculative-ddtree-budget 8", "--speculative-ddtree-topk-cap 4"):
        start = start.replace(flag, "").replace("    \\\n", "")
    testhost.exec("mkdir", "-p", "/etc/sglang", f"/etc/systemd/system/{UNIT}.d")
    testhost.exec("tee", path, stdin=content)
    testhost.exec("chown", "sglang:systemd-journal", path)
    testhost.exec("chmod", "664", path)
    text = f"[Service]\nEnvironmentFile={path}\nExecStart=\n{start.rstrip()} $SGLANG_ARGS\n"
    testhost.exec("tee", f"/etc/systemd/system/{UNIT}.d/30-args.conf", stdin=text.encode())
    testhost.exec("systemctl", "daemon-reload")
    testhost.exec("systemctl", "restart", UNIT)
    await ready(ann)
    made = await planned(ann, "budget=12")
    assert [(edit.path, edit.ours) for edit in made.edits] == [(path, False)]
    steps = await follow(change.apply(ann, made))
    assert steps[-1].phase is Phase.VERIFIED, steps[-1]
    assert await running(ann, "budget") == "12"
    assert testhost.exec("cat", path).stdout == content.replace(b"budget 8", b"budget 12")
    assert testhost.exec("stat", "-c", "%a %U %G", path).stdout == b"664 sglang systemd-journal\n"
    steps = await follow(rollback.rollback(ann))
    assert steps[-1].phase is Phase.VERIFIED, steps[-1]
    assert testhost.exec("cat", path).stdout == content
    assert testhost.exec("stat", "-c", "%a %U %G", path).stdout == b"664 sglang systemd-journal\n"
    assert testhost.exec("ls", "-A", "/etc/sglang").stdout == b"args.env\n"


async def test_a_drop_in_that_has_gone_stale_is_noticed_and_made_anew(
    ann: Tuning, testhost: TestHost
) -> None:
    await follow(change.apply(ann, await planned(ann, "budget=12")))
    path = f"/etc/systemd/system/{UNIT}"
    kept = testhost.exec("cat", path).stdout
    try:
        testhost.exec("tee", path, stdin=kept.replace(b"--context-length 262144", b"--context-length 131072"))
        testhost.exec("systemctl", "daemon-reload")
        survey = await surveys.read(ann)
        judged = {v.subject: v for v in verdicts.judge(survey, ann.profile)}
        assert judged["drop-in"].status is Status.CONFLICTING
        made = await plan.make(ann, survey, ())
        assert made.problems == ()
        steps = await follow(change.apply(ann, made))
        assert steps[-1].phase is Phase.VERIFIED, steps[-1]
        survey = await surveys.read(ann)
        assert survey.process.value is not None
        argv = survey.process.value.argv
        assert argv[argv.index("--context-length") + 1] == "131072"
        assert argv[argv.index("--speculative-ddtree-budget") + 1] == "12"
        assert "drop-in" not in {v.subject for v in verdicts.judge(survey, ann.profile)}
    finally:
        testhost.exec("tee", path, stdin=kept)
