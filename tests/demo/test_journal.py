"""The demo host's journal: what journald keeps of a service's output, cursors, filters, following."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from demo.virtual_host import UNIT, Recorded, install, run, show, until

from ddtui.demo.accounts import USERS
from ddtui.demo.machine import Machine
from ddtui.demo.shell import run_command
from ddtui.host import shell

TALKS = (
    "import sys; w = sys.stdout.buffer.write; "
    "w(b'plain\\\\ntab\\\\there\\\\n\\\\033[31mred\\\\033[0m\\\\na\\\\rb\\\\rc   \\\\n\\\\n   \\\\n  lead trail  \\\\n'"
    "b'bad\\\\xff\\\\nemoji \\\\xf0\\\\x9f\\\\x98\\\\x80\\\\n\\\\x7f del\\\\n<3>prio\\\\n' + b'x' * 5000 + b'\\\\nno newline')"
)


async def entries(machine: Machine, *words: str, user: str = "tuner") -> list[dict[str, Any]]:
    done = await run(machine, "journalctl", "-u", UNIT, "-o", "json", "-a", "--no-pager", *words, user=user)
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def say(machine: Machine, *texts: str) -> None:
    """Lines of the service, now."""
    unit = machine.systemd.get(UNIT)
    unit.invocation = unit.invocation or "0" * 32
    for text in texts:
        process = machine.processes.table[1]
        machine.systemd.log.line(unit, process, text)


async def test_a_services_output_is_kept_as_journald_keeps_it(machine: Machine) -> None:
    """The expected messages are what journald 252 made of the same bytes."""
    install(machine, TALKS)
    await run(machine, "sudo", "-n", "--", "systemctl", "start", UNIT)
    await until(machine, {"ActiveState": "inactive", "Result": "success"})
    kept = [entry for entry in await entries(machine) if entry["_TRANSPORT"] == "stdout"]
    assert [entry["MESSAGE"] for entry in kept] == [
        "plain",
        "tab\there",
        list(b"\033[31mred\033[0m"),
        list(b"a\rb\rc"),
        "   ",
        "  lead trail",
        list(b"bad\xff"),
        "emoji \U0001f600",
        list(b"\x7f del"),
        "prio",
        "x" * 5000,
        "no newline",
    ]
    assert [entry["PRIORITY"] for entry in kept] == ["6"] * 9 + ["3"] + ["6"] * 2
    invocation = (await show(machine, "InvocationID"))["InvocationID"]
    assert {entry["_SYSTEMD_INVOCATION_ID"] for entry in kept} == {invocation}
    assert {entry["_SYSTEMD_UNIT"] for entry in kept} == {UNIT}


async def test_without_a_long_fields_are_null(machine: Machine) -> None:
    say(machine, "y" * 5000)
    done = await run(machine, "journalctl", "-u", UNIT, "-o", "json", "--no-pager")
    assert json.loads(done.out)["MESSAGE"] is None


async def test_after_a_cursor_comes_what_came_later_and_nothing_twice(machine: Machine) -> None:
    say(machine, "one", "two", "three")
    first = await entries(machine)
    say(machine, "four")
    later = await entries(machine, f"--after-cursor={first[1]['__CURSOR']}")
    assert [entry["MESSAGE"] for entry in later] == ["three", "four"]
    assert await entries(machine, f"--after-cursor={later[-1]['__CURSOR']}") == []


async def test_a_malformed_cursor_is_refused(machine: Machine) -> None:
    done = await run(machine, "journalctl", "-u", UNIT, "-o", "json", "--after-cursor=nonsense")
    assert (done.code, done.err) == (1, "Failed to seek to cursor: Invalid argument\n")


async def test_the_last_lines_reversed_and_the_cursor_shown(machine: Machine) -> None:
    say(machine, "one", "two", "three")
    done = await run(machine, "journalctl", "-u", UNIT, "-o", "cat", "-n", "2", "-r", "--no-pager")
    assert done.out == "three\ntwo\n"
    done = await run(machine, "journalctl", "-u", UNIT, "-o", "cat", "-n", "1", "--show-cursor")
    message, cursor = done.out.splitlines()
    assert message == "three"
    assert cursor.startswith("-- cursor: s=")


@pytest.mark.parametrize(
    "fields", ["_SYSTEMD_INVOCATION_ID={i} + INVOCATION_ID={i}", "_PID=1", "MESSAGE=three"]
)
async def test_field_matches_choose_by_or_within_and_and_with_the_unit(machine: Machine, fields: str) -> None:
    install(machine, "print('three')")
    say(machine, "before any start")
    await run(machine, "sudo", "-n", "--", "systemctl", "start", UNIT)
    await until(machine, {"ActiveState": "inactive"})
    invocation = (await show(machine, "InvocationID"))["InvocationID"]
    got = [e["MESSAGE"] for e in await entries(machine, *fields.format(i=invocation).split())]
    started, ended = f"Started {UNIT} - a light service.", f"{UNIT}: Deactivated successfully."
    expected = {
        "_SYSTEMD": [started, "three", ended],
        "_PID=1": ["before any start", started, ended],
        "MESSAGE": ["three"],
    }
    assert got == next(value for key, value in expected.items() if fields.startswith(key))


async def test_following_shows_each_new_line_at_once_until_it_is_ended(machine: Machine) -> None:
    say(machine, "old")
    script = shell.Script(
        shell.new_marker(),
        (("journalctl", "-u", UNIT, "-o", "json", "-a", "-f", "-m", "-n", "0", "--no-pager"),),
        single=True,
    )
    streams = Recorded()
    following = asyncio.create_task(run_command(machine, USERS["tuner"], shell.encode(script), streams))
    await streams.lines(1)  # the marker: it follows now
    await asyncio.sleep(0)
    for number in range(3):
        say(machine, f"new {number}")
        lines = await streams.lines(number + 2)
        assert json.loads(lines[-1])["MESSAGE"] == f"new {number}"
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following
    assert machine.journal._followers == []


async def test_following_from_a_cursor_misses_nothing_while_much_is_being_written(machine: Machine) -> None:
    say(machine, "start")
    (start,) = await entries(machine)
    script = shell.Script(
        shell.new_marker(),
        (
            (
                "journalctl",
                "-u",
                UNIT,
                "-o",
                "json",
                "-f",
                "-m",
                f"--after-cursor={start['__CURSOR']}",
                "-n",
                "all",
            ),
        ),
        single=True,
    )
    streams = Recorded()
    say(machine, *(f"line {n}" for n in range(1000)))
    following = asyncio.create_task(run_command(machine, USERS["tuner"], shell.encode(script), streams))
    for n in range(1000, 1200):
        say(machine, f"line {n}")
        await asyncio.sleep(0)
    lines = await streams.lines(1201)
    following.cancel()
    assert [json.loads(line)["MESSAGE"] for line in lines[1:]] == [f"line {n}" for n in range(1200)]


async def test_who_may_not_read_the_journal_sees_nothing_and_is_told_so(machine: Machine) -> None:
    say(machine, "secret")
    done = await run(machine, "journalctl", "-u", UNIT, "-o", "cat", user="limited")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("Hint: You are currently not seeing messages from other users")
    assert (await run(machine, "journalctl", "-q", "-u", UNIT, "-o", "cat", user="limited")).err == ""


async def test_times_limit_what_is_shown(machine: Machine) -> None:
    say(machine, "first")
    (first,) = await entries(machine)
    say(machine, "second")
    at = int(first["__REALTIME_TIMESTAMP"])
    after = f"@{at // 1_000_000}.{at % 1_000_000 + 1:06d}"
    assert [e["MESSAGE"] for e in await entries(machine, f"--since={after}")] == ["second"]
    assert [e["MESSAGE"] for e in await entries(machine, f"--until={after}")] == ["first"]
    assert len(await entries(machine, "--since", "-1h")) == 2
    assert await entries(machine, "--until", "1 hour ago") == []
    bad = await run(machine, "journalctl", "--since", "nonsense")
    assert (bad.code, bad.err) == (1, "Failed to parse timestamp: nonsense\n")


async def test_a_line_of_a_progress_bar_is_invisible_until_it_has_ended(machine: Machine) -> None:
    code = (
        "import sys, time; w = sys.stderr.write; w('\\\\rshards:  50% Completed'); sys.stderr.flush(); "
        "print(sys.stdin.read(1)); w('\\\\rshards: 100% Completed\\\\n')"
    )
    install(machine, code)
    seen: list[str] = []
    came = asyncio.Event()
    before = machine.systemd.on_output

    def on_output(unit: Any, process: Any, text: str) -> Any:
        seen.append(text)
        came.set()
        return before(unit, process, text)

    machine.systemd.on_output = on_output
    await run(machine, "sudo", "-n", "--", "systemctl", "start", UNIT)
    async with asyncio.timeout(20):
        await came.wait()
    assert seen == ["shards:  50% Completed"]
    assert not any("shards" in str(entry["MESSAGE"]) for entry in await entries(machine))
    await run(machine, "sudo", "-n", "--", "systemctl", "stop", UNIT)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("--cursor={c}", "-r", "-n", "3"), "3 2 1"),
        (("--cursor={c}", "-r"), "3 2 1 0"),
        (("--after-cursor={c}", "-r", "-n", "2"), "2 1"),
        (("--cursor={c}", "-n", "2"), "3 4"),
        (("--after-cursor={c}", "-n", "1"), "4"),
        (("--since={t}", "-n", "2"), "3 4"),
        (("--since={t}", "-n", "2", "-r"), "5 4"),
        (("--until={t}", "-n", "2"), ""),
        (("--until={t}", "-n", "2", "-r"), "3 2"),
        (("-n", "0"), ""),
        (("-n", "2"), "4 5"),
    ],
)
async def test_where_it_starts_to_look_and_which_way(
    machine: Machine, words: tuple[str, ...], shown: str
) -> None:
    """As systemd 252 answered on a real host, its oddity with --until and -n included."""
    say(machine, *"012345")
    third = (await entries(machine))[3]
    at = int(third["__REALTIME_TIMESTAMP"])
    place = {"c": third["__CURSOR"], "t": f"@{at // 1_000_000}.{at % 1_000_000:06d}"}
    got = await entries(machine, *(word.format(**place) for word in words))
    assert " ".join(entry["MESSAGE"] for entry in got) == shown
