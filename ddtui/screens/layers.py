"""The layers: what each one said, how old that is, and why one could not be read; it follows the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ddtui.desk import Desk
from ddtui.screens.base import Console, Dialog
from ddtui.view import LayerView
from ddtui.widgets.choices import Choices
from ddtui.widgets.words_view import Words
from ddtui.words import ago

Line = tuple[str, str]  # colour, text


class LayersDialog(Dialog[None]):
    """Every layer with its facts; y copies a line, r reads every layer again."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "copy", "copy"),
        ("r,ctrl+r", "again", "read again"),
        ("q,L", "dismiss_none", "close"),
    ]
    DEFAULT_CSS = """
    LayersDialog {
        & > .box { width: 96%; height: 92%; padding: 0 1; }
        Choices { height: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
        #whole { height: auto; max-height: 6; border-top: solid $border-blurred; }
    }
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._desk = desk
        self._shown: list[Line] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="box") as box:
            box.border_title = Content("Layers")
            box.border_subtitle = Content("r read again   y copy   esc close")
            yield Choices()
            with VerticalScroll(id="whole", can_focus=False):
                yield Words(id="line")

    def on_mount(self) -> None:
        self._fill()
        self.set_interval(1.0, self._fill)
        self.query_one(Choices).focus()

    def _fill(self) -> None:
        found = lines(self._desk.view.tune.layers, self._desk.now())
        if found == self._shown:
            return
        options, before = self.query_one(Choices), self._shown
        kept, scroll = options.highlighted, options.scroll_y
        self._shown = found
        if len(found) == len(before):
            for at, line in enumerate(found):
                if line != before[at]:
                    options.replace_option_prompt_at_index(at, prompt(line))
            return
        options.set_options(Option(prompt(line)) for line in found)
        options.highlighted = min(kept or 0, len(found) - 1) if found else None
        options.scroll_to(y=scroll, animate=False)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if event.option_index < len(self._shown):
            self.query_one("#line", Words).show(Content(self._shown[event.option_index][1].strip()))

    def action_copy(self) -> None:
        index = self.query_one(Choices).highlighted
        if index is not None and self._shown:
            self.app.copy_to_clipboard(self._shown[index][1].strip())
            self.notify("line copied", timeout=2, markup=False)

    def action_again(self) -> None:
        cast(Console, self.app).refresh_layers()


def prompt(line: Line) -> Content:
    colour, text = line
    return Content.styled(text or " ", colour).truncate(400, ellipsis=True)


def lines(layers: Sequence[LayerView], now: float) -> list[Line]:
    """Each layer as a heading with its age, then its problem or what it said."""
    if not layers:
        return [("$muted", "no layer has been read yet")]
    found: list[Line] = []
    for one in layers:
        age = f"   read {ago(now - one.read_at)}" if one.read_at else "   not read yet"
        found.append(("bold", f"{'✗ ' if one.failed else ''}{one.name}{age}"))
        if one.problem:
            found.append(("$error" if one.failed else "$muted", f"  {one.problem}"))
        found += [("", f"  {line}") for line in one.lines]
        found.append(("", ""))
    return found[:-1]
