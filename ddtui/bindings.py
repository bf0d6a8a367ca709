"""Textual's bindings, made from the table of actions."""

from __future__ import annotations

from collections.abc import Iterable

from textual.binding import Binding, BindingType

from ddtui.actions import Action, Where, own


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


def of(actions: Iterable[Action]) -> list[BindingType]:
    return [binding(action) for action in actions]
