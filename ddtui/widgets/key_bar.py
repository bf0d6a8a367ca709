"""The footer: the keys of where you are, the important ones first, greyed where they cannot be used now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.widget import Widget

from ddtui.actions.action import Action
from ddtui.messages import ActionChosen
from ddtui.widgets.cells import cut


class KeyBar(Widget):
    """One line. `actions` gives what there is now, with why each cannot be used; what does not fit goes."""

    DEFAULT_CSS = """
    KeyBar { height: 1; background: $panel; padding: 0 1; }
    """

    def __init__(self, actions: Callable[[], list[tuple[Action, str, str | None]]]) -> None:
        super().__init__()
        self._actions = actions
        self._spans: list[tuple[int, int, str]] = []

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.refresh())

    def render(self) -> Content:
        parts: list[Content | str] = []
        self._spans = []
        at = 0
        for key in fitted(self._actions(), self.size.width):
            parts += [
                Content.styled(key.written, "$faint" if key.why else "bold $footer-key-foreground"),
                Content.styled(f" {key.label}" if key.label else "", "$faint" if key.why else "$foreground"),
                "  ",
            ]
            self._spans.append((at, at + key.cells, key.action.id))
            at += key.cells
        return Content.assemble(*parts)

    def on_click(self, event: events.Click) -> None:
        for start, end, action in self._spans:
            if action and start <= event.x - 1 < end:
                self.post_message(ActionChosen(action))


ALWAYS = ("help", "palette")


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of the footer; `why` it cannot be used now."""

    action: Action
    written: str
    why: str | None
    label: str

    @property
    def cells(self) -> int:
        return cell_len(self.written) + (1 + cell_len(self.label) if self.label else 0) + 2


def fitted(actions: Sequence[tuple[Action, str, str | None]], width: int) -> list[Key]:
    """The entries for this width, in the footer's order: short labels before any is left out."""
    shown = [item for item in actions if not (item[0].hide and item[2])]
    keys = [Key(action, written, why, cut(action.label, 20)) for action, written, why in shown]
    brief = [replace(key, label=key.label if key.action.brief is None else key.action.brief) for key in keys]
    first = [key for key in keys if key.action.footer <= FIRST or key.action.id in ALWAYS]
    if sum(key.cells for key in first) - 2 > width:
        keys = brief
    always = sorted((key for key in keys if key.action.id in ALWAYS), key=lambda key: key.action.footer)
    room = width + 2 - sum(key.cells for key in always)
    chosen: list[Key] = []
    wanted = (key for key in keys if key.action.id not in ALWAYS)
    for key in sorted(
        wanted, key=lambda key: (key.why is not None and key.action.footer > FIRST, key.action.footer)
    ):
        if key.cells <= room:
            room -= key.cells
            chosen.append(key)
    return [*sorted(chosen, key=lambda key: key.action.footer), *always]


FIRST = 22  # the place in the footer up to which keys stay even if they cannot be used now
