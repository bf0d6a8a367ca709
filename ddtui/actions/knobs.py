"""The actions that edit the knobs of a profile, by the keys that it gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ddtui.actions.action import CHANGE, Action, Where, keys_of
from ddtui.actions.table import at
from ddtui.profile import Knob

BESIDE_KNOBS = (Where.TUNE, Where.PANES, Where.EVERYWHERE)  # whose keys answer wherever a knob's does


def knob_action(knob: Knob) -> Action | None:
    """The action that edits this knob, or None if the profile gives it no key."""
    if knob.key is None:
        return None
    about = knob.meaning or f"Set {knob.flag or knob.env}."
    return Action(f"knob-{knob.name}", "knobs", knob.key, knob.name, about, Where.TUNE, CHANGE, footer=1)


def knob_actions(knobs: Iterable[Knob], keymap: Mapping[str, str] | None = None) -> tuple[Action, ...]:
    """The knobs' own actions, without those whose key is another action's (`overlaps` says which)."""
    taken = {key for action in at(*BESIDE_KNOBS) for key in keys_of(action, keymap or {})}
    found: list[Action] = []
    for knob in knobs:
        action = knob_action(knob)
        if action is not None and action.keys not in taken:
            taken.add(action.keys)
            found.append(action)
    return tuple(found)
