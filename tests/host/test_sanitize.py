"""Host text is shown inert: nothing in it moves a cursor, sets a title or turns the text around."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui import sanitize
from ddtui.sanitize import Span

HOSTILE = [
    "\x00", "\x07", "\x08", "\x0b", "\x0c", "\x0e", "\x1b", "\x1b[", "\x1b[31", "\x1b[2J", "\x1b[6n", "\x1b]0;title\x07",
    "\x1b]52;c;aGk=\x07", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "\x1bP1$r\x1b\\", "\x1b_apc\x1b\\", "\x1bc", "\x1b(0",
    "\x7f", "\x80", "\x85", "\x90", "\x9b31m", "\x9d0;t\x9c", "\u200e", "\u200f", "\u061c", "\u202a", "\u202e", "\u2066",
    "\u2069", "\u200b", "\ufeff", "\u2028", "\u2029", "\ufff9", "\U000e0041", "\ud800", "\udcff", "\ufdd0", "\uffff",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=[repr(text) for text in HOSTILE])
def test_hostile_text_becomes_printable(text: str) -> None:
    for whole in (text, f"a{text}b", text * 3):
        safe = sanitize.sanitize(whole)
        assert all(c.isprintable() or c in "\u200c\u200d" for c in safe)
        safe.encode()  # no lone surrogates
        coloured, _ = sanitize.styled(whole)
        assert all(c.isprintable() or c in "\u200c\u200d" for c in coloured)


@given(st.text(alphabet=st.characters()))
def test_any_text_becomes_printable(text: str) -> None:
    safe = sanitize.sanitize(text)
    assert all(c.isprintable() or c in "\u200c\u200d" for c in safe)
    safe.encode()
    assert sanitize.sanitize(safe) == safe


@given(st.binary())
def test_any_bytes_become_one_printable_line(data: bytes) -> None:
    safe = sanitize.line(data)
    assert all(c.isprintable() or c in "\u200c\u200d" for c in safe)


@given(st.text(alphabet=st.characters(blacklist_categories=("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp", "Zs"))))
def test_plain_text_in_any_script_is_left_as_it_is(text: str) -> None:
    assert sanitize.sanitize(text) == text


def test_controls_are_shown_so_that_they_are_seen() -> None:
    assert sanitize.sanitize("a\x00b\x1bc\x7fd\x9de\u202ef") == "a␀b␛c␡d\\x9de<U+202E>f"


def test_an_escape_sequence_that_hides_text_shows_it() -> None:
    assert "aGk=" in sanitize.sanitize("\x1b]52;c;aGk=\x07")


def test_colours_and_cursor_movements_are_dropped() -> None:
    assert sanitize.sanitize("\x1b[1;31mred\x1b[0m\x1b[A\x1b[2K") == "red"


def test_invalid_utf8_is_shown_as_bytes() -> None:
    assert sanitize.line(b"caf\xe9 \xff\xfe ok") == "caf\\xe9 \\xff\\xfe ok"


def test_tabs_become_blanks_to_the_next_column_of_eight() -> None:
    assert sanitize.sanitize("ab\tc") == "ab      c"


def test_line_ends_are_kept_only_when_asked_for() -> None:
    assert sanitize.sanitize("a\r\nb\nc", newlines=True) == "a\nb\nc"
    assert "\n" not in sanitize.sanitize("a\nb")


def test_emoji_of_several_characters_survive() -> None:
    family = "👩\u200d👩\u200d👧"
    assert sanitize.sanitize(family) == family


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("  0%|  | 0/9\r 50%|▌ | 4/9\r100%|██| 9/9\r", "100%|██| 9/9"),
        ("one\rtwo", "two"),
        ("text\r", "text"),
        ("\r", ""),
        ("a\r   \r", "a"),
        ("no return", "no return"),
    ],
)
def test_a_progress_bar_is_its_last_piece(text: str, shown: str) -> None:
    assert sanitize.line(text.encode()) == shown


def test_colours_are_kept_as_spans() -> None:
    text, spans = sanitize.styled(
        "\x1b[33mWARN\x1b[0m a \x1b[1;38;5;208mb\x1b[22;39mc \x1b[48;2;1;2;3md\x1b[m"
    )
    assert text == "WARN a bc d"
    assert spans == (Span(0, 4, "yellow"), Span(7, 8, "bold color(208)"), Span(10, 11, "on #010203"))


def test_broken_colour_sequences_do_no_harm() -> None:
    for text in (
        "\x1b[38;5m",
        "\x1b[38;2;1m",
        "\x1b[38m",
        "\x1b[999m",
        "\x1b[;;;m",
        "\x1b[1;m",
        "\x1b[38;5;999m",
    ):
        assert sanitize.styled(f"a{text}b")[0] == "ab"


def test_spans_lie_within_the_text_and_in_order() -> None:
    text, spans = sanitize.styled("\x1b[31m\x00\x1b[32m\u202ex\x1b[1mz")
    assert [span.start for span in spans] == sorted(span.start for span in spans)
    assert spans[0].start == 0
    assert spans[-1].end == len(text)
