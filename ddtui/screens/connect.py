"""Connecting to a host: who, where, how far, and what to do when it is refused; picking a profile first."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Middle, Vertical
from textual.content import Content
from textual.widgets import LoadingIndicator, Static

from ddtui.actions import Where
from ddtui.bindings import bindings
from ddtui.desk import Desk
from ddtui.host.base import HostError, LinkState
from ddtui.screens.base import ConsoleScreen
from ddtui.view import View

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
        LoadingIndicator { height: 1; width: 12; color: $primary; margin-top: 1; display: none; }
        LoadingIndicator.-shown { display: block; }
    }
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.failure: Exception | None = None

    def body(self) -> ComposeResult:
        with Middle(id="connect"), Vertical(id="connect-box"):
            yield Static(Content(LOGO), id="logo", markup=False)
            yield Static(id="connect-lines", markup=False)
            yield LoadingIndicator()

    def fail(self, error: Exception | None) -> None:
        """Show why there is no connection; None: it is being tried again."""
        self.failure = error
        self.present(self.desk.view)

    def show_view(self, view: View) -> None:
        waiting = self.failure is None
        self.query_one(LoadingIndicator).set_class(waiting, "-shown")
        self.query_one("#connect-lines", Static).update(connect_lines(view, self.failure))

    def action_retry(self) -> None:
        if self.failure is not None:
            self.console.reconnect()


def connect_lines(view: View, failure: Exception | None) -> Content:
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
            lines.append(Content.assemble(("● ", "$success"), "connected; reading every layer …"))
        else:
            attempt = f", attempt {link.attempt + 1}" if link.attempt else ""
            lines.append(Content.assemble(("◌ ", "$warning"), f"{link.state}{attempt} …"))
        if link.message:
            lines.append(Content.styled(link.message, "$muted"))
        return Content("\n").join(lines)
    lines.append(Content.assemble(("✗ ", "bold $error"), str(failure)))
    hint = failure.hint if isinstance(failure, HostError) else ""
    if hint:
        lines.append(Content.assemble(("→ ", "$accent"), hint))
    lines += [
        Content(""),
        Content.assemble(("r", KEY), " try again   ", ("q", KEY), " quit"),
    ]
    return Content("\n").join(lines)
