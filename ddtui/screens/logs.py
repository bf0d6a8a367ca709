"""The journal on the whole screen."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from ddtui.actions.action import Action, Where
from ddtui.actions.table import at
from ddtui.desk import Desk
from ddtui.screens.base import ConsoleScreen
from ddtui.view import View
from ddtui.widgets.journal_pane import JournalPane


class LogsScreen(ConsoleScreen):
    """Everything that the service has written, with filter, search and follow."""

    PLACE: ClassVar[Where] = Where.JOURNAL
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", id="filter", key_display="/"),
        ("escape", "app.switch_mode('tune')", "back"),
    ]

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.journal = JournalPane(desk.store, memory=desk.memory, now=desk.now, id="journal-full")

    def body(self) -> ComposeResult:
        yield self.journal

    def on_mount(self) -> None:
        self.journal.view.focus()

    def show_view(self, view: View) -> None:
        self.journal.set_title(f"Journal of {view.profile.service.unit}")
        self.journal.show_link(view.connected)

    def actions_here(self) -> tuple[Action, ...]:
        return at(Where.JOURNAL)

    def action_filter(self) -> None:
        self.journal.start_filter()
