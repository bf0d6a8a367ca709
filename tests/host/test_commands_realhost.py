"""Commands on a real host: what goes in arrives, what comes out is what was printed, and nothing is left running."""

from __future__ import annotations

import asyncio
import hashlib
import os

import pytest
from host.people import Person
from host.real import connected, processes, reached, restart_sshd, settings, until
from host.test_shell import HOSTILE
from testhost_fixture import TestHost

from ddtui.host import shell
from ddtui.host.base import (
    Command,
    CommandFailed,
    HostError,
    LinkLost,
    LinkState,
    LoggedCommand,
    NotPermitted,
    Unreachable,
)
from ddtui.host.ssh import SshHost

pytestmark = pytest.mark.realhost


@pytest.mark.parametrize("user", ["tuner", "noisy", "root"])
async def test_hostile_arguments_arrive_unchanged(testhost: TestHost, user: str) -> None:
    argv = ("printf", r"<%s>\0", *HOSTILE)
    expected = b"".join(f"<{word}>".encode() + b"\0" for word in HOSTILE)
    async with connected(testhost, user) as host:
        assert (await host.run(argv)).stdout == expected
        first, second = await host.batch([Command(argv), Command(argv)])
        assert (first.stdout, second.stdout, first.stderr) == (expected, expected, b"")
        async with host.follow(["printf", r"%s\n", "a'b", "$(id)"]) as lines:
            assert [line async for line in lines] == [b"a'b", b"$(id)"]
    assert processes(testhost, "ddtui-pwned") == []
    assert testhost.exec("test", "-e", "/tmp/ddtui-pwned", check=False).returncode == 1


async def test_binary_data_goes_both_ways_unchanged(testhost: TestHost) -> None:
    data = os.urandom(3_000_000)
    async with connected(testhost) as host:
        done = await host.run(["cat"], stdin=data)
        assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()
        assert (await host.run(["wc", "-c"], stdin=b"")).out.strip() == "0"


async def test_output_that_is_not_utf8_harms_nothing(testhost: TestHost) -> None:
    async with connected(testhost, "noisy") as host:
        done = await host.run(["printf", r"\377\376\0\n"])
        assert (done.stdout, done.stderr) == (b"\xff\xfe\0\n", b"")
        assert "\ufffd" in done.out
        assert (await host.run(["true"])).ok


async def test_a_line_of_two_megabytes_is_one_line(testhost: TestHost) -> None:
    async with connected(testhost) as host:
        program = "import sys; sys.stdout.write('x' * 2_100_000 + '\\nend\\nno newline')"
        async with host.follow(["python3", "-c", program]) as lines:
            assert [len(line) async for line in lines] == [2_100_000, 3, 10]


async def test_a_program_that_is_missing_and_one_that_fails(testhost: TestHost) -> None:
    async with connected(testhost) as host:
        assert (await host.run(["no-such-program"])).exit_code == 127
        assert (await host.run(["sh", "-c", "kill -TERM $$"])).exit_code == 143
        with pytest.raises(CommandFailed, match="No such file"):
            async with host.follow(["ls", "/no/such"]) as lines:
                assert [line async for line in lines] == []


async def test_a_batch_is_one_round_trip_and_long_ones_are_split(testhost: TestHost) -> None:
    async with connected(testhost) as host:
        opened = 0
        really = host._open

        async def count(*words, **options):  # type: ignore[no-untyped-def]
            nonlocal opened
            opened += 1
            return await really(*words, **options)

        host._open = count  # type: ignore[method-assign]
        done = await host.batch([Command(("printf", "%s", str(n))) for n in range(50)])
        assert [one.out for one in done] == [str(n) for n in range(50)]
        assert opened == 1
        argvs = [("printf", "%s", f"{n}" + "x" * 1000) for n in range(300)]
        done = await host.batch([Command(argv) for argv in argvs])
        assert [one.stdout for one in done] == [f"{n}".encode() + b"x" * 1000 for n in range(300)]
        assert opened == 1 + len(list(shell.portions(argvs)))


async def test_more_commands_at_once_than_sshd_has_sessions(testhost: TestHost) -> None:
    async with connected(testhost) as host:
        async with host.follow(["cat"]), host.follow(["cat"]), host.follow(["cat"]):
            done = await asyncio.gather(*(host.run(["echo", str(n)]) for n in range(30)))
            assert [one.out.strip() for one in done] == [str(n) for n in range(30)]
            with pytest.raises(HostError, match="no more than 3"):
                async with host.follow(["cat"]):
                    pass


async def test_a_host_that_allows_one_session_only_is_enough_for_commands(testhost: TestHost) -> None:
    testhost.exec("sed", "-i", "s/^MaxSessions.*/MaxSessions 1/", "/etc/ssh/sshd_config.d/ddt.conf")
    restart_sshd(testhost)
    try:
        async with connected(testhost) as host:
            done = await asyncio.gather(*(host.run(["echo", str(n)]) for n in range(8)))
            assert sorted(one.out.strip() for one in done) == [str(n) for n in range(8)]
    finally:
        testhost.exec("sed", "-i", "s/^MaxSessions.*/MaxSessions 10/", "/etc/ssh/sshd_config.d/ddt.conf")
        restart_sshd(testhost)


# -- nothing is left running ---------------------------------------------------------------------------
async def test_a_follower_that_is_left_leaves_no_process_behind(testhost: TestHost) -> None:
    async with connected(testhost) as host:
        for argv in (["sleep", "4711"], ["journalctl", "-f", "-n", "0"], ["cat", "/dev/zero"], ["yes"]):
            async with host.follow(argv) as lines:
                if argv[0] == "yes":
                    assert await anext(lines) == b"y"
            assert processes(testhost, f"^{' '.join(argv)}") == []


async def test_a_follower_that_ignores_the_polite_signal_is_killed(testhost: TestHost) -> None:
    async with connected(testhost) as host:
        program = (
            "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(4712)"
        )
        async with host.follow(["python3", "-c", program]) as lines:
            assert await anext(lines) == b"1"
        assert processes(testhost, "4712") == []


async def test_a_root_follower_is_ended_through_sudo(testhost: TestHost) -> None:
    async with connected(testhost) as host:
        async with host.follow(["journalctl", "-f", "-n", "1"], sudo=True) as lines:
            assert await anext(lines)
        await until(lambda: not processes(testhost, "^(sudo.*)?journalctl -f -n 1"))


async def test_a_command_over_its_time_limit_is_ended(testhost: TestHost) -> None:
    async with connected(testhost) as host:
        with pytest.raises(TimeoutError, match=r"`sleep 4713` on .* did not end within 0.3 s"):
            await host.run(["sleep", "4713"], timeout=0.3)
        assert processes(testhost, "sleep 4713") == []


async def test_a_cancelled_command_is_ended_and_its_slot_is_free_again(testhost: TestHost) -> None:
    async with connected(testhost) as host:
        for _ in range(3):
            tasks = [asyncio.create_task(host.run(["sleep", "4714"])) for _ in range(6)]
            await until(lambda: len(processes(testhost, "^sleep 4714")) == 4)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert (await host.run(["echo", "free"])).out == "free\n"
        assert processes(testhost, "sleep 4714") == []


async def test_cancelling_at_any_moment_leaves_no_session_open(testhost: TestHost) -> None:
    async with connected(testhost) as host:
        for n in range(25):
            task = asyncio.create_task(host.run(["true"]))
            for _ in range(n):
                await asyncio.sleep(0)
            await asyncio.sleep(n / 4000)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        done = await asyncio.gather(*(host.run(["true"]) for _ in range(10)))
        assert all(one.ok for one in done)


async def test_waiting_for_a_line_may_be_cut_short_without_losing_any(testhost: TestHost) -> None:
    async with connected(testhost) as host:
        program = "import time\nfor n in range(30): print(n, flush=True); time.sleep(0.02)"
        async with host.follow(["python3", "-c", program]) as lines:
            got: list[bytes] = []
            while len(got) < 30:
                try:
                    got.append(await asyncio.wait_for(anext(lines), 0.005))
                except TimeoutError:
                    continue
            assert got == [str(n).encode() for n in range(30)]


# -- the command log -----------------------------------------------------------------------------------
async def test_every_command_is_reported_once_and_without_its_secrets(testhost: TestHost) -> None:
    async with connected(testhost) as host:
        log: list[LoggedCommand] = []
        end = host.on_command(log.append)
        await host.run(["echo", "--api-key", "verysecret"])
        await host.batch([Command(("true",)), Command(("false",)), Command(("id", "-u"), sudo=True)])
        with pytest.raises(TimeoutError):
            await host.run(["sleep", "9"], timeout=0.1)
        end()
        await host.run(["true"])
    assert [(line.argv[0], line.exit_code) for line in log if line.argv[0] != "sudo"][:3] == [
        ("echo", 0),
        ("true", 0),
        ("false", 1),
    ]
    assert log[-1].argv == ("sleep", "9") and log[-1].exit_code is None
    assert "verysecret" not in str(log)
    assert all(line.seconds >= 0 for line in log)


# -- connections ---------------------------------------------------------------------------------------
async def test_connections_lead_to_ports_of_the_host(testhost: TestHost) -> None:
    async with connected(testhost) as host:
        connection = await host.open_connection("127.0.0.1", 22)
        assert (await connection.read(8)).startswith(b"SSH-2.0")
        await connection.close()
        with pytest.raises(ConnectionRefusedError, match="nothing answers"):
            await host.open_connection("127.0.0.1", 1)


async def test_an_endpoint_outlives_the_link_and_ends_with_the_host(testhost: TestHost) -> None:
    async def greeting(path: str) -> bytes:
        reader, writer = await asyncio.open_unix_connection(path)
        try:
            return await reader.readline()
        finally:
            writer.close()

    async with connected(testhost) as host:
        endpoint = await host.endpoint(22)
        assert endpoint == await host.endpoint(22)
        assert endpoint.uds is not None and len(endpoint.uds.encode()) < 104
        assert (await greeting(endpoint.uds)).startswith(b"SSH-2.0")
        lost, back = reached(host, LinkState.LOST), reached(host, LinkState.CONNECTED)
        testhost.exec("pkill", "-KILL", "-f", "sshd.*: tuner")
        await asyncio.wait_for(lost, 10)
        assert await greeting(endpoint.uds) == b""
        await asyncio.wait_for(back, 20)
        assert (await greeting(endpoint.uds)).startswith(b"SSH-2.0")
        assert await greeting((await host.endpoint(1)).uds or "") == b""
    with pytest.raises(OSError):
        await asyncio.open_unix_connection(endpoint.uds)


async def test_forwarding_that_sshd_forbids_is_told_from_a_port_that_is_closed(testhost: TestHost) -> None:
    config = "/etc/ssh/sshd_config.d/noforward.conf"
    testhost.exec("tee", config, stdin=b"AllowTcpForwarding no\n")
    restart_sshd(testhost)
    try:
        async with connected(testhost) as host:
            with pytest.raises(NotPermitted, match="forwards no connection") as caught:
                await host.open_connection("127.0.0.1", 22)
            assert "AllowTcpForwarding" in caught.value.hint
            assert (await host.run(["true"])).ok
    finally:
        testhost.exec("rm", config)
        restart_sshd(testhost)


# -- accounts ------------------------------------------------------------------------------------------
async def test_an_account_without_a_shell_says_so_at_once(testhost: TestHost) -> None:
    testhost.exec("usermod", "-s", "/usr/sbin/nologin", "limited")
    try:
        host = SshHost(settings(testhost, "limited"), Person())
        with pytest.raises(NotPermitted, match=r"does not run commands.*not available"):
            await host.connect()
        assert host.link.state is LinkState.REFUSED
        await host.close()
    finally:
        testhost.exec("usermod", "-s", "/bin/bash", "limited")


async def test_a_password_log_in(testhost: TestHost) -> None:
    person = Person({"password": [testhost.info["asker_password"]]})
    host = SshHost(settings(testhost, "asker").model_copy(update={"identity_file": None}), person)
    await host.connect()
    assert (await host.run(["id", "-un"])).out == "asker\n"
    await host.close()
    assert len(person.asked) == 1


# -- loss ----------------------------------------------------------------------------------------------
async def test_a_command_cut_by_a_lost_link_says_that_its_effect_is_not_known(testhost: TestHost) -> None:
    async with connected(testhost) as host:
        running = asyncio.create_task(host.run(["sleep", "30"]))
        batch = asyncio.create_task(host.batch([Command(("true",)), Command(("sleep", "30"))]))
        async with host.follow(["sleep", "31"]) as lines:
            await until(lambda: len(processes(testhost, "^sleep 3")) == 3)
            testhost.exec("pkill", "-KILL", "-f", "sshd.*: tuner")
            with pytest.raises(LinkLost):
                await anext(lines)
            for task in (running, batch):
                with pytest.raises(LinkLost, match="broke while"):
                    await task
        with pytest.raises(Unreachable):
            await host.run(["true"])
        await asyncio.wait_for(host.connected(), 20)
        assert (await host.run(["true"])).ok
