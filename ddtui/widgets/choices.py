"""A list to choose from, for arrows, vim's keys and the mouse; its texts are never markup."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import OptionList


class Choices(OptionList):
    """Textual's OptionList, plain and compact."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "cursor_up", "up", show=False),
        Binding("j", "cursor_down", "down", show=False),
        Binding("g", "first", "first", show=False),
        Binding("G", "last", "last", show=False),
    ]
    DEFAULT_CSS = """
    Choices {
        border: none; padding: 0; background: transparent; scrollbar-size: 1 1;
        &:focus { border: none; }
        & > .option-list--option { padding: 0; }
        & > .option-list--option-highlighted {
            background: $block-cursor-blurred-background; color: $foreground; text-style: none;
        }
        &:focus > .option-list--option-highlighted {
            background: $block-cursor-background; color: $foreground; text-style: none;
        }
        & > .option-list--option-hover { background: $block-cursor-blurred-background; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False, compact=True)
