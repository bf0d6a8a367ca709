"""The journal view: follow, hold, filter, wrap; only what is visible is drawn, from numbers that stay."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from console.fakes import NOW
from console.harness import until
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from ddtui import themes
from ddtui.session import JournalLine
from ddtui.widgets.journal_draw import crop, height
from ddtui.widgets.journal_draw import pieces as cut
from ddtui.widgets.journal_filter import parse_filter
from ddtui.widgets.journal_store import JournalStore
from ddtui.widgets.journal_view import JournalView


class ViewApp(App[None]):
    def __init__(self, store: JournalStore) -> None:
        super().__init__()
        self.register_theme(themes.DARK)
        self.theme = themes.DARK.name
        self.view = JournalView(store)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.variable_defaults(self.current_theme)

    def compose(self) -> ComposeResult:
        yield self.view


@asynccontextmanager
async def viewing(
    limit: int = 10_000, size: tuple[int, int] = (60, 12)
) -> AsyncIterator[tuple[JournalView, JournalStore, Pilot[None]]]:
    store = JournalStore(limit)
    app = ViewApp(store)
    async with app.run_test(size=size) as pilot:
        yield app.view, store, pilot


def put(store: JournalStore, *texts: str) -> None:
    store.append(JournalLine(NOW, text) for text in texts)


def shown(view: JournalView) -> list[str]:
    height = view.scrollable_content_region.height
    return [view.render_line(y).text.rstrip() for y in range(height)]


async def came(pilot: Pilot[None], view: JournalView) -> None:
    await until(pilot, lambda: view._end == view.store.end and view._version == view.store.version)  # type: ignore[arg-type]
    await pilot.pause()


async def test_it_follows_the_newest_line() -> None:
    async with viewing() as (view, store, pilot):
        put(store, *(f"line {i}" for i in range(100)))
        await came(pilot, view)
        assert view.following
        assert shown(view)[-1].endswith("line 99")
        put(store, "line 100")
        await came(pilot, view)
        assert shown(view)[-1].endswith("line 100")


async def test_scrolling_up_holds_the_place_and_counts_what_waits() -> None:
    async with viewing() as (view, store, pilot):
        put(store, *(f"line {i}" for i in range(100)))
        await came(pilot, view)
        view.action_page(-0.5)
        await pilot.pause()
        assert not view.following
        before = shown(view)
        put(store, *(f"more {i}" for i in range(30)))
        await came(pilot, view)
        assert shown(view) == before
        assert view.waiting == 30
        view.action_page(1000)
        await pilot.pause()
        assert view.following and view.waiting == 0
        assert shown(view)[-1].endswith("more 29")


async def test_paused_by_hand_it_stays_held_even_at_the_end() -> None:
    async with viewing() as (view, store, pilot):
        put(store, *(f"line {i}" for i in range(100)))
        await came(pilot, view)
        view.toggle_pause()
        put(store, "new")
        await came(pilot, view)
        assert view.paused and view.waiting == 1
        view.action_page(1000)
        await pilot.pause()
        assert not view.following
        view.toggle_pause()
        await pilot.pause()
        assert view.following and shown(view)[-1].endswith("new")


async def test_lines_that_are_dropped_above_do_not_move_what_is_read() -> None:
    async with viewing(limit=100) as (view, store, pilot):
        put(store, *(f"line {i}" for i in range(100)))
        await came(pilot, view)
        view.action_page(-2)
        await pilot.pause()
        before = shown(view)
        put(store, *(f"line {i}" for i in range(100, 120)))
        await came(pilot, view)
        assert store.base > 0
        assert shown(view) == before


async def test_the_cursor_goes_line_by_line_and_below_the_newest_it_follows_again() -> None:
    async with viewing() as (view, store, pilot):
        put(store, *(f"line {i}" for i in range(100)))
        await came(pilot, view)
        view.focus()
        await pilot.press("k")  # where one looks
        assert view.cursor == 99 and not view.following
        put(store, "line 100")
        await came(pilot, view)
        await pilot.press("k", "up")
        assert view.cursor == 97 and view.waiting == 1
        await pilot.press("pageup")
        assert view.cursor == 86 and any("line 86" in line for line in shown(view))
        view.go_to_top()
        await pilot.press("j", "down")
        assert view.cursor == 2
        for _ in range(12):
            await pilot.press("j")
        assert view.cursor == 14 and shown(view)[-1].endswith("line 14")
        view.go_to(100)
        await pilot.press("j")
        assert view.following and view.cursor is None


async def test_the_cursor_stays_on_a_line_that_is_taller_than_the_view_until_its_end_is_seen() -> None:
    async with viewing() as (view, store, pilot):
        put(store, "before", " ".join(f"word{i}" for i in range(150)), "after")
        await came(pilot, view)
        view.wrap = True
        view.go_to(1)
        view.focus()
        await pilot.pause()
        seen: list[str] = []
        while view.cursor == 1:
            seen += shown(view)
            await pilot.press("j")
        assert view.cursor == 2 and any("word149" in line for line in seen)
        await pilot.press("k")
        assert view.cursor == 1 and shown(view)[-1].endswith("word149")
        while view.cursor == 1:
            await pilot.press("k")
        assert view.cursor == 0 and shown(view)[0].endswith("before")


async def test_selected_lines_are_those_that_are_shown_from_the_anchor_to_the_cursor() -> None:
    async with viewing() as (view, store, pilot):
        put(store, *(f"{'odd' if i % 2 else 'even'} {i}" for i in range(50)))
        await came(pilot, view)
        view.focus()
        view.set_filter(parse_filter("odd"))
        view.go_to(31)
        view.select()
        await pilot.press("k", "k")
        assert view.selected_lines() == ["odd 27", "odd 29", "odd 31"]
        view.follow()
        assert not view.following and view.selected_lines()[-1] == "odd 49"
        await pilot.press("escape")
        assert view.selected_lines() == ["odd 49"]


async def test_a_filter_shows_only_matches_and_new_ones_as_they_come() -> None:
    async with viewing() as (view, store, pilot):
        put(store, *(f"{'odd' if i % 2 else 'even'} {i}" for i in range(50)))
        await came(pilot, view)
        view.set_filter(parse_filter("odd"))
        await until(pilot, lambda: not view.scanning)  # type: ignore[arg-type]
        assert view.count == 25
        assert shown(view) and all("odd" in line for line in shown(view))
        put(store, "odd 51", "even 52")
        await came(pilot, view)
        assert view.count == 26
        assert shown(view)[-1].endswith("odd 51")


async def test_a_filter_over_many_lines_is_done_bit_by_bit_newest_first() -> None:
    async with viewing(limit=200_000) as (view, store, pilot):
        store.append(JournalLine(NOW, f"n{i} {'hit' if i % 1000 == 0 else ''}") for i in range(60_000))
        await came(pilot, view)
        view.set_filter(parse_filter("hit"))
        assert view.matches and view.matches[-1] == 59_000
        await until(pilot, lambda: not view.scanning)  # type: ignore[arg-type]
        assert view.matches == list(range(0, 60_000, 1000))


async def test_all_lines_with_matches_marked_and_walked() -> None:
    async with viewing() as (view, store, pilot):
        put(store, *(f"{'needle' if i in (3, 40) else 'hay'} {i}" for i in range(60)))
        await came(pilot, view)
        view.only_matches = False
        view.set_filter(parse_filter("needle"))
        await until(pilot, lambda: not view.scanning)  # type: ignore[arg-type]
        assert view.count == 60 and len(view.matches) == 2
        assert view.next_match(-1) and view.cursor == 40 and view.position == 2
        assert view.next_match(-1) and view.cursor == 3 and view.position == 1
        assert any("needle 3" in line for line in shown(view))
        assert view.next_match(-1) and view.cursor == 40
        assert view.selected_lines() == ["needle 40"]


async def test_a_match_is_told_apart_without_colour_too() -> None:
    async with viewing() as (view, store, pilot):
        put(store, "hay needle hay")
        await came(pilot, view)
        view.set_filter(parse_filter("needle"))
        marked = [one.text for one in view.render_line(0) if one.style is not None and one.style.reverse]
        assert marked == ["needle"]


async def test_without_a_filter_the_next_match_is_the_next_error() -> None:
    async with viewing() as (view, store, pilot):
        put(store, "fine", "ValueError: no", "fine")
        await came(pilot, view)
        assert view.next_match(1)
        assert view.selected_lines() == ["ValueError: no"]


async def test_wrapped_lines_show_all_of_the_text() -> None:
    async with viewing(size=(30, 20)) as (view, store, pilot):
        text = "".join(chr(ord("a") + i % 26) for i in range(100))
        put(store, "short", text)
        await came(pilot, view)
        view.wrap = True
        await pilot.pause()
        assert "".join(line[9:] for line in shown(view) if line).replace("short", "") == text
        view.wrap = False
        await pilot.pause()
        assert shown(view)[1][9:] == text[:21]


async def test_sideways_it_shows_the_rest_of_a_long_line() -> None:
    async with viewing(size=(30, 6)) as (view, store, pilot):
        put(store, "0123456789" * 10)
        await came(pilot, view)
        view.scroll_to(x=10, animate=False, immediate=True)
        await pilot.pause()
        assert shown(view)[0][9:].startswith("0123456789")
        assert view.scroll_offset.x == 10


async def test_a_progress_bar_is_redrawn_in_its_line() -> None:
    async with viewing() as (view, store, pilot):
        put(store, "Loading:  10%|█ | 1/10")
        await came(pilot, view)
        put(store, "Loading:  90%|█ | 9/10")
        await came(pilot, view)
        assert [line[9:] for line in shown(view) if line] == ["Loading:  90%|█ | 9/10"]


@pytest.mark.parametrize("wrap", [False, True])
async def test_every_row_is_exactly_as_wide_as_the_view(wrap: bool) -> None:
    async with viewing(size=(40, 20)) as (view, store, pilot):
        put(store, "", "plain", "表" * 50, "e\u0301" * 50, "👩‍💻 family", "x" * 10_000, "[/usr/bin/x] [red]")
        await came(pilot, view)
        view.wrap = wrap
        await pilot.pause()
        width = view.scrollable_content_region.width
        for y in range(view.scrollable_content_region.height):
            assert view.render_line(y).cell_length == width


ANY = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=120)


@given(ANY, st.integers(0, 150), st.integers(1, 60))
def test_a_cropped_text_fits_its_room_and_is_a_part_of_the_text(text: str, x: int, room: int) -> None:
    shown, skipped = crop(text, x, room)
    assert cell_len(shown) <= room
    if text.isascii():
        assert shown == text[x : x + room] and skipped == x


@given(ANY, st.integers(10, 60))
@settings(max_examples=200)
def test_pieces_of_a_wrapped_text_fit_and_are_together_the_text(text: str, room: int) -> None:
    rows = cut(text, room)
    assert "".join(rows) == text
    assert all(cell_len(piece) <= room for piece in rows)
    assert height(text, room) == len(rows)
