"""Root rights on a real host: without a password, with one, on a terminal only, and not at all."""

from __future__ import annotations

import os

import pytest
from host.people import Person
from host.real import connected
from testhost_fixture import TestHost

from ddtui.host import sudo
from ddtui.host.base import Command, NotPermitted
from ddtui.host.sudo import How

pytestmark = pytest.mark.realhost

# a password sent too early would become the first line of what is written
PAYLOAD = b"first line\nsecond \0 \xff line\n" + bytes(range(256)) * 400


def written(testhost: TestHost, path: str) -> bytes:
    return testhost.exec("cat", path).stdout


def password(testhost: TestHost) -> str:
    return str(testhost.info["asker_password"])


async def test_root_needs_no_sudo(testhost: TestHost) -> None:
    async with connected(testhost, "root") as host:
        assert (await host.run(["id", "-u"], sudo=True)).out == "0\n"
        assert [one.out for one in await host.batch([Command(("id", "-u"), sudo=True)])] == ["0\n"]
        assert [right.how for right in await sudo.rights(host, [["anything"]])] == [How.ROOT]


@pytest.mark.parametrize("user", ["tuner", "noisy"])
async def test_sudo_without_a_password_asks_nobody(testhost: TestHost, user: str) -> None:
    person = Person()
    async with connected(testhost, user, person) as host:
        assert (await host.run(["tee", "--", "/root/a"], stdin=PAYLOAD, sudo=True)).ok
        assert written(testhost, "/root/a") == PAYLOAD
        first, second = await host.batch(
            [Command(("chmod", "600", "--", "/root/a"), sudo=True), Command(("id", "-un"))]
        )
        assert (first.exit_code, second.out) == (0, f"{user}\n")
    assert person.asked == []


async def test_a_password_is_asked_for_once_and_never_gets_into_the_data(testhost: TestHost) -> None:
    person = Person({"sudo": [password(testhost)]})
    async with connected(testhost, "asker", person) as host:
        for name in ("b1", "b2"):
            assert (
                await host.run(["tee", "--", f"/root/{name}"], stdin=PAYLOAD, sudo=True)
            ).stdout == PAYLOAD
            assert written(testhost, f"/root/{name}") == PAYLOAD
        done = await host.run(["sh", "-c", "echo out; echo err >&2; exit 5"], sudo=True)
        assert (done.exit_code, done.out, done.err) == (5, "out\n", "err\n")
    assert len(person.asked) == 1
    assert person.asked[0][1].startswith("sudo password on ")


async def test_a_password_that_was_not_needed_does_not_get_into_the_data(testhost: TestHost) -> None:
    testhost.exec("tee", "/etc/sudoers.d/mixed", stdin=b"asker ALL=(root) NOPASSWD: /usr/bin/tee\n")
    try:
        person = Person({"sudo": [password(testhost)]})
        async with connected(testhost, "asker", person) as host:
            assert (await host.run(["id", "-u"], sudo=True)).out == "0\n"  # now the password is known
            assert (await host.run(["tee", "--", "/root/c"], stdin=PAYLOAD, sudo=True)).ok
            assert written(testhost, "/root/c") == PAYLOAD
    finally:
        testhost.exec("rm", "/etc/sudoers.d/mixed")


async def test_a_batch_with_a_password_keeps_its_order(testhost: TestHost) -> None:
    person = Person({"sudo": [password(testhost)]})
    async with connected(testhost, "asker", person) as host:
        done = await host.batch(
            [
                Command(("rm", "-f", "--", "/tmp/d"), sudo=True),
                Command(("ls", "/tmp/d")),
                Command(("touch", "/tmp/d"), sudo=True),
                Command(("stat", "-c", "%U", "/tmp/d")),
                Command(("id", "-u"), sudo=True),
            ]
        )
        assert [one.exit_code for one in done] == [0, 2, 0, 0, 0]
        assert (done[3].out, done[4].out) == ("root\n", "0\n")
    assert len(person.asked) == 1


async def test_a_wrong_password_stops_after_one_and_is_asked_for_again_next_time(testhost: TestHost) -> None:
    person = Person({"sudo": ["wrong", password(testhost)]})
    async with connected(testhost, "asker", person) as host:
        with pytest.raises(NotPermitted, match="did not accept the password"):
            await host.run(["tee", "--", "/root/e"], stdin=b"x", sudo=True)
        assert len(person.asked) == 1
        assert testhost.exec("test", "-e", "/root/e", check=False).returncode == 1
        assert (await host.run(["id", "-u"], sudo=True)).out == "0\n"
        assert len(person.asked) == 2


async def test_nobody_to_give_the_password_means_not_permitted(testhost: TestHost) -> None:
    async with connected(testhost, "asker") as host:
        with pytest.raises(NotPermitted, match="asks for a password, and none was given") as caught:
            await host.run(["id"], sudo=True)
        assert "ddtui doctor" in caught.value.hint
        first, second = await host.batch([Command(("id",), sudo=True), Command(("echo", "still"))])
        assert not first.ok and "password" in first.err
        assert second.out == "still\n"


async def test_a_user_without_sudo_is_told_so(testhost: TestHost) -> None:
    testhost.exec("chpasswd", stdin=b"limited:some password\n")
    person = Person({"sudo": ["some password"]})
    async with connected(testhost, "limited", person) as host:
        with pytest.raises(NotPermitted, match="not in the sudoers file"):
            await host.run(["id"], sudo=True)
        assert len(person.asked) == 1


async def test_a_command_that_no_line_of_sudoers_allows_asks_for_no_password(testhost: TestHost) -> None:
    person = Person({"sudo": ["x"]})
    async with connected(testhost, "tuner", person) as host:
        with pytest.raises(NotPermitted, match="does not allow `cat /etc/shadow`"):
            await host.run(["cat", "/etc/shadow"], sudo=True)
        allowed, not_allowed = await sudo.rights(
            host, [["systemctl", "daemon-reload"], ["cat", "/etc/shadow"]]
        )
        assert (allowed.how, not_allowed.how) == (How.FREE, How.NOT_ALLOWED)
    assert person.asked == []


async def test_rights_are_told_without_asking(testhost: TestHost) -> None:
    person = Person()
    async with connected(testhost, "asker", person) as host:
        assert [right.how for right in await sudo.rights(host, [["id"]])] == [How.PASSWORD]
    assert person.asked == []


@pytest.mark.parametrize("user", ["tuner", "asker"])
async def test_a_sudo_that_wants_a_terminal_gets_one_that_changes_no_byte(
    testhost: TestHost, user: str
) -> None:
    testhost.exec("tee", "/etc/sudoers.d/tty", stdin=f"Defaults:{user} requiretty\n".encode())
    person = Person({"sudo": [password(testhost)]})
    payload = PAYLOAD + os.urandom(20_000)
    try:
        async with connected(testhost, user, person) as host:
            done = await host.run(["tee", "--", "/root/f"], stdin=payload, sudo=True)
            assert (done.exit_code, done.stdout, done.stderr) == (0, payload, b"")
            assert written(testhost, "/root/f") == payload
            failed, here, well = await host.batch(
                [
                    Command(("rm", "--", "/root/no-such"), sudo=True),
                    Command(("id", "-un")),
                    Command(("rm", "-f", "--", "/root/f"), sudo=True),
                ]
            )
            assert failed.exit_code == 1 and "No such file" in failed.err and failed.out == ""
            assert (here.out, well.exit_code) == (f"{user}\n", 0)
    finally:
        testhost.exec("rm", "/etc/sudoers.d/tty")
    assert len(person.asked) == (1 if user == "asker" else 0)


async def test_a_wrong_password_on_a_terminal_stops_after_one(testhost: TestHost) -> None:
    testhost.exec("tee", "/etc/sudoers.d/tty", stdin=b"Defaults:asker requiretty\n")
    person = Person({"sudo": ["wrong"]})
    try:
        async with connected(testhost, "asker", person) as host:
            with pytest.raises(NotPermitted, match="did not accept the password"):
                await host.run(["id"], sudo=True)
    finally:
        testhost.exec("rm", "/etc/sudoers.d/tty")
    assert len(person.asked) == 1


async def test_the_password_shows_up_nowhere(testhost: TestHost) -> None:
    person = Person({"sudo": [password(testhost)]})
    async with connected(testhost, "asker", person) as host:
        log: list[object] = []
        host.on_command(log.append)
        done = await host.run(["id"], sudo=True)
        assert password(testhost) not in str(log) + str(done)
        assert log and all("ddtui-" not in word for line in log for word in line.argv)  # type: ignore[attr-defined]
