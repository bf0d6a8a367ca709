"""Times, numbers and cuts as the console writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ddtui.widgets.cells import cut, cut_left, cut_value, label
from ddtui.words import clock, duration, number, parse_count, tokens

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=60)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (133, "2 min 13 s"),
        (7980, "2 h 13 min"),
        (273600, "3 d 4 h"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_clock_and_numbers() -> None:
    assert [clock(s) for s in (12.4, 727, 3723)] == ["0:12", "12:07", "1:02:03"]
    assert [number(v) for v in (0.5249, 4.311, 84.21, 912.3, 12432)] == [
        "0.52",
        "4.31",
        "84.2",
        "912",
        "12,400",
    ]


@given(st.sampled_from([512, 1024, 8192, 131072, 1048576, 3000, 17]))
def test_counts_are_read_as_they_are_written(count: int) -> None:
    assert parse_count(tokens(count)) == count


@pytest.mark.parametrize("text", ["", "k", "-1", "0", "1.5k", "8 k8", "eight"])
def test_what_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no count"):
        parse_count(text)


@given(TEXT, st.integers(-1, 70))
def test_a_cut_text_fits_and_says_that_it_was_cut(text: str, width: int) -> None:
    for shown, says in ((cut(text, width), str.endswith), (cut_left(text, width), str.startswith)):
        assert cell_len(shown) <= max(0, width)
        assert shown == text or says(shown, "…") or width <= 0


@pytest.mark.parametrize(
    ("name", "column", "room", "shown"),
    [
        ("dtype", 8, 2, "dtype   "),
        ("use_sliding_window", 11, 20, "use_sliding_window"),  # its value is short
        ("target layers", 11, 4, "target lay…"),
        ("speculative-draft-model-path", 24, 4, "speculative-…-model-path"),  # a long one keeps both ends
        ("speculative-ddtree-budget", 24, 40, "speculative-ddtree-budget"),
    ],
)
def test_a_label_is_cut_only_where_its_value_takes_the_room(
    name: str, column: int, room: int, shown: str
) -> None:
    assert label(name, column, room) == shown


@given(TEXT, st.integers(1, 40), st.integers(-5, 60))
def test_a_label_fills_its_column_and_no_more_than_its_room(text: str, column: int, room: int) -> None:
    assert column <= cell_len(label(text, column, room)) <= max(column, room)


def test_of_a_path_the_end_is_kept() -> None:
    assert cut_value("/opt/models/Kimi", 10) == "…dels/Kimi" and cut_value("deepseek-v3", 6) == "deeps…"
