"""The report's figures as charts in the terminal: the front, many lines, and the value under the mouse."""

from __future__ import annotations

from console.fakes import FakeSession, make_burst
from console.harness import console

from ddtui.report.figures import Dot, Figure, Line
from ddtui.widgets.chart import Chart, Job, build
from ddtui.widgets.chart_data import read_out
from ddtui.widgets.chart_frame import Frame
from ddtui.widgets.figure_chart import chart

COLOURS = tuple((n, n, n) for n in range(8))
PARETO = Figure(
    "Throughput against speed per user",
    "tok/s per user",
    "tok/s",
    (
        Line("step 1 (8)", (Dot(100, 100, 95, 105, "C=1"), Dot(40, 900, 880, 920, "C=32"))),
        Line("step 2 (16)", (Dot(120, 120, 110, 130, "C=1", True), Dot(50, 1000, 950, 1050, "C=32", True))),
    ),
)


def drawn(figure: Figure, width: int = 60, height: int = 16) -> str:
    strips = build(Job(chart(figure), width, height, COLOURS, (1, 1, 1), None))
    return "\n".join(strip.text for strip in strips)


def test_the_front_is_marked_and_joined_and_the_rest_is_a_cloud() -> None:
    data = chart(PARETO)
    rest, front = data.series
    assert [mark.y for mark in front.marks] == [1000, 120] and front.joined
    assert [mark.y for mark in rest.marks] == [900, 100] and not rest.joined
    text = drawn(PARETO)
    assert text.count("●") == 3 and text.count("○") == 3  # two points each, and the legend
    assert "tok/s per user" in text


def test_a_point_of_the_front_is_read_with_its_step_and_interval() -> None:
    text = read_out(chart(PARETO), 50)
    assert text == "tok/s per user 50.0:  step 2 (16) C=32 1,000 [950–1,050]"


def test_many_lines_are_told_apart_by_their_markers() -> None:
    lines = tuple(Line(f"topk {k}", (Dot(4, k), Dot(8, k + 1))) for k in (1, 2, 4, 8))
    text = drawn(Figure("Accept length by budget", "budget", "tokens per step", lines))
    for marker, name in zip("●○◆◇", ("topk 1", "topk 2", "topk 4", "topk 8"), strict=True):
        assert f"{marker} {name}" in text and text.count(marker) == 3


def test_lines_beyond_what_can_be_told_apart_are_said_to_be_left_out() -> None:
    lines = tuple(Line(f"line {n}", (Dot(4, n), Dot(8, n))) for n in range(1, 9))
    assert chart(Figure("T", "x", "y", lines)).title == "T, 2 lines left out"


def test_the_mark_nearest_to_a_cell_is_found() -> None:
    data = chart(PARETO)
    frame = Frame.of(data, 60, 15)
    for series in data.series:
        for mark in series.marks:
            assert frame.nearest(data, frame.column(mark.x), frame.row(mark.y)) == mark


async def test_the_mouse_over_a_chart_reads_the_nearest_point() -> None:
    session = FakeSession()
    session.earlier = [make_burst("b7", 7)]
    async with console(session) as desk:
        found = desk.tune.charts[0].query_one(Chart)
        await desk.until(lambda: found._built is not None)
        await desk.pilot.hover(found, offset=(found.size.width - 3, 4))
        await desk.until(lambda: found.cursor == 32.0)
        await desk.until(lambda: "concurrency 32:" in desk.text())
