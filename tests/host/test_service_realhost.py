"""A service on a real host: what is on disk, what systemd has loaded, and what runs, told apart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from host.real import connected, until
from testhost_fixture import TestHost

from ddtui.host.base import Host
from ddtui.host.service import ServiceReading, read_service, read_status
from ddtui.host.unit.change import change_unit
from ddtui.profile import Scope, Service

pytestmark = pytest.mark.realhost

# a program that is taken for a server, and stays
SERVER = "#!/usr/bin/python3\nimport time\ntime.sleep(1000)\n"
SGLANG = "/opt/test/sglang"


@pytest_asyncio.fixture
async def host(testhost: TestHost) -> AsyncIterator[Host]:
    async with connected(testhost, "root") as link:
        yield link


def put(testhost: TestHost, path: str, content: str, mode: str = "644") -> None:
    testhost.exec("mkdir", "-p", path.rpartition("/")[0])
    testhost.exec("tee", path, stdin=content.encode())
    testhost.exec("chmod", mode, path)


def install(testhost: TestHost, name: str, body: str) -> Service:
    put(testhost, SGLANG, SERVER, "755")
    put(testhost, f"/etc/systemd/system/{name}", f"[Service]\n{body}\n")
    testhost.exec("systemctl", "daemon-reload")
    return Service(unit=name)


async def started(testhost: TestHost, host: Host, service: Service) -> ServiceReading:
    await asyncio.to_thread(testhost.exec, "systemctl", "restart", service.unit)

    def runs() -> bool:
        return b"serve" in testhost.exec("pgrep", "-af", "sglang serve", check=False).stdout

    await until(runs)
    return await read_service(host, service)


async def test_the_units_server_is_read_in_two_round_trips(testhost: TestHost, host: Host) -> None:
    reading = await read_service(host, Service(unit=testhost.info["unit"]))
    assert reading.problems == {}
    assert reading.unit is not None and reading.process is not None
    assert reading.unit.exec_start == reading.loaded_exec
    assert reading.process.argv == reading.unit.launch_argv
    assert reading.status.exec_main_start is not None and reading.process.started_at is not None
    assert abs(reading.process.started_at - reading.status.exec_main_start) < 1
    assert "PYTHONPATH" in (reading.process.environment or ())
    assert reading.reload_pending is None and reading.restart_pending is None
    assert reading.round_trips == 2


async def test_a_first_drop_in_is_pending_before_and_after_the_reload(testhost: TestHost, host: Host) -> None:
    """systemd 252 itself says NeedDaemonReload=no after a unit's first drop-in."""
    service = install(testhost, "a.service", f"ExecStart={SGLANG} serve --model-path /m --tp 8")
    before = await started(testhost, host, service)
    assert before.unit is not None
    change = change_unit(before.tree, before.unit, [("--tp", "set", "4")])
    (edit,) = change.edits
    put(testhost, edit.path, (edit.after or b"").decode())
    written = await read_service(host, service)
    assert edit.path in (written.reload_pending or "")
    assert written.unit is not None and written.unit.flags["--tp"] == "4"
    assert written.loaded_exec == before.loaded_exec
    testhost.exec("systemctl", "daemon-reload")
    loaded = await read_service(host, service)
    assert loaded.reload_pending is None and loaded.loaded_exec == change.exec_start_after
    assert "--tp 8 there, --tp 4 here" in (loaded.restart_pending or "")
    after = await started(testhost, host, service)
    assert after.restart_pending is None and after.reload_pending is None
    testhost.exec("rm", edit.path)
    gone = await read_service(host, service)
    assert "which is gone" in (gone.reload_pending or "")
    testhost.exec("systemctl", "stop", "a.service")


async def test_a_changed_variable_is_pending_too(testhost: TestHost, host: Host) -> None:
    service = install(testhost, "b.service", f"Environment=A=1\nExecStart={SGLANG} serve --model-path /m")
    await started(testhost, host, service)
    put(
        testhost,
        "/etc/systemd/system/b.service",
        f"[Service]\nEnvironment=A=2\nExecStart={SGLANG} serve --model-path /m\n",
    )
    assert "other variables" in ((await read_service(host, service)).reload_pending or "")
    testhost.exec("systemctl", "daemon-reload")
    assert "another A in its environment" in ((await read_service(host, service)).restart_pending or "")
    testhost.exec("systemctl", "stop", "b.service")


async def test_the_server_is_found_behind_a_shell(testhost: TestHost, host: Host) -> None:
    service = install(
        testhost, "c.service", f"ExecStart=/bin/sh -c '{SGLANG} serve --model-path /m --tp 8; true'"
    )
    reading = await started(testhost, host, service)
    assert reading.process is not None and not reading.process.main
    assert reading.process.argv[1:] == (SGLANG, "serve", "--model-path", "/m", "--tp", "8")
    assert reading.restart_pending is None
    testhost.exec("systemctl", "stop", "c.service")


async def test_an_environment_file_that_only_root_reads(testhost: TestHost) -> None:
    put(testhost, "/etc/test/secret.env", "TP=8\n", "600")
    service = install(
        testhost,
        "d.service",
        f"EnvironmentFile=/etc/test/secret.env\nExecStart={SGLANG} serve --model-path /m --tp ${{TP}}",
    )
    async with connected(testhost, "limited") as limited:
        reading = await read_service(limited, service)
        assert "/etc/test/secret.env may not be read by this user" in reading.problems["files"]
    async with connected(testhost, "root") as root:
        whole = await read_service(root, service)
        assert whole.unit is not None and whole.unit.flags["--tp"] == "8" and whole.problems == {}


async def test_units_that_cannot_run(testhost: TestHost, host: Host) -> None:
    bad = install(testhost, "e.service", f'ExecStart={SGLANG} serve "open')
    reading = await read_service(host, bad)
    assert reading.status.load_state == "bad-setting"
    assert reading.problems["unit"] == '/etc/systemd/system/e.service:2: a quote " that is never closed'
    testhost.exec("systemctl", "mask", "masked.service")
    masked = await read_service(host, Service(unit="masked.service"))
    assert masked.status.load_state == "masked"
    assert masked.problems["unit"] == "masked.service is masked: it cannot be started"
    none = await read_service(host, Service(unit="none.service"))
    assert not none.status.exists and none.unit is None and none.process is None
    assert "there is no unit none.service" in none.problems["unit"]


async def test_a_user_unit(testhost: TestHost) -> None:
    home = testhost.exec("sh", "-c", "getent passwd tuner | cut -d: -f6").stdout.decode().strip()
    put(testhost, SGLANG, SERVER, "755")
    put(
        testhost,
        f"{home}/.config/systemd/user/u.service",
        f"[Service]\nExecStart={SGLANG} serve --model-path %h/m\n",
    )
    testhost.exec("chown", "-R", "tuner", f"{home}/.config")
    service = Service(unit="u.service", scope=Scope.USER)
    async with connected(testhost, "tuner") as tuner:
        for words in (("daemon-reload",), ("start", "u.service")):
            assert (await tuner.run(("systemctl", "--user", *words))).ok
        reading = await read_service(tuner, service)
        assert reading.problems == {}
        assert reading.unit is not None and reading.unit.flags == {"--model-path": f"{home}/m"}
        assert reading.unit.exec_start == reading.loaded_exec
        assert reading.process is not None and reading.restart_pending is None
        assert (await read_status(tuner, service)).running
        (edit,) = change_unit(reading.tree, reading.unit, [("--tp", "set", "2")]).edits
        assert edit.path == f"{home}/.config/systemd/user/u.service.d/zzz-ddtui.conf"
        await tuner.run(("systemctl", "--user", "stop", "u.service"))
