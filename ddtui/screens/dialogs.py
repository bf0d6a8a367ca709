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
from ddtui.screens.question import Question


class Confirm(Question):
    """`type_name`: must be typed before yes is possible."""

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
        self._yes, self._no_word = yes, no
        self._danger = danger
        self._to_type = type_name

    def compose(self) -> ComposeResult:
        with Vertical(classes="box" + (" -danger" if self._danger else "")) as box:
            box.border_title = Content(f"{self._title}")
            text = self._text if isinstance(self._text, Content) else Content(self._text)
            with VerticalScroll(classes="text", can_focus=False):
                yield Static(text, markup=False)
            yield from self.answers(
                self._yes,
                self._no_word,
                "error" if self._danger else "primary",
                type_name=self._to_type,
            )


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


class Trust(Question):
    """An unknown host key: the operator compares the fingerprint, or does not connect."""

    WRITES_HERE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "yes", "trust"),
        ("n", "dismiss_none", "refuse"),
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
            yield from self.answers("Trust and remember", "Do not connect", "warning")


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
