"""What is sent to the terminal: the same picture as Textual's own update makes, with fewer bytes."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyte
import pytest
from console.fakes import NOW, FakeSession
from console.harness import console
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from ddtui.app import DdtuiApp
from ddtui.sending import Shown
from ddtui.session import JournalLine

WIDTH, HEIGHT = 40, 12
CONSOLE = Console(color_system="truecolor", force_terminal=True)
STYLES = [Style(color="red"), Style(color="green", bold=True), Style(bgcolor="blue"), Style()]
Picture = list[list[Strip]]  # rows of strips side by side


def strip(words: str, width: int, style: Style = STYLES[0]) -> Strip:
    stamp = Segment("12:00:01 ", STYLES[1])
    return Strip([stamp, Segment(words, style)]).adjust_cell_length(width, STYLES[0])


def framed(lines: Sequence[str], state: str = "follow") -> Picture:
    """A pane with a border, as wide as the screen, and a row of state below."""
    edge = Strip([Segment("│", STYLES[1])])
    return [*([edge, strip(line, WIDTH - 2), edge] for line in lines), [strip(state, WIDTH)]]


def layout(picture: Picture) -> LayoutUpdate:
    return LayoutUpdate(list(picture), Region(0, 0, WIDTH, len(picture)))


def chops(picture: Picture, spans: list[tuple[int, int, int]]) -> ChopsUpdate:
    rows, ends = [], []
    for row in picture:
        columns = [sum(one.cell_length for one in row[:place]) for place in range(len(row) + 1)]
        rows.append(dict(zip(columns, row, strict=False)))
        ends.append(columns[1:])
    return ChopsUpdate(rows, spans, ends)


class Both:
    """A terminal that gets what is sent, and one that gets what Textual would send."""

    def __init__(self) -> None:
        self.shown = Shown()
        self.screens = [pyte.Screen(WIDTH, HEIGHT) for _ in range(2)]
        self.streams = [pyte.Stream(screen) for screen in self.screens]
        for stream in self.streams:
            stream.feed("\x1b[20l")

    def take(self, update: ChopsUpdate | LayoutUpdate) -> tuple[str, str]:
        sent, whole = self.shown.news(update, CONSOLE), update.render_segments(CONSOLE)
        self.streams[0].feed(sent)
        self.streams[1].feed(whole)
        ours, theirs = ([dict(screen.buffer[y]) for y in range(HEIGHT)] for screen in self.screens)
        for y in range(HEIGHT):
            for x in range(WIDTH):
                assert self.screens[0].buffer[y][x] == self.screens[1].buffer[y][x], (
                    y,
                    x,
                    ours[y],
                    theirs[y],
                )
        return sent, whole


def whole_rows(rows: range) -> list[tuple[int, int, int]]:
    return [(y, 0, WIDTH) for y in rows]


def test_what_is_shown_already_is_not_sent() -> None:
    both = Both()
    picture = framed([f"line {n}" for n in range(HEIGHT - 1)])
    both.take(layout(picture))
    assert both.take(layout(picture))[0] == ""
    assert both.take(chops(picture, whole_rows(range(HEIGHT))))[0] == ""


def test_a_line_that_comes_is_all_that_is_sent_and_the_terminal_moves_the_others() -> None:
    both = Both()
    both.take(layout(framed([f"line {n}" for n in range(HEIGHT - 1)])))
    after = framed([f"line {n}" for n in range(1, HEIGHT)])
    sent, whole = both.take(chops(after, whole_rows(range(HEIGHT))))
    assert "line 11" in sent
    assert not any(f"line {n} " in sent for n in range(1, HEIGHT - 1))
    assert len(sent) < len(whole) / 5


def test_lines_that_go_down_are_moved_too() -> None:
    both = Both()
    both.take(layout(framed([f"line {n}" for n in range(5, HEIGHT + 4)])))
    sent, whole = both.take(
        chops(framed([f"line {n}" for n in range(3, HEIGHT + 2)]), whole_rows(range(HEIGHT)))
    )
    assert "line 3" in sent
    assert "line 4" in sent
    assert "line 5" not in sent
    assert len(sent) < len(whole) / 3


def test_of_a_row_only_the_part_that_differs_is_sent() -> None:
    both = Both()
    row = [Segment("ddtui ", STYLES[1]), Segment("active 12 s", STYLES[0]), Segment(" EAGLE3", STYLES[1])]
    both.take(layout([[Strip(row).adjust_cell_length(WIDTH)], *framed(["a"] * (HEIGHT - 2))]))
    row[1] = Segment("active 13 s", STYLES[0])
    after = [[Strip(row).adjust_cell_length(WIDTH)], *framed(["a"] * (HEIGHT - 2))]
    sent, _ = both.take(chops(after, [(0, 0, WIDTH)]))
    assert "active 13 s" in sent
    assert "ddtui" not in sent
    assert "EAGLE3" not in sent


@pytest.mark.parametrize("wide", ["漢字", "👩‍🚀", "e\u0301", "☃️"])
def test_what_stands_behind_a_text_of_uncertain_width_is_sent_with_it(wide: str) -> None:
    shown = Shown()
    before, after = (
        [[Strip([Segment(wide, STYLES[1]), Segment(f"x {n}", STYLES[0]), Segment("end", STYLES[1])])]]
        for n in (1, 2)
    )
    shown.news(layout(before), CONSOLE)
    assert wide in shown.news(layout(after), CONSOLE)


def test_after_the_terminal_was_written_over_everything_is_sent() -> None:
    both = Both()
    picture = framed(["a"] * (HEIGHT - 1))
    both.take(layout(picture))
    both.shown.forget()
    part = chops(picture, [(2, 0, WIDTH)])
    assert both.shown.news(part, CONSOLE) == part.render_segments(CONSOLE)
    sent, _ = both.take(layout(picture))
    assert sent.count("12:00:01") == HEIGHT


def test_a_screen_of_another_size_is_sent_whole() -> None:
    shown = Shown()
    shown.news(layout(framed(["a"] * 5)), CONSOLE)
    assert shown.news(layout(framed(["a"] * 6)), CONSOLE).count("12:00:01") == 7


@pytest.mark.parametrize("seed", range(12))
def test_whatever_comes_the_picture_is_the_same(seed: int) -> None:
    some = random.Random(seed)
    both = Both()
    lines = [f"line {some.randrange(30)}" for _ in range(HEIGHT - 1)]
    both.take(layout(framed(lines)))
    for _ in range(40):
        by = some.choice([0, 1, 1, 2, 5, -1, -3, 20])
        fresh = [some.choice(["", "same", f"line {some.randrange(99)}"]) for _ in range(abs(by))]
        lines = ([*lines, *fresh][by:] if by > 0 else [*fresh, *lines])[: HEIGHT - 1] if by else lines
        lines = lines[-(HEIGHT - 1) :]
        if some.random() < 0.3:
            lines[some.randrange(len(lines))] = "changed"
        picture = framed(lines, some.choice(["follow", "held"]))
        if some.random() < 0.3:  # another layout: other columns
            y, cut = some.randrange(HEIGHT), some.randrange(1, WIDTH - 1)
            picture[y] = [*Strip.join(picture[y]).divide([cut, WIDTH])]
        both.take(layout(picture) if some.random() < 0.2 else chops(picture, whole_rows(range(HEIGHT))))


async def test_what_a_terminal_got_bit_by_bit_is_what_the_console_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = pyte.Screen(120, 40)
    stream, sent = pyte.Stream(terminal), 0

    def display(app: DdtuiApp, screen: object, update: object) -> None:
        nonlocal sent
        if isinstance(update, (ChopsUpdate, LayoutUpdate)) and not app._batch_count:
            news = app._shown.news(update, CONSOLE)
            sent += len(news)
            stream.feed(news)

    monkeypatch.setattr(DdtuiApp, "_display", display)
    session = FakeSession()

    def lines(first: int, count: int) -> None:
        session.lines.put_nowait([JournalLine(NOW + n, f"line {n}") for n in range(first, first + count)])

    async with console(session, size=(120, 40)) as desk:

        async def same() -> None:
            def is_same() -> bool:
                shown = [row.rstrip() for row in desk.text().split("\n")]
                return [row.rstrip() for row in terminal.display] == shown

            await desk.until(is_same)

        lines(0, 60)
        await desk.until(lambda: "line 59" in desk.text())
        await same()
        await desk.press("2")
        await desk.until(lambda: "line 59" in desk.text() and "follow" in desk.text())
        await same()
        before = sent
        lines(60, 1)
        await desk.until(lambda: "line 60" in desk.text())
        await same()
        assert sent - before < 1000
        for keys in (
            ("k",) * 3,
            ("pageup",),
            ("pagedown", "pagedown"),
            ("question_mark",),
            ("escape",),
            ("C",),
            ("escape",),
            ("L",),
            ("escape",),
            ("1",),
        ):
            await desk.press(*keys)
            await desk.pilot.pause()
            lines(len(desk.app.desk.store), 3)
            await desk.until(lambda: session.lines.empty())
            await desk.pilot.pause(0.3)
            await same()
