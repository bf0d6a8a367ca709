"""What is missing on a real host, and the lines that grant it: they are enough, and no more than that."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from contract_help import ready
from testhost_fixture import TestHost
from tuning.conftest import UNIT, Operator, quick

from ddtui.host.base import NotPermitted
from ddtui.tuning import change, doctor, plan, rollback
from ddtui.tuning import survey as surveys
from ddtui.tuning.doctor import Check, Diagnosis
from ddtui.tuning.model import Phase, Progress

pytestmark = pytest.mark.realhost


@pytest.fixture(scope="module", autouse=True)
def quick_server(testhost: TestHost) -> None:
    quick(testhost)


def of(diagnosis: Diagnosis, name: str) -> list[Check]:
    return [check for check in diagnosis.checks if check.name == name]


async def follow(progress: AsyncIterator[Progress]) -> Progress:
    async with aclosing(progress) as steps:  # type: ignore[type-var]
        return [one async for one in steps][-1]


async def test_a_host_with_all_rights_lacks_nothing(operator: Operator) -> None:
    ctx = await operator("root")
    await ready(ctx)
    diagnosis = await doctor.examine(ctx)
    assert [check for check in diagnosis.checks if check.ok is False] == []
    assert diagnosis.read_only is None
    assert "root@127.0.0.1" in of(diagnosis, "link")[0].found
    assert "0.5.11" in of(diagnosis, "SGLang")[0].found
    assert of(diagnosis, "nvidia-smi")[0].ok is None
    assert "we are root" in of(diagnosis, "restart")[0].found


async def test_a_user_without_rights_is_told_what_is_missing(operator: Operator) -> None:
    diagnosis = await doctor.examine(await operator("limited"))
    assert diagnosis.read_only is not None
    assert "nobody is here to give it" in diagnosis.read_only
    assert of(diagnosis, "restart")[0].ok is False
    assert of(diagnosis, "journal")[0].ok is False
    assert "systemd-journal" in of(diagnosis, "journal")[0].need


async def test_the_printed_lines_have_full_names_and_no_wildcard_and_visudo_takes_them(
    operator: Operator, testhost: TestHost
) -> None:
    diagnosis = await doctor.examine(await operator())
    for lines in (diagnosis.sudoers, diagnosis.sudoers_least):
        assert lines
        granted = [line for line in lines if not line.startswith("#")]
        assert granted and not any("*" in line for line in granted)
        assert all(line.startswith("%tuners ALL=(root) NOPASSWD: /") for line in granted)
        testhost.exec("groupadd", "-f", "tuners")
        testhost.exec("tee", "/tmp/lines", stdin=("\n".join(lines) + "\n").encode())
        testhost.exec("visudo", "-cf", "/tmp/lines")
        testhost.exec("rm", "/tmp/lines")


@pytest.mark.parametrize(
    ("mode", "owner"), [("644", "root:root"), ("664", "root:root"), ("664", "daemon:daemon")]
)
async def test_a_user_with_exactly_the_printed_lines_can_change_and_roll_back_and_nothing_else(
    operator: Operator, testhost: TestHost, mode: str, owner: str
) -> None:
    fragment = f"/etc/systemd/system/{UNIT}"
    testhost.exec("chown", owner, fragment)
    testhost.exec("chmod", mode, fragment)
    lines = (await doctor.examine(await operator())).sudoers
    testhost.exec("sh", "-c", lines[0].partition("as root: ")[2])
    testhost.exec("usermod", "-a", "-G", "tuners", "limited")
    testhost.exec("tee", "/etc/sudoers.d/printed", stdin=("\n".join(lines) + "\n").encode())
    testhost.exec("chmod", "440", "/etc/sudoers.d/printed")
    try:
        limited = await operator("limited")
        await ready(limited)
        diagnosis = await doctor.examine(limited)
        assert diagnosis.read_only is None, [check for check in diagnosis.checks if check.ok is False]
        made = await plan.make(
            limited, await surveys.read(limited), plan.parse_turns(limited, ["budget=12"], ())
        )
        ran: list[tuple[str, ...]] = []
        limited.host.on_command(lambda one: ran.append((*(("sudo",) if one.sudo else ()), *one.argv)))
        last = await follow(change.apply(limited, made))
        assert last.phase is Phase.VERIFIED, last
        write = [argv for argv in ran if ".ddtui-new" in " ".join(argv) or argv[:2] == ("sudo", "mkdir")]
        expected = [argv for argv in made.commands if ".ddtui-new" in " ".join(argv) or "mkdir" in argv]
        assert [argv for argv in write if argv[0] == "sudo"] == expected
        last = await follow(rollback.rollback(limited))
        assert last.phase is Phase.VERIFIED, last
        with pytest.raises(NotPermitted):
            await limited.host.run(("systemctl", "stop", UNIT), sudo=True)
        with pytest.raises(NotPermitted):
            await limited.host.run(("tee", "--", "/etc/passwd"), stdin=b"", sudo=True)
    finally:
        testhost.exec("rm", "-f", "/etc/sudoers.d/printed")
        testhost.exec("gpasswd", "-d", "limited", "tuners", check=False)
        testhost.exec("chown", "root:root", fragment)
        testhost.exec("chmod", "644", fragment)


async def test_a_unit_that_this_user_may_not_read_is_not_said_to_be_missing(
    operator: Operator, testhost: TestHost
) -> None:
    fragment = f"/etc/systemd/system/{UNIT}"
    testhost.exec("chmod", "600", fragment)
    try:
        survey = await surveys.read(await operator("limited"))
        assert survey.unit.problem
        assert survey.unit.problem.startswith(f"{fragment} may not be read by this user"), survey.unit
    finally:
        testhost.exec("chmod", "644", fragment)
