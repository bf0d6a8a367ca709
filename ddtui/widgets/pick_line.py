"""Fields of one line: one of a few words, or several values out of many. For keys and the mouse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget


class PickLine(Widget, can_focus=True):
    """One of a few words: `‹ full grid ›`. Left, right and space change it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l,space", "turn(1)", "next", show=False),
        Binding("left,h", "turn(-1)", "previous", show=False),
    ]
    DEFAULT_CSS = """
    PickLine { height: 1; width: 1fr; background: $panel; }
    PickLine:focus { background: $block-cursor-background; }
    """

    class Changed(Message):
        """Another word was picked."""

    at: reactive[int] = reactive(0)

    def __init__(self, words: Sequence[tuple[str, str]], *, id: str) -> None:
        super().__init__(id=id)
        self._words = list(words)  # value, how it is shown

    @property
    def value(self) -> str:
        return self._words[self.at][0]

    def pick(self, value: str) -> None:
        """Show this one; one that is not known is taken in."""
        values = [word for word, _ in self._words]
        if value not in values:
            self._words.append((value, value))
            values.append(value)
        self.at = values.index(value)

    def render(self) -> Content:
        word = self._words[self.at][1]
        return Content.assemble(("‹ ", "$muted"), word, (" ›", "$muted"))

    def action_turn(self, by: int) -> None:
        self.at = (self.at + by) % len(self._words)

    def watch_at(self) -> None:
        if self.is_mounted:
            self.post_message(self.Changed())

    def on_click(self) -> None:
        self.action_turn(1)


class ValuePicks(Widget, can_focus=True):
    """Several of many values: ` 4 [8] [16] 32`. Left and right go, space picks, `a` all, `n` none."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "go(1)", "next value", show=False),
        Binding("left,h", "go(-1)", "previous value", show=False),
        Binding("space,enter", "pick", "pick", show=False),
        Binding("a", "all", "all", show=False),
        Binding("n", "none", "none", show=False),
    ]
    DEFAULT_CSS = """
    ValuePicks { height: 1; width: 1fr; }
    """

    class Changed(Message):
        """Other values are picked."""

    cursor: reactive[int] = reactive(0)

    def __init__(
        self, values: Iterable[str], *, picked: Iterable[str] = (), now: str | None = None, id: str
    ) -> None:
        super().__init__(id=id)
        self.values = list(values)
        self.picked = set(picked)
        self.now = now  # the value that stands at present: underlined
        self._spans: list[tuple[int, int]] = []

    @property
    def chosen(self) -> tuple[str, ...]:
        """What is picked, in the order shown."""
        return tuple(value for value in self.values if value in self.picked)

    def offer(self, values: Iterable[str], now: str | None) -> None:
        """Show these values; what was picked stays picked."""
        values = list(values)
        if (values, now) != (self.values, self.now):
            self.values, self.now = values, now
            self.cursor = min(self.cursor, len(values) - 1)
            self.refresh()

    def set_picked(self, values: Iterable[str]) -> None:
        self.picked = set(values)
        self._changed()

    def render(self) -> Content:
        parts: list[Content] = []
        self._spans = []
        at = 0
        first = self._first()
        if first:
            parts.append(Content.styled("…", "$muted"))
            at = 1
        for index, value in enumerate(self.values[first:], first):
            on = value in self.picked
            word = f"[{value}]" if on else f" {value} "
            style = "bold $primary" if on else "$muted"
            if value == self.now:
                style += " underline"
            if self.has_focus and index == self.cursor:
                style = (
                    f"bold $foreground on $block-cursor-background{' underline' if value == self.now else ''}"
                )
            if at + cell_len(word) > self.size.width:
                break
            self._spans.append((at, index))
            parts.append(Content.styled(word, style))
            at += cell_len(word)
        return Content("").join(parts)

    def _first(self) -> int:
        """The first value that is shown, so that the cursor's is."""
        widths = [cell_len(value) + 2 for value in self.values]
        first = 0
        while first < self.cursor and (first > 0) + sum(widths[first : self.cursor + 1]) > self.size.width:
            first += 1
        return first

    def action_go(self, by: int) -> None:
        self.cursor = max(0, min(len(self.values) - 1, self.cursor + by))

    def action_pick(self) -> None:
        if self.values:
            self.picked ^= {self.values[self.cursor]}
            self._changed()

    def action_all(self) -> None:
        self.set_picked(self.values)

    def action_none(self) -> None:
        self.set_picked(())

    def _changed(self) -> None:
        self.refresh()
        self.post_message(self.Changed())

    def on_click(self, event: events.Click) -> None:
        for start, index in reversed(self._spans):
            if event.x >= start:
                self.cursor = index
                self.action_pick()
                return

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()
