"""A pane: a bordered part of a screen with a title, and a state in its lower border."""

from __future__ import annotations

from textual.containers import Vertical
from textual.content import Content


class Pane(Vertical):
    """Bordered, titled; the border lights up while something in it has the focus. Titles are never markup."""

    ALLOW_MAXIMIZE = True
    DEFAULT_CSS = """
    Pane {
        border: round $border-blurred;
        border-title-color: $foreground;
        border-title-style: bold;
        border-subtitle-color: $muted;
        padding: 0 1;
        background: $surface;
        &:focus-within {
            border: round $border;
            border-title-color: $primary;
        }
        &:focus-within:nocolor { border-title-style: bold reverse; }
        &.-bad { border-subtitle-color: $error; }
    }
    """

    def __init__(self, title: str, *, id: str, tab: str = "") -> None:
        super().__init__(id=id)
        self.tab = tab or title  # its name where panes are tabs
        self._title = self._state = ""
        self.set_title(title)

    def set_title(self, text: str) -> None:
        if text != self._title:
            self._title = text
            self.border_title = Content(text)

    def set_state(self, text: str, *, bad: bool = False) -> None:
        """What stands in the lower border."""
        self.set_class(bad, "-bad")
        if text != self._state:
            self._state = text
            self.border_subtitle = Content(text) if text else None

    @property
    def focusable_within(self) -> bool:
        """Whether anything in here takes the focus."""
        return any(widget.can_focus for widget in self.query("*"))

    def focus_first(self) -> None:
        """Give the focus to the first thing in here that takes it."""
        for widget in self.query("*"):
            if widget.focusable:
                widget.focus()
                return
