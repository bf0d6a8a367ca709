"""A unit of the user's own manager: the same change without any root's rights."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import replace

import pytest
from contract_help import ready
from testhost_fixture import TestHost
from tuning.conftest import UNIT, Operator

from ddtui.profile import Scope
from ddtui.tuning import change, doctor, lock, plan, rollback
from ddtui.tuning import survey as surveys
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Phase, Progress

pytestmark = pytest.mark.realhost
HOME = "/home/limited"


@pytest.fixture(scope="module", autouse=True)
def user_unit(testhost: TestHost) -> Iterator[None]:
    """The same unit, under the user manager of a user without sudo, in place of the system's."""
    testhost.exec("systemctl", "disable", "--now", UNIT)
    text = testhost.exec("cat", f"/etc/systemd/system/{UNIT}").stdout.decode()
    text = text.replace("User=sglang\n", "").replace("multi-user.target", "default.target")
    text = text.replace("[Service]\n", "[Service]\nEnvironment=SGLANG_STANDIN_HEALTH_SECONDS=0.05\n")
    folder = f"{HOME}/.config/systemd/user"
    testhost.exec(
        "install",
        "-d",
        "-o",
        "limited",
        "-g",
        "limited",
        f"{HOME}/.config",
        f"{HOME}/.config/systemd",
        folder,
    )
    testhost.exec("tee", f"{folder}/{UNIT}", stdin=text.encode())
    testhost.exec("loginctl", "enable-linger", "limited")
    testhost.exec("usermod", "-a", "-G", "systemd-journal", "limited")
    yield
    testhost.exec("loginctl", "disable-linger", "limited")


async def follow(progress: AsyncIterator[Progress]) -> list[Progress]:
    async with aclosing(progress) as steps:  # type: ignore[type-var]
        return [one async for one in steps]


async def test_a_user_unit_is_read_changed_and_rolled_back_without_sudo(
    operator: Operator, testhost: TestHost
) -> None:
    ctx = await operator("limited", history=True)
    service = ctx.profile.service.model_copy(update={"scope": Scope.USER})
    ctx = replace(ctx, profile=ctx.profile.model_copy(update={"service": service}))
    started = await ctx.host.run(("systemctl", "--user", "start", UNIT))
    assert started.ok, started.err
    await ready(ctx)
    survey = await surveys.read(ctx)
    assert survey.unit.problem is None
    assert survey.process.problem is None
    assert survey.journal.problem is None
    assert await doctor.rights(ctx) is None
    made = await plan.make(ctx, survey, plan.parse_turns(ctx, ["budget=12"], ()))
    assert made.problems == ()
    assert not any("sudo" in command for command in made.commands)
    steps = await follow(change.apply(ctx, made))
    assert steps[-1].phase is Phase.VERIFIED, steps[-1]
    assert made.edits[0].path.startswith(f"{HOME}/.config/systemd/user/{UNIT}.d/")
    assert testhost.exec("test", "-e", f"/var/lib/ddtui/{UNIT}", check=False).returncode != 0
    assert await lock.look(ctx) is None
    steps = await follow(rollback.rollback(ctx))
    assert steps[-1].phase is Phase.VERIFIED, steps[-1]
    assert len(await rollback.changes(ctx)) == 2
    assert steps[-1].way_back[0].startswith("cp "), steps[-1].way_back


async def test_the_doctor_says_whether_the_user_manager_lingers(operator: Operator) -> None:
    ctx: Tuning = await operator("limited")
    service = ctx.profile.service.model_copy(update={"scope": Scope.USER})
    ctx = replace(ctx, profile=ctx.profile.model_copy(update={"service": service}))
    diagnosis = await doctor.examine(ctx)
    assert next(check for check in diagnosis.checks if check.name == "linger").ok is True
