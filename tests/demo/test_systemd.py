"""The demo host's systemd: jobs, failures, restarts, start limits, with a light Python program as the service."""

from __future__ import annotations

import json

from demo.virtual_host import UNIT, install, run, show, until

from ddtui.demo.machine import Machine

SLEEPS = "import time; time.sleep(1000)"
CLEAN = "import signal,sys,time; signal.signal(15, lambda *a: sys.exit(0)); print('up', flush=True); time.sleep(1000)"
DEAF = "import signal,time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(1000)"


async def systemctl(machine: Machine, *words: str) -> str:
    """As root, and it must succeed."""
    done = await run(machine, "sudo", "-n", "--", "systemctl", *words)
    assert done.code == 0, done.err
    return done.out


async def said(machine: Machine, *matches: str) -> list[str]:
    """The unit's messages so far."""
    done = await run(machine, "journalctl", "-u", UNIT, "-o", "cat", "--no-pager", *matches)
    return done.out.splitlines()


async def said_line(machine: Machine, line: str) -> None:
    """Wait until the service has printed the line."""
    with machine.journal.follow() as follower:
        while line not in await said(machine):
            await follower.next()


async def test_a_start_has_an_invocation_a_pid_and_a_process_of_its_own(machine: Machine) -> None:
    install(machine, SLEEPS)
    await systemctl(machine, "start", UNIT)
    first = await show(machine, "ActiveState", "SubState", "MainPID", "InvocationID", "ControlGroup")
    assert (first["ActiveState"], first["SubState"]) == ("active", "running")
    procs = await run(machine, "cat", f"/sys/fs/cgroup{first['ControlGroup']}/cgroup.procs")
    assert procs.out.split() == [first["MainPID"]]
    cmdline = await run(machine, "cat", f"/proc/{first['MainPID']}/cmdline")
    assert cmdline.out == f"/usr/bin/python3\0-c\0{SLEEPS}\0"
    await systemctl(machine, "restart", UNIT)
    second = await show(machine, "MainPID", "InvocationID")
    assert second["MainPID"] != first["MainPID"]
    assert second["InvocationID"] != first["InvocationID"]
    gone = await run(machine, "cat", f"/proc/{first['MainPID']}/cmdline")
    assert gone.code == 1
    assert "No such file or directory" in gone.err


async def test_a_clean_stop_is_no_failure_and_leaves_nothing(machine: Machine) -> None:
    install(machine, CLEAN)
    await systemctl(machine, "start", UNIT)
    await said_line(machine, "up")
    await systemctl(machine, "stop", UNIT)
    assert await show(
        machine, "ActiveState", "SubState", "Result", "MainPID", "ControlGroup", "ExecMainStatus"
    ) == {
        "ActiveState": "inactive",
        "SubState": "dead",
        "Result": "success",
        "MainPID": "0",
        "ControlGroup": "",
        "ExecMainStatus": "0",
    }
    assert await said(machine) == [
        f"Started {UNIT} - a light service.",
        "up",
        f"Stopping {UNIT} - a light service...",
        f"{UNIT}: Deactivated successfully.",
        f"Stopped {UNIT} - a light service.",
    ]


async def test_a_stop_that_takes_too_long_ends_by_kill_with_result_timeout(machine: Machine) -> None:
    install(machine, DEAF, "TimeoutStopSec=300ms")
    await systemctl(machine, "start", UNIT)
    await said_line(machine, "up")
    await systemctl(machine, "stop", UNIT)
    assert await show(machine, "ActiveState", "Result", "ExecMainCode", "ExecMainStatus") == {
        "ActiveState": "failed",
        "Result": "timeout",
        "ExecMainCode": "2",
        "ExecMainStatus": "9",
    }
    lines = await said(machine)
    assert f"{UNIT}: State 'stop-sigterm' timed out. Killing." in lines
    assert f"{UNIT}: Main process exited, code=killed, status=9/KILL" in lines
    assert f"{UNIT}: Failed with result 'timeout'." in lines


async def test_restart_returns_zero_for_a_program_that_fails_at_once(machine: Machine) -> None:
    install(machine, "import sys; print('bad flag', file=sys.stderr); sys.exit(2)", "Restart=no")
    await systemctl(machine, "restart", UNIT)
    await until(
        machine, {"ActiveState": "failed", "Result": "exit-code", "ExecMainStatus": "2", "MainPID": "0"}
    )
    assert (await said(machine))[1:] == [
        "bad flag",
        f"{UNIT}: Main process exited, code=exited, status=2/INVALIDARGUMENT",
        f"{UNIT}: Failed with result 'exit-code'.",
    ]


async def test_between_crashes_it_is_activating_and_after_too_many_it_has_failed(machine: Machine) -> None:
    install(
        machine,
        "import sys; sys.exit(3)",
        "Restart=on-failure\nRestartSec=50ms\n[Unit]\nStartLimitBurst=3\nStartLimitIntervalSec=60",
    )
    await systemctl(machine, "start", UNIT)
    await until(machine, {"ActiveState": "failed", "Result": "exit-code", "NRestarts": "3"})
    lines = await said(machine)
    assert lines.count(f"Started {UNIT} - a light service.") == 3
    assert f"{UNIT}: Scheduled restart job, restart counter is at 3." in lines
    assert lines[-3:] == [
        f"{UNIT}: Start request repeated too quickly.",
        f"{UNIT}: Failed with result 'exit-code'.",
        f"Failed to start {UNIT} - a light service.",
    ]


async def test_a_manual_restart_that_hits_the_start_limit_stops_the_healthy_service(machine: Machine) -> None:
    install(machine, SLEEPS, "[Unit]\nStartLimitBurst=2\nStartLimitIntervalSec=60")
    await systemctl(machine, "start", UNIT)
    await systemctl(machine, "restart", UNIT)
    third = await run(machine, "sudo", "-n", "--", "systemctl", "restart", UNIT)
    assert third.code == 1
    assert third.err.startswith(
        f"Job for {UNIT} failed because start of the service was attempted too often.\n"
    )
    assert await show(machine, "ActiveState", "Result") == {
        "ActiveState": "failed",
        "Result": "start-limit-hit",
    }
    await systemctl(machine, "reset-failed", UNIT)
    await systemctl(machine, "restart", UNIT)
    assert (await show(machine, "ActiveState"))["ActiveState"] == "active"


async def test_killed_by_a_signal_it_comes_back_by_itself(machine: Machine) -> None:
    install(machine, SLEEPS, "Restart=on-failure\nRestartSec=50ms")
    await systemctl(machine, "start", UNIT)
    await systemctl(machine, "kill", "--signal=SIGKILL", UNIT)
    await until(machine, {"ActiveState": "active", "NRestarts": "1", "Result": "success"})
    assert f"{UNIT}: Main process exited, code=killed, status=9/KILL" in await said(machine)


async def test_a_stop_while_it_waits_to_be_restarted_leaves_it_stopped(machine: Machine) -> None:
    install(machine, "import sys; sys.exit(1)", "Restart=always\nRestartSec=1h")
    await systemctl(machine, "start", UNIT)
    await until(machine, {"ActiveState": "activating", "SubState": "auto-restart"})
    await systemctl(machine, "stop", UNIT)
    assert await show(machine, "ActiveState", "SubState") == {"ActiveState": "inactive", "SubState": "dead"}


async def test_what_cannot_be_executed_ends_with_systemds_own_statuses(machine: Machine) -> None:
    for more, status, step in (
        ("ExecStart=\nExecStart=/opt/no/python3 -m x", "203", "EXEC spawning /opt/no/python3: No such file"),
        ("User=nosuch", "217", "USER spawning /usr/bin/python3: No such process"),
        ("WorkingDirectory=/nosuch", "200", "CHDIR spawning /usr/bin/python3: No such file"),
    ):
        install(machine, SLEEPS, more)
        await systemctl(machine, "start", UNIT)
        assert await show(machine, "ActiveState", "ExecMainStatus") == {
            "ActiveState": "failed",
            "ExecMainStatus": status,
        }
        assert any(f"Failed at step {step}" in line for line in await said(machine))
        await systemctl(machine, "reset-failed", UNIT)


async def test_a_change_on_disk_counts_after_a_reload_only(machine: Machine) -> None:
    install(machine, SLEEPS)
    await systemctl(machine, "start", UNIT)
    drop_in = f"/etc/systemd/system/{UNIT}.d/50-x.conf"
    text = b'[Service]\nExecStart=\nExecStart=/usr/bin/python3 -c "import time; time.sleep(2000)"\n'
    written = await run(machine, "sudo", "-n", "--", "tee", "--", drop_in, stdin=text)
    assert written.code == 0
    assert (await show(machine, "NeedDaemonReload"))["NeedDaemonReload"] == "yes"
    warned = await run(machine, "sudo", "-n", "--", "systemctl", "restart", UNIT)
    assert "changed on disk" in warned.err
    assert "time.sleep(1000)" in (await show(machine, "ExecStart"))["ExecStart"]
    await systemctl(machine, "daemon-reload")
    assert await show(machine, "NeedDaemonReload", "DropInPaths") == {
        "NeedDaemonReload": "no",
        "DropInPaths": f"/etc/systemd/system/{UNIT}.d/10-limits.conf {drop_in}",
    }
    await systemctl(machine, "restart", UNIT)
    pid = (await show(machine, "MainPID"))["MainPID"]
    assert "time.sleep(2000)" in (await run(machine, "cat", f"/proc/{pid}/cmdline")).out


async def test_a_broken_unit_is_refused_while_the_old_process_goes_on(machine: Machine) -> None:
    install(machine, SLEEPS)
    await systemctl(machine, "start", UNIT)
    before = await show(machine, "MainPID")
    drop_in = f"/etc/systemd/system/{UNIT}.d/50-x.conf"
    await run(
        machine, "sudo", "-n", "--", "tee", "--", drop_in, stdin=b"[Service]\nExecStart=/bin/true\nFoo=1\n"
    )
    await systemctl(machine, "daemon-reload")
    verified = await run(machine, "systemd-analyze", "verify", UNIT)
    assert verified.code == 1
    assert verified.err.splitlines() == [
        f"{drop_in}:3: Unknown key 'Foo' in section [Service], ignoring.",
        f"{UNIT}: Service has more than one ExecStart= setting, which is only allowed for "
        "Type=oneshot services. Refusing.",
        f"Unit {UNIT} has a bad unit file setting.",
    ]
    restarted = await run(machine, "sudo", "-n", "--", "systemctl", "restart", UNIT)
    assert restarted.code == 1
    assert "bad unit file setting" in restarted.err
    assert await show(machine, "LoadState", "ActiveState", "NeedDaemonReload") == {
        "LoadState": "bad-setting",
        "ActiveState": "active",
        "NeedDaemonReload": "yes",
    }
    assert await show(machine, "MainPID") == before


async def test_busctl_tells_the_exact_words_where_show_loses_them(machine: Machine) -> None:
    text = '[Service]\nExecStart=/usr/bin/python3 -c "import time; time.sleep(9)" "two words" $NO ${NO} a\\x20b\n'
    machine.files.write(f"/etc/systemd/system/{UNIT}", text.encode())
    await systemctl(machine, "daemon-reload")
    bus = "org.freedesktop.systemd1"
    path = "/org/freedesktop/systemd1"
    loaded = await run(
        machine, "busctl", "--json=short", "call", bus, path, f"{bus}.Manager", "LoadUnit", "s", UNIT
    )
    (unit_path,) = json.loads(loaded.out)["data"]
    got = await run(
        machine, "busctl", "--json=short", "get-property", bus, unit_path, f"{bus}.Service", "ExecStart"
    )
    answer = json.loads(got.out)
    assert answer["type"] == "a(sasbttttuii)"
    words = ["/usr/bin/python3", "-c", "import time; time.sleep(9)", "two words", "$NO", "${NO}", "a b"]
    assert answer["data"][0][:3] == ["/usr/bin/python3", words, False]
    await systemctl(machine, "start", UNIT)
    pid = (await show(machine, "MainPID"))["MainPID"]
    cmdline = (await run(machine, "cat", f"/proc/{pid}/cmdline")).out
    assert cmdline.split("\0")[:-1] == [*words[:4], "", "a b"]


async def test_without_rights_nothing_changes(machine: Machine) -> None:
    install(machine, SLEEPS)
    denied = await run(machine, "systemctl", "restart", "--no-block", UNIT)
    assert (denied.code, denied.err.splitlines()[0]) == (4, f"Failed to restart {UNIT}: Access denied")
    assert (await run(machine, "systemctl", "daemon-reload")).err == "Reload daemon failed: Access denied\n"
    assert (await run(machine, "sudo", "-n", "--", "systemctl", "start", UNIT, user="limited")).code == 1
    assert (await show(machine, "ActiveState"))["ActiveState"] == "inactive"


async def test_a_unit_that_is_not_there_is_not_found(machine: Machine) -> None:
    assert await show(machine, "LoadState", "ActiveState", "MainPID", unit="no.service") == {
        "LoadState": "not-found",
        "ActiveState": "inactive",
        "MainPID": "0",
    }
    started = await run(machine, "sudo", "-n", "--", "systemctl", "start", "no.service")
    assert (started.code, started.err) == (5, "Failed to start no.service: Unit no.service not found.\n")
    cat = await run(machine, "systemctl", "cat", "no.service")
    assert (cat.code, cat.err) == (1, "No files found for no.service.\n")


async def test_a_restart_is_joined_by_a_second_one_and_a_stop_replaces_it(machine: Machine) -> None:
    install(machine, SLEEPS)
    await systemctl(machine, "restart", "--no-block", UNIT)
    await systemctl(machine, "restart", UNIT)
    starts = [line for line in await said(machine) if line.startswith("Started")]
    assert len(starts) == 1
    await systemctl(machine, "restart", "--no-block", UNIT)
    await systemctl(machine, "stop", UNIT)
    assert (await show(machine, "ActiveState"))["ActiveState"] == "inactive"


async def test_listing_units_finds_the_service_for_a_first_run(machine: Machine) -> None:
    install(machine, SLEEPS)
    await systemctl(machine, "start", UNIT)
    listed = await run(
        machine, "systemctl", "list-units", "--type=service", "--all", "--plain", "--no-legend", "--no-pager"
    )
    rows = [line.split(None, 4) for line in listed.out.splitlines()]
    assert [UNIT, "loaded", "active", "running", "a light service"] in rows
    assert ["ssh.service", "loaded", "active", "running", "OpenBSD Secure Shell server"] in rows
