"""Which keys answer at the same time, and what is wrong with an operator's own keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ddtui.actions.action import Action, Where, keys_of
from ddtui.actions.knobs import BESIDE_KNOBS, knob_action
from ddtui.actions.table import BY_ID, at
from ddtui.profile import Knob

# places whose keys answer at the same time, beside those of everywhere
TOGETHER: tuple[tuple[Where, ...], ...] = (
    *(
        (Where.TUNE, Where.PANES, focused)
        for focused in (Where.KNOBS, Where.CHECKS, Where.CHART, Where.JOURNAL)
    ),
    (Where.BURSTS, Where.PANES),
    (Where.COMPARE, Where.STEPS, Where.PANES),
    (Where.HISTORY, Where.STEPS, Where.CHART, Where.PANES),
    (Where.SWEEP, Where.PANES),
    (Where.CONNECT,),
)


def overlaps(keymap: Mapping[str, str], knobs: Iterable[Knob] = ()) -> list[str]:
    """What is wrong with a user's keymap (action id → keys) beside a profile's knobs: unknown ids, keys that
    two would have at the same time. What the table itself has twice, by where the focus is, is meant so."""
    unknown = [f"keymap: {name!r} is no action" for name in keymap if name not in BY_ID]
    twice: dict[str, str] = {}  # by key: one sentence each
    of_knobs = tuple(action for action in map(knob_action, knobs) if action is not None)
    for places in TOGETHER:
        taken: dict[str, Action] = {}
        for action in (*at(*places), *(of_knobs if Where.TUNE in places else ())):
            for key in keys_of(action, keymap):
                other = taken.setdefault(key, action)
                if other is not action and _clash(other, action, keymap):
                    words = f"keymap: {key!r} is taken by both {_named(other)} and {_named(action)}"
                    twice.setdefault(key, words)
    return [*unknown, *twice.values()]


def _clash(one: Action, other: Action, keymap: Mapping[str, str]) -> bool:
    """Whether the same key for both is a fault."""
    if one.where is other.where or one.id in keymap or other.id in keymap:
        return True
    return other.id.startswith("knob-") and one.where in BESIDE_KNOBS


def _named(action: Action) -> str:
    kind, dash, name = action.id.partition("-")
    return f"the knob {name!r}" if kind == "knob" and dash else repr(action.id)
