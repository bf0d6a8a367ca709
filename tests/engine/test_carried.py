"""A colleague's saved log, whatever it was saved with, reads as the server's own."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from engine.captured import CAPTURES, LOGS

from ddtui.engine import carried, inspect

WITH, WITHOUT = "start_dflash_window2048", "start_dflash_nowindow"


def text_of(name: str) -> str:
    return (CAPTURES / "logs" / f"{name}.log").read_bytes().decode("utf-8", "replace")


def each(form: str) -> Callable[[str], str]:
    return lambda text: "\n".join(form.format(line) for line in text.split("\n"))


def journal_objects(text: str, start: str = "a1") -> str:
    entries = []
    for number, line in enumerate(text.split("\n")):
        message: object = (
            list(line.encode()) if "\r" in line else line
        )  # as journald keeps control characters
        entries.append(
            {"__CURSOR": f"s=1;i={number}", "MESSAGE": message, "_SYSTEMD_INVOCATION_ID": start, "_PID": "7"}
        )
    return "\n".join(map(json.dumps, entries))


def docker_objects(text: str) -> str:
    return "\n".join(
        json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-12-01T02:54:54.1Z"})
        for line in text.split("\n")
    )


CARRIERS: dict[str, tuple[Callable[[str], str], str]] = {
    "short": (each("Dec 01 02:54:54 gpu-1 python3[4711]: {}"), "journalctl"),
    "short-precise": (each("Dec  1 02:54:54.123456 gpu-1 sglang[4711]: {}"), "journalctl"),
    "short-iso": (each("2026-12-01T02:54:54+0100 gpu-1 run.sh[4711]: {}"), "journalctl"),
    "short-iso-precise": (each("2026-12-01T02:54:54.123456+01:00 gpu-1 run.sh[4711]: {}"), "journalctl"),
    "short-full": (each("Tue 2026-12-01 02:54:54 UTC gpu-1 sglang[4711]: {}"), "journalctl"),
    "short-unix": (each("1796136894.123456 gpu-1 sglang[4711]: {}"), "journalctl"),
    "short-monotonic": (each("[ 1234.567890] gpu-1 sglang[4711]: {}"), "journalctl"),
    "json": (journal_objects, "journalctl -o json"),
    "docker's json-file": (docker_objects, "docker's json-file"),
    "docker compose logs": (each("sglang-1  | {}"), "docker compose logs"),
    "docker compose logs -t": (
        each("sglang-1  | 2026-12-01T02:54:54.123456789Z {}"),
        "docker compose logs, a time before each line",
    ),
    "kubectl logs --timestamps": (each("2026-12-01T02:54:54.123456789Z {}"), "a time before each line"),
}


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("name", LOGS)
def test_every_captured_log_reads_the_same_through_every_carrier(name: str, carrier: str) -> None:
    wrap, called = CARRIERS[carrier]
    alone = text_of(name)
    found = carried.last_start(wrap(alone))
    assert found.carrier == called and (found.earlier_starts, found.nulls) == (0, 0)
    assert [line for line in found.lines if line] == [line for line in alone.split("\n") if line]


def test_a_log_that_stands_alone_is_left_as_it_is() -> None:
    text = text_of(WITH)
    assert carried.last_start(text) == carried.Carried(tuple(text.split("\n")), "", 0, 0)


def test_what_is_said_of_a_journal_is_what_is_said_of_the_log() -> None:
    report, lines = inspect.log(CARRIERS["short"][0](text_of(WITH)).encode(), "x")
    alone, same = inspect.log(text_of(WITH).encode(), "x")
    assert lines == same and "draft window: 2048, in force (compact cache)" in lines
    assert report == alone | {"carrier": "journalctl"}


STARTED = "Dec 01 02:50:00 gpu-1 systemd[1]: Started sglang.service - SGLang.\n"
STARTING = "Dec 01 02:50:00 gpu-1 systemd[1]: Starting sglang.service - SGLang...\n"
SHORT = CARRIERS["short"][0]


@pytest.mark.parametrize(
    "file",
    [
        text_of(WITH) + "\n" + text_of(WITHOUT),
        STARTED + SHORT(text_of(WITH)) + "\n" + STARTED + SHORT(text_of(WITHOUT)),
        SHORT(text_of(WITH)) + "\n" + STARTED + SHORT(text_of(WITHOUT)),
        STARTING + SHORT(text_of(WITH)) + "\n" + STARTING + SHORT(text_of(WITHOUT)) + "\n" + STARTED,
        journal_objects(text_of(WITH), "a1") + "\n" + journal_objects(text_of(WITHOUT), "b2"),
    ],
    ids=["bare", "two in a journal", "the first one cut off", "Type=notify", "by the journal's ids"],
)
def test_of_two_starts_the_last_one_counts_and_that_is_said(file: str) -> None:
    report, lines = inspect.log(file.encode(), "x")
    assert report["earlier_starts"] == 1 and report["evidence"]["draft_window"] is None
    assert lines[0] == "the last start in this file; an earlier start left out"
    assert "draft window: none in force (no compact cache)" in lines


def test_a_line_of_json_in_a_plain_log_is_a_line_of_it() -> None:
    text = text_of(WITH) + '\n{"log": "a request\'s own words", "MESSAGE": "x"}\n'
    found = carried.last_start(text)
    assert found.carrier == "" and found.lines == tuple(text.split("\n"))


def test_of_a_users_unit_what_its_manager_says_belongs_to_the_start_that_it_says_it_of() -> None:
    """systemd --user runs in user@.service, whose id its lines have beside the unit's."""
    stopping = {
        "MESSAGE": "Stopping sglang.service",
        "USER_INVOCATION_ID": "a1",
        "SYSLOG_IDENTIFIER": "systemd",
    }
    manager = json.dumps({**stopping, "_SYSTEMD_INVOCATION_ID": "of-user@"})
    report, _ = inspect.log(f"{journal_objects(text_of(WITH))}\n{manager}".encode(), "x")
    assert report["earlier_starts"] == 0 and report["evidence"]["draft_window"] == 2048


def test_a_last_start_that_failed_at_its_arguments_is_told_by_what_systemd_says() -> None:
    failed = text_of("fail_unknown_flag")
    report, _ = inspect.log(
        (STARTED + SHORT(text_of(WITHOUT)) + "\n" + STARTED + SHORT(failed)).encode(), "x"
    )
    assert report["earlier_starts"] == 1 and report["failure"] and not report["ready"]
    assert report["evidence"]["draft_runner"] is None


@pytest.mark.parametrize("null", ['{"MESSAGE": null, "__CURSOR": "x"}', None], ids=["json", "text"])
def test_lines_that_journalctl_left_out_are_counted_and_the_way_to_have_them_is_said(
    null: str | None,
) -> None:
    text = text_of(WITHOUT)
    file = (
        f"{journal_objects(text)}\n{null}"
        if null
        else f"{SHORT(text)}\nDec 01 02:54:55 gpu-1 sglang[4711]: [12.3K blob data]"
    )
    report, lines = inspect.log(file.encode(), "x")
    assert report["lines_without_text"] == 1 and lines[0].startswith("lines without their text: 1;")
    assert "-a" in lines[0]


def test_the_further_lines_of_a_message_are_taken_out_of_their_inset() -> None:
    head = "Dec 01 02:54:54 gpu-1 python3[4711]: "
    text = f'{head}Traceback (most recent call last):\n{" " * len(head)}  File "a.py", line 1\n{head}ValueError: x'
    found = carried.last_start(text)
    assert found.lines == ("Traceback (most recent call last):", '  File "a.py", line 1', "ValueError: x")
