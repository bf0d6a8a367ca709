"""The footer: the keys of where you are, the important ones first, greyed where they cannot be used now."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.content import Content
from textual.widget import Widget

from ddtui.actions import Action
from ddtui.messages import ActionChosen
from ddtui.words import cut


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
        width = self.size.width
        chosen: list[tuple[Action, str, str | None]] = []
        used = 0
        seen: set[str] = set()
        everything = sorted(
            (item for item in self._actions() if not (item[0].hide and item[2])),
            key=lambda item: (item[2] is not None and item[0].footer >= 20, item[0].footer),
        )
        always = [item for item in everything if item[0].id in ALWAYS]
        room = width - sum(_length(item) for item in always)
        for item in [item for item in everything if item[0].id not in ALWAYS]:
            if used + _length(item) <= room and item[1] not in seen:
                seen.add(item[1])
                used += _length(item)
                chosen.append(item)
        chosen.sort(key=lambda item: item[0].footer)
        parts: list[Content | str] = []
        self._spans = []
        at = 0
        for action, key, why in [*chosen, *always]:
            parts += [
                Content.styled(key, "$faint" if why else "bold $footer-key-foreground"),
                " ",
                Content.styled(cut(action.label, 20), "$faint" if why else "$foreground"),
                "  ",
            ]
            end = at + _length((action, key, why))
            self._spans.append((at, end, action.id))
            at = end
        return Content.assemble(*parts)

    def on_click(self, event: events.Click) -> None:
        for start, end, action in self._spans:
            if start <= event.x - 1 < end:
                self.post_message(ActionChosen(action))


ALWAYS = ("help", "palette")


def _length(item: tuple[Action, str, str | None]) -> int:
    return len(item[1]) + 1 + len(cut(item[0].label, 20)) + 2
