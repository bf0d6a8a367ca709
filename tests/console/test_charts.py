"""Charts: cleaned data in, strips of the right size out, at most twice a second, the newest data last."""

from __future__ import annotations

import math

from console.fakes import FakeSession, make_burst
from console.harness import console
from hypothesis import given
from hypothesis import strategies as st

from ddtui.report.ticks import nice_ticks
from ddtui.widgets.chart import Chart, Job, build
from ddtui.widgets.chart_data import (
    ChartData,
    Mark,
    Series,
    accept_by_context,
    clean,
    decimate,
    rate_by_concurrency,
    read_out,
)
from ddtui.widgets.sparkline import sparkline

ANY = st.floats(allow_nan=True, allow_infinity=True)
MARKS = st.builds(Mark, ANY, ANY, st.none() | ANY, st.none() | ANY)
COLOURS = ((140, 160, 180), (90, 170, 250))


@given(st.lists(MARKS, max_size=30))
def test_clean_marks_are_finite_ascending_and_have_sane_intervals(marks: list[Mark]) -> None:
    cleaned = clean(marks)
    assert [mark.x for mark in cleaned] == sorted({mark.x for mark in cleaned})
    for mark in cleaned:
        assert math.isfinite(mark.x) and math.isfinite(mark.y) and mark.x > 0
        assert (mark.low is None) == (mark.high is None)
        if mark.low is not None and mark.high is not None:
            assert mark.low <= mark.y <= mark.high


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=500), st.integers(1, 60))
def test_decimating_keeps_every_extreme_and_the_order(values: list[float], width: int) -> None:
    kept = decimate(values, width)
    assert len(kept) <= 2 * width
    assert max(kept) == max(values) and min(kept) == min(values)
    rest = iter(values)
    assert all(any(value == other for other in rest) for value in _without_repeats(kept, values, width))


def _without_repeats(kept: list[float], values: list[float], width: int) -> list[float]:
    """A column of one value gives it twice."""
    if len(values) <= 2 * width:
        return kept
    return [value for i, value in enumerate(kept) if i % 2 == 0 or value != kept[i - 1]]


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6), st.integers(2, 12))
def test_ticks_are_few_ascending_and_cover_the_range(low: float, span: float, most: int) -> None:
    ticks = nice_ticks(low, low + span, most)
    assert 2 <= len(ticks) <= max(2, most)
    assert ticks == sorted(ticks)


POINTS = st.lists(
    st.builds(Mark, st.floats(1, 1e6), st.floats(-1e6, 1e6), st.none(), st.none()), min_size=1, max_size=8
)


@given(st.lists(POINTS, min_size=1, max_size=2), st.integers(16, 120), st.integers(4, 30))
def test_a_chart_of_any_data_has_its_size_and_no_control_characters(
    series: list[list[Mark]], width: int, height: int
) -> None:
    data = ChartData("t", "x", "y", tuple(Series(f"s{i}", clean(marks)) for i, marks in enumerate(series)))
    strips = build(Job(data, width, height, COLOURS, (120, 120, 120), None))
    assert len(strips) <= height
    for strip in strips:
        assert "\x1b" not in strip.text


def test_the_last_two_steps_are_overlaid_and_told_apart_by_marker_and_name() -> None:
    data = rate_by_concurrency(make_burst("a", 6), make_burst("b", 7, 4.0), 8192)
    text = "\n".join(strip.text for strip in build(Job(data, 60, 14, COLOURS, (1, 1, 1), None)))
    assert "○ A = step 6" in text and "● B = step 7" in text
    assert text.count("○") == 4 and text.count("●") == 4  # three points and the legend
    assert "tok/s" in text and "concurrency" in text
    assert "│" in text  # the intervals


def test_context_is_drawn_on_a_log_scale_with_lengths_as_engineers_write_them() -> None:
    data = accept_by_context(None, make_burst("b", 7), 8)
    text = "\n".join(strip.text for strip in build(Job(data, 60, 14, COLOURS, (1, 1, 1), None)))
    assert "512" in text and "8k" in text and "tokens/step" in text


def test_the_value_at_a_point_is_read_out_with_interval_and_count() -> None:
    data = rate_by_concurrency(make_burst("a", 6), make_burst("b", 7), 512)
    assert read_out(data, 1.0) == "concurrency 1:  A 110 [104–116] n=40   B 110 [104–116] n=40"
    assert read_out(data, 3.0) == ""


def test_a_point_that_is_still_measured_says_so() -> None:
    burst = make_burst("b", 7)
    point = burst.points[0]
    unfinished = type(point)(**{**{f: getattr(point, f) for f in point.__slots__}, "final": False})
    data = rate_by_concurrency(None, type(burst)(**{**_fields(burst), "points": (unfinished,)}), 512)
    assert read_out(data, 1.0).endswith("…")


def _fields(thing: object) -> dict[str, object]:
    return {name: getattr(thing, name) for name in type(thing).__slots__}  # type: ignore[attr-defined]


async def test_of_many_updates_only_the_newest_is_drawn() -> None:
    async with console() as desk:
        chart = desk.tune.charts[0].query_one(Chart)
        for lift in range(1, 200):
            chart.show(rate_by_concurrency(None, make_burst("b", 7, lift), 512))
        newest = chart.data
        await desk.until(lambda: chart._built is not None and chart._built.data is newest)
        assert chart.builds <= 3


async def test_arrows_read_points_and_choose_slices() -> None:
    session = FakeSession()
    session.earlier = [make_burst("b7", 7)]
    async with console(session) as desk:
        pane = desk.tune.charts[0]
        await desk.until(lambda: pane.slice is not None)
        pane.focus_first()
        await desk.until(lambda: pane.query_one(Chart).has_focus)
        await desk.press("right")
        await desk.until(lambda: "concurrency 1:" in pane.query_one(Chart).reading)
        await desk.press("right", "right", "right", "left")
        await desk.until(lambda: "concurrency 8:" in pane.query_one(Chart).reading)
        assert pane.slice == 8192
        await desk.press("down")
        assert pane.slice == 512
        await desk.press("up")
        assert pane.slice == 8192


@given(st.lists(ANY, max_size=60), st.integers(0, 30), st.integers(0, 4))
def test_a_sparkline_of_any_values_has_its_size(values: list[float], width: int, rows: int) -> None:
    lines = sparkline(values, width, rows)
    assert len(lines) == (rows if width else 0)
    assert all(len(line) == width and all(0x2800 <= ord(c) <= 0x28FF for c in line) for line in lines)


def test_a_sparkline_rises_with_its_values() -> None:
    low, high = sparkline([1, 1, 9, 9], 2)[0]
    assert bin(ord(low)).count("1") < bin(ord(high)).count("1")


def test_one_step_alone_is_not_called_b() -> None:
    data = rate_by_concurrency(None, make_burst("b", 7), 512)
    assert [series.name for series in data.series] == ["step 7"]
    assert read_out(data, 1.0) == "concurrency 1:  step 7: 110 [104–116] n=40"


async def test_where_the_legend_does_not_fit_its_letters_go_not_the_steps() -> None:
    session = FakeSession()
    session.earlier = [make_burst("b7", 7, 1.2), make_burst("b6", 6)]
    async with console(session, size=(120, 40)) as desk:
        await desk.until(lambda: "tokens/step  ○ step 6  ● step 7" in desk.text())
        assert "tok/s  ○ A = step 6  ● B = step 7" in desk.text()
