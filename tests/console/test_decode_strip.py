"""The live strip of `Decode batch` lines."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from ddtui.session import JournalLine
from ddtui.view import Decode
from ddtui.widgets.decode_strip import strip
from ddtui.widgets.journal_store import JournalStore
from ddtui.words import time_of_day

DECODES = [Decode(float(i), 100.0 + i, 4.0 + i / 10, i % 4, 0) for i in range(60)]


def test_each_of_the_four_numbers_has_its_curve_where_there_is_room() -> None:
    words = strip(DECODES, 150).plain.split("   ")
    assert [word.split(" ")[0] for word in words] == ["tok/s", "accept", "run", "queue"]
    assert [word.split(" ")[1] for word in words] == ["159", "9.90", "3", "0"]
    curves = [word.split(" ")[2] for word in words]
    assert len({len(curve) for curve in curves}) == 1 and len(curves[0]) > 20
    assert set(curves[3]) == {"⣀"}  # nothing is queued: a line at the bottom


def test_where_there_is_less_room_rate_and_accept_length_keep_their_curves() -> None:
    words = strip(DECODES, 60).plain.split("   ")
    assert [len(word.split(" ")) for word in words] == [3, 3, 2, 2]


@pytest.mark.parametrize("width", [0, 1, 20, 40, 45, 60, 80, 200])
def test_the_strip_fits_its_width(width: int) -> None:
    assert cell_len(strip(DECODES, width).plain) <= width


def test_what_the_server_does_not_say_is_a_dash() -> None:
    assert strip([Decode(0.0, None, None, None, None)], 40).plain.startswith("tok/s –   accept –   run –")


def test_what_was_so_a_while_ago_says_when() -> None:
    assert strip(DECODES, 150, now=False).plain.startswith(f"{time_of_day(59.0)}   tok/s 159")
    assert cell_len(strip(DECODES, 40, now=False).plain) <= 40


def test_a_decode_line_tells_of_now_for_ten_seconds() -> None:
    store = JournalStore()
    assert store.decoding(100.0) is None
    store.append([JournalLine(50.0, "Decode batch", decode=DECODES[0])], now=100.0)
    assert store.decoding(110.0) is DECODES[0]
    assert store.decoding(110.1) is None


def test_what_does_not_fit_moves_closer_and_then_is_left_out_whole() -> None:
    newest = [Decode(0.0, 1234.0, 4.55, 12, 3)]
    assert strip(newest, 44).plain == "tok/s 1,234   accept 4.55   run 12   queue 3"
    assert strip(newest, 42).plain == "tok/s 1,234  accept 4.55  run 12  queue 3"
    assert strip(newest, 38).plain == "tok/s 1,234  accept 4.55  run 12"
    assert strip(newest, 31).plain == "tok/s 1,234  accept 4.55"
