"""The link on a real network: silence, cuts, reboots, a slow line, another machine at the old address."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from host.people import Person
from host.real import connected, off_loop, reached, restart_sshd, settings
from testhost_fixture import TestHost

from ddtui.host import ssh as ssh_module
from ddtui.host.base import HostKeyRefused, Link, LinkLost, LinkState, LoggedCommand, Unreachable
from ddtui.host.ssh import SshHost

pytestmark = pytest.mark.realhost


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_module, "LAST_RETRY", 1.0)
    monkeypatch.setattr(ssh_module, "MEASURE_EVERY", 0.2)


async def test_a_short_silence_heals_without_a_loss(testhost: TestHost) -> None:
    async with connected(testhost, keepalive=5.0) as host:
        states: list[LinkState] = []
        host.on_link(lambda link: states.append(link.state))
        async with host.follow(["sh", "-c", "while :; do echo x; sleep 0.05; done"]) as lines:
            assert await anext(lines) == b"x"
            await off_loop(testhost.ctl, "net", "drop")
            await asyncio.wait_for(reached_message(host, "no answer"), 10)
            assert host.link.rtt_ms is None
            await off_loop(testhost.ctl, "net", "up")
            async with asyncio.timeout(15):
                for _ in range(200):
                    assert await anext(lines) == b"x"
        assert set(states) == {LinkState.CONNECTED}
        assert host.link.message == ""


async def test_a_dead_line_is_noticed_and_the_link_comes_back_when_it_heals(testhost: TestHost) -> None:
    async with connected(testhost) as host:
        lost, retrying = reached(host, LinkState.LOST), reached(host, LinkState.RETRYING)
        await off_loop(testhost.ctl, "net", "drop")
        try:
            assert "no longer answers" in (await asyncio.wait_for(lost, 15)).message
            link = await asyncio.wait_for(retrying, 15)
            assert link.attempt == 1 and link.retry_at is not None
            with pytest.raises(Unreachable):
                await host.run(["true"])
        finally:
            await off_loop(testhost.ctl, "net", "up")
        await asyncio.wait_for(host.connected(), 30)
        assert (await host.run(["echo", "back"])).out == "back\n"
        assert host.link.attempt == 0


async def test_a_reset_and_a_refused_connection(testhost: TestHost) -> None:
    async with connected(testhost) as host:
        lost = reached(host, LinkState.LOST)
        await off_loop(testhost.ctl, "refuse", "on")
        try:
            await off_loop(testhost.ctl, "reset")
            await asyncio.wait_for(lost, 10)
            link = await asyncio.wait_for(reached_attempt(host, 2), 15)
            assert "refuses connections" in link.message
        finally:
            await off_loop(testhost.ctl, "refuse", "off")
        await asyncio.wait_for(host.connected(), 30)


async def test_a_first_attempt_that_fails_is_an_error_and_is_not_repeated(testhost: TestHost) -> None:
    await off_loop(testhost.ctl, "refuse", "on")
    try:
        host = SshHost(settings(testhost), Person())
        with pytest.raises(Unreachable, match="refuses connections"):
            await host.connect()
        assert host.link.state is LinkState.LOST
        with pytest.raises(Unreachable, match="refuses connections"):
            await host.connected()
    finally:
        await off_loop(testhost.ctl, "refuse", "off")
    await host.connect()
    assert (await host.run(["true"])).ok
    await host.close()


async def test_a_reboot_is_survived(testhost: TestHost) -> None:
    async with connected(testhost, "root") as host:
        before = (await host.run(["cat", "/proc/sys/kernel/random/boot_id"])).out
        lost = reached(host, LinkState.LOST)
        with contextlib.suppress(LinkLost):  # the host may be gone before its answer is here
            await host.run(["systemctl", "--no-block", "reboot"])
        await asyncio.wait_for(lost, 20)
        await asyncio.wait_for(host.connected(), 40)
        assert (await host.run(["cat", "/proc/sys/kernel/random/boot_id"])).out != before


async def test_the_round_trip_time_is_that_of_the_line(testhost: TestHost) -> None:
    await off_loop(testhost.ctl, "delay", "60")
    try:
        async with connected(testhost, keepalive=5.0) as host:
            link = await asyncio.wait_for(reached_trip(host), 10)
            assert link.rtt_ms is not None and link.rtt_ms >= 120
            log: list[LoggedCommand] = []
            host.on_command(log.append)
            await host.run(["true"])
            # channel, command, end: two round trips, and nothing waits for a delayed acknowledgement
            assert log[0].seconds >= 0.24
    finally:
        await off_loop(testhost.ctl, "delay", "off")


async def test_another_host_at_the_same_address_is_refused_and_not_retried(testhost: TestHost) -> None:
    old = testhost.exec("cat", "/etc/ssh/ssh_host_ed25519_key").stdout
    async with connected(testhost) as host:
        refused = reached(host, LinkState.REFUSED)
        testhost.exec("rm", "/etc/ssh/ssh_host_ed25519_key", "/etc/ssh/ssh_host_ed25519_key.pub")
        testhost.exec("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/etc/ssh/ssh_host_ed25519_key")
        try:
            restart_sshd(testhost)
            testhost.exec("pkill", "-KILL", "-f", "sshd.*: tuner")
            assert "has changed" in (await asyncio.wait_for(refused, 20)).message
            with pytest.raises(HostKeyRefused):
                await host.connected()
        finally:
            testhost.exec("tee", "/etc/ssh/ssh_host_ed25519_key", stdin=old)
            restart_sshd(testhost)
        await host.connect()  # once a person has seen to it
        assert (await host.run(["true"])).ok


# -- helpers -------------------------------------------------------------------------------------------
def _when(host: SshHost, holds) -> asyncio.Future[Link]:  # type: ignore[no-untyped-def]
    future: asyncio.Future[Link] = asyncio.get_running_loop().create_future()

    def see(link: Link) -> None:
        if holds(link) and not future.done():
            future.set_result(link)

    host.on_link(see)
    return future


def reached_message(host: SshHost, words: str) -> asyncio.Future[Link]:
    return _when(host, lambda link: words in link.message)


def reached_attempt(host: SshHost, attempt: int) -> asyncio.Future[Link]:
    return _when(host, lambda link: link.attempt >= attempt and link.state is LinkState.RETRYING)


def reached_trip(host: SshHost) -> asyncio.Future[Link]:
    return _when(host, lambda link: link.rtt_ms is not None)
