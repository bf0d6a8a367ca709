"""--plain: one line of text per event."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
from console.fakes import NOW, VERDICTS, FakeSession, make_burst, make_profile, make_view

from ddtui.host.base import HostError, LinkState, NobodyToAsk, Unreachable
from ddtui.plain import Plain, told
from ddtui.session import JournalLine
from ddtui.tuning.model import Status
from ddtui.view import TuneView, View


def kinds(before: TuneView, after: TuneView) -> list[tuple[str, str]]:
    profile = make_profile()
    return [(line.kind, line.text) for line in told(View(profile, before), View(profile, after))]


def test_nothing_new_is_no_line() -> None:
    assert kinds(make_view(), make_view()) == []


def test_the_link_is_told_when_its_state_changes_and_not_at_every_round_trip() -> None:
    view = make_view()
    slower = replace(view, link=replace(view.link, rtt_ms=80.0))
    assert kinds(view, slower) == []
    lost = replace(view, link=replace(view.link, state=LinkState.LOST, rtt_ms=None, message="keepalive lost"))
    assert kinds(view, lost) == [("link", "root@ct200:22 lost: keepalive lost")]


def test_who_comes_and_who_goes_is_a_line() -> None:
    ann, nobody = (
        View(make_profile(), make_view(people=("ann from 10.0.0.5",))),
        View(make_profile(), make_view()),
    )
    assert [line.text for line in told(nobody, ann)] == ["ann from 10.0.0.5 is logged in"]
    assert [line.text for line in told(ann, nobody)] == ["ann from 10.0.0.5 has left"]


def test_a_knob_that_moved_and_a_verdict_that_turned_are_a_line_each() -> None:
    view = make_view()
    rows = (replace(view.knobs[0], in_unit="16"), *view.knobs[1:])
    verdicts = (VERDICTS[0], replace(VERDICTS[1], status=Status.RESTART_PENDING, summary="s"), *VERDICTS[2:])
    assert kinds(view, replace(view, knobs=rows, verdicts=verdicts, step=8)) == [
        ("change", "the setting in force is step 8"),
        ("knob", "budget: unit 16, running 8, server 8"),
        ("check", "budget: restart pending. s"),
    ]


def test_a_burst_that_somebody_ran_is_told_once_it_is_over() -> None:
    before = View(make_profile(), make_view())
    after = replace(before, bursts=(make_burst("b1", 7),))
    (line,) = told(before, after)
    assert line.kind == "burst" and line.text.startswith("step 7, done: 6 points, best")


def test_a_line_is_one_line_whatever_it_says() -> None:
    before = View(make_profile(), make_view())
    (line,) = told(before, replace(before, tune=make_view(others=("ann\nis\there",))))
    assert line.at(NOW).split(" ", 1)[1] == "host ann is here"


async def printed(session: FakeSession, wanted: Callable[[list[str]], bool]) -> list[str]:
    """What is printed until that is so."""
    lines: list[str] = []
    there = asyncio.Event()

    def write(line: str) -> None:
        lines.append(line)
        if wanted(lines):
            there.set()

    console = Plain(session.profile, write, now=lambda: NOW)
    running = asyncio.create_task(console.run(session, NobodyToAsk()))
    async with asyncio.timeout(20):
        await there.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    return lines


async def test_it_begins_with_who_and_where_and_goes_on_with_warnings_of_the_journal() -> None:
    session = FakeSession(make_profile(production=True))
    session.lines.put_nowait(
        [
            JournalLine(NOW - 5, "WARNING  from before", 4),
            JournalLine(NOW + 1, "INFO all is well"),
            JournalLine(NOW + 2, "WARNING  KV cache pool is full", 4),
        ]
    )
    lines = await printed(session, lambda lines: any("KV cache" in line for line in lines))
    assert lines[0].split(" ", 1)[1] == "ddtui ct200 PROD sglang-k26-ddtree.service on ct200"
    journal = [line for line in lines if " journal " in line]
    assert [line.split(" ", 1)[1] for line in journal] == ["journal WARNING KV cache pool is full"]
    assert any(
        " check draft window: the config's own sliding layers: not in force." in line for line in lines
    )


async def test_no_first_connection_ends_it_with_the_reason() -> None:
    session = FakeSession()
    session.connect_error = Unreachable("ct200 does not answer", "is it on?")
    console = Plain(session.profile, lambda line: None)
    with pytest.raises(HostError, match="does not answer"):
        await console.run(session, NobodyToAsk())


def test_without_a_terminal_the_console_names_plain() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ddtui", "demo", "--read-only"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "TERM": "dumb"},
    )
    assert done.returncode == 2 and "--plain gives one line of text per event" in done.stderr
