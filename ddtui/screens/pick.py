"""No profile was named: pick one, or make one for a host that has none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from ddtui.screens.base import Console
from ddtui.screens.connect import LOGO
from ddtui.widgets.cells import cut
from ddtui.widgets.choices import Choices


@dataclass(frozen=True, slots=True)
class Offer:
    """A profile that can be picked; `problem`: why it cannot be used."""

    name: str
    where: str
    about: str = ""
    problem: str = ""


class PickScreen(Screen[None]):
    """The profiles that were found, the user's first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("q,escape", "app.quit", "quit"),
        ("n", "new", "new profile"),
    ]
    DEFAULT_CSS = """
    PickScreen {
        #pick { align: center middle; height: 1fr; }
        #pick-box { width: 80; max-width: 94%; height: auto; max-height: 100%; }
        #pick-logo { color: $primary; width: auto; height: auto; margin-bottom: 1; }
        #pick-note { color: $muted; height: auto; margin-top: 1; }
        Choices { height: auto; max-height: 14; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    class Picked(Message):
        """A profile was picked by name."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, offers: Sequence[Offer]) -> None:
        super().__init__()
        self._offers = offers

    def compose(self) -> ComposeResult:
        with Container(id="pick"), Vertical(id="pick-box"):
            yield Static(Content(LOGO), id="pick-logo", markup=False)
            yield Choices()
            yield Static(
                Content("↵ connects   n makes a profile   q quits   `ddtui demo` opens a simulated host"),
                id="pick-note",
                markup=False,
            )

    def on_mount(self) -> None:
        choices = self.query_one(Choices)
        made = [Option(offer_line(offer)) for offer in self._offers]
        choices.set_options([*made, Option(new_line(first=not made))])
        choices.highlighted = 0
        choices.focus()

    def action_new(self) -> None:
        self.run_worker(self._new(), group="first run", exclusive=True, exit_on_error=False)

    async def _new(self) -> None:
        """Make a profile, and connect with it."""
        from ddtui.screens.first_run import FirstRun

        name = await cast(Console, self.app).ask(FirstRun())
        if name is not None:
            self.post_message(self.Picked(name))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        if event.option_index == len(self._offers):
            self.action_new()
            return
        offer = self._offers[event.option_index]
        if offer.problem:
            self.notify(offer.problem, title=offer.name, severity="error", markup=False)
        else:
            self.post_message(self.Picked(offer.name))


def new_line(*, first: bool) -> Content:
    """The offer to make one."""
    word = "There is no profile yet: make one" if first else "New profile"
    return Content.assemble(
        (f"+ {word}", "bold $accent"), ("   looks on a host for SGLang by itself", "$muted")
    )


def offer_line(offer: Offer) -> Content:
    """A profile in the list."""
    text = offer.problem.split("\n")[0] if offer.problem else offer.about
    return Content.assemble(
        (cut(offer.name, 22).ljust(22), "bold"),
        " ",
        (cut(offer.where, 18).ljust(18), "$primary"),
        " ",
        (" ".join(text.split()), "$error" if offer.problem else "$muted"),
    )
