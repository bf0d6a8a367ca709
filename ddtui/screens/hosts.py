"""Another host: the profiles there are, which are open in this console, and what each is doing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ddtui.desk import Desk
from ddtui.screens.base import Dialog
from ddtui.screens.pick import Offer, new_line, offer_line
from ddtui.view import View
from ddtui.widgets.choices import Choices
from ddtui.widgets.status_strip import LINK_LOOK, activity

NEW = ""  # the answer that asks for a new profile


class HostsDialog(Dialog[str]):
    """The name of a profile, or NEW, or None."""

    DEFAULT_CSS = """
    HostsDialog {
        & > .box { width: 96; }
        #hosts { height: auto; max-height: 16; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    def __init__(self, offers: Sequence[Offer], desks: Mapping[str, Desk], here: str | None) -> None:
        super().__init__()
        known = {offer.name for offer in offers}
        opened = [
            Offer(name, desk.view.profile.connection.host, desk.view.profile.about)
            for name, desk in desks.items()
            if name not in known
        ]
        self._offers = [*opened, *offers]
        self._desks, self._here = desks, here

    def compose(self) -> ComposeResult:
        with Vertical(classes="box") as box:
            box.border_title = Content("Hosts")
            box.border_subtitle = Content("↵ go there   esc stay")
            yield Choices(id="hosts")

    def on_mount(self) -> None:
        names = [offer.name for offer in self._offers]
        choices = self.query_one(Choices)
        choices.set_options([*self._lines(), Option(new_line(first=not names))])
        choices.highlighted = names.index(self._here) if self._here in names else 0
        choices.focus()
        self.set_interval(1.0, self._again)

    def _lines(self) -> list[Option]:
        return [Option(self._line(offer)) for offer in self._offers]

    def _line(self, offer: Offer) -> Content:
        desk = self._desks.get(offer.name)
        state = state_of(desk.view) if desk is not None else Content("  ")
        return Content.assemble(state, offer_line(offer))

    def _again(self) -> None:
        """What the open ones are doing moves on."""
        choices = self.query_one(Choices)
        for at, offer in enumerate(self._offers):
            choices.replace_option_prompt_at_index(at, self._line(offer))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        if event.option_index == len(self._offers):
            self.dismiss(NEW)
            return
        offer = self._offers[event.option_index]
        if offer.problem:
            self.notify(offer.problem, title=offer.name, severity="error", markup=False)
        else:
            self.dismiss(offer.name)


def state_of(view: View) -> Content:
    """The link of an open host, and what goes on there."""
    glyph, colour = LINK_LOOK[view.tune.link.state]
    parts = [Content.styled(f"{glyph} ", colour)]
    if view.profile.production:
        parts.append(Content.styled("PROD ", "bold $production"))
    return Content("").join([*parts, *(Content.assemble(one, "  ") for one in activity(view))])
