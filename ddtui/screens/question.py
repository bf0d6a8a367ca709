"""A question to the operator: the safe answer has the focus; in production the host's name must be typed."""

from __future__ import annotations

from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Button, Input, Static

from ddtui.screens.base import Dialog


class Question(Dialog[bool]):
    """True: yes. Subclasses compose their text and then `answers`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "yes", "yes"),
        ("n", "dismiss_none", "no"),
        ("left,h", "app.focus_previous", "previous"),
        ("right,l", "app.focus_next", "next"),
    ]
    _type_name: str | None = None

    def answers(
        self,
        yes: str | None,
        no: str,
        variant: Literal["primary", "warning", "error"],
        *,
        type_name: str | None = None,
    ) -> ComposeResult:
        """The buttons, before them the field for `type_name`. `yes` None: there is nothing to agree to."""
        self._type_name = type_name if yes is not None else None
        if self._type_name is not None:
            yield Static(
                Content.styled(f"production: type the host's name, {self._type_name}", "$production"),
                markup=False,
            )
            yield Input(id="name", compact=True)
        with Horizontal(classes="buttons"):
            yield Button(Content(f"{no}  esc"), id="no", compact=True)
            if yes is not None:
                named = self._type_name is not None
                yield Button(Content(f"{yes}  y"), id="yes", compact=True, variant=variant, disabled=named)

    def on_mount(self) -> None:
        self.query_one("#no" if self._type_name is None else "#name").focus()

    @on(Input.Changed, "#name")
    def _typed(self, event: Input.Changed) -> None:
        self.query_one("#yes", Button).disabled = event.value.strip() != self._type_name

    @on(Input.Submitted, "#name")
    def _entered(self) -> None:
        self.action_yes()

    @on(Button.Pressed, "#yes")
    def action_yes(self) -> None:
        if any(not button.disabled for button in self.query("#yes").results(Button)):
            self.dismiss(True)

    @on(Button.Pressed, "#no")
    def _no(self) -> None:
        self.dismiss(False)
