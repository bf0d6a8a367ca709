"""A long list, one line a row: only what is seen is drawn, so that it opens at once at any length."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar, Generic, TypeVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

R = TypeVar("R")


class RowView(ScrollView, Generic[R], can_focus=True):
    """`line` draws a row in so many cells; `key` says which row is which, so that the cursor stays on it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "go(-1)", "up", show=False),
        Binding("down,j", "go(1)", "down", show=False),
        Binding("pageup,ctrl+u", "page(-1)", "page up", show=False),
        Binding("pagedown,ctrl+d", "page(1)", "page down", show=False),
        Binding("home,g", "go(-1000000)", "first", show=False),
        Binding("end,G", "go(1000000)", "last", show=False),
        Binding("enter", "choose", "choose", show=False),
    ]
    DEFAULT_CSS = """
    RowView { height: 1fr; background: transparent; scrollbar-size: 1 1; overflow-x: hidden; }
    """

    class Moved(Message):
        """Another row is under the cursor."""

        def __init__(self, view: RowView[object]) -> None:
            super().__init__()
            self._view = view

        @property
        def control(self) -> RowView[object]:
            return self._view

    class Chosen(Message):
        """The row under the cursor was chosen: enter, or a second click."""

        def __init__(self, view: RowView[object]) -> None:
            super().__init__()
            self._view = view

        @property
        def control(self) -> RowView[object]:
            return self._view

    cursor: reactive[int] = reactive(0)

    def __init__(
        self,
        line: Callable[[R, int], Content],
        key: Callable[[R], Hashable],
        *,
        empty: str = "",
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self._line, self._key = line, key
        self._empty = empty
        self.rows: Sequence[R] = ()

    @property
    def row(self) -> R | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None

    def show(self, rows: Sequence[R], *, empty: str | None = None) -> None:
        """Show these from now on; the cursor stays on its row, if that is still there."""
        before = self.row
        self.rows = rows
        if empty is not None:
            self._empty = empty
        self.virtual_size = Size(self.size.width, len(rows))
        keys = {self._key(row): at for at, row in enumerate(rows)}
        at = keys.get(self._key(before), 0) if before is not None else 0
        self.set_reactive(RowView.cursor, at)
        self._reveal()
        self.refresh()
        self._tell()

    def select(self, key: Hashable) -> None:
        """Put the cursor on the row of that key, if it is here."""
        for at, row in enumerate(self.rows):
            if self._key(row) == key:
                self.cursor = at
                return

    def redraw(self) -> None:
        """What the rows are drawn from has changed."""
        self.refresh()

    def validate_cursor(self, cursor: int) -> int:
        return max(0, min(cursor, len(self.rows) - 1))

    def watch_cursor(self) -> None:
        self._reveal()
        self.refresh()
        self._tell()

    def _tell(self) -> None:
        if self.is_mounted:
            self.post_message(self.Moved(self))  # type: ignore[arg-type]

    def _reveal(self) -> None:
        if self.is_mounted:
            self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)

    def action_go(self, by: int) -> None:
        self.cursor += by

    def action_page(self, by: int) -> None:
        self.cursor += by * max(1, self.size.height - 1)

    def action_choose(self) -> None:
        if self.row is not None:
            self.post_message(self.Chosen(self))  # type: ignore[arg-type]

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        at = self.scroll_offset.y + offset.y
        if at < len(self.rows):
            self.cursor = at
            if event.chain > 1:
                self.action_choose()

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self.rows))
        self._reveal()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        at = self.scroll_offset.y + y
        if at >= len(self.rows):
            if not self.rows and y == 0 and self._empty:
                return self._strip(Content.styled(self._empty, "$muted"), width)
            return Strip.blank(width, self.rich_style)
        line = self._line(self.rows[at], width)
        if at == self.cursor:
            ground = "$block-cursor-background" if self.has_focus else "$block-cursor-blurred-background"
            line = line.pad_right(max(0, width - line.cell_length)).stylize(f"on {ground}")
        return self._strip(line.truncate(width), width)

    def _strip(self, line: Content, width: int) -> Strip:
        strips = Visual.to_strips(self, line, width, 1, self.visual_style, pad=True)
        return strips[0] if strips else Strip.blank(width, self.rich_style)
