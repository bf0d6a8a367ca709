"""The terminal is too small to draw anything: one sentence, until it is large enough again.

It covers what is open, which therefore is not laid out for a size that nobody can read, and keeps its focus.
"""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.widgets import Static

LEAST = (60, 15)  # columns and rows


def fits(size: Size) -> bool:
    """Whether the console can be drawn in a terminal of this size."""
    return size.width >= LEAST[0] and size.height >= LEAST[1]


class TooSmall(ModalScreen[None]):
    """Goes by itself."""

    BINDINGS: ClassVar[list[BindingType]] = [("q,ctrl+q", "app.quit", "quit")]

    def compose(self) -> ComposeResult:
        yield Static(markup=False)

    def on_resize(self, event: events.Resize) -> None:
        is_, needed = (f"{columns}x{rows}" for columns, rows in (event.size, LEAST))
        self.query_one(Static).update(Content(f"This terminal is {is_}; ddtui needs {needed} or more."))
        self.on_screen_resume()

    def on_screen_resume(self) -> None:
        if fits(self.app.size) and self.app.screen is self:
            self.dismiss()
