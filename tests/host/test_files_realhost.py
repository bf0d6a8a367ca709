"""Files on a real host: read apart from why they cannot be, written whole or not at all."""

from __future__ import annotations

import asyncio
import random
from contextlib import nullcontext
from itertools import pairwise

import pytest
from host.real import connected, until
from testhost_fixture import TestHost

from ddtui.host import files
from ddtui.host import ssh as ssh_module
from ddtui.host.base import CommandFailed, HostError, LinkLost, NotPermitted, Unreachable
from ddtui.host.files import Problem

pytestmark = pytest.mark.realhost

HOSTILE_NAME = '/tmp/it\'s "a" $(name);\\ !=ls\n日本'


def seen(testhost: TestHost, path: str) -> tuple[bytes, str]:
    """(content, mode and owner) as root sees them."""
    stat = testhost.exec("stat", "-c", "%a %U:%G", path).stdout.decode().strip()
    return testhost.exec("cat", path).stdout, stat


def put(testhost: TestHost, path: str, content: bytes, mode: str, owner: str) -> None:
    testhost.exec("tee", path, stdin=content)
    testhost.exec("chown", owner, path)
    testhost.exec("chmod", mode, path)


def folder(testhost: TestHost, path: str) -> list[str]:
    return sorted(testhost.exec("ls", "-A", path).stdout.decode().splitlines())


async def test_why_a_file_cannot_be_read_is_told_for_each(testhost: TestHost) -> None:
    put(testhost, "/srv/large", b"x" * 5000, "644", "root")
    put(testhost, "/srv/empty", b"", "644", "root")
    put(testhost, HOSTILE_NAME, b"\xff\0\n", "644", "root")
    async with connected(testhost) as host:
        paths = ["/srv/large", "/srv/empty", HOSTILE_NAME, "/etc/shadow", "/srv", "/nope", "/srv/large/x"]
        found = await files.look(host, paths, limit=4999)
        assert {path: reading.problem for path, reading in found.items()} == {
            "/srv/large": Problem.TOO_LARGE,
            "/srv/empty": None,
            HOSTILE_NAME: None,
            "/etc/shadow": Problem.UNREADABLE,
            "/srv": Problem.NOT_A_FILE,
            "/nope": Problem.ABSENT,
            "/srv/large/x": Problem.ABSENT,
        }
        assert (found["/srv/empty"].content, found[HOSTILE_NAME].content) == (b"", b"\xff\0\n")
        assert found["/srv/large"].sentence.startswith("/srv/large on 127.0.0.1 is too large")
        assert await files.read(host, ["/nope", "/srv/empty"]) == {"/nope": None, "/srv/empty": b""}
        with pytest.raises(NotPermitted, match="/etc/shadow"):
            await files.read(host, ["/etc/shadow"])
        with pytest.raises(CommandFailed, match="too large"):
            await files.read(host, ["/srv/large"], limit=10)


async def test_what_only_root_may_read_is_read_as_root_when_that_is_asked_for(testhost: TestHost) -> None:
    testhost.exec("tee", "/etc/sudoers.d/head", stdin=b"tuner ALL=(root) NOPASSWD: /usr/bin/head\n")
    async with connected(testhost) as host:
        found = await files.read(host, ["/etc/shadow", "/etc/hostname"], sudo=True)
        assert b"\nroot:" in b"\n" + (found["/etc/shadow"] or b"")
    testhost.exec("rm", "/etc/sudoers.d/head")
    async with connected(testhost) as host:
        with pytest.raises(NotPermitted):
            await files.read(host, ["/etc/shadow"], sudo=True)


async def test_a_new_file_of_roots(testhost: TestHost) -> None:
    testhost.exec("mkdir", "-p", "/etc/systemd/system/x.service.d")
    path = "/etc/systemd/system/x.service.d/zz-ddtui.conf"
    content = b"[Service]\nExecStart=\n\xc3\xa9 100% $HOME 'x' \\\n"
    async with connected(testhost) as host:
        await files.write_atomically(host, path, content, sudo=True)
        assert seen(testhost, path) == (content, "644 root:root")
        assert folder(testhost, "/etc/systemd/system/x.service.d") == ["zz-ddtui.conf"]
        await files.remove(host, path, sudo=True)
        await files.remove(host, path, sudo=True)
        assert folder(testhost, "/etc/systemd/system/x.service.d") == []


async def test_mode_and_owner_are_kept_and_can_be_taken_from_another_file(testhost: TestHost) -> None:
    put(testhost, "/srv/env", b"old\n", "640", "sglang:systemd-journal")
    async with connected(testhost) as host:
        await files.write_atomically(host, "/srv/env", b"new\n", sudo=True)
        assert seen(testhost, "/srv/env") == (b"new\n", "640 sglang:systemd-journal")
        await files.write_atomically(host, "/srv/backup", b"old\n", sudo=True, like="/srv/env")
        assert seen(testhost, "/srv/backup") == (b"old\n", "640 sglang:systemd-journal")
        await files.write_atomically(host, "/srv/secret", b"x", sudo=True, mode="600")
        assert seen(testhost, "/srv/secret") == (b"x", "600 root:root")


async def test_a_secret_is_never_readable_by_others_not_even_meanwhile(testhost: TestHost) -> None:
    put(testhost, "/srv/token", b"old\n", "600", "root:root")
    modes: set[str] = set()
    async with connected(testhost) as host:
        really = host._open

        async def look(*words, **options):  # type: ignore[no-untyped-def]
            there = testhost.exec("stat", "-c", "%a %s", files.temporary("/srv/token"), check=False)
            modes.add(there.stdout.decode().strip())
            return await really(*words, **options)

        host._open = look  # type: ignore[method-assign]
        await files.write_atomically(host, "/srv/token", b"new\n", sudo=True)
    assert modes == {"", "600 0", "600 4"}
    assert seen(testhost, "/srv/token") == (b"new\n", "600 root:root")


async def test_a_symlink_is_followed(testhost: TestHost) -> None:
    testhost.exec("mkdir", "-p", "/srv/real", "/srv/links")
    put(testhost, "/srv/real/file", b"old", "644", "root")
    testhost.exec("ln", "-sf", "../real/file", "/srv/links/file")
    async with connected(testhost) as host:
        await files.write_atomically(host, "/srv/links/file", b"new", sudo=True)
    assert seen(testhost, "/srv/real/file")[0] == b"new"
    assert testhost.exec("readlink", "/srv/links/file").stdout == b"../real/file\n"
    assert folder(testhost, "/srv/real") == ["file"]


async def test_a_file_of_our_own_takes_no_sudo(testhost: TestHost) -> None:
    async with connected(testhost, "limited") as host:
        path = "/home/limited/a b'c"
        await files.write_atomically(host, path, b"1")
        await files.write_atomically(host, path, b"2")
        assert seen(testhost, path) == (b"2", "644 limited:limited")


async def test_what_may_not_be_written_is_unchanged_and_leaves_nothing(testhost: TestHost) -> None:
    put(testhost, "/srv/root-only", b"old", "644", "root")
    async with connected(testhost, "limited") as host:
        for sudo in (False, True):
            with pytest.raises(NotPermitted):
                await files.write_atomically(host, "/srv/root-only", b"new", sudo=sudo)
        with pytest.raises(CommandFailed, match="folder does not exist"):
            await files.write_atomically(host, "/no/such/folder/file", b"new")
        with pytest.raises(NotPermitted):
            await files.remove(host, "/srv/root-only")
    assert seen(testhost, "/srv/root-only")[0] == b"old"
    assert not testhost.exec("find", "/srv", "/tmp", "-name", "*ddtui-new*").stdout


@pytest.mark.parametrize("content", [b"x" * 100_000, b"x" * 4000], ids=["at once", "to the last byte"])
async def test_a_full_disk_leaves_the_old_file_and_nothing_else(testhost: TestHost, content: bytes) -> None:
    testhost.exec("mkdir", "-p", "/srv/tiny")
    testhost.exec("mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", "/srv/tiny")
    try:
        put(testhost, "/srv/tiny/f", b"old", "644", "root")
        if len(content) < 8000:
            put(testhost, "/srv/tiny/filler", b"y" * 4096, "644", "root")
        async with connected(testhost) as host:
            with pytest.raises(CommandFailed, match=r"/srv/tiny/f on .* is unchanged: the disk is full"):
                await files.write_atomically(host, "/srv/tiny/f", content, sudo=True)
        assert seen(testhost, "/srv/tiny/f")[0] == b"old"
        assert [name for name in folder(testhost, "/srv/tiny") if name != "filler"] == ["f"]
    finally:
        testhost.exec("umount", "/srv/tiny")


async def test_a_read_only_file_system_is_named(testhost: TestHost) -> None:
    testhost.exec("mkdir", "-p", "/srv/ro")
    put(testhost, "/srv/ro/f", b"old", "644", "root")
    testhost.exec("mount", "--bind", "/srv/ro", "/srv/ro")
    testhost.exec("mount", "-o", "remount,bind,ro", "/srv/ro")
    try:
        async with connected(testhost) as host:
            with pytest.raises(NotPermitted, match="Read-only file system"):
                await files.write_atomically(host, "/srv/ro/f", b"new", sudo=True)
    finally:
        testhost.exec("umount", "/srv/ro")
    assert folder(testhost, "/srv/ro") == ["f"]


async def test_content_that_did_not_arrive_whole_is_not_moved_into_place(testhost: TestHost) -> None:
    put(testhost, "/srv/short", b"old", "644", "root")
    testhost.exec(
        "tee",
        "/usr/local/bin/tee",
        stdin=b'#!/bin/sh\nfor f; do :; done\nhead -c 3 > "$f"; cat > /dev/null\n',
    )
    testhost.exec("chmod", "755", "/usr/local/bin/tee")
    try:
        async with connected(testhost, "root") as host:
            with pytest.raises(CommandFailed, match="3 of 9 bytes"):
                await files.write_atomically(host, "/srv/short", b"123456789")
    finally:
        testhost.exec("rm", "/usr/local/bin/tee")
    assert seen(testhost, "/srv/short")[0] == b"old"
    assert not testhost.exec("find", "/srv", "-name", "*ddtui-new*").stdout


async def test_cut_at_any_moment_the_file_is_the_old_or_the_new_one(
    testhost: TestHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_module, "FIRST_RETRY", 0.05)
    chance = random.Random(20261)
    contents = [f"{n}\n".encode() * 3000 for n in range(7)]
    put(testhost, "/srv/cut", contents[0], "640", "root:sglang")
    async with connected(testhost, keepalive=2.0) as host:
        for before, after in pairwise(contents):
            writing = asyncio.create_task(files.write_atomically(host, "/srv/cut", after, sudo=True))
            await asyncio.sleep(chance.uniform(0.0, 0.12))
            testhost.exec("pkill", "-KILL", "-f", "sshd.*: tuner", check=False)
            cut = pytest.raises((LinkLost, Unreachable))
            with nullcontext() if await finished(writing) else cut:
                await writing
            content, stat = seen(testhost, "/srv/cut")
            assert content in (before, after)
            assert stat == "640 root:sglang"
            await asyncio.wait_for(host.connected(), 20)
            await again(host, after)
            assert seen(testhost, "/srv/cut") == (after, "640 root:sglang")
    await until(lambda: not testhost.exec("find", "/srv", "-name", "*ddtui-new*").stdout)


async def again(host, content: bytes) -> None:  # type: ignore[no-untyped-def]
    """As every caller does after a loss: do it again when the link is back."""
    while True:
        try:
            await files.write_atomically(host, "/srv/cut", content, sudo=True)
            return
        except (LinkLost, Unreachable):
            await asyncio.wait_for(host.connected(), 20)


async def finished(task: asyncio.Task[None]) -> bool:
    """Wait for its end; whether it ended well."""
    await asyncio.wait({task})
    error = task.exception()
    assert error is None or isinstance(error, HostError)
    return error is None
