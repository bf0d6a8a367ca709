"""A text of the host, to be read: the unit with its drop-ins, or the journal of this start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static
from textual.widgets.option_list import Option

from ddtui.screens.base import Dialog
from ddtui.widgets.choices import Choices


class TextDialog(Dialog[None]):
    """Lines with a cursor, which begins at `mark`; y copies the line under it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "copy", "copy"),
        ("q", "dismiss_none", "close"),
    ]
    DEFAULT_CSS = """
    TextDialog {
        & > .box { width: 96%; height: 92%; padding: 0 1; }
        Choices { height: 1fr; }
        #line { height: auto; max-height: 6; border-top: solid $border-blurred; }
    }
    """

    def __init__(self, title: str, lines: Sequence[str], mark: int = 0) -> None:
        super().__init__()
        self._title, self._lines, self._mark = title, lines, mark

    def compose(self) -> ComposeResult:
        with Vertical(classes="box") as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content("y copy   esc close")
            yield Choices()
            yield Static(id="line", markup=False)

    def on_mount(self) -> None:
        lines = self.query_one(Choices)
        lines.set_options(Option(Content(line or " ").truncate(400, ellipsis=True)) for line in self._lines)
        lines.highlighted = self._mark if self._lines else None
        lines.focus()

    def on_option_list_option_highlighted(self, event: Choices.OptionHighlighted) -> None:
        self.query_one("#line", Static).update(Content(self._lines[event.option_index]))

    def action_copy(self) -> None:
        at = self.query_one(Choices).highlighted
        if at is not None:
            self.app.copy_to_clipboard(self._lines[at])
            self.notify("line copied", timeout=2, markup=False)
