"""The knobs across the layers: what the unit says, what runs, what the server answers, what it will be."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from ddtui.actions.action import Where
from ddtui.bindings import bindings
from ddtui.messages import KnobEdit, KnobNudge
from ddtui.tuning.model import KnobRow
from ddtui.view import View, next_value
from ddtui.widgets.cells import cut

HEADS = ("in unit", "running", "server", "next")
BRIEF = ("unit", "runs", "server", "next")


class KnobTable(Widget, can_focus=True):
    """One line a knob under a line of heads; the cursor is on a knob."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Where.KNOBS),
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
    ]
    DEFAULT_CSS = """
    KnobTable { height: auto; }
    """

    view: reactive[View | None] = reactive(None)
    cursor: reactive[int] = reactive(0)

    class CursorMoved(Message):
        """Another knob is under the cursor."""

    @property
    def rows(self) -> tuple[KnobRow, ...]:
        return self.view.tune.knobs if self.view is not None else ()

    @property
    def knob(self) -> str | None:
        """The name of the knob under the cursor."""
        return self.rows[self.cursor].name if self.rows else None

    def select(self, name: str) -> None:
        """Put the cursor on this knob, if it is here."""
        for index, row in enumerate(self.rows):
            if row.name == name:
                self.cursor = index

    def watch_view(self, before: View | None, view: View | None) -> None:
        if before is None or view is None or len(before.tune.knobs) != len(view.tune.knobs):
            self.refresh(layout=True)

    def validate_cursor(self, cursor: int) -> int:
        return max(0, min(cursor, len(self.rows) - 1))

    def watch_cursor(self) -> None:
        self.post_message(self.CursorMoved())

    def action_move(self, by: int) -> None:
        self.cursor += by

    def action_edit(self) -> None:
        if self.knob:
            self.post_message(KnobEdit(self.knob))

    def action_raise(self) -> None:
        self._nudge(1)

    def action_lower(self) -> None:
        self._nudge(-1)

    def _nudge(self, by: int) -> None:
        if self.knob:
            self.post_message(KnobNudge(self.knob, by))

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None or not 0 < offset.y <= len(self.rows):
            return
        if self.cursor == offset.y - 1 and event.chain > 1:
            self.action_edit()
        self.cursor = offset.y - 1

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 1 + max(1, len(self.rows))

    def render(self) -> Content:
        if self.view is None or not self.rows:
            return Content.styled("no knobs read yet", "$muted")
        return table(self.view, self.size.width, self.cursor, focused=self.has_focus)


def table(view: View, width: int, cursor: int, *, focused: bool) -> Content:
    """The table in `width` cells."""
    rows = view.tune.knobs
    name = max(4, *(len(row.name) for row in rows))
    column = max(5, min(12, (width - name) // len(HEADS) - 1))
    name = max(4, min(name, width - (column + 1) * len(HEADS)))
    heads = HEADS if column >= max(map(len, HEADS)) else BRIEF
    head = "knob".ljust(name) + "".join(f" {cut(head, column).rjust(column)}" for head in heads)
    lines = [Content.styled(cut(head, width), "$muted")]
    for index, row in enumerate(rows):
        here = index == cursor
        values = (row.in_unit, row.running, row.server)
        known = {value for value in values if value is not None}
        differ = len(known) > 1 or (row.in_unit is not None) != (row.running is not None)
        parts: list[Content | str | tuple[str, str]] = [
            (cut(row.name, name).ljust(name), "bold" if here else "")
        ]
        for value in values:
            colour = "$muted" if value is None else ("$warning" if differ else "$foreground")
            parts += [" ", (cut("–" if value is None else value or "on", column).rjust(column), colour)]
        parts += [" ", _next(view, row, column)]
        line = Content.assemble(*parts)
        if here:
            line = line.pad_right(max(0, width - line.cell_length)).stylize(
                "on $block-cursor-background" if focused else "on $block-cursor-blurred-background"
            )
        lines.append(line.truncate(width))
    return Content("\n").join(lines)


def _next(view: View, row: KnobRow, column: int) -> tuple[str, str]:
    value = next_value(view, row)
    text = "–" if value is None else value or "on"
    if row.name in view.turns:
        framed = f"[ {text} ]" if len(text) + 4 <= column else f"[{cut(text, column - 2)}]"
        return framed.rjust(column), "bold $accent"
    return cut(text, column).rjust(column), "$muted"
