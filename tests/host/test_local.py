"""This machine as a host: the same interface without SSH."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from host.people import Person
from host.test_shell import HOSTILE

from ddtui.host import files
from ddtui.host.base import Command, CommandFailed, HostError, LinkState, NotPermitted
from ddtui.host.local import LocalHost
from ddtui.host.open import open_host
from ddtui.host.ssh import SshHost
from ddtui.profile import Connection


@pytest.fixture
async def host() -> LocalHost:
    local = LocalHost(Person())
    await local.connect()
    return local


def test_the_profile_decides() -> None:
    assert isinstance(open_host(Connection(host="local"), Person()), LocalHost)
    assert isinstance(open_host(Connection(host="gpu1"), Person()), SshHost)


async def test_commands_run_as_over_ssh(host: LocalHost) -> None:
    assert host.link.state is LinkState.CONNECTED
    argv = ("printf", r"<%s>\0", *HOSTILE)
    expected = b"".join(f"<{word}>".encode() + b"\0" for word in HOSTILE)
    assert (await host.run(argv)).stdout == expected
    first, second = await host.batch([Command(argv), Command(("sh", "-c", "echo e >&2; exit 3"))])
    assert (first.stdout, second.exit_code, second.stderr) == (expected, 3, b"e\n")
    data = os.urandom(500_000)
    assert (await host.run(["cat"], stdin=data)).stdout == data
    assert (await host.run(["true"], stdin=data)).ok
    assert (await host.run(["no-such-program"])).exit_code == 127
    assert (await host.run(["sh", "-c", "kill -9 $$"])).exit_code == 137


async def test_followers_end_with_their_context(host: LocalHost) -> None:
    async with host.follow(["sh", "-c", "echo $$; exec sleep 600"]) as lines:
        pid = int(await anext(lines))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    async with host.follow(["seq", "3"]) as lines:
        assert [line async for line in lines] == [b"1", b"2", b"3"]
    with pytest.raises(CommandFailed):
        async with host.follow(["cat", "/no/such"]) as lines:
            await anext(lines)
    async with host.follow(["cat"], stdin=b"a\nb") as lines:
        assert [line async for line in lines] == [b"a", b"b"]


async def test_a_time_limit(host: LocalHost) -> None:
    with pytest.raises(TimeoutError, match="sleep 600"):
        await host.run(["sleep", "600"], timeout=0.1)


async def test_files_are_written_whole(host: LocalHost, tmp_path: Path) -> None:
    path = tmp_path / "it's $(a) file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    await files.write_atomically(host, str(path), b"new\0\xff")
    assert path.read_bytes() == b"new\0\xff"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == [path.name]  # noqa: PTH208
    await files.remove(host, str(path))
    assert await files.read(host, [str(path)]) == {str(path): None}


async def test_connections_go_straight_there(host: LocalHost) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connection = await host.open_connection("127.0.0.1", port)
    await connection.write(b"hello\n")
    assert await connection.read(100) == b"HELLO\n"
    await connection.close()
    endpoint = await host.endpoint(port)
    assert (endpoint.uds, endpoint.base_url) == (None, f"http://127.0.0.1:{port}")
    server.close()


async def test_a_closed_host_is_closed(host: LocalHost) -> None:
    await host.close()
    with pytest.raises(HostError):
        await host.connected()


async def test_root_rights_follow_sudo_unless_we_are_root(
    host: LocalHost, tmp_path: Path, monkeypatch
) -> None:  # type: ignore[no-untyped-def]
    sudo = tmp_path / "sudo"
    sudo.write_text('#!/bin/sh\necho "sudo: a password is required" >&2; exit 1\n')
    sudo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    host._is_root = True
    assert (await host.run(["true"], sudo=True)).ok
    host._is_root = False
    with pytest.raises(NotPermitted, match="none was given"):
        await host.run(["true"], sudo=True)
    sudo.write_text('#!/bin/sh\necho "sudo: sorry, you must have a tty to run sudo" >&2; exit 1\n')
    with pytest.raises(NotPermitted, match="requiretty"):
        await host.run(["true"], sudo=True)
