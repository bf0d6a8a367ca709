"""Lines of `journalctl -o json` become entries, in every form that journald gives a field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ddtui.host.journal import EntryReader, JournalEntry, same_place

CURSOR = "s=0123;i=5;b=abc;m=9;t=618;x=77"


def line(**fields: Any) -> bytes:
    base = {"__CURSOR": CURSOR, "__REALTIME_TIMESTAMP": "1700000000123456", "_BOOT_ID": "b" * 32}
    return json.dumps({**base, **fields}).encode()


def entry(**fields: Any) -> JournalEntry:
    read = EntryReader().feed(line(**fields))
    assert read is not None
    return read


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("plain", "plain"),
        (list(b"\x1b[31mred\x1b[0m"), "red"),
        (list(b"bad \xff"), "bad \\xff"),
        (None, ""),
        ([], ""),
        (["one", "two"], "one␊two"),
        ([list(b"one"), None], "one␊"),
        (list(b"  1%\r100%\r"), "100%"),
        (list(b"nul \x00 byte"), "nul ␀ byte"),
        ("\ud800", "\\ud800"),
        ([1, 2, 999], "␊␊"),
        (5, ""),
    ],
)
def test_every_form_of_a_message(message: Any, text: str) -> None:
    assert entry(MESSAGE=message).text == text


def test_fields_of_a_service_line() -> None:
    read = entry(
        MESSAGE="x",
        PRIORITY="4",
        SYSLOG_IDENTIFIER="python3",
        _PID="41210",
        _SYSTEMD_UNIT="a.service",
        _SYSTEMD_INVOCATION_ID="inv",
    )
    assert read == JournalEntry(
        cursor=CURSOR,
        realtime_us=1700000000123456,
        text="x",
        priority=4,
        pid=41210,
        identifier="python3",
        unit="a.service",
        invocation="inv",
        boot="b" * 32,
    )


def test_lines_of_systemd_itself_belong_to_the_unit_they_speak_of() -> None:
    read = entry(MESSAGE="Started", UNIT="a.service", INVOCATION_ID="inv", _SYSTEMD_UNIT="init.scope")
    assert (read.unit, read.invocation) == ("a.service", "inv")
    read = entry(
        MESSAGE="Started",
        USER_UNIT="a.service",
        USER_INVOCATION_ID="inv",
        _SYSTEMD_UNIT="user@1000.service",
        _SYSTEMD_INVOCATION_ID="other",
    )
    assert (read.unit, read.invocation) == ("a.service", "inv")


def test_missing_and_strange_fields_do_no_harm() -> None:
    read = entry(PRIORITY="x", _PID=["1", "2"], SYSLOG_IDENTIFIER=list(b"a\x1b[2Jb"), N_DROPPED=None)
    assert (read.priority, read.pid, read.identifier, read.dropped) == (6, 1, "ab", 0)


def test_suppressed_lines_are_counted() -> None:
    assert entry(MESSAGE="Suppressed 120 messages from a.service", N_DROPPED="120").dropped == 120


def test_secrets_in_a_line_are_masked_also_across_colours() -> None:
    assert "hunter2hunter2" not in entry(MESSAGE="--api-key hunter2hunter2").text


@pytest.mark.parametrize(
    "junk", [b"", b"{", b"[]", b"null", b"{}", b'{"__CURSOR": "x"}', b"-- No entries --"]
)
def test_what_is_no_entry_is_passed_over(junk: bytes) -> None:
    assert EntryReader().feed(junk) is None


def test_pieces_of_an_overlong_line_are_joined_per_stream() -> None:
    reader = EntryReader()
    assert reader.feed(line(MESSAGE="a" * 10, _STREAM_ID="1", _LINE_BREAK="line-max")) is None
    assert reader.feed(line(MESSAGE="B" * 10, _STREAM_ID="2", _LINE_BREAK="line-max")) is None
    assert reader.feed(line(MESSAGE="a" * 10, _STREAM_ID="1", _LINE_BREAK="line-max")) is None
    one = reader.feed(line(MESSAGE="end", _STREAM_ID="1"))
    two = reader.feed(line(MESSAGE="end", _STREAM_ID="2", _LINE_BREAK="eof"))
    three = reader.feed(line(MESSAGE="next", _STREAM_ID="1"))
    assert one and two and three
    assert [e.text for e in (one, two, three)] == ["a" * 20 + "end", "B" * 10 + "end", "next"]


def test_a_secret_cut_by_a_piece_of_a_line_is_masked() -> None:
    reader = EntryReader()
    reader.feed(line(MESSAGE="--api-key verysec", _STREAM_ID="1", _LINE_BREAK="line-max"))
    joined = reader.feed(line(MESSAGE="retvalue --port 1", _STREAM_ID="1"))
    assert joined and "retvalue" not in joined.text and "--port 1" in joined.text


def test_a_cursor_names_the_same_place_after_a_rotation() -> None:
    assert same_place(CURSOR, CURSOR.replace("s=0123;i=5", "s=4567;i=1"))
    assert not same_place(CURSOR, CURSOR.replace("t=618", "t=619"))
