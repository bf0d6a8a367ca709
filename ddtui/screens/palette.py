"""The command palette: every action by name, from the table of actions; and every theme."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from ddtui.actions.action import Action, keys_of
from ddtui.screens.base import Console, ConsoleScreen, written_key


class Actions(Provider):
    """What can be done on the screen below the palette; what cannot now says why."""

    def _here(self) -> Iterator[tuple[Action, str, Content, str]]:
        """Each with its name, the key that does it without the palette, and what it is or why not now."""
        screen = self.screen
        if not isinstance(screen, ConsoleScreen):
            return
        for action in screen.actions_here():
            why, keys = screen.desk.why_not(action), keys_of(action, screen.desk.keymap)
            key = (
                Content.styled(f"   {written_key(keys[0])}", "$footer-key-foreground")
                if keys
                else Content("")
            )
            about = action.about if why is None else f"not now: {why}"
            yield action, f"{action.area}: {action.label}", key, about

    async def discover(self) -> Hits:
        for action, name, key, about in self._here():
            act = partial(cast(Console, self.app).act, action.id)
            yield DiscoveryHit(Content(name) + key, act, name, about)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action, name, key, about in self._here():
            score = max(matcher.match(name), matcher.match(action.about) * 0.5)
            if score > 0:
                act = partial(cast(Console, self.app).act, action.id)
                yield Hit(score, matcher.highlight(name) + key, act, name, about)


class Themes(Provider):
    """Every theme; the one that is chosen is kept."""

    def _all(self) -> Iterator[tuple[str, Callable[[], None]]]:
        for name in sorted(self.app.available_themes):
            yield name, partial(cast(Console, self.app).choose_theme, name)

    async def discover(self) -> Hits:
        for name, choose in self._all():
            yield DiscoveryHit(Content(name), choose, name)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name, choose in self._all():
            if (score := matcher.match(name)) > 0:
                yield Hit(score, matcher.highlight(name), choose, name)
