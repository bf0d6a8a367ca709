"""Panes side by side where there is room, and behind tabs where there is not."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from ddtui.messages import PaneChosen
from ddtui.widgets.pane import Pane


class TabLine(Widget):
    """One line of tab names; the current one stands out by colour and by brackets."""

    DEFAULT_CSS = """
    TabLine { height: 1; background: $background; padding: 0 1; }
    """

    current: reactive[int] = reactive(0)

    def __init__(self, names: list[tuple[str, str]]) -> None:
        super().__init__()
        self._names = names  # pane id, tab name

    def render(self) -> Content:
        parts: list[Content | str] = []
        for index, (_, name) in enumerate(self._names):
            here = index == self.current
            parts.append(
                Content.styled(f"[{name}]" if here else f" {name} ", "bold $primary" if here else "$muted")
            )
        return Content(" ").join(parts)

    def on_click(self, event: events.Click) -> None:
        x = event.x - 1
        for pane, name in self._names:
            if 0 <= x < len(name) + 2:
                self.post_message(PaneChosen(pane))
                return
            x -= len(name) + 3


class PaneRow(Vertical):
    """A row of panes. With the class `-tabbed` only one is shown, under a line of tabs."""

    DEFAULT_CSS = """
    PaneRow {
        height: 1fr;
        & > TabLine { display: none; }
        & > Horizontal { height: 1fr; }
        & > Horizontal > Pane { width: 1fr; height: 1fr; }
        &.-tabbed > TabLine { display: block; }
        &.-tabbed > Horizontal > Pane { display: none; width: 1fr; }
        &.-tabbed > Horizontal > Pane.-current { display: block; }
    }
    """

    def __init__(self, *panes: Pane, id: str) -> None:
        super().__init__(id=id)
        self.panes = panes
        self.current = 0

    def compose(self) -> ComposeResult:
        yield TabLine([(pane.id or "", pane.tab) for pane in self.panes])
        with Horizontal():
            yield from self.panes
        self.show_pane(0)

    @property
    def tabbed(self) -> bool:
        return self.has_class("-tabbed")

    def show_pane(self, index: int) -> None:
        """Bring this pane to the front."""
        self.current = index
        for place, pane in enumerate(self.panes):
            pane.set_class(place == index, "-current")
        for tabs in self.query(TabLine):
            tabs.current = index
