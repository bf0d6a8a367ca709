"""The table of actions.

Bindings, footer, command palette, help screen and the user's keymap are all made from this one table, so they
cannot disagree.
"""

from __future__ import annotations

from collections.abc import Mapping

from ddtui.actions import decisions, everywhere, journal, tune
from ddtui.actions.action import Action, Where

ACTIONS: tuple[Action, ...] = (*tune.ACTIONS, *journal.ACTIONS, *decisions.ACTIONS, *everywhere.ACTIONS)
BY_ID: Mapping[str, Action] = {action.id: action for action in ACTIONS}


def at(*places: Where) -> tuple[Action, ...]:
    """The actions of these places and of everywhere."""
    wanted = {Where.EVERYWHERE, *places}
    return tuple(action for action in ACTIONS if action.where in wanted)


def own(place: Where) -> tuple[Action, ...]:
    """The actions of this place only."""
    return tuple(action for action in ACTIONS if action.where is place)
