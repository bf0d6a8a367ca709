"""What an action is: one thing that the operator can do, and when it can be done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, Flag, auto


class Where(Enum):
    """Where an action's key answers."""

    EVERYWHERE = "everywhere"
    TUNE = "tune"
    KNOBS = "knobs"
    CHECKS = "checks"
    CHART = "chart"
    JOURNAL = "journal"
    BURSTS = "bursts"
    CONNECT = "connect"
    PANES = "panes"  # every screen of several panes
    STEPS = "steps"  # lists of steps: compare and history
    COMPARE = "compare"
    HISTORY = "history"
    SWEEP = "sweep"


class Needs(Flag):
    """What must be so for an action to be possible now."""

    NOTHING = 0
    CONNECTED = auto()
    WRITABLE = auto()
    NO_CHANGE = auto()  # no change, roll back or restart is running, and no sweep
    NO_BURST = auto()
    TURNS = auto()  # a knob has been turned and not applied yet
    WORK = auto()  # a burst, a sweep or a change is running
    DISK = auto()  # writes a file or the history on the machine that ddtui runs on


class Danger(Enum):
    NONE = 0
    LOAD = 1  # puts load on the server
    INTERRUPTS = 2  # restarts the server: running requests are lost


@dataclass(frozen=True, slots=True)
class Action:
    """One thing the operator can do.

    `keys`: Textual key names, comma-separated, the first one is shown. `footer`: place in the footer, from 1;
    0: not in the footer. `shown`: how the key is written, where its own name is not good enough.
    """

    id: str
    area: str  # the palette shows "area: label"
    keys: str
    label: str
    about: str  # one sentence, for tooltip, palette and help
    where: Where = Where.EVERYWHERE
    needs: Needs = Needs.NOTHING
    danger: Danger = Danger.NONE
    footer: int = 0
    shown: str = ""
    hide: bool = False  # not in the footer while it cannot be done
    brief: str | None = None  # the label where there is little room

    @property
    def call(self) -> str:
        """The action as Textual calls it: a method's name, with an argument for a knob."""
        kind, dash, name = self.id.partition("-")
        return f"knob('{name}')" if kind == "knob" and dash else self.id.replace("-", "_")

    @property
    def key_names(self) -> tuple[str, ...]:
        return tuple(key.strip() for key in self.keys.split(",") if key.strip())


CHANGE = Needs.CONNECTED | Needs.WRITABLE | Needs.NO_CHANGE


def keys_of(action: Action, keymap: Mapping[str, str]) -> tuple[str, ...]:
    """The keys of an action under the user's keymap."""
    return tuple(key.strip() for key in keymap.get(action.id, action.keys).split(",") if key.strip())


def why_not(
    needs: Needs,
    *,
    connected: bool,
    read_only: str | None,
    changing: bool,
    bursting: bool,
    turned: bool,
    trying: bool = False,
    disk_closed: str | None = None,
) -> str | None:
    """Why an action with these needs cannot be done now, in words for the operator; None: it can."""
    if Needs.CONNECTED in needs and not connected:
        return "not connected to the host"
    if Needs.WRITABLE in needs and read_only is not None:
        return f"read-only: {read_only}" if read_only else "read-only"
    if Needs.DISK in needs and disk_closed is not None:
        return disk_closed
    if Needs.NO_CHANGE in needs and changing:
        return "a change is running"
    if Needs.NO_CHANGE in needs and trying:
        return "a sweep is running; X stops it"
    if Needs.NO_BURST in needs and bursting:
        return "a burst is running; X stops it"
    if Needs.WORK in needs and not (bursting or trying or changing):
        return "nothing is running that could be stopped"
    if Needs.TURNS in needs and not turned:
        return "no knob has been turned"
    return None
