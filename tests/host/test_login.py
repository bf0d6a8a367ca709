"""Logging in: keys, passphrases, passwords, agents, jump hosts; host keys; and what a failure sounds like."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import asyncssh
import pytest
from host.loopback import Door, loopback
from host.people import Person

from ddtui.host import ssh as ssh_module
from ddtui.host.base import (
    ConfigError,
    HostKeyRefused,
    LinkState,
    NotAuthenticated,
    NotPermitted,
    Unreachable,
)
from ddtui.host.ssh import SshHost
from ddtui.profile import Connection

KEY, OTHER, THIRD = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(3))


def write_key(path: Path, key: asyncssh.SSHKey = KEY, passphrase: str | None = None, **options: str) -> Path:
    if passphrase and options.get("format_name", "openssh") == "openssh" and not find_spec("bcrypt"):
        pytest.skip("bcrypt is not installed: without it asyncssh opens no encrypted OpenSSH key")
    path.write_bytes(key.export_private_key(passphrase=passphrase, rounds=2, **options))
    path.chmod(0o600)
    return path


@asynccontextmanager
async def logged_in(connection: Connection, person: Person) -> AsyncIterator[SshHost]:
    host = SshHost(connection, person)
    try:
        await host.connect()
        yield host
    finally:
        await host.close()


async def check(host: SshHost) -> None:
    assert (await host.run(["echo", "in"])).stdout == b"in\n"
    assert host.link.state is LinkState.CONNECTED


# -- keys ----------------------------------------------------------------------------------------------
async def test_a_key_file(tmp_path: Path) -> None:
    async with loopback(tmp_path, Door(keys=[KEY])) as server:
        connection = server.connection(identity_file=write_key(tmp_path / "id"))
        async with logged_in(connection, Person()) as host:
            await check(host)


@pytest.mark.parametrize("form", ["openssh", "pkcs1-pem", "pkcs8-pem"])
async def test_an_encrypted_key_asks_for_its_passphrase_again_when_it_was_wrong(
    tmp_path: Path, form: str
) -> None:
    key = asyncssh.generate_private_key("ssh-rsa", key_size=2048)
    path = write_key(tmp_path / "id", key, "right", format_name=form)
    person = Person({"passphrase": ["wrong", "right"]})
    async with loopback(tmp_path, Door(keys=[key])) as server:
        async with logged_in(server.connection(identity_file=path), person) as host:
            await check(host)
    assert len(person.asked) == 2
    assert str(path) in person.asked[0][1]


async def test_an_encrypted_key_that_cannot_be_opened_here_is_left_out_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_key(tmp_path / "id", KEY, "right")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    async with loopback(tmp_path, Door(keys=[KEY])) as server:
        with pytest.raises(NotAuthenticated, match="bcrypt"):
            async with logged_in(server.connection(identity_file=path), Person()):
                pass


async def test_no_passphrase_is_asked_for_a_key_that_the_host_does_not_want(tmp_path: Path) -> None:
    person = Person({"passphrase": ["right"], "password": ["pw"]})
    path = write_key(tmp_path / "id", OTHER, "right")
    async with loopback(tmp_path, Door(keys=[KEY], password="pw")) as server:
        async with logged_in(server.connection(identity_file=path), person) as host:
            await check(host)
    assert person.asked_for("passphrase") == []


async def test_a_passphrase_that_nobody_gives_leaves_the_key_out(tmp_path: Path) -> None:
    path = write_key(tmp_path / "id", KEY, "right")
    async with loopback(tmp_path, Door(keys=[KEY])) as server:
        with pytest.raises(NotAuthenticated, match=r"tuner@127\.0\.0\.1"):
            async with logged_in(server.connection(identity_file=path), Person()):
                pass


async def test_a_full_agent_never_runs_into_the_limit_of_tries(tmp_path: Path) -> None:
    keys = [asyncssh.generate_private_key("ssh-ed25519") for _ in range(12)]
    folder = tmp_path / "home/.ssh"
    folder.mkdir(parents=True)
    lines = [f"IdentityFile {write_key(folder / f'id{n}', key)}" for n, key in enumerate(keys)]
    config = tmp_path / "config"
    config.write_text("\n".join(lines))
    for max_tries in (6, 3):
        door = Door(keys=[keys[-1]], max_tries=max_tries)
        async with loopback(tmp_path, door) as server:
            async with logged_in(server.connection(config=config), Person()) as host:
                await check(host)


async def test_after_a_key_that_worked_it_is_offered_first(tmp_path: Path) -> None:
    config = tmp_path / "config"
    paths = [write_key(tmp_path / f"id{n}", key) for n, key in enumerate((OTHER, THIRD, KEY))]
    config.write_text("\n".join(f"IdentityFile {path}" for path in paths))
    door = Door(keys=[KEY])
    async with loopback(tmp_path, door) as server:
        async with logged_in(server.connection(config=config), Person()) as host:
            assert door.offered.index(KEY.get_fingerprint()) == 2
            door.offered.clear()
            server.cut()
            await reconnected(host)
            assert door.offered[0] == KEY.get_fingerprint()


async def test_an_agent_is_used_and_a_named_public_key_picks_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shutil.which("ssh-agent"):
        pytest.skip("ssh-agent is not installed here")
    sock = str(tmp_path / "agent")
    agent = await asyncio.create_subprocess_exec(
        "ssh-agent", "-D", "-a", sock, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert agent.stdout
        await asyncio.wait_for(agent.stdout.readline(), 10)  # it says where it listens, and does
        client = await asyncssh.connect_agent(sock)
        await client.add_keys([OTHER, KEY])
        client.close()
        monkeypatch.setenv("SSH_AUTH_SOCK", sock)
        door = Door(keys=[KEY])
        public = tmp_path / "id.pub"
        public.write_bytes(KEY.export_public_key())
        async with loopback(tmp_path, door) as server:
            async with logged_in(server.connection(), Person()) as host:
                await check(host)
            door.offered.clear()
            async with logged_in(server.connection(identity_file=public), Person()) as host:
                await check(host)
            assert set(door.offered) == {KEY.get_fingerprint()}
    finally:
        agent.terminate()
        await agent.wait()


# -- passwords -----------------------------------------------------------------------------------------
async def test_a_password_is_asked_for_and_again_when_it_was_wrong(tmp_path: Path) -> None:
    person = Person({"password": ["wrong", "right"]})
    async with loopback(tmp_path, Door(password="right")) as server:
        async with logged_in(server.connection(), person) as host:
            await check(host)
    assert [purpose for purpose, _ in person.asked] == ["password", "password"]
    assert "not it" in person.asked[1][1]


async def test_a_password_is_asked_for_three_times_at_most(tmp_path: Path) -> None:
    person = Person({"password": ["wrong"]})
    async with loopback(tmp_path, Door(password="right")) as server:
        with pytest.raises(NotAuthenticated, match="the password"):
            async with logged_in(server.connection(), person):
                pass
    assert len(person.asked) == 3


async def test_a_reconnect_asks_for_nothing_again(tmp_path: Path) -> None:
    person = Person({"password": ["right"], "passphrase": ["pass"]})
    async with loopback(tmp_path, Door(password="right")) as server:
        async with logged_in(server.connection(), person) as host:
            server.cut()
            await reconnected(host)
            await check(host)
    assert len(person.asked) == 1


async def test_a_person_who_refuses_is_not_asked_again(tmp_path: Path) -> None:
    person = Person()
    async with loopback(tmp_path, Door(password="right")) as server:
        with pytest.raises(NotAuthenticated):
            async with logged_in(server.connection(), person):
                pass
    assert len(person.asked) == 1


async def test_keyboard_interactive_with_password_and_one_time_code(tmp_path: Path) -> None:
    person = Person({"password": ["pw"], "otp": ["123456"]})
    door = Door(challenge={"Password: ": "pw", "Verification code: ": "123456"})
    async with loopback(tmp_path, door) as server:
        async with logged_in(server.connection(), person) as host:
            await check(host)
    assert [purpose for purpose, _ in person.asked] == ["password", "otp"]


async def test_the_banner_is_part_of_the_refusal(tmp_path: Path) -> None:
    door = Door(password="x", banner="Only for\nstaff\x1b[2J!\n")
    async with loopback(tmp_path, door) as server:
        with pytest.raises(NotAuthenticated, match="Only for staff"):
            async with logged_in(server.connection(), Person()):
                pass


# -- host keys -----------------------------------------------------------------------------------------
async def test_an_unknown_host_key_is_asked_about_and_then_remembered(tmp_path: Path) -> None:
    async with loopback(tmp_path, Door(keys=[KEY])) as server:
        known = tmp_path / "mine"
        connection = server.connection(identity_file=write_key(tmp_path / "id"), known_hosts=known)
        person = Person(trusts=True)
        async with logged_in(connection, person) as host:
            await check(host)
        (shown,) = person.shown
        assert (shown.host, shown.port, shown.algorithm) == ("127.0.0.1", server.port, "ssh-ed25519")
        assert shown.fingerprint == server.host_key.get_fingerprint()
        nobody = Person()
        async with logged_in(connection, nobody) as host:
            await check(host)
        assert nobody.shown == []


async def test_an_unknown_host_key_that_is_not_accepted_is_refused_and_not_kept(tmp_path: Path) -> None:
    async with loopback(tmp_path, Door(keys=[KEY])) as server:
        known = tmp_path / "mine"
        connection = server.connection(identity_file=write_key(tmp_path / "id"), known_hosts=known)
        with pytest.raises(HostKeyRefused, match="SHA256:") as caught:
            async with logged_in(connection, Person()):
                pass
        assert "ssh-keygen -lf" in caught.value.hint
        assert not known.exists()
        assert server.door.offered == []


async def test_a_changed_host_key_is_refused_and_explained_whatever_a_person_says(tmp_path: Path) -> None:
    old = asyncssh.generate_private_key("ssh-ed25519")
    async with loopback(tmp_path, Door(keys=[KEY])) as server:
        known = tmp_path / "mine"
        known.write_text(f"# x\n[127.0.0.1]:{server.port} {old.export_public_key().decode()}")
        connection = server.connection(identity_file=write_key(tmp_path / "id"), known_hosts=known)
        person = Person(trusts=True)
        host = SshHost(connection, person)
        with pytest.raises(HostKeyRefused, match="has changed") as caught:
            await host.connect()
        assert f"{known}:2" in str(caught.value)
        assert server.host_key.get_fingerprint() in str(caught.value)
        assert old.get_fingerprint() in str(caught.value)
        assert f"ssh-keygen -R '[127.0.0.1]:{server.port}'" in caught.value.hint
        assert person.shown == []
        assert host.link.state is LinkState.REFUSED
        assert server.door.offered == []
        await host.close()


async def test_a_revoked_host_key_is_refused(tmp_path: Path) -> None:
    async with loopback(tmp_path, Door(keys=[KEY])) as server:
        known = tmp_path / "mine"
        public = server.host_key.export_public_key().decode()
        known.write_text(f"@revoked * {public}[127.0.0.1]:{server.port} {public}")
        connection = server.connection(identity_file=write_key(tmp_path / "id"), known_hosts=known)
        with pytest.raises(HostKeyRefused, match="revoked"):
            async with logged_in(connection, Person(trusts=True)):
                pass


async def test_a_key_of_another_type_is_asked_about_with_a_warning(tmp_path: Path) -> None:
    ecdsa = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    async with loopback(tmp_path, Door(keys=[KEY])) as server:
        known = tmp_path / "mine"
        known.write_text(f"[127.0.0.1]:{server.port} {ecdsa.export_public_key().decode()}")
        connection = server.connection(identity_file=write_key(tmp_path / "id"), known_hosts=known)
        person = Person(trusts=True)
        async with logged_in(connection, person) as host:
            await check(host)
        assert "another type is known for this host (ecdsa-sha2-nistp256)" in person.shown[0].note


async def test_a_host_key_that_changes_while_the_link_is_down_is_refused(tmp_path: Path) -> None:
    async with loopback(tmp_path, Door(keys=[KEY])) as server:
        connection = server.connection(identity_file=write_key(tmp_path / "id"))
        port, known = server.port, server.known_hosts.read_text()
        host = SshHost(connection, Person(trusts=True))
        await host.connect()
    try:
        async with loopback(tmp_path, Door(keys=[KEY]), port=port) as server:
            server.known_hosts.write_text(known)
            with pytest.raises(HostKeyRefused, match="has changed"):
                await connected_or_refused(host)
            assert host.link.state is LinkState.REFUSED
    finally:
        await host.close()


# -- on the way ----------------------------------------------------------------------------------------
async def test_a_jump_host_with_a_key_and_a_host_key_of_its_own(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    async with (
        loopback(tmp_path / "a", Door(keys=[OTHER])) as jump,
        loopback(tmp_path / "b", Door(keys=[KEY])) as server,
    ):
        config = tmp_path / "config"
        config.write_text(
            f"Host gpu\n  HostName 127.0.0.1\n  Port {server.port}\n  User tuner\n  ProxyJump jump\n"
            f"  IdentityFile {write_key(tmp_path / 'id')}\n  UserKnownHostsFile {server.known_hosts}\n"
            f"Host jump\n  HostName 127.0.0.1\n  Port {jump.port}\n  User jumper\n"
            f"  IdentityFile {write_key(tmp_path / 'id2', OTHER)}\n  UserKnownHostsFile {jump.known_hosts}\n"
        )
        async with logged_in(Connection(host="gpu", config=config), Person()) as host:
            await check(host)
            assert host.link.target == f"tuner@127.0.0.1:{server.port}"
            jump.cut()
            await reconnected(host)
            await check(host)


async def test_a_jump_host_that_cannot_reach_the_host_says_so(tmp_path: Path) -> None:
    async with loopback(tmp_path, Door(keys=[KEY])) as jump:
        config = tmp_path / "config"
        config.write_text(
            f"Host gpu\n  HostName 127.0.0.1\n  Port {free_port()}\n  ProxyJump jump\nHost jump\n"
            f"  HostName 127.0.0.1\n  Port {jump.port}\nHost *\n  IdentityFile {write_key(tmp_path / 'id')}\n"
            f"  UserKnownHostsFile {jump.known_hosts}\n"
        )
        with pytest.raises(Unreachable, match="jump host cannot reach"):
            async with logged_in(Connection(host="gpu", config=config), Person()):
                pass


async def test_failures_of_the_network_each_in_their_own_words(tmp_path: Path) -> None:
    known = tmp_path / "known"
    refused = Connection(host="127.0.0.1", port=free_port(), known_hosts=known)
    nowhere = Connection(host="no-such-host.invalid", known_hosts=known)
    for connection, words in ((refused, "refuses connections"), (nowhere, "is not known")):
        with pytest.raises(Unreachable, match=words) as caught:
            async with logged_in(connection, Person()):
                pass
        assert caught.value.hint


async def test_what_is_no_ssh_server_is_told_from_one_that_is_silent(tmp_path: Path) -> None:
    async def http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    for answer, words in ((http, "SSH server|before the log-in"), (silent, "did not answer")):
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        connection = Connection(host="127.0.0.1", port=port, known_hosts=tmp_path / "k", connect_timeout=0.3)
        with pytest.raises(Unreachable, match=words):
            async with logged_in(connection, Person()):
                pass
        server.close()


async def test_the_time_limit_of_the_network_does_not_hurry_a_person(tmp_path: Path) -> None:
    class Slow(Person):
        async def secret(self, prompt: str, *, purpose: str) -> str | None:
            await asyncio.sleep(0.6)
            return "right"

    async with loopback(tmp_path, Door(password="right")) as server:
        async with logged_in(server.connection(connect_timeout=0.3), Slow()) as host:
            await check(host)


async def test_an_account_that_runs_no_commands_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nologin(process: asyncssh.SSHServerProcess[bytes]) -> None:
        process.stdout.write(b"This account is currently not available.\n")
        process.exit(1)

    monkeypatch.setattr("host.loopback._run", nologin)
    async with loopback(tmp_path, Door(keys=[KEY])) as server:
        with pytest.raises(NotPermitted, match="currently not available"):
            async with logged_in(server.connection(identity_file=write_key(tmp_path / "id")), Person()):
                pass


async def test_a_mistake_in_ssh_config_is_a_refusal_not_a_retry(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host gpu\n  Port x\n")
    host = SshHost(Connection(host="gpu", config=config), Person())
    with pytest.raises(ConfigError, match="line 2"):
        await host.connect()
    assert host.link.state is LinkState.REFUSED
    await host.close()


# -- the link ------------------------------------------------------------------------------------------
async def test_the_link_comes_back_by_itself_and_tells_every_state(tmp_path: Path) -> None:
    async with loopback(tmp_path, Door(keys=[KEY])) as server:
        async with logged_in(server.connection(identity_file=write_key(tmp_path / "id")), Person()) as host:
            seen: list[LinkState] = []
            host.on_link(lambda link: seen.append(link.state))
            server.cut()
            await reconnected(host)
            await check(host)
            told = [state for at, state in enumerate(seen) if at == 0 or seen[at - 1] is not state]
            assert told == [LinkState.LOST, LinkState.RETRYING, LinkState.CONNECTING, LinkState.CONNECTED]


async def test_without_a_link_commands_fail_at_once_and_connect_tries_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_module, "FIRST_RETRY", 600.0)
    monkeypatch.setattr(ssh_module, "LAST_RETRY", 600.0)
    async with loopback(tmp_path, Door(keys=[KEY])) as server:
        async with logged_in(server.connection(identity_file=write_key(tmp_path / "id")), Person()) as host:
            retrying = next_state(host, LinkState.RETRYING)
            server.cut()
            await retrying
            assert host.link.retry_at is not None
            with pytest.raises(Unreachable, match="no connection"):
                await host.run(["true"])
            await host.connect()
            await check(host)


async def test_round_trips_are_measured(tmp_path: Path) -> None:
    async with loopback(tmp_path, Door(keys=[KEY])) as server:
        host = SshHost(server.connection(identity_file=write_key(tmp_path / "id")), Person())
        measured = asyncio.Event()
        host.on_link(lambda link: measured.set() if link.rtt_ms is not None else None)
        await host.connect()
        await asyncio.wait_for(measured.wait(), 10)
        assert host.link.rtt_ms is not None and 0 < host.link.rtt_ms < 5000
        await host.close()


async def test_a_closed_host_is_closed(tmp_path: Path) -> None:
    async with loopback(tmp_path, Door(keys=[KEY])) as server:
        host = SshHost(server.connection(identity_file=write_key(tmp_path / "id")), Person())
        await host.connect()
        endpoint = await host.endpoint(1)
        assert endpoint.uds is not None
        folder = Path(endpoint.uds).parent
        assert folder.stat().st_mode & 0o777 == 0o700
        await host.close()
        assert host.link.state is LinkState.CLOSED
        assert not folder.exists()
        for call in (host.run(["true"]), host.connected()):
            with pytest.raises(Unreachable):
                await call


# -- helpers -------------------------------------------------------------------------------------------
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def next_state(host: SshHost, state: LinkState) -> asyncio.Future[None]:
    reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def see(link) -> None:  # type: ignore[no-untyped-def]
        if link.state is state and not reached.done():
            reached.set_result(None)

    host.on_link(see)
    return reached


async def reconnected(host: SshHost) -> None:
    """Wait until the link was lost and is there again."""
    await asyncio.wait_for(next_state(host, LinkState.LOST), 10)
    await asyncio.wait_for(host.connected(), 20)


async def connected_or_refused(host: SshHost) -> None:
    await asyncio.wait_for(next_state(host, LinkState.REFUSED), 20)
    await host.connected()
