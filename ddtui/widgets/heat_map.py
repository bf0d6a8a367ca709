"""A heat map: concurrency down, context across; each cell its number, its mark and its shade.

The mark and the number say everything; the shade only helps the eye. So it reads without colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from ddtui.bench.model import Cell
from ddtui.widgets.cells import cut
from ddtui.words import tokens

Tone = Literal["better", "worse", "same", "doubtful"]
TONES: dict[Tone, tuple[str, str]] = {
    "better": ("▲", "$success"),
    "worse": ("▼", "$error"),
    "same": ("·", "$muted"),
    "doubtful": ("?", "$warning"),
}
SHADES = (18, 30, 44, 60)  # per cent of the colour, from small differences to the greatest


@dataclass(frozen=True, slots=True)
class Heat:
    """One cell: its text, what it means, and how strong it is from 0 to 1."""

    cell: Cell
    text: str
    tone: Tone
    strength: float = 0.0


class HeatMap(Widget, can_focus=True):
    """Workloads one below the other. `show` gives it cells; the cursor is on one of them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "go(1, 0)", "right", show=False),
        Binding("left,h", "go(-1, 0)", "left", show=False),
        Binding("down,j", "go(0, 1)", "down", show=False),
        Binding("up,k", "go(0, -1)", "up", show=False),
    ]
    DEFAULT_CSS = """
    HeatMap { height: auto; min-height: 3; }
    """

    class Moved(Message):
        """The cursor is on another cell."""

        def __init__(self, cell: Cell) -> None:
            super().__init__()
            self.cell = cell

    cursor: reactive[Cell | None] = reactive(None)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._heats: dict[Cell, Heat] = {}
        self._spans: list[tuple[int, int, int, Cell]] = []

    def show(self, heats: Sequence[Heat]) -> None:
        self._heats = {heat.cell: heat for heat in heats}
        if self.cursor not in self._heats:
            self.set_reactive(HeatMap.cursor, None)
        self.refresh(layout=True)

    @property
    def contexts(self) -> list[int]:
        return sorted({cell.context for cell in self._heats})

    @property
    def concurrencies(self) -> list[int]:
        return sorted({cell.concurrency for cell in self._heats})

    @property
    def workloads(self) -> list[str]:
        return sorted({cell.workload for cell in self._heats})

    def _column(self) -> int:
        """Width of a column: what the texts need, within what there is."""
        wanted = max((len(heat.text) + 4 for heat in self._heats.values()), default=8)
        room = (max(40, self.size.width) - LABEL) // max(1, len(self.contexts)) - 1
        return max(3, min(max(wanted, room if room < 14 else wanted), room))

    def render(self) -> Content:
        contexts, width = self.contexts, self._column()
        lines: list[Content] = []
        self._spans = []
        for workload in self.workloads:
            if len(self.workloads) > 1:
                lines.append(Content.styled(cut(workload.rpartition("/")[2], self.size.width), "bold"))
            head = "".join(f"{tokens(context):^{width}} " for context in contexts)
            lines.append(Content.styled(f"{'C ↓ ctx →':<{LABEL}}{head}".rstrip(), "$muted"))
            for concurrency in self.concurrencies:
                row: list[Content] = [Content.styled(f"{concurrency:>{LABEL - 2}}  ", "$muted")]
                for at, context in enumerate(contexts):
                    cell = Cell(concurrency, context, workload)
                    start = LABEL + at * (width + 1)
                    self._spans.append((len(lines), start, start + width, cell))
                    row += [self._cell(cell, width), Content(" ")]
                lines.append(Content("").join(row))
        return Content("\n").join(lines)

    def _cell(self, cell: Cell, width: int) -> Content:
        heat = self._heats.get(cell)
        if heat is None:
            return Content.styled(f"{'–':^{width}}", "$faint")
        glyph, colour = TONES[heat.tone]
        text = cut(f"{glyph} {heat.text}".strip(), width)
        here = cell == self.cursor
        shown = f"{text:^{width}}"
        if here and width >= len(text) + 2:
            shown = f"›{text:^{width - 2}}‹"
        shade = SHADES[min(len(SHADES) - 1, int(heat.strength * len(SHADES)))]
        ground = f" on {colour} {shade}%" if heat.tone in ("better", "worse") else " on $panel"
        weight = "bold " if here else ""
        return Content.styled(
            shown, f"{weight}{'reverse ' if here and self.has_focus else ''}$foreground{ground}"
        )

    def action_go(self, across: int, down: int) -> None:
        """To the next cell that there is, that way."""
        if not self._heats:
            return
        if self.cursor is None:
            self._move(min(self._heats, key=_place))
            return
        here = self.cursor
        ahead = [
            cell
            for cell in self._heats
            if (across and (cell.context - here.context) * across > 0 and _row(cell) == _row(here))
            or (down and cell.context == here.context and _sign(_row(cell), _row(here)) == down)
        ]
        if ahead:
            nearest = min(ahead, key=_place) if across + down > 0 else max(ahead, key=_place)
            self._move(nearest)

    def _move(self, cell: Cell) -> None:
        self.cursor = cell
        self.post_message(self.Moved(cell))

    def on_click(self, event: events.Click) -> None:
        for line, start, end, cell in self._spans:
            if event.y == line and start <= event.x < end and cell in self._heats:
                self._move(cell)

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()


LABEL = 11  # cells of the column of concurrencies


def _row(cell: Cell) -> tuple[str, int]:
    return cell.workload, cell.concurrency


def _place(cell: Cell) -> tuple[str, int, int]:
    return cell.workload, cell.concurrency, cell.context


def _sign(one: tuple[str, int], other: tuple[str, int]) -> int:
    return (one > other) - (one < other)
