"""The small dialogs: confirm, type a secret, trust a host key, read an error."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, Static

from ddtui.host.base import HostKey
from ddtui.screens.base import Dialog


class Confirm(Dialog[bool]):
    """A question whose safe answer has the focus. `type_name`: must be typed before yes is possible."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "yes", "yes"),
        ("n", "dismiss_none", "no"),
        ("left,h", "app.focus_previous", "previous"),
        ("right,l", "app.focus_next", "next"),
    ]

    def __init__(
        self,
        title: str,
        text: Content | str,
        *,
        yes: str = "Yes",
        no: str = "Cancel",
        danger: bool = False,
        type_name: str | None = None,
    ) -> None:
        super().__init__()
        self._title, self._text = title, text
        self._yes, self._no = yes, no
        self._danger = danger
        self._type_name = type_name

    def compose(self) -> ComposeResult:
        with Vertical(classes="box" + (" -danger" if self._danger else "")) as box:
            box.border_title = Content(f"{self._title}")
            text = self._text if isinstance(self._text, Content) else Content(self._text)
            with VerticalScroll(classes="text", can_focus=False):
                yield Static(text, markup=False)
            if self._type_name is not None:
                yield Static(Content(f"production: type the host's name, {self._type_name}"), classes="note")
                yield Input(id="name", compact=True)
            with Horizontal(classes="buttons"):
                yield Button(Content(f"{self._no}  esc"), id="no", compact=True)
                yield Button(
                    Content(f"{self._yes}  y"),
                    id="yes",
                    compact=True,
                    variant="error" if self._danger else "primary",
                )

    def on_mount(self) -> None:
        if self._type_name is not None:
            self.query_one("#yes", Button).disabled = True
            self.query_one("#name").focus()
        else:
            self.query_one("#no").focus()

    @on(Input.Changed, "#name")
    def _typed(self, event: Input.Changed) -> None:
        self.query_one("#yes", Button).disabled = event.value.strip() != self._type_name

    @on(Input.Submitted, "#name")
    def _entered(self) -> None:
        self.action_yes()

    @on(Button.Pressed, "#yes")
    def action_yes(self) -> None:
        if not self.query_one("#yes", Button).disabled:
            self.dismiss(True)

    @on(Button.Pressed, "#no")
    def _no_pressed(self) -> None:
        self.dismiss(False)


class Secret(Dialog[str]):
    """A password or passphrase; never shown, never kept."""

    WORDS: ClassVar[dict[str, str]] = {
        "password": "Password",
        "passphrase": "Passphrase of the key",
        "sudo": "Password for sudo",
        "otp": "One-time code",
    }

    def __init__(self, prompt: str, purpose: str) -> None:
        super().__init__()
        self._prompt, self._purpose = prompt, purpose

    def compose(self) -> ComposeResult:
        with Vertical(classes="box") as box:
            box.border_title = Content(f"{self.WORDS.get(self._purpose, 'Secret')}")
            box.border_subtitle = Content("↵ send   esc give up")
            yield Static(Content(self._prompt), markup=False)
            yield Input(password=self._purpose != "otp", id="secret")

    @on(Input.Submitted)
    def _send(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)


class Trust(Dialog[bool]):
    """An unknown host key: the operator compares the fingerprint, or does not connect."""

    WRITES_HERE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "yes", "trust"),
        ("n", "dismiss_none", "refuse"),
        ("left,h", "app.focus_previous", "previous"),
        ("right,l", "app.focus_next", "next"),
    ]

    def __init__(self, key: HostKey) -> None:
        super().__init__()
        self._key = key

    def compose(self) -> ComposeResult:
        key = self._key
        note = getattr(key, "note", "")
        with Vertical(classes="box") as box:
            box.border_title = Content("Unknown host key")
            yield Static(
                Content.assemble(
                    f"{key.host} port {key.port} is not in known_hosts yet.\n\n",
                    (f"{key.algorithm}\n", "$muted"),
                    (key.fingerprint, "bold $accent"),
                    "\n\nCompare it with what the host itself says: ",
                    ("ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub", "$primary"),
                    f"\n{note}" if note else "",
                ),
                markup=False,
            )
            with Horizontal(classes="buttons"):
                yield Button(Content("Do not connect  esc"), id="no", compact=True)
                yield Button(Content("Trust and remember  y"), id="yes", compact=True, variant="warning")

    def on_mount(self) -> None:
        self.query_one("#no").focus()

    @on(Button.Pressed, "#yes")
    def action_yes(self) -> None:
        self.dismiss(True)

    @on(Button.Pressed, "#no")
    def _refuse(self) -> None:
        self.dismiss(False)


class Problem(Dialog[None]):
    """Something that went wrong and needs to be read: what, and what to do."""

    BINDINGS: ClassVar[list[BindingType]] = [("enter", "dismiss_none", "close")]

    def __init__(self, title: str, text: str, hint: str = "") -> None:
        super().__init__()
        self._title, self._text, self._hint = title, text, hint

    def compose(self) -> ComposeResult:
        with Vertical(classes="box -danger") as box:
            box.border_title = Content(f"{self._title}")
            yield Static(Content(self._text), markup=False)
            if self._hint:
                yield Static(Content(f"→ {self._hint}"), classes="note", markup=False)
            with Horizontal(classes="buttons"):
                yield Button("Close  esc", id="close", compact=True)

    @on(Button.Pressed)
    def _close(self) -> None:
        self.dismiss(None)
