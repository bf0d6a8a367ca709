"""Connecting to a host: who, where, how far, and what to do when it is refused; picking a profile first."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.widgets import Static

from ddtui.actions.action import Action, Where
from ddtui.bindings import bindings
from ddtui.desk import Desk
from ddtui.host.base import HostError, LinkState
from ddtui.screens.base import ConsoleScreen
from ddtui.screens.waiting import how_far
from ddtui.view import View
from ddtui.widgets.words_view import Words

SPINNER = "◐◓◑◒"
# what can be done without a host
HERE = frozenset({"retry", "give-up", "hosts", "help", "palette", "quit", "theme"})
BAR = 48  # cells
KEY = "bold $footer-key-foreground"
LOGO = """\
   ╷   ╷  ╷
╭──┤╭──┤╶─┼─╴╷  ╷╷
│  ││  │  │  │  ││
╰──┘╰──┘  ╰─╴╰──┘╵"""


class ConnectScreen(ConsoleScreen):
    """Shown until the host answers."""

    PLACE: ClassVar[Where] = Where.CONNECT
    CHANGE_PANEL: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Where.CONNECT)]
    DEFAULT_CSS = """
    ConnectScreen {
        #connect { align: center middle; height: 1fr; }
        #connect-box { width: 72; max-width: 94%; height: auto; }
        #logo { color: $primary; width: auto; height: auto; margin-bottom: 1; }
        #connect-lines { height: auto; }
    }
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.failure: Exception | None = None
        self._spins = 0

    def body(self) -> ComposeResult:
        with Container(id="connect"), Vertical(id="connect-box"):
            yield Static(Content(LOGO), id="logo", markup=False)
            yield Words(id="connect-lines")

    def fail(self, error: Exception | None) -> None:
        """Show why there is no connection; None: it is being tried again."""
        self.failure = error
        self.present(self.desk.view)

    def on_mount(self) -> None:
        self._turning = self.set_interval(0.25, self._turn)

    def _turn(self) -> None:
        """While it waits, something moves."""
        if self not in self.app.screen_stack:
            self._turning.pause()
        elif self.failure is None and self.is_active:
            self._spins += 1
            self.show_view(self.desk.view)

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        if self._composed:
            self._turning.resume()

    def show_view(self, view: View) -> None:
        spinner = SPINNER[self._spins % len(SPINNER)]
        waited = self.desk.now() - view.tune.link.since
        lines = connect_lines(view, self.failure, spinner, waited)
        self.query_one("#connect-lines", Words).show(lines)

    def actions_here(self) -> tuple[Action, ...]:
        return tuple(action for action in super().actions_here() if action.id in HERE)

    def footer_keys(self) -> list[tuple[Action, str, str | None]]:
        return [key for key in super().footer_keys() if key[0].id in HERE]

    def action_give_up(self) -> None:
        if self.failure is None:
            self.console.give_up()

    def action_retry(self) -> None:
        if self.failure is not None:
            self.console.reconnect()


def connect_lines(view: View, failure: Exception | None, spinner: str, waited: float) -> Content:
    """What is being done, or why it failed and what to do."""
    link, profile = view.tune.link, view.profile
    lines: list[Content] = [
        Content.assemble(("profile  ", "$muted"), (profile.name, "bold"), (f"  {profile.about}", "$muted")),
        Content.assemble(("host     ", "$muted"), link.target),
        Content.assemble(("service  ", "$muted"), profile.service.unit),
        Content(""),
    ]
    if failure is None:
        if link.state is LinkState.CONNECTED:
            lines.append(Content.assemble((f"{spinner} ", "$success"), "connected; reading every layer …"))
        else:
            attempt = f", attempt {link.attempt + 1}" if link.attempt else ""
            lines.append(Content.assemble((f"{spinner} ", "$warning"), f"{link.state}{attempt} …"))
        if waited >= 1:
            lines.append(how_far(BAR, waited, profile.connection.connect_timeout))
        if link.message:
            lines.append(Content.styled(link.message, "$muted"))
        if waited >= 1:
            lines += [Content(""), Content.assemble(("esc", KEY), " stop   ", ("q", KEY), " quit")]
        return Content("\n").join(lines)
    lines.append(Content.assemble(("✗ ", "bold $error"), str(failure)))
    hint = failure.hint if isinstance(failure, HostError) else ""
    if hint:
        lines.append(Content.assemble(("→ ", "$accent"), hint))
    lines += [
        Content(""),
        Content.assemble(("r", KEY), " try again   ", ("H", KEY), " another host   ", ("q", KEY), " quit"),
    ]
    return Content("\n").join(lines)
