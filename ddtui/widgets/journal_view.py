"""The journal as lines on the screen: draws only what is visible, from a store that it does not own."""

from __future__ import annotations

import re
import time
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import ClassVar

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from ddtui.messages import JournalChanged
from ddtui.widgets.journal_store import Filter, JournalStore, Level

LONGEST = 4096  # characters of a line that are drawn
GUTTER = 9  # "HH:MM:SS "
SLICE = 4000  # lines that are filtered before the loop gets its turn again
LEVEL_CLASSES = {
    Level.DEBUG: "journal--debug",
    Level.INFO: "journal--info",
    Level.WARNING: "journal--warning",
    Level.ERROR: "journal--error",
    Level.MARK: "journal--mark",
}


class JournalView(ScrollView, can_focus=True, inherit_bindings=False):
    """A view of a JournalStore: follow, hold, filter, highlight, wrap, scroll sideways.

    Tells the widgets above it about itself with JournalChanged.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "line(-1)", "up", show=False),
        Binding("down,j", "line(1)", "down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "page up", show=False),
        Binding("pagedown,ctrl+f", "page(1)", "page down", show=False),
        Binding("ctrl+u", "page(-0.5)", "half a page up", show=False),
        Binding("ctrl+d", "page(0.5)", "half a page down", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "journal--time",
        "journal--match",
        "journal--cursor",
        *LEVEL_CLASSES.values(),
    }
    DEFAULT_CSS = """
    JournalView {
        background: transparent;
        scrollbar-size: 0 1;
        & > .journal--time { color: $faint; }
        & > .journal--debug { color: $muted; }
        & > .journal--info { color: $foreground; }
        & > .journal--warning { color: $warning; }
        & > .journal--error { color: $error; }
        & > .journal--mark { color: $accent; text-style: bold; }
        & > .journal--match { background: $match 35%; text-style: bold; }
        & > .journal--cursor { background: $block-cursor-blurred-background; }
        &:focus > .journal--cursor { background: $block-cursor-background; }
    }
    """

    wrap: reactive[bool] = reactive(False)
    only_matches: reactive[bool] = reactive(True)

    def __init__(self, store: JournalStore, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.store = store
        self.following = True
        self.paused = False  # held by hand: reaching the end does not follow again
        self.filter = Filter()
        self.matches: list[int] = []  # ascending; all lines when the filter is empty: not used then
        self.cursor: int | None = None
        self._version = -1
        self._base = 0
        self._end = 0  # lines from here on have not been seen yet
        self._held_at = 0
        self._scan_low: int | None = None  # lines below are still to be filtered
        self._scanning = 0
        self._widest = 0
        self._tops: list[int] = [0]  # first row of each line, when wrapped
        self._strips: dict[tuple[int, int, int, int], Strip] = {}
        self._moving = False

    # what is shown

    @property
    def narrowed(self) -> bool:
        """Whether only some lines are shown."""
        return self.only_matches and not self.filter.empty

    @property
    def count(self) -> int:
        """How many lines are shown."""
        return len(self.matches) if self.narrowed else self._end - self._base

    @property
    def waiting(self) -> int:
        """Lines that came while the view was held."""
        return 0 if self.following else max(0, self._end - max(self._held_at, self._base))

    @property
    def scanning(self) -> bool:
        """Whether older lines are still being filtered."""
        return self._scan_low is not None

    def number_at(self, index: int) -> int:
        """The line shown at this place."""
        return self.matches[index] if self.narrowed else self._base + index

    def index_of(self, number: int) -> int:
        """The place of this line, or of the next one that is shown."""
        return bisect_left(self.matches, number) if self.narrowed else max(0, number - self._base)

    # keeping up with the store

    def on_mount(self) -> None:
        self.set_interval(0.1, self.sync)

    def sync(self) -> None:
        """Take in what the store has new. Cheap when there is nothing, or while the screen is hidden."""
        store = self.store
        if store.version == self._version or not self.screen.is_active or not self.size.width:
            return
        self._version = store.version
        if self._base <= store.rewritten < self._end and store.rewritten >= store.base:
            self._end = store.rewritten
            if self.matches and self.matches[-1] >= store.rewritten:
                self.matches.pop()
            del self._tops[self.count + 1 :]
            self._forget(store.rewritten)
        dropped = self._drop_below(store.base)
        fresh = range(max(self._end, store.base), store.end)
        if fresh and not self.filter.empty:
            self.matches.extend(store.scan(self.filter, fresh))
        self._end = store.end
        for text in store.texts[fresh.start - store.base :]:
            if len(text) > self._widest:
                self._widest = len(text)
        self._lay_out(dropped)

    def _drop_below(self, base: int) -> int:
        """Forget lines that the store has dropped. Gives how many rows went away above."""
        if base <= self._base:
            return 0
        lines = bisect_left(self.matches, base) if self.narrowed else min(base, self._end) - self._base
        del self.matches[: bisect_left(self.matches, base)]
        rows = lines
        if self.wrap:
            rows = self._tops[min(lines, len(self._tops) - 1)]
            self._tops = [top - rows for top in self._tops[lines:]] or [0]
        self._base = base
        self._strips.clear()
        return rows

    def _lay_out(self, dropped: int = 0) -> None:
        """Set the virtual size after lines came or went, and keep the place or the end."""
        if self.wrap:
            self._extend_tops()
            rows, width = self._tops[-1], self.scrollable_content_region.width
        else:
            rows, width = self.count, GUTTER + min(self._widest, LONGEST)
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
        self.call_after_refresh(self._settle_scrollbar)  # it may have come into being just now
        self.post_message(JournalChanged())

    def _set_size(self, size: Size) -> None:
        """The virtual size, without a layout of the whole screen for every line that comes."""
        if self.show_vertical_scrollbar and size.height > self.scrollable_content_region.height:
            self.set_reactive(Widget.virtual_size, size)
            self.vertical_scrollbar.window_virtual_size = size.height
        else:
            self.virtual_size = size

    def _settle_scrollbar(self) -> None:
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = self.scroll_y

    def _jump(self, y: float) -> None:
        y = max(0.0, min(float(y), float(self.max_scroll_y)))
        self.scroll_target_y = y
        self.scroll_y = y

    def _extend_tops(self) -> None:
        room = self._wrap_width
        base, texts = self.store.base, self.store.texts
        have = len(self._tops) - 1
        heights = (_height(texts[self.number_at(i) - base], room) for i in range(have, self.count))
        last = self._tops.pop()
        self._tops.extend(accumulate(heights, initial=last))

    @property
    def _wrap_width(self) -> int:
        return max(10, self.scrollable_content_region.width - GUTTER)

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

    def _hold(self) -> None:
        self.following = False
        self._held_at = self._end
        self.post_message(JournalChanged())

    def follow(self) -> None:
        """Go to the newest line and stay there."""
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
        self.paused = True
        if self.following:
            self._hold()
        self._jump(0)

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
        deadline = time.perf_counter() + 0.005
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
        self._tops = [0]
        self._lay_out(-len(found) if self.narrowed and not self.wrap else 0)
        if self._scan_low is not None:
            self.call_later(self._scan_slice, scan)

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

    def _restart_layout(self) -> None:
        if not self.is_mounted:
            return
        index = self._top_index()
        self._tops = [0]
        self._strips.clear()
        self._lay_out()
        if not self.following:
            self._jump(self._row_of(index))
        self.scroll_to(x=0, animate=False)

    # moving

    def action_line(self, by: int) -> None:
        self.scroll_relative(y=by, animate=False, immediate=True)

    def action_page(self, by: float) -> None:
        height = max(1, self.scrollable_content_region.height - 1)
        self.scroll_relative(y=int(by * height), animate=False, immediate=True)

    def next_match(self, by: int) -> bool:
        """Move the cursor to the next (+1) or previous (-1) match; without a filter, to an error."""
        numbers = self.matches if self.filter.searching else self._errors()
        if not numbers:
            return False
        if self.cursor is None:
            here = len(numbers) if by < 0 else bisect_left(numbers, self.number_at(self._top_index()))
            index = here - 1 if by < 0 else here
        else:
            index = bisect_right(numbers, self.cursor) if by > 0 else bisect_left(numbers, self.cursor) - 1
        self.cursor = numbers[index % len(numbers)]
        if self.following:
            self._hold()
        self.paused = True
        self._show(self.cursor)
        self.refresh()
        return True

    def _errors(self) -> list[int]:
        levels, base = self.store.levels, self.store.base
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
        height = self.scrollable_content_region.height
        if not self.scroll_y <= row < self.scroll_y + height:
            self._moving = True
            self._jump(row - height // 2)
            self._moving = False

    def _row_of(self, index: int) -> int:
        return self._tops[min(index, len(self._tops) - 1)] if self.wrap else index

    def _top_index(self) -> int:
        row = int(self.scroll_y)
        return max(0, bisect_right(self._tops, row) - 1) if self.wrap else row

    def line_under_cursor(self) -> str | None:
        """The text of the line under the cursor, else of the newest one."""
        number = self.cursor if self.cursor is not None else self._end - 1
        if not self.store.base <= number < self.store.end:
            return None
        return self.store.texts[number - self.store.base]

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        row = int(self.scroll_y) + offset.y
        index = max(0, bisect_right(self._tops, row) - 1) if self.wrap else row
        if index < self.count:
            self.cursor = self.number_at(index)
            if self.following:
                self.paused = True
                self._hold()
            self.refresh()

    # drawing

    def _forget(self, number: int) -> None:
        for key in [key for key in self._strips if key[0] == number]:
            del self._strips[key]

    def notify_style_update(self) -> None:
        self._strips.clear()
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        if len(self._strips) > 4000:
            self._strips.clear()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        scroll_x, scroll_y = self.scroll_offset
        width = self.scrollable_content_region.width
        row = scroll_y + y
        if self.wrap:
            index = bisect_right(self._tops, row) - 1
            part = row - self._tops[index] if index < self.count else 0
            scroll_x = 0
        else:
            index, part = row, -1
        background = self.rich_style
        if not 0 <= index < self.count:
            return Strip.blank(width, background)
        number = self.number_at(index)
        key = (number, scroll_x, width, part)
        if number == self.cursor:
            return self._line(number, scroll_x, width, part)
        strip = self._strips.get(key)
        if strip is None:
            strip = self._strips[key] = self._line(number, scroll_x, width, part)
        return strip

    def _line(self, number: int, x: int, width: int, part: int) -> Strip:
        store = self.store
        text = store.texts[number - store.base]
        level = Level(store.levels[number - store.base])
        if len(text) > LONGEST:
            text = text[: LONGEST - 1] + "…"
        style = self.get_component_rich_style(LEVEL_CLASSES[level], partial=True)
        if number == self.cursor:
            style += self.get_component_rich_style("journal--cursor", partial=True)
        base = self.rich_style + style
        stamp = store.stamp(number) + " "
        if part > 0:
            stamp = " " * GUTTER
        room = max(0, width - GUTTER)
        if part < 0:
            shown, skipped = _crop(text, x, room)
        else:
            pieces = _pieces(text, self._wrap_width)
            shown = pieces[part] if part < len(pieces) else ""
            skipped = sum(len(piece) for piece in pieces[:part])
        time_style = base + self.get_component_rich_style("journal--time", partial=True)
        segments = [Segment(stamp, time_style)]
        segments += self._highlighted(text, shown, skipped, base)
        used = GUTTER + cell_len(shown)
        if used < width:
            segments.append(Segment(" " * (width - used), base))
        return Strip(segments, max(used, width)).crop(0, width)

    def _batch(self, shown: str, base: Style) -> list[Segment]:
        """A `Decode batch` or `Prefill batch` line: names dim, numbers bright."""
        muted = base + self.get_component_rich_style("journal--debug", partial=True)
        segments: list[Segment] = []
        at = 0
        for found in _VALUE.finditer(shown):
            segments += [
                Segment(shown[at : found.start() + 2], muted),
                Segment(shown[found.start() + 2 : found.end()], base),
            ]
            at = found.end()
        segments.append(Segment(shown[at:], muted))
        return segments

    def _highlighted(self, text: str, shown: str, skipped: int, base: Style) -> list[Segment]:
        if not self.filter.searching:
            return self._batch(shown, base) if " batch, " in text else [Segment(shown, base)]
        match = base + self.get_component_rich_style("journal--match", partial=True)
        segments: list[Segment] = []
        at = 0
        for start, end in sorted(self.filter.spans(text)):
            start, end = max(at, start - skipped), min(len(shown), end - skipped)
            if end <= start:
                continue
            segments += [Segment(shown[at:start], base), Segment(shown[start:end], match)]
            at = end
        segments.append(Segment(shown[at:], base))
        return segments


_VALUE = re.compile(r": -?[\d.]+")  # of a batch line: `gen throughput (token/s): 738.18`


def _crop(text: str, x: int, room: int) -> tuple[str, int]:
    """The text in `room` cells from cell `x`, and how many characters are before it."""
    if text.isascii():
        return text[x : x + room], x
    before = set_cell_size(text, x) if x else ""
    skipped = len(before.rstrip(" ")) if x and not text.startswith(before) else len(before)
    rest = text[skipped:]
    return (rest if cell_len(rest) <= room else set_cell_size(rest, room)), skipped


def _height(text: str, room: int) -> int:
    if text.isascii():
        return max(1, -(-min(len(text), LONGEST) // room))
    return len(_pieces(text[:LONGEST], room))


def _pieces(text: str, room: int) -> list[str]:
    """The text cut into rows of at most `room` cells; at least one."""
    if text.isascii():
        return [text[i : i + room] for i in range(0, len(text), room)] or [""]
    return chop_cells(text, room) or [""]
