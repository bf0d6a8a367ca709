"""The keys of where you are, from the table of actions."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ddtui.actions.action import Action, Where, keys_of
from ddtui.actions.table import own
from ddtui.screens.base import Dialog, written_key
from ddtui.widgets.cells import cut

BESIDE = 30  # cells of key and name


class Help(Dialog[None]):
    """Every key that answers here, grouped by where it does."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("q,question_mark,enter", "dismiss_none", "close"),
        ("j,down", "scroll(1)", "down"),
        ("k,up", "scroll(-1)", "up"),
        ("pagedown,space", "scroll(10)", "page down"),
        ("pageup", "scroll(-10)", "page up"),
    ]
    DEFAULT_CSS = """
    Help {
        & > .box { width: 100; height: auto; }
        #keys { height: auto; scrollbar-size: 1 1; }
    }
    """

    def __init__(
        self, here: str, groups: Sequence[tuple[str, Sequence[Action]]], keymap: Mapping[str, str]
    ) -> None:
        super().__init__()
        self._here, self._groups, self._keymap = here, groups, keymap

    def compose(self) -> ComposeResult:
        with Vertical(classes="box") as box:
            box.border_title = Content(f"Keys: {self._here}")
            box.border_subtitle = Content("esc close   ^p every action by name")
            with VerticalScroll(id="keys"):
                yield Static(id="key-lines", markup=False)

    def on_mount(self) -> None:
        self.query_one("#keys").focus()

    def on_resize(self) -> None:
        self.query_one("#keys").styles.max_height = max(4, self.size.height - 4)
        width = min(94, int(self.size.width * 0.96) - 8)
        self.query_one("#key-lines", Static).update(help_lines(self._groups, width, self._keymap))

    def action_scroll(self, by: int) -> None:
        self.query_one("#keys", VerticalScroll).scroll_relative(y=by, animate=False)


def groups_for(
    place: Where, knobs: Sequence[Action], parts: Sequence[Where] = ()
) -> list[tuple[str, Sequence[Action]]]:
    """The groups of the help for a screen."""
    groups: list[tuple[str, Sequence[Action]]] = []
    if knobs:
        groups.append(("knobs", knobs))
    if place is Where.TUNE:
        groups += [("this screen", own(Where.TUNE)), ("knob table", own(Where.KNOBS))]
        groups += [
            ("checks", own(Where.CHECKS)),
            ("journal", own(Where.JOURNAL)),
            ("charts", own(Where.CHART)),
        ]
    elif own(place):
        groups.append(("this screen", own(place)))
    groups += [(PART_NAMES.get(part, part.value), own(part)) for part in parts]
    groups.append(("everywhere", own(Where.EVERYWHERE)))
    return groups


PART_NAMES = {Where.CHART: "charts"}


def help_lines(
    groups: Sequence[tuple[str, Sequence[Action]]], width: int, keymap: Mapping[str, str]
) -> Content:
    """All groups as lines of key, name and sentence."""
    lines: list[Content] = []
    for name, actions in groups:
        if lines:
            lines.append(Content(""))
        lines.append(Content.styled(name, "bold $primary"))
        for action in actions:
            keys = " ".join(map(written_key, keys_of(action, keymap)))
            first, *more = textwrap.wrap(action.about, max(20, width - BESIDE)) or [""]
            lines.append(
                Content.assemble(
                    (cut(keys, 11).rjust(11), "bold $footer-key-foreground"),
                    "  ",
                    cut(action.label, 16).ljust(16),
                    " ",
                    (first, "$muted"),
                )
            )
            lines += [Content.styled(" " * BESIDE + line, "$muted") for line in more]
    return Content("\n").join(lines)
