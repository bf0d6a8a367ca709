"""The drafter's config as it stands on the host's disk."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content

from ddtui.view import DrafterView, Fact
from ddtui.widgets.cells import cut_left, label
from ddtui.widgets.pane import Pane
from ddtui.widgets.words_view import Words
from ddtui.words import time_of_day


class DrafterPane(Pane):
    """Name, path, and what its config says about the window."""

    def __init__(self) -> None:
        super().__init__("Drafter", id="drafter")
        self._drafter = DrafterView()

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="drafter-scroll"):
            yield Words(id="drafter-facts")

    def show(self, drafter: DrafterView) -> None:
        self._drafter = drafter
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        room = max(20, self.content_size.width - 1)
        self.query_one("#drafter-facts", Words).show(facts(self._drafter, room))
        read_at = self._drafter.read_at
        self.set_state(f"read {time_of_day(read_at)}" if read_at else "")


def facts(drafter: DrafterView, width: int) -> Content:
    """All of it as lines."""
    lines: list[Content] = []
    if drafter.name:
        lines.append(Content.styled(drafter.name, "bold"))
    if drafter.path:
        lines.append(Content.styled(cut_left(drafter.path, width), "$muted"))
    if drafter.problem:
        lines.append(Content.assemble(("✗ ", "$error"), drafter.problem))
    elif not drafter.facts:
        lines.append(Content.styled("not read yet", "$muted"))
    column = min(max((len(fact.label) for fact in drafter.facts), default=0), max(8, width - 14))
    lines += [_fact(fact, column, width) for fact in drafter.facts]
    return Content("\n").join(lines)


def _fact(fact: Fact, column: int, width: int) -> Content:
    value = fact.value if fact.value is not None else "unknown"
    colour = "$warning" if fact.warn else ("$muted" if fact.value is None else "$foreground")
    note = f"  {fact.note}" if fact.note else ""
    name = label(fact.label, column, width - 2 - len(value))
    whole = Content.assemble((name, "$muted"), "  ", (value, colour), (note, "$muted"))
    return whole if whole.cell_length <= width else whole.truncate(width, ellipsis=True)
