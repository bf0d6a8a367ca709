"""The journal's store and its filter."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui.session import JournalLine
from ddtui.widgets.journal_filter import FilterError, parse_filter
from ddtui.widgets.journal_lines import Level, bar_label, level_of, without_prefix
from ddtui.widgets.journal_store import JournalStore


def lines(*texts: str) -> list[JournalLine]:
    return [JournalLine(1000.0 + i, text) for i, text in enumerate(texts)]


def test_the_store_keeps_at_most_its_limit_and_numbers_never_change() -> None:
    store = JournalStore(limit=100)
    for i in range(1000):
        store.append(lines(f"line {i}"))
        assert len(store) <= 100
    assert store.end == 1000
    assert store.texts[0] == f"line {store.base}"
    assert len(store.texts) == len(store.times) == len(store.levels)


def test_the_prefix_of_sglang_goes_and_the_rank_stays() -> None:
    assert without_prefix("[2026-05-28 12:00:00] Load weight end.") == "Load weight end."
    assert without_prefix("[2026-05-28 12:00:00 DP0 TP1] Decode batch") == "DP0 TP1 Decode batch"
    assert without_prefix("[not a date] x") == "[not a date] x"


BAR = "Capturing batches (bs={} avail_mem=69.26 GB):  {}%|██▌  | {}/23 [00:00<00:04,  4.80it/s]"


def test_a_progress_bar_takes_one_line() -> None:
    store = JournalStore()
    store.append(lines("begin", *(BAR.format(48 - i, i * 10, i) for i in range(8)), "end"))
    assert store.texts == ["begin", BAR.format(41, 70, 7), "end"]


def test_bars_of_several_processes_side_by_side_take_a_line_each() -> None:
    store = JournalStore()
    store.append(
        JournalLine(0.0, BAR.format(48 - i, i * 10, i), pid=pid) for i in range(8) for pid in (41, 42)
    )
    store.append(lines("end", BAR.format(41, 70, 7)))
    assert store.texts == [BAR.format(41, 70, 7), BAR.format(41, 70, 7), "end", BAR.format(41, 70, 7)]


def test_of_a_bar_with_carriage_returns_the_last_piece_is_shown() -> None:
    store = JournalStore()
    store.append(lines("\r".join(BAR.format(48 - i, i, i) for i in range(3)) + "\r"))
    assert store.texts == [BAR.format(46, 2, 2)]


def test_another_bar_begins_another_line() -> None:
    assert bar_label("Loading:  10%|█ | 1/10") == bar_label("Loading: 100%|██| 10/10")
    assert bar_label("Loading:  10%|█ | 1/10") != bar_label("Compiling:  10%|█ | 1/10")
    assert bar_label("10% of requests failed") is None


@pytest.mark.parametrize(
    ("text", "priority", "level"),
    [
        ("The server is fired up and ready to roll!", 6, Level.INFO),
        ("ValueError: DFLASH …", 6, Level.ERROR),
        ("Traceback (most recent call last):", 6, Level.ERROR),
        ("launch_server.py: error: unrecognized arguments: --x", 6, Level.ERROR),
        ("Overlap scheduler is disabled when using DFLASH", 6, Level.WARNING),
        ("'--x' is deprecated and will be removed", 6, Level.WARNING),
        ("anything", 3, Level.ERROR),
        ("anything", 4, Level.WARNING),
        ("anything", 7, Level.DEBUG),
    ],
)
def test_level(text: str, priority: int, level: Level) -> None:
    assert level_of(text, priority) is level


def matching(wanted: str, *texts: str) -> list[str]:
    filter = parse_filter(wanted)
    return [text for text in texts if filter.matches(text, level_of(text, 6))]


def test_words_must_all_occur_in_any_order_and_case() -> None:
    assert matching("batch decode", "Decode batch", "decode", "Batch of decodes") == [
        "Decode batch",
        "Batch of decodes",
    ]


def test_a_capital_letter_makes_case_matter() -> None:
    assert matching("Decode", "Decode batch", "decode batch") == ["Decode batch"]


def test_not_words_and_level() -> None:
    assert matching("!decode", "Decode batch", "Prefill") == ["Prefill"]
    assert matching(">=warn", "ok", "WARNING x", "ValueError: y") == ["WARNING x", "ValueError: y"]


def test_a_regular_expression_stands_between_slashes() -> None:
    assert matching(r"/accept len: 4\.\d/", "accept len: 4.2", "accept len: 3.9") == ["accept len: 4.2"]


def test_words_may_follow_a_regular_expression() -> None:
    assert matching("/len: [45]/ tp0 !prefill", "TP0 len: 4", "TP1 len: 4", "TP0 len: 5 prefill") == [
        "TP0 len: 4"
    ]
    assert matching("/usr/lib", "/usr/lib/x", "usr lib") == ["/usr/lib/x"]


@pytest.mark.parametrize("pattern", ["/(a+)+b/", "/(a|aa)+b/", "/.*a.*b.*c.*d/", r"/\w+\s*\w+\s*\w+x$/"])
def test_a_regular_expression_that_would_hang_gives_up(pattern: str) -> None:
    wanted = parse_filter(pattern)
    assert wanted.regex is not None
    assert not wanted.matches("a" * 2000, Level.INFO) and wanted.regex.gave_up
    assert not wanted.matches("abcd", Level.INFO) and list(wanted.spans("abcd")) == []


def test_an_ordinary_one_never_does() -> None:
    wanted = parse_filter(r"/(ab|cd){2,4}x*.*\d+\.\d+/")
    assert wanted.matches("abcdx " * 300 + "1.5", Level.INFO)
    assert wanted.regex is not None and not wanted.regex.gave_up


def test_what_is_wrong_with_a_filter_is_one_sentence() -> None:
    with pytest.raises(FilterError, match="is no regular expression"):
        parse_filter("/(/")
    with pytest.raises(FilterError, match="levels are"):
        parse_filter(">=loud")


@given(st.text(max_size=40), st.text(max_size=200))
def test_a_filter_never_fails_but_with_a_sentence_and_spans_lie_in_the_text(wanted: str, text: str) -> None:
    try:
        filter = parse_filter(wanted)
    except FilterError as error:
        assert str(error)
        return
    filter.matches(text, Level.INFO)
    for start, end in filter.spans(text):
        assert 0 <= start < end <= len(text)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=30), max_size=60), st.text(max_size=3))
def test_scanning_in_parts_finds_what_scanning_at_once_finds(texts: list[str], wanted: str) -> None:
    store = JournalStore(limit=25)
    store.append(lines(*texts))
    try:
        filter = parse_filter(wanted)
    except FilterError:
        return
    whole = store.scan(filter, range(store.base, store.end))
    middle = (store.base + store.end) // 2
    parts = store.scan(filter, range(store.base, middle)) + store.scan(filter, range(middle, store.end))
    assert whole == parts
    assert store.scan(filter, range(0, store.end + 10)) == whole


def test_lines_are_made_inert_on_the_way_in() -> None:
    store = JournalStore()
    store.append(lines("a\x1b]52;c;AAAA\x07b\x00\u202ec"))
    assert store.texts[0].isprintable()
    assert re.search("a.*b.*c", store.texts[0])
