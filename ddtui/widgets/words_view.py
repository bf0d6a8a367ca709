"""Text that changes often: drawn again only when it differs, laid out again only when its size does."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.content import Content
from textual.widgets import Static

if TYPE_CHECKING:
    from textual.css.styles import RulesMap


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
        self.update(content, layout=self._resized(before, content))

    def _resized(self, before: Content, content: Content) -> bool:
        """Whether it takes another size than before: a layout is one of the whole screen."""
        width = self.content_size.width
        if width and not self.styles.is_auto_width:
            rules = cast("RulesMap", self.styles)
            return before.get_height(rules, width) != content.get_height(rules, width)
        old, new = before.plain.split("\n"), content.plain.split("\n")
        if len(old) == len(new) == 1:
            return content.cell_length != before.cell_length
        return old != new
