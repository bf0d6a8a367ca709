"""Textual's bindings, made from the table of actions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from textual.binding import Binding, BindingType

from ddtui.actions.action import Action, Where
from ddtui.actions.keymap import overlaps
from ddtui.actions.table import own


def binding(action: Action) -> Binding:
    return Binding(
        action.keys,
        action.call,
        action.label,
        show=action.footer > 0,
        key_display=action.shown or None,
        tooltip=action.about,
        id=action.id,
    )


def bindings(place: Where) -> list[BindingType]:
    """The bindings of one place."""
    return [binding(action) for action in own(place)]


def checked(keymap: Mapping[str, str]) -> dict[str, str]:
    """The user's keymap. Raises ValueError with a sentence if it names no action or takes a key twice."""
    problems = overlaps(keymap)
    if problems:
        raise ValueError(problems[0])
    return dict(keymap)


def of(actions: Iterable[Action]) -> list[BindingType]:
    return [binding(action) for action in actions]
