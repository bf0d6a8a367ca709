"""The journal of a real host: followed without gap or repeat whatever happens to the link, the host and the files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest
from host.real import connected, off_loop, processes, reached, until
from testhost_fixture import TestHost

from ddtui.host import journal
from ddtui.host import ssh as ssh_module
from ddtui.host.base import LinkState, NotPermitted
from ddtui.host.journal import JournalEntry
from ddtui.host.ssh import SshHost
from ddtui.profile import Scope

pytestmark = pytest.mark.realhost

COUNT = "import time\nn = 0\nwhile True: print('n', n, flush=True); n += 1; time.sleep(0.03)"


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_module, "LAST_RETRY", 0.5)


def run_unit(testhost: TestHost, name: str, program: str, *options: str, wait: bool = True) -> str:
    """A unit that runs a Python program; gives its name.

    It lives a little longer than its last line: journald can only tell the unit of a process that it still finds.
    """
    program += "\nimport time\nsys = __import__('sys')\nsys.stdout.flush()\ntime.sleep(0.5)\n"
    words = ["systemd-run", "-q", f"--unit={name}", *(["--wait"] if wait else []), *options]
    testhost.exec(*words, "python3", "-c", program)
    testhost.exec("journalctl", "--sync")
    return f"{name}.service"


@asynccontextmanager
async def counting(testhost: TestHost, name: str) -> AsyncIterator[str]:
    unit = run_unit(testhost, name, COUNT, wait=False)
    try:
        yield unit
    finally:
        await off_loop(testhost.exec, "systemctl", "stop", unit, check=False)


class Numbers:
    """Follows a counting unit, and checks each number against the one before."""

    def __init__(self, host: SshHost, unit: str, **options) -> None:  # type: ignore[no-untyped-def]
        self.entries: list[JournalEntry] = []
        self.numbers: list[int] = []
        self._grew = asyncio.Event()
        self._task = asyncio.create_task(self._follow(host, unit, options))

    async def _follow(self, host: SshHost, unit: str, options) -> None:  # type: ignore[no-untyped-def]
        async with aclosing(journal.follow(host, unit, Scope.SYSTEM, **options)) as stream:
            async for entry in stream:
                self.entries.append(entry)
                if entry.text.startswith("n "):
                    self.numbers.append(int(entry.text[2:]))
                self._grew.set()

    async def more(self, count: int) -> None:
        """Wait for so many beyond those that are here."""
        await self.reach(len(self.numbers) + count)

    async def reach(self, goal: int, seconds: float = 60.0) -> None:
        """Wait until there are so many."""
        async with asyncio.timeout(seconds):
            while len(self.numbers) < goal:
                self._grew.clear()
                waiting = asyncio.create_task(self._grew.wait())
                await asyncio.wait({self._task, waiting}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if self._task.done():
                    self._task.result()

    def whole(self) -> bool:
        return self.numbers == list(range(self.numbers[0], self.numbers[0] + len(self.numbers)))

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def test_the_last_lines_come_first_and_then_the_new_ones(testhost: TestHost) -> None:
    async with counting(testhost, "c-first") as unit, connected(testhost) as host:
        await until(lambda: testhost.exec("journalctl", "-u", unit, "-o", "cat").stdout.count(b"n ") > 5)
        numbers = Numbers(host, unit, lines=3)
        await numbers.more(20)
        await numbers.stop()
        assert numbers.whole()
        entry = numbers.entries[-1]
        assert (entry.unit, entry.identifier, entry.priority) == (unit, "python3", 6)
        assert entry.pid and len(entry.invocation) == 32 and len(entry.boot) == 32
        assert processes(testhost, "^journalctl.*c-first") == []


@pytest.mark.parametrize("how", ["kill", "drop", "reset", "journalctl"])
async def test_a_lost_link_leaves_neither_gap_nor_repeat(testhost: TestHost, how: str) -> None:
    async with counting(testhost, f"c-{how}") as unit, connected(testhost) as host:
        numbers = Numbers(host, unit, lines=1)
        await numbers.more(10)
        for _ in range(2):
            if how == "journalctl":
                await off_loop(testhost.exec, "pkill", "-KILL", "-f", "^journalctl.*-f")
                await numbers.more(40)
                continue
            lost = reached(host, LinkState.LOST)
            if how == "kill":
                await off_loop(testhost.exec, "pkill", "-KILL", "-f", "sshd.*: tuner")
            elif how == "reset":
                await off_loop(testhost.ctl, "reset")
            else:
                await off_loop(testhost.ctl, "net", "drop")
            await asyncio.wait_for(lost, 20)
            if how == "drop":
                await off_loop(testhost.ctl, "net", "up")
            await asyncio.wait_for(host.connected(), 30)
            await numbers.more(40)
        await numbers.stop()
        assert numbers.whole()
        assert not any(entry.gap for entry in numbers.entries)


async def test_rotation_in_mid_follow_loses_nothing(testhost: TestHost) -> None:
    async with counting(testhost, "c-rotate") as unit, connected(testhost) as host:
        numbers = Numbers(host, unit, lines=1)
        await numbers.more(10)
        for _ in range(2):
            await off_loop(testhost.exec, "journalctl", "--rotate")
            await off_loop(testhost.exec, "pkill", "-KILL", "-f", "sshd.*: tuner")
            await numbers.more(40)
        await numbers.stop()
        assert numbers.whole()
        assert not any(entry.gap for entry in numbers.entries)


async def test_a_place_that_was_vacuumed_away_is_reported_as_a_gap(testhost: TestHost) -> None:
    async with counting(testhost, "c-vacuum") as unit, connected(testhost) as host:
        numbers = Numbers(host, unit, lines=1)
        await numbers.more(10)
        lost = reached(host, LinkState.LOST)
        await off_loop(testhost.ctl, "net", "drop")
        await asyncio.wait_for(lost, 20)
        await off_loop(testhost.exec, "sh", "-c", "journalctl --rotate; journalctl --vacuum-time=1s")
        await off_loop(testhost.ctl, "net", "up")
        await asyncio.wait_for(host.connected(), 30)
        await numbers.more(20)
        await numbers.stop()
        (gap,) = [entry for entry in numbers.entries if entry.gap]
        at = numbers.entries.index(gap)
        assert "missing" in gap.text and gap.realtime_us == numbers.entries[at + 1].realtime_us
        assert not numbers.whole()
        assert numbers.numbers == sorted(set(numbers.numbers))


async def test_a_reboot_leaves_neither_gap_nor_repeat(testhost: TestHost) -> None:
    unit = "c-boot.service"
    testhost.exec(
        "tee",
        f"/etc/systemd/system/{unit}",
        stdin=b"[Service]\nExecStart=/usr/bin/python3 -uc 'import itertools, time\\n"
        b'for n in itertools.count(): print("n", n); time.sleep(.03)\'\n[Install]\nWantedBy=multi-user.target\n',
    )
    testhost.exec("systemctl", "enable", "--now", unit)
    async with connected(testhost, "root") as host:
        numbers = Numbers(host, unit, lines=1)
        await numbers.more(10)
        lost = reached(host, LinkState.LOST)
        await off_loop(testhost.exec, "systemctl", "--no-block", "reboot")
        await asyncio.wait_for(lost, 20)
        await asyncio.wait_for(host.connected(), 40)
        await numbers.more(30)
        await numbers.stop()
    again = numbers.numbers.index(0) if numbers.numbers[0] != 0 else numbers.numbers.index(0, 1)
    before, after = numbers.numbers[:again], numbers.numbers[again:]
    assert before == list(range(before[0], before[0] + len(before)))
    assert after == list(range(len(after)))
    assert len({entry.boot for entry in numbers.entries}) == 2
    cursors = [entry.cursor for entry in numbers.entries]
    assert len(cursors) == len(set(cursors))
    stored = testhost.exec("journalctl", "-u", unit, "-o", "cat").stdout.decode().splitlines()
    kept = [line for line in stored if line.startswith("n ")]
    first = kept.index(f"n {before[0]}")
    assert [f"n {n}" for n in numbers.numbers] == kept[first : first + len(numbers.numbers)]


async def test_following_begins_after_a_cursor_or_with_nothing_old(testhost: TestHost) -> None:
    unit = run_unit(testhost, "c-after", "for n in range(10): print('n', n)")
    async with connected(testhost) as host:
        all_of_it = await journal.read(host, unit, Scope.SYSTEM)
        fourth = next(entry for entry in all_of_it if entry.text == "n 3")
        numbers = Numbers(host, unit, after=fourth.cursor)
        await numbers.reach(6)
        await numbers.stop()
        assert numbers.numbers == [4, 5, 6, 7, 8, 9]
        fresh = Numbers(host, unit, lines=0)
        testhost.exec("systemd-cat", "-t", "other", "true")
        await off_loop(run_unit, testhost, "c-after", "print('n', 77)")
        await fresh.reach(1)
        await fresh.stop()
        assert fresh.numbers == [77]


async def test_a_unit_that_has_no_lines_yet_is_followed_from_its_first(testhost: TestHost) -> None:
    async with connected(testhost) as host:
        numbers = Numbers(host, "c-later.service", lines=10)
        await until(lambda: bool(processes(testhost, "^journalctl.*c-later.*-f")))
        await off_loop(run_unit, testhost, "c-later", "for n in range(5): print('n', n)")
        await numbers.reach(5)
        await numbers.stop()
        assert numbers.numbers == [0, 1, 2, 3, 4]


async def test_a_cursor_that_journald_does_not_understand_is_a_gap_not_the_end(testhost: TestHost) -> None:
    async with counting(testhost, "c-bad") as unit, connected(testhost) as host:
        numbers = Numbers(host, unit, after="no such cursor")
        await numbers.more(10)
        await numbers.stop()
        assert numbers.whole()


# -- what stands in an entry ---------------------------------------------------------------------------
async def test_every_kind_of_message_arrives_readable(testhost: TestHost) -> None:
    program = r"""
import sys
out = sys.stdout.buffer
out.write(b"plain\n")
out.write(b"\x1b[1;31mred\x1b[0m text\n")
out.write(b"caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac\n")
out.write(b"bad \xff\xfe bytes\n")
out.write(b"0%|   | 0/9\r50%|== | 4/9\r100%|===| 9/9\n")
out.write(b"x" * 150000 + b"end\n")
out.write(b"y" * 300000 + b"\n")
out.write(b"title \x1b]0;owned\x07 and \xe2\x80\xae override\n")
out.write(b"server_args=ServerArgs(api_key='topsecret99', " + b"z" * 5000 + b")\n")
out.write(b"last, without newline")
"""
    unit = run_unit(testhost, "kinds", program)
    async with connected(testhost) as host:
        entries = [e for e in await journal.read(host, unit, Scope.SYSTEM) if e.identifier == "python3"]
    texts = [entry.text for entry in entries]
    assert texts[:5] == ["plain", "red text", "café 日本", r"bad \xff\xfe bytes", "100%|===| 9/9"]
    assert [(span.start, span.end, span.style) for span in entries[1].spans] == [(0, 3, "bold red")]
    assert texts[5] == "x" * 150000 + "end"
    assert texts[6] == "y" * 300000
    assert "owned" in texts[7] and "\x1b" not in texts[7] and "<U+202E>" in texts[7]
    assert "topsecret99" not in texts[8] and len(texts[8]) > 5000
    assert texts[9:] == ["last, without newline"]


async def test_one_start_only_is_read_by_invocation_and_time(testhost: TestHost) -> None:
    unit = run_unit(testhost, "starts", "print('one')")
    run_unit(testhost, "starts", "print('two')")
    async with connected(testhost) as host:
        everything = await journal.read(host, unit, Scope.SYSTEM)
        first, second = (next(entry for entry in everything if entry.text == word) for word in ("one", "two"))
        assert first.invocation != second.invocation
        for since in (None, second.realtime_us / 1e6 - 0.5):
            of_second = await journal.read(
                host, unit, Scope.SYSTEM, invocation=second.invocation, since=since
            )
            texts = [entry.text for entry in of_second]
            assert "two" in texts and "one" not in texts
            assert any("Deactivated successfully" in text for text in texts)  # systemd's own lines too
        until_first = await journal.read(host, unit, Scope.SYSTEM, until=first.realtime_us / 1e6 + 0.000001)
        assert until_first[-1].text == "one"
        assert len(await journal.read(host, unit, Scope.SYSTEM, lines=2)) == 2


async def test_earlier_lines_are_read_backwards_without_overlap(testhost: TestHost) -> None:
    unit = run_unit(testhost, "back", "for n in range(30): print('n', n)")
    async with connected(testhost) as host:
        tail = await journal.read(host, unit, Scope.SYSTEM, lines=5)
        pages = list(tail)
        while page := await journal.earlier(host, unit, Scope.SYSTEM, pages[0].cursor, 7):
            assert len(page) <= 7
            pages = page + pages
        assert [entry.cursor for entry in pages] == [
            entry.cursor for entry in await journal.read(host, unit, Scope.SYSTEM)
        ]


async def test_a_user_without_the_rights_is_told_so(testhost: TestHost) -> None:
    unit = testhost.info["unit"]
    async with connected(testhost, "limited") as host:
        for call in (
            journal.read(host, unit, Scope.SYSTEM, lines=3),
            anext(journal.follow(host, unit, Scope.SYSTEM)),
        ):
            with pytest.raises(NotPermitted, match=f"may not read the journal of {unit}") as caught:
                await call
            assert "systemd-journal" in caught.value.hint
    async with connected(testhost, "tuner") as host:
        assert await journal.read(host, "no-such.service", Scope.SYSTEM) == []
        assert len(await journal.read(host, unit, Scope.SYSTEM, lines=3, sudo=True)) == 3


async def test_a_user_unit_is_read_and_followed(testhost: TestHost) -> None:
    unit = b"[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo n 1; echo n 2; sleep 0.3'\n"
    async with connected(testhost) as host:
        assert (await host.run(["mkdir", "-p", "/home/tuner/.config/systemd/user"])).ok
        assert (await host.run(["tee", "/home/tuner/.config/systemd/user/mine.service"], stdin=unit)).ok
        assert (await host.run(["systemctl", "--user", "daemon-reload"])).ok
        assert (await host.run(["systemctl", "--user", "start", "mine.service"])).ok
        testhost.exec("journalctl", "--sync")
        entries = await journal.read(host, "mine.service", Scope.USER)
        (said,) = [entry for entry in entries if entry.text == "n 2"]
        assert said.unit == "mine.service" and said.invocation
        own = await journal.read(host, "mine.service", Scope.USER, invocation=said.invocation)
        assert {"n 1", "n 2"} <= {entry.text for entry in own}
        assert all(entry.invocation == said.invocation for entry in entries)
        async with aclosing(journal.follow(host, "mine.service", Scope.USER, lines=100)) as stream:
            got = [await anext(stream) for _ in entries]
        assert [entry.cursor for entry in got] == [entry.cursor for entry in entries]
