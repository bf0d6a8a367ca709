"""A pane with a list and a line to search it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Input

from ddtui.widgets.pane import Pane
from ddtui.widgets.row_view import RowView

R = TypeVar("R")


class SearchLine(Input):
    """The search's own line: escape empties and leaves it, enter and down go to the list."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", show=False),
        Binding("down", "submit", "to the list", show=False),
    ]

    class Left(Message):
        """Escape."""

    def action_leave(self) -> None:
        self.value = ""
        self.post_message(self.Left())


class SearchList(Pane, Generic[R]):
    """`Searched` tells what is searched for while it is typed."""

    DEFAULT_CSS = """
    SearchList {
        SearchLine {
            border: none; height: 1; padding: 0 1; background: $panel; display: none; width: 1fr;
            &:focus { border: none; background: $block-cursor-background; }
            &.-shown { display: block; }
        }
    }
    """

    class Searched(Message):
        """Another text is searched for."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(
        self,
        title: str,
        line: Callable[[R, int], Content],
        key: Callable[[R], Hashable],
        *,
        hint: str,
        id: str,
        tab: str = "",
    ) -> None:
        super().__init__(title, id=id, tab=tab)
        self.view: RowView[R] = RowView(line, key, empty="reading …", id=f"{id}-rows")
        self.search = SearchLine(placeholder=hint, compact=True)

    def compose(self) -> ComposeResult:
        yield self.search
        yield self.view

    @property
    def text(self) -> str:
        return self.search.value.strip()

    def focus_first(self) -> None:
        self.view.focus()

    def start(self) -> None:
        """Begin to type."""
        self.search.add_class("-shown")
        self.search.focus()

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Searched(self.text))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._done()

    @on(SearchLine.Left)
    def _left(self, event: SearchLine.Left) -> None:
        event.stop()
        self._done()

    def _done(self) -> None:
        self.search.set_class(bool(self.text), "-shown")
        self.view.focus()
