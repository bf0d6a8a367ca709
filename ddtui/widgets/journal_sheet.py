"""The journal as rows on the screen: draws only what is visible, from a store that it does not own."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ddtui.widgets.cells import cut
from ddtui.widgets.journal_draw import LONGEST, colours, crop, height, painted, pieces, values
from ddtui.widgets.journal_filter import Filter
from ddtui.widgets.journal_lines import Level
from ddtui.widgets.journal_store import JournalStore

MOST_STRIPS = 500  # drawn rows that are kept: each is some forty objects, which the collector walks
GUTTER = 9  # "HH:MM:SS "
LEVEL_CLASSES = {
    Level.DEBUG: "journal--debug",
    Level.INFO: "journal--info",
    Level.WARNING: "journal--warning",
    Level.ERROR: "journal--error",
    Level.MARK: "journal--mark",
}


class JournalSheet(ScrollView):
    """Which lines are shown, how many rows each takes, and how they look."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "journal--time",
        "journal--match",
        "journal--cursor",
        "journal--bookmark",
        *LEVEL_CLASSES.values(),
    }
    DEFAULT_CSS = """
    JournalSheet {
        background: transparent;
        scrollbar-size: 0 1;
        & > .journal--time { color: $faint; }
        & > .journal--debug { color: $muted; }
        & > .journal--info { color: $foreground; }
        & > .journal--warning { color: $warning; }
        & > .journal--error { color: $error; }
        & > .journal--mark { color: $accent; text-style: bold; }
        & > .journal--bookmark { color: $accent; text-style: bold reverse; }
        & > .journal--match { color: $match; text-style: bold reverse; }
        & > .journal--cursor { background: $block-cursor-blurred-background; }
        &:focus > .journal--cursor { background: $block-cursor-background; }
    }
    """

    wrap: reactive[bool] = reactive(False)
    only_matches: reactive[bool] = reactive(True)

    def __init__(self, store: JournalStore, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.store = store
        self.filter = Filter()
        self.matches: list[int] = []  # ascending; all lines when the filter is empty: not used then
        self.cursor: int | None = None
        self.selected_from: int | None = None  # lines from here to the cursor are selected
        self.opened: set[int] = set()  # tracebacks that are shown with all their lines
        self._base = 0
        self._end = 0  # lines from here on have not been seen yet
        self._tops: list[int] = [0]  # first row of each line, when lines may take several
        self._strips: dict[tuple[int, int, int, int], Strip] = {}
        self._styles: dict[str, Style] = {}  # of this paint

    # what is shown

    @property
    def narrowed(self) -> bool:
        """Whether only some lines are shown."""
        return self.only_matches and not self.filter.empty

    @property
    def nothing(self) -> str:
        """Why no line is shown."""
        total = self._end - self._base
        return (
            f"none of {total:,} lines: / changes the filter, v the level" if self.narrowed and total else ""
        )

    @property
    def count(self) -> int:
        """How many lines are shown."""
        return len(self.matches) if self.narrowed else self._end - self._base

    def number_at(self, index: int) -> int:
        """The line shown at this place."""
        return self.matches[index] if self.narrowed else self._base + index

    def index_of(self, number: int) -> int:
        """The place of this line, or of the next one that is shown."""
        return bisect_left(self.matches, number) if self.narrowed else max(0, number - self._base)

    @property
    def selected(self) -> range:
        """The line under the cursor, or those from `selected_from` to it."""
        if self.cursor is None:
            return range(0)
        other = self.cursor if self.selected_from is None else self.selected_from
        return range(min(self.cursor, other), max(self.cursor, other) + 1)

    # rows

    @property
    def tall(self) -> bool:
        """Whether a line may take several rows."""
        return self.wrap or bool(self.opened)

    def _extend_tops(self) -> None:
        room, wrap, opened = self._wrap_width, self.wrap, self.opened
        base, texts, folded = self.store.base, self.store.texts, self.store.folded

        def rows(number: int) -> int:
            own = height(texts[number - base], room) if wrap else 1
            if number not in opened:
                return own
            return own + sum(height(text, room) if wrap else 1 for text in folded.get(number, ()))

        have = len(self._tops) - 1
        heights = (rows(self.number_at(i)) for i in range(have, self.count))
        last = self._tops.pop()
        self._tops.extend(accumulate(heights, initial=last))

    @property
    def _wrap_width(self) -> int:
        return max(10, self.scrollable_content_region.width - GUTTER)

    def _row_of(self, index: int) -> int:
        return self._tops[min(index, len(self._tops) - 1)] if self.tall else index

    def _top_index(self) -> int:
        row = int(self.scroll_y)
        return max(0, bisect_right(self._tops, row) - 1) if self.tall else row

    # drawing

    def _forget(self, number: int) -> None:
        for key in [key for key in self._strips if key[0] == number]:
            del self._strips[key]

    def notify_style_update(self) -> None:
        self._strips.clear()
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        if len(self._strips) > MOST_STRIPS:
            self._strips.clear()
        self._styles.clear()
        # straight from the rows that are kept, with their filtered forms: Textual would make each anew
        filters, ground = self.get_line_filters(), self.background_colors[1]
        strips = []
        for y in crop.line_range:
            strip = self._strip(y)
            for one in filters:
                strip = strip.apply_filter(one, ground)
            strips.append(strip)
        if crop.column_span != (0, self.size.width):
            strips = [strip.crop(*crop.column_span) for strip in strips]
        return strips

    def render_line(self, y: int) -> Strip:
        return self._strip(y).crop(0, self.scrollable_content_region.width)

    def _strip(self, y: int) -> Strip:
        """A row as wide as the widget, also where its scrollbar lies on it."""
        scroll_x, scroll_y = self.scroll_offset
        width = self.scrollable_content_region.width
        row = scroll_y + y
        if self.tall:
            index = bisect_right(self._tops, row) - 1
            part = row - self._tops[index] if index < self.count else 0
        else:
            index, part = row, 0
        if self.wrap:
            scroll_x = 0
        if not 0 <= index < self.count:
            words = self.nothing if y == 0 and self.count == 0 else ""
            text = Segment(cut(words, width), self._ground + self._look("journal--time"))
            return Strip([text]).extend_cell_length(self.size.width, self._ground)
        number = self.number_at(index)
        key = (number, scroll_x, width, part)
        if number in self.selected:
            return self._line(number, scroll_x, width, part).extend_cell_length(self.size.width)
        strip = self._strips.get(key)
        if strip is None:
            strip = self._line(number, scroll_x, width, part).extend_cell_length(self.size.width)
            self._strips[key] = strip
        return strip

    def _look(self, name: str) -> Style:
        """A component's style, looked up once a paint."""
        known = self._styles.get(name)
        if known is None:
            known = self._styles[name] = self.get_component_rich_style(name, partial=True)
        return known

    @property
    def _ground(self) -> Style:
        known = self._styles.get("")
        if known is None:
            known = self._styles[""] = self.rich_style
        return known

    def _line(self, number: int, x: int, width: int, part: int) -> Strip:
        store = self.store
        level = Level(store.levels[number - store.base])
        style = self._look(LEVEL_CLASSES[level])
        if number in self.selected:
            style += self._look("journal--cursor")
        base = self._ground + style
        text, shown, skipped, own = self._row(number, x, max(0, width - GUTTER), part)
        stamp = store.stamp(number) + " " if part == 0 else " " * GUTTER
        mark = "journal--bookmark" if number in store.bookmarks and part == 0 else "journal--time"
        segments = [Segment(stamp, base + self._look(mark))]
        layers = colours(store.spans.get(number, ())) if own else []
        if self.filter.searching:
            match = self._look("journal--match")
            layers += [(start, end, match) for start, end in self.filter.spans(text)]
        elif " batch, " in text and not layers:
            layers = values(text, base)
            base += self._look("journal--debug")
        segments += painted(shown, skipped, base, layers)
        used = GUTTER + cell_len(shown)
        body = store.folded.get(number)
        if body and part == 0:
            sign = f" {'▾' if number in self.opened else '▸'} {len(body)} lines"
            used = min(used, max(GUTTER, width - len(sign)))
            segments = Segment.adjust_line_length(segments, used)
            muted = self._look("journal--time")
            segments.append(Segment(sign, self._ground + muted))
            used += len(sign)
        if used < width:
            segments.append(Segment(" " * (width - used), base))
        return Strip(segments, max(used, width)).crop(0, width)

    def _row(self, number: int, x: int, room: int, part: int) -> tuple[str, str, int, bool]:
        """A row: the text it is of, what is shown of it, from which character on, and whether that text is
        the line's own (not its traceback's)."""
        store = self.store
        own = True
        text = _cut(store.texts[number - store.base])
        rows = iter(store.folded.get(number, ()) if number in self.opened else ())
        while self.wrap:
            rows_of_text = pieces(text, self._wrap_width)
            if part < len(rows_of_text):
                return text, rows_of_text[part], sum(map(len, rows_of_text[:part])), own
            part -= len(rows_of_text)
            following = next(rows, None)
            if following is None:
                return text, "", 0, own
            text, own = _cut(following), False
        for _ in range(part):
            text, own = _cut(next(rows, "")), False
        return text, *crop(text, x, room), own


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
