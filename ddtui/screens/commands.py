"""The command log: every command that ddtui ran on the host, its exit code and how long it took."""

from __future__ import annotations

import shlex
from itertools import takewhile
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ddtui.desk import Desk
from ddtui.host.base import LoggedCommand
from ddtui.sanitize import sanitize
from ddtui.screens.base import Dialog
from ddtui.widgets.cells import cut
from ddtui.widgets.choices import Choices
from ddtui.widgets.words_view import Words
from ddtui.words import time_of_day

SHOWN = 500


class CommandLog(Dialog[None]):
    """Newest last, as in a shell; y copies the command."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "copy", "copy"),
        ("q,C", "dismiss_none", "close"),
    ]
    DEFAULT_CSS = """
    CommandLog {
        & > .box { width: 96%; height: 92%; padding: 0 1; }
        Choices { height: 1fr; }
        #whole { height: auto; max-height: 6; border-top: solid $border-blurred; }
        #command { color: $foreground; }
    }
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._desk = desk
        self._shown: list[LoggedCommand] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="box") as box:
            box.border_title = Content("Commands on the host")
            box.border_subtitle = Content("y copy   esc close")
            yield Choices()
            with VerticalScroll(id="whole", can_focus=False):
                yield Words(id="command")

    def on_resize(self) -> None:
        self._shown = []
        self.call_after_refresh(self._fill)

    def on_mount(self) -> None:
        self.set_interval(1.0, self._fill)
        self.query_one(Choices).focus()

    def _fill(self) -> None:
        commands, shown = list(self._desk.commands)[-SHOWN:], self._shown
        if commands == shown[-SHOWN:]:
            return
        options = self.query_one(Choices)
        at_end = options.highlighted in (None, len(self._shown) - 1)
        kept = options.highlighted
        room = max(30, options.size.width - 1)
        fresh = [*takewhile(lambda one: not shown or one is not shown[-1], reversed(commands))][::-1]
        if len(fresh) == len(commands) or len(shown) > 2 * SHOWN:
            self._shown = commands
            options.set_options(Option(line(command, room)) for command in commands)
        else:  # the others stay as they are
            self._shown = shown + fresh
            options.add_options(Option(line(command, room)) for command in fresh)
        if commands:
            options.highlighted = len(self._shown) - 1 if at_end else kept

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_index < len(self._shown):
            self.query_one("#command", Words).show(Content(words(self._shown[event.option_index])))

    def action_copy(self) -> None:
        index = self.query_one(Choices).highlighted
        if index is not None and self._shown:
            self.app.copy_to_clipboard(words(self._shown[index]))
            self.notify("command copied", timeout=2, markup=False)


def words(command: LoggedCommand) -> str:
    """The command as one types it in a shell."""
    sudo = "sudo " if command.sudo else ""
    return sudo + sanitize(" ".join(shlex.quote(word) for word in command.argv))


def line(command: LoggedCommand, width: int) -> Content:
    """One command in one line: when, exit code, duration, words; what is cut stands whole below the list."""
    code = "–" if command.exit_code is None else str(command.exit_code)
    return Content.assemble(
        (f"{time_of_day(command.at)}  ", "$muted"),
        (f"{code:>3}", "$success" if command.exit_code == 0 else "$warning"),
        (f"{command.seconds * 1000:7.0f} ms  ", "$muted"),
        cut(words(command), max(10, width - 27)),
    )
