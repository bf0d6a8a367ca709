"""The journal's view as the operator moves in it: follow, hold, filter, search, jump, unfold."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from functools import partial
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.timer import Timer
from textual.widget import Widget

from ddtui.messages import EarlierStopped, EarlierWanted, JournalChanged
from ddtui.widgets.journal_draw import LONGEST
from ddtui.widgets.journal_filter import Filter
from ddtui.widgets.journal_lines import Level
from ddtui.widgets.journal_sheet import GUTTER, JournalSheet
from ddtui.widgets.journal_store import JournalStore

SOON = 0.1  # seconds from a line to its paint: at most ten paints a second
SLICE = 4000  # lines that are filtered before the loop gets its turn again


class JournalView(JournalSheet, can_focus=True, inherit_bindings=False):
    """A view of a JournalStore: follow, hold, filter, highlight, wrap, scroll sideways, unfold tracebacks.

    Tells the widgets above it about itself with JournalChanged.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "line(-1)", "up", show=False),
        Binding("down,j", "line(1)", "down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "page up", show=False),
        Binding("pagedown,ctrl+f", "page(1)", "page down", show=False),
        Binding("ctrl+u", "page(-0.5)", "half a page up", show=False),
        Binding("ctrl+d", "page(0.5)", "half a page down", show=False),
        Binding("escape", "give_up", "give up", show=False),
    ]

    def __init__(self, store: JournalStore, *, id: str | None = None) -> None:
        super().__init__(store, id=id)
        self.following = True
        self.paused = False  # held by hand: reaching the end does not follow again
        self._version = -1
        self._touched = store.touched
        self._held_at = 0
        self._scan_low: int | None = None  # lines below are still to be filtered
        self._scanning = 0
        self._widest = 0
        self._moving = False
        self._coming: Timer | None = None  # what was told is taken in then

    @property
    def waiting(self) -> int:
        """Lines that came while the view was held."""
        return 0 if self.following else max(0, self._end - max(self._held_at, self._base))

    @property
    def nothing(self) -> str:
        return "" if self.scanning else super().nothing

    @property
    def scanning(self) -> bool:
        """Whether older lines are still being filtered."""
        return self._scan_low is not None

    # keeping up with the store

    def on_mount(self) -> None:
        self.store.listeners.add(self._store_changed)

    def on_unmount(self) -> None:
        self.store.listeners.discard(self._store_changed)

    def _store_changed(self) -> None:
        """Soon: what else comes until then is taken in with it."""
        if self._coming is None and self.screen in self.app.screen_stack:
            self._coming = self.set_timer(SOON, self.sync)

    def sync(self) -> None:
        """Take in what the store has new. Cheap when there is nothing, or while the screen is hidden."""
        store, self._coming = self.store, None
        if store.version == self._version or self.screen not in self.app.screen_stack or not self.size.width:
            return
        self._version = store.version
        if store.base < self._base and self._end > self._base:
            self._take_earlier()
        self._see_touched()
        dropped = self._drop_below(store.base)
        fresh = range(max(self._end, store.base), store.end)
        if fresh and not self.filter.empty:
            self.matches.extend(store.scan(self.filter, fresh))
        self._end = store.end
        for text in store.texts[fresh.start - store.base :]:
            if len(text) > self._widest:
                self._widest = len(text)
        self._lay_out(dropped)

    def _take_earlier(self) -> None:
        """Earlier lines were put before: the same lines stay on the screen."""
        index = self._top_index()
        inside = int(self.scroll_y) - self._row_of(index)
        before = self._base
        earlier = range(self.store.base, before)
        if self.filter.empty:
            index += len(earlier)
        else:
            found = self.store.scan(self.filter, earlier)
            self.matches[:0] = found
            index += len(found) if self.narrowed else len(earlier)
        self._base = self.store.base
        self._tops = [0]
        self._widest = max([self._widest, *map(len, self.store.texts[: len(earlier)])])
        self._lay_out()
        if not self.following:
            self._moving = True
            self._jump(self._row_of(index) + inside)
            self._moving = False

    def _see_touched(self) -> None:
        """Lines that have changed are drawn, and filtered, again."""
        store = self.store
        count = min(store.touched - self._touched, len(store.touches))
        self._touched = store.touched
        for number in set(list(store.touches)[len(store.touches) - count :]):
            if not self._base <= number < self._end or number < store.base:
                continue
            self._forget(number)
            if not self.filter.empty and (self._scan_low is None or number >= self._scan_low):
                at = bisect_left(self.matches, number)
                was = at < len(self.matches) and self.matches[at] == number
                now = bool(store.scan(self.filter, range(number, number + 1)))
                if now and not was:
                    self.matches.insert(at, number)
                elif was and not now:
                    del self.matches[at]
            del self._tops[min(self.count, self.index_of(number)) + 1 :]

    def _drop_below(self, base: int) -> int:
        """Forget lines that the store has dropped. Gives how many rows went away above."""
        if base <= self._base:
            return 0
        self.opened = {number for number in self.opened if number >= base}
        lines = bisect_left(self.matches, base) if self.narrowed else min(base, self._end) - self._base
        del self.matches[: bisect_left(self.matches, base)]
        rows = lines
        if self.tall:
            rows = self._tops[min(lines, len(self._tops) - 1)]
            self._tops = [top - rows for top in self._tops[lines:]] or [0]
        self._base = base
        self._strips.clear()
        return rows

    def _lay_out(self, dropped: int = 0) -> None:
        """Set the virtual size after lines came or went, and keep the place or the end."""
        rows, width = self.count, GUTTER + min(self._widest, LONGEST)
        if self.tall:
            self._extend_tops()
            rows = self._tops[-1]
        if self.wrap:
            width = self.scrollable_content_region.width
        self._moving = True
        try:
            self._set_size(Size(width, rows))
            if self.following:
                self._jump(self.max_scroll_y)
            elif dropped:
                self._jump(self.scroll_y - dropped)
        finally:
            self._moving = False
        self.refresh()
        self.call_after_refresh(self._settle_scrollbar)
        self.post_message(JournalChanged())

    def _set_size(self, size: Size) -> None:
        """The virtual size, without a layout of the whole screen for every line that comes."""
        if self.show_vertical_scrollbar and size.height > self.scrollable_content_region.height:
            self.set_reactive(Widget.virtual_size, size)
            self.vertical_scrollbar.window_virtual_size = size.height
        else:
            self.virtual_size = size

    def watch_show_vertical_scrollbar(self) -> None:
        self._settle_scrollbar()  # it has come into being just now, behind a dialog perhaps

    def _settle_scrollbar(self) -> None:
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = self.scroll_y

    def _jump(self, y: float) -> None:
        y = max(0.0, min(float(y), float(self.max_scroll_y)))
        self.scroll_target_y = y
        self.scroll_y = y

    # follow and hold

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._moving:
            return
        at_end = new_value >= self.max_scroll_y
        if self.following and not at_end:
            self._hold()
        elif not self.following and at_end and not self.paused:
            self.follow()
        elif not self.following:
            self.post_message(JournalChanged())

    def _hold(self) -> None:
        self.following = False
        self._held_at = self._end
        self.post_message(JournalChanged())

    def follow(self) -> None:
        """Go to the newest line and stay there; while lines are selected, only go there."""
        if self.selected_from is not None and self.count:
            self.go_to(self.number_at(self.count - 1))
            return
        self.following, self.paused = True, False
        self.cursor = None
        self._lay_out()

    def toggle_pause(self) -> None:
        """Hold the view still, or follow again."""
        if self.following:
            self.paused = True
            self._hold()
        else:
            self.follow()

    def go_to_top(self) -> None:
        """The oldest line; from there, those before it."""
        self._ask_earlier()
        if self.count:
            self.go_to(self.number_at(0))
            self._jump(0)

    def _ask_earlier(self) -> None:
        """Scrolled past the top: the lines before are wanted."""
        if self.scroll_y == 0:
            if self.following and self._end > self._base:
                self._hold()
            self.post_message(EarlierWanted())

    def on_mouse_scroll_up(self) -> None:
        self._ask_earlier()

    def go_to(self, number: int) -> None:
        """Hold the view at this line, or the next one that is shown."""
        if not self.count:
            return
        self.paused = True
        index = min(self.index_of(number), self.count - 1)
        self._put_cursor(index)
        self._show(self.number_at(index))

    def toggle_fold(self) -> bool:
        """Show all lines of the traceback under the cursor, or only the one that stands for it."""
        number = self.here()
        if number is None or number not in self.store.folded:
            return False
        top = self.number_at(self._top_index())
        self.opened ^= {number}
        self.cursor = number
        if self.following:
            self.paused = True
            self._hold()
        self._forget(number)
        self._restart_rows(top)
        return True

    def here(self) -> int | None:
        """The line under the cursor, else the lowest one on the screen."""
        if self.cursor is not None and self._base <= self.cursor < self._end:
            return self.cursor
        if not self.count:
            return None
        return self.number_at(self._index_at(self._last_row))

    # filter

    def set_filter(self, wanted: Filter) -> None:
        """Show or mark only what matches, newest lines first; older ones are filtered bit by bit."""
        self.filter = wanted
        self.matches = []
        self._strips.clear()
        self._scanning += 1
        self._scan_low = None if wanted.empty else self._end
        self._tops = [0]
        if self._scan_low is not None:
            self._scan_slice(self._scanning)
        self._lay_out()

    def _scan_slice(self, scan: int) -> None:
        if scan != self._scanning or self._scan_low is None:
            return
        deadline = time.perf_counter() + 0.012
        found: list[int] = []
        low = self._scan_low
        while low > self.store.base:
            start = max(self.store.base, low - SLICE)
            found = self.store.scan(self.filter, range(start, low)) + found
            low = start
            if time.perf_counter() > deadline:
                break
        self.matches[:0] = found
        self._scan_low = low if low > self.store.base else None
        if found or self._scan_low is None:
            self._tops = [0]
            self._lay_out(-len(found) if self.narrowed and not self.tall else 0)
        if self._scan_low is not None:
            self.set_timer(0.001, partial(self._scan_slice, scan))  # the screen is painted in between

    def watch_only_matches(self) -> None:
        number = self.number_at(min(self.count - 1, self._top_index())) if self.count else None
        self._tops = [0]
        self._lay_out()
        if number is not None and not self.following:
            self._show(number)

    def watch_wrap(self) -> None:
        self._restart_layout()

    def on_resize(self, event: events.Resize) -> None:
        self._strips.clear()
        if self.wrap:
            self._restart_layout()
        elif self.following:
            self._lay_out()
        self.sync()

    def _restart_layout(self) -> None:
        if not self.is_mounted:
            return
        self._strips.clear()
        self._restart_rows(self.number_at(self._top_index()) if self._top_index() < self.count else None)
        self.scroll_to(x=0, animate=False)

    def _restart_rows(self, top: int | None) -> None:
        """Count all rows again, and keep this line on top."""
        self._tops = [0]
        self._lay_out()
        if not self.following and top is not None:
            self._moving = True
            self._jump(self._row_of(self.index_of(top)))
            self._moving = False

    # moving

    def action_line(self, by: int) -> None:
        """The cursor one line up or down; below the newest line the view follows again."""
        if not self.count or (self.following and by > 0):
            return
        if by < 0:
            self._ask_earlier()
        index = self._seen_cursor()
        if index is None:  # it comes to where one looks
            self._put_cursor(self._index_at(self._last_row if by < 0 else int(self.scroll_y)))
            return
        first, last = self._rows_of(index)
        if (last > self._last_row) if by > 0 else (first < self.scroll_y):
            self._scroll_rows(by)  # the rest of a line that is taller than the view
        elif index + by == self.count:
            self.follow()
        elif index + by >= 0:
            self._put_cursor(index + by)
            first, last = self._rows_of(index + by)
            lowest = last - self.scrollable_content_region.height + 1
            if by > 0 and last > self._last_row:
                self._scroll_rows(min(first, lowest) - self.scroll_y)
            elif by < 0 and first < self.scroll_y:
                self._scroll_rows(max(first, lowest) - self.scroll_y)

    def action_page(self, by: float) -> None:
        if by < 0:
            self._ask_earlier()
        page = max(1, self.scrollable_content_region.height - 1)
        index = self._seen_cursor()
        inside = 0 if index is None else self._row_of(index) - int(self.scroll_y)
        self.scroll_relative(y=int(by * page), animate=False, immediate=True)
        if index is not None and not self.following:
            self._put_cursor(self._index_at(int(self.scroll_y) + inside))

    @property
    def _last_row(self) -> int:
        return int(self.scroll_y) + self.scrollable_content_region.height - 1

    def _seen_cursor(self) -> int | None:
        """The place of the cursor's line, if it is on the screen."""
        if self.cursor is None or not self.count:
            return None
        index = self.index_of(self.cursor)
        if index >= self.count or self.number_at(index) != self.cursor:
            return None
        first, last = self._rows_of(index)
        return index if first <= self._last_row and last >= self.scroll_y else None

    def _rows_of(self, index: int) -> tuple[int, int]:
        """The first and the last row of a line."""
        first = self._row_of(index)
        return first, max(first, self._row_of(index + 1) - 1)

    def _index_at(self, row: int) -> int:
        """The place of the line that has this row."""
        index = bisect_right(self._tops, row) - 1 if self.tall else row
        return max(0, min(index, self.count - 1))

    def _put_cursor(self, index: int) -> None:
        self.cursor = self.number_at(index)
        if self.following:
            self._hold()
        self.refresh()
        self.post_message(JournalChanged())

    def _scroll_rows(self, by: float) -> None:
        self._moving = True
        self._jump(self.scroll_y + by)
        self._moving = False

    def select(self) -> None:
        """Select lines from the cursor on."""
        number = self.here()
        if number is not None:
            self.selected_from = number
            self._put_cursor(self.index_of(number))

    def select_none(self) -> None:
        self.selected_from = None
        self.refresh()
        self.post_message(JournalChanged())

    def action_give_up(self) -> None:
        """Stop reading earlier lines, else select no lines any more."""
        if self.store.reading is not None:
            self.post_message(EarlierStopped())
        else:
            self.select_none()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Escape goes on to the screen where there is nothing to give up."""
        return (
            self.selected_from is not None or self.store.reading is not None if action == "give_up" else True
        )

    def next_match(self, by: int) -> bool:
        """Move the cursor to the next (+1) or previous (-1) match; without a filter, to an error."""
        return self.next_of(self.matches if self.filter.searching else self.errors(), by)

    def next_of(self, numbers: list[int], by: int) -> bool:
        """Move the cursor to the next (+1) or previous (-1) of these lines, round and round."""
        if not numbers or not self.count:
            return False
        if self.cursor is None:
            top = self.number_at(min(self._top_index(), self.count - 1))
            here = len(numbers) if by < 0 else bisect_left(numbers, top)
            index = here - 1 if by < 0 else here
        else:
            index = bisect_right(numbers, self.cursor) if by > 0 else bisect_left(numbers, self.cursor) - 1
        self.go_to(numbers[index % len(numbers)])
        return True

    def errors(self) -> list[int]:
        """The errors that are kept."""
        base, levels = self.store.base, self.store.levels
        return [base + i for i, level in enumerate(levels) if level == Level.ERROR]

    @property
    def position(self) -> int | None:
        """Which match the cursor is on, from 1."""
        if self.cursor is None or not self.filter.searching:
            return None
        index = bisect_left(self.matches, self.cursor)
        found = index < len(self.matches) and self.matches[index] == self.cursor
        return index + 1 if found else None

    def _show(self, number: int) -> None:
        row = self._row_of(self.index_of(number))
        page = self.scrollable_content_region.height
        if not self.scroll_y <= row < self.scroll_y + page:
            self._moving = True
            self._jump(row - page // 2)
            self._moving = False

    def text_of(self, number: int) -> str:
        """A line whole, a traceback with all its lines."""
        return "\n".join((self.store.texts[number - self.store.base], *self.store.folded.get(number, ())))

    def selected_lines(self) -> list[str]:
        """The texts of the selected lines, else of the one under the cursor, else of the lowest one shown."""
        number = self.here()
        if number is None or number < self.store.base:
            return []
        if self.selected_from is None:
            return [self.text_of(number)]
        first, last = max(self.selected.start, self.store.base), self.selected.stop
        shown = range(self.index_of(first), self.index_of(last))
        return [self.text_of(self.number_at(index)) for index in shown]

    def shown_numbers(self) -> list[int]:
        """The lines that can be scrolled to, oldest first."""
        return list(self.matches) if self.narrowed else list(range(self._base, self._end))

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        row = int(self.scroll_y) + offset.y
        if self.count and row <= self._rows_of(self.count - 1)[1]:
            self.paused = self.paused or self.following
            self._put_cursor(self._index_at(row))
