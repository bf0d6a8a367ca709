"""A screen of several panes: going from one to the next, and giving one the whole screen."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import BindingType

from ddtui.actions.action import Where
from ddtui.bindings import bindings
from ddtui.messages import PaneChosen
from ddtui.screens.base import ConsoleScreen
from ddtui.widgets.pane import Pane
from ddtui.widgets.pane_tabs import PaneRow


class PanedScreen(ConsoleScreen):
    """`rows` are its rows of panes, from above."""

    PARTS: ClassVar[tuple[Where, ...]] = (Where.PANES,)
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Where.PANES), ("escape", "back", "back")]

    rows: tuple[PaneRow, ...] = ()
    _going: Pane | None = None  # the pane that the focus is on its way to

    def pane_of(self, widget: object) -> tuple[PaneRow, int] | None:
        """The row, and the place in it, of the pane that holds this widget."""
        for row in self.rows:
            for index, pane in enumerate(row.panes):
                if widget is pane or (hasattr(widget, "ancestors") and pane in widget.ancestors):
                    return row, index
        return None

    def show_pane(self, pane: Pane, *, focus: bool = False) -> None:
        """Bring a pane to the front of its row."""
        for row in self.rows:
            if pane in row.panes:
                row.show_pane(row.panes.index(pane))
        if focus:
            self.call_after_refresh(pane.focus_first)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if event.widget is not self.focused:
            return  # it comes late: the focus has gone on
        found = self.pane_of(event.widget)
        if found is not None and self._going in (None, found[0].panes[found[1]]):
            found[0].show_pane(found[1])

    def on_pane_chosen(self, event: PaneChosen) -> None:
        event.stop()
        for row in self.rows:
            for pane in row.panes:
                if pane.id == event.pane:
                    self.show_pane(pane, focus=True)

    def _go(self, by: int) -> None:
        panes: list[tuple[PaneRow, int, Pane]] = [
            (row, index, pane)
            for row in self.rows
            for index, pane in enumerate(row.panes)
            if pane.focusable_within
        ]
        if not panes:
            return
        now = self._going or self.focused
        here = self.pane_of(now) if now is not None else None
        at = next(
            (i for i, (row, index, _) in enumerate(panes) if (row, index) == here), -by if by > 0 else 0
        )
        row, index, pane = panes[(at + by) % len(panes)]
        row.show_pane(index)
        self._going = pane
        if self.maximized is not None:
            self.minimize()
            self.call_after_refresh(self.maximize, pane, False)
        self.call_after_refresh(self._arrive, pane)

    def _arrive(self, pane: Pane) -> None:
        """Give the pane the focus; what was on its way to another pane before is late."""
        pane.focus_first()
        self.app.call_later(self._arrived, pane)

    def _arrived(self, pane: Pane) -> None:
        if self._going is pane:
            self._going = None

    def action_next_pane(self) -> None:
        self._go(1)

    def action_previous_pane(self) -> None:
        self._go(-1)

    def action_zoom(self) -> None:
        if self.maximized is not None:
            self.minimize()
            return
        found = self.pane_of(self.focused) if self.focused is not None else None
        if found is not None:
            self.maximize(found[0].panes[found[1]], container=False)

    def action_back(self) -> None:
        """Escape: out of the zoom, else to the tune screen."""
        if self.maximized is not None:
            self.minimize()
        elif self.PLACE is not Where.TUNE:
            self.app.action_tune()  # type: ignore[attr-defined]
