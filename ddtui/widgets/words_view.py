"""Text that changes often: drawn again only when it differs, laid out again only when its size does."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static


class Words(Static):
    """A Static whose content is never markup."""

    DEFAULT_CSS = "Words { height: auto; }"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes, markup=False)
        self._shown = Content("")

    def show(self, content: Content) -> None:
        before = self._shown
        if content.is_same(before):  # == would not see that a colour has changed
            return
        self._shown = content
        lines = content.plain.split("\n")
        resized = (
            content.cell_length != before.cell_length
            if len(lines) == 1 and "\n" not in before.plain
            else lines != before.plain.split("\n")
        )
        self.update(content, layout=resized)
