"""The table of actions: everything the operator can do in the console, by name.

Bindings, footer, command palette, help screen and the user's keymap are all made from this one table, so they
cannot disagree. Knows nothing of Textual.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, Flag, auto

from ddtui.profile import Knob


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

ACTIONS: tuple[Action, ...] = (
    # tune
    Action(
        "review",
        "knobs",
        "enter,a",
        "review & apply",
        "Show the exact change for the turned knobs: files, commands, what it interrupts.",
        Where.TUNE,
        CHANGE | Needs.TURNS,
        Danger.INTERRUPTS,
        footer=10,
        brief="apply",
        shown="↵",
    ),
    Action(
        "flag",
        "knobs",
        "f",
        "any flag",
        "Set or take away any other flag of the server.",
        Where.TUNE,
        CHANGE,
        footer=40,
    ),
    Action(
        "undo",
        "knobs",
        "U,backspace",
        "undo turns",
        "Forget the knobs that were turned and not applied.",
        Where.TUNE,
        Needs.TURNS,
        footer=45,
        hide=True,
    ),
    Action(
        "restart",
        "server",
        "r",
        "restart",
        "Restart the service as it is configured and watch it come up.",
        Where.TUNE,
        CHANGE,
        Danger.INTERRUPTS,
        footer=20,
    ),
    Action(
        "rollback",
        "server",
        "u",
        "roll back",
        "Go back to the last setting that was verified.",
        Where.TUNE,
        CHANGE,
        Danger.INTERRUPTS,
        footer=21,
        brief="back",
    ),
    Action(
        "check-output",
        "burst",
        "O",
        "check output",
        "Whether what is generated is right: greedy answers compared with a reference step's, and tested.",
        Where.EVERYWHERE,
        Needs.CONNECTED | Needs.NO_CHANGE | Needs.NO_BURST | Needs.DISK,
        Danger.LOAD,
    ),
    Action(
        "burst",
        "burst",
        "x",
        "burst",
        "Measure this step: choose concurrency, context lengths, output and workload.",
        Where.EVERYWHERE,
        Needs.CONNECTED | Needs.NO_CHANGE | Needs.NO_BURST | Needs.DISK,
        Danger.LOAD,
        footer=22,
    ),
    Action(
        "stop",
        "burst",
        "X",
        "stop",
        "Stop the burst, the sweep or the change that runs; what was measured is kept.",
        Where.EVERYWHERE,
        Needs.WORK,
        footer=11,
        hide=True,
    ),
    Action(
        "ab",
        "burst",
        "A",
        "quick A/B",
        "Measure what is in force (A), apply the turned knobs (B), measure, decide; the winner stays.",
        Where.TUNE,
        CHANGE | Needs.NO_BURST | Needs.TURNS,
        Danger.INTERRUPTS,
        footer=23,
        hide=True,
        brief="A/B",
    ),
    Action("progress", "server", "p", "progress", "Show or hide the progress of the change.", Where.TUNE),
    Action(
        "refresh",
        "server",
        "ctrl+r",
        "read again",
        "Read every layer again now.",
        Where.TUNE,
        Needs.CONNECTED,
    ),
    Action(
        "zoom",
        "view",
        "z",
        "zoom",
        "Give the focused pane the whole screen; again or escape: back.",
        Where.PANES,
        footer=60,
    ),
    Action(
        "previous-pane",
        "view",
        "left_square_bracket",
        "previous pane",
        "Go to the pane before.",
        Where.PANES,
        shown="[",
    ),
    Action(
        "next-pane",
        "view",
        "right_square_bracket",
        "next pane",
        "Go to the pane after.",
        Where.PANES,
        shown="]",
    ),
    Action(
        "filter",
        "journal",
        "slash",
        "filter",
        "Filter the journal: text, /regex/, !not, >=warning.",
        footer=50,
        shown="/",
    ),
    # knob table
    Action("edit", "knobs", "e,space", "edit", "Edit the knob under the cursor.", Where.KNOBS, CHANGE),
    Action(
        "raise",
        "knobs",
        "plus,equals_sign",
        "raise",
        "Next preset up, or one more.",
        Where.KNOBS,
        CHANGE,
        shown="+",
    ),
    Action(
        "lower", "knobs", "minus", "lower", "Next preset down, or one less.", Where.KNOBS, CHANGE, shown="-"
    ),
    # checks
    Action(
        "next-step",
        "checks",
        "enter",
        "do what it says",
        "Take the check's next step.",
        Where.CHECKS,
        footer=10,
        shown="↵",
        brief="do it",
    ),
    Action("expand", "checks", "space", "evidence", "Show or hide the evidence of this check.", Where.CHECKS),
    Action(
        "open-evidence",
        "checks",
        "o",
        "open evidence",
        "Open what this check rests on: its line in the journal of this start, or the unit.",
        Where.CHECKS,
        footer=13,
        brief="open",
    ),
    Action(
        "other-step",
        "checks",
        "n",
        "other step",
        "Take the other step that this check offers.",
        Where.CHECKS,
        footer=12,
        brief="other",
    ),
    # journal
    Action(
        "pause",
        "journal",
        "space",
        "pause",
        "Hold the view still; new lines wait and are counted.",
        Where.JOURNAL,
        footer=30,
    ),
    Action(
        "follow", "journal", "G,end", "follow", "Go to the newest line and follow.", Where.JOURNAL, footer=31
    ),
    Action("top", "journal", "g,home", "oldest", "Go to the oldest line that is kept.", Where.JOURNAL),
    Action(
        "next-match",
        "journal",
        "n",
        "next match",
        "Go to the next match, or the next error.",
        Where.JOURNAL,
        footer=32,
    ),
    Action("previous-match", "journal", "N", "previous match", "Go to the match before.", Where.JOURNAL),
    Action(
        "only-matches",
        "journal",
        "m",
        "only matches",
        "Show only lines that match, or all with matches marked.",
        Where.JOURNAL,
        footer=34,
    ),
    Action(
        "level",
        "journal",
        "v",
        "level",
        "Least level that is shown: all, info, warning, error.",
        Where.JOURNAL,
        footer=33,
    ),
    Action(
        "wrap",
        "journal",
        "W",
        "wrap",
        "Wrap long lines, or cut them and scroll sideways.",
        Where.JOURNAL,
        footer=35,
    ),
    Action(
        "invert",
        "journal",
        "exclamation_mark",
        "invert",
        "Show the lines that do not match.",
        Where.JOURNAL,
        shown="!",
    ),
    Action("next-error", "journal", "e", "next error", "Go to the next error.", Where.JOURNAL),
    Action("previous-error", "journal", "E", "previous error", "Go to the error before.", Where.JOURNAL),
    Action(
        "time-jump",
        "journal",
        "at",
        "go to time",
        "Go to a time: 12:01, 2026-05-28 12:01, -5m, 2h ago; earlier lines are read from the host.",
        Where.JOURNAL,
        shown="@",
    ),
    Action(
        "bookmark",
        "journal",
        "B",
        "bookmark",
        "Set a bookmark at this line, or take it away.",
        Where.JOURNAL,
    ),
    Action(
        "next-bookmark",
        "journal",
        "right_curly_bracket",
        "next bookmark",
        "Go to the next bookmark.",
        Where.JOURNAL,
        shown="}",
    ),
    Action(
        "previous-bookmark",
        "journal",
        "left_curly_bracket",
        "previous bookmark",
        "Go to the bookmark before.",
        Where.JOURNAL,
        shown="{",
    ),
    Action(
        "fold",
        "journal",
        "o",
        "open traceback",
        "Show all lines of a traceback, or fold it again.",
        Where.JOURNAL,
    ),
    Action(
        "pin",
        "journal",
        "P",
        "pin pattern",
        "Count the lines of a pattern all the time; a pinned one is taken off.",
        Where.JOURNAL,
    ),
    Action(
        "mark",
        "journal",
        "M",
        "mark",
        "Write a marker into the journal view, with the host's time and this machine's.",
        Where.JOURNAL,
        Needs.CONNECTED,
    ),
    Action(
        "save",
        "journal",
        "S",
        "save to file",
        "Save the lines that are shown to a new file, secrets redacted.",
        Where.JOURNAL,
        Needs.DISK,
    ),
    Action(
        "copy",
        "journal",
        "y",
        "copy",
        "Copy the line under the cursor, or those that are selected.",
        Where.JOURNAL,
        footer=36,
    ),
    Action(
        "select",
        "journal",
        "V",
        "select lines",
        "Select lines from the cursor on: move, then copy them; again or escape: no more.",
        Where.JOURNAL,
    ),
    Action("left", "journal", "h,left", "left", "Scroll to the left.", Where.JOURNAL),
    Action("right", "journal", "l,right", "right", "Scroll to the right.", Where.JOURNAL),
    # charts
    Action(
        "read-next",
        "chart",
        "right,l",
        "next point",
        "Read the values of the next point.",
        Where.CHART,
        shown="→",
    ),
    Action(
        "read-previous",
        "chart",
        "left,h",
        "previous point",
        "Read the values of the point before.",
        Where.CHART,
        shown="←",
    ),
    Action(
        "next-slice",
        "chart",
        "down,j",
        "next slice",
        "The next context length (or concurrency) that the chart is cut at.",
        Where.CHART,
        shown="↓",
    ),
    Action("previous-slice", "chart", "up,k", "previous slice", "The one before.", Where.CHART, shown="↑"),
    # lists of steps
    Action(
        "all-hosts",
        "steps",
        "o",
        "other hosts",
        "Show the steps of all hosts, or of this one only.",
        Where.STEPS,
        footer=52,
    ),
    # compare
    Action(
        "pick-b",
        "compare",
        "b,enter",
        "as B",
        "Compare the step under the cursor: it is B.",
        Where.COMPARE,
        footer=1,
    ),
    Action(
        "pick-a",
        "compare",
        "a",
        "as A",
        "Compare with the step under the cursor: it is A.",
        Where.COMPARE,
        footer=2,
    ),
    Action(
        "baseline-as-a",
        "compare",
        "B",
        "baseline as A",
        "Compare with the baseline: the step noted as such, else the first one measured.",
        Where.COMPARE,
        footer=3,
        brief="baseline",
    ),
    Action("swap", "compare", "w", "swap", "A becomes B, and B becomes A.", Where.COMPARE, footer=4),
    Action(
        "metric",
        "compare",
        "m",
        "metric",
        "The next metric: first in the table and in the heat map.",
        Where.COMPARE,
        footer=5,
    ),
    Action(
        "knowingly",
        "compare",
        "Y",
        "knowingly",
        "Compare although the two are not comparable; what differs is said.",
        Where.COMPARE,
        footer=6,
        hide=True,
    ),
    # history
    Action(
        "kind",
        "history",
        "v",
        "kind",
        "List the next kind: steps, bursts, changes, sweeps, notes.",
        Where.HISTORY,
        footer=2,
    ),
    Action(
        "note",
        "history",
        "n",
        "note",
        "Add a note to what is under the cursor.",
        Where.HISTORY,
        Needs.DISK,
        footer=3,
    ),
    Action(
        "compare-this",
        "history",
        "enter",
        "compare",
        "Compare the step under the cursor with the baseline.",
        Where.HISTORY,
        footer=1,
        shown="↵",
    ),
    Action(
        "mark-baseline",
        "history",
        "B",
        "baseline",
        "Make the step under the cursor the baseline that others are compared with.",
        Where.HISTORY,
        Needs.DISK,
        footer=4,
    ),
    Action(
        "delete",
        "history",
        "d,delete",
        "delete",
        "Delete the step or burst under the cursor with its raw records; asks first.",
        Where.HISTORY,
        Needs.DISK,
        footer=5,
    ),
    Action(
        "export",
        "history",
        "e",
        "export",
        "Write the history to a file as JSON lines.",
        Where.HISTORY,
        Needs.DISK,
        footer=6,
    ),
    Action(
        "import",
        "history",
        "i",
        "import",
        "Take in an exported history; what is there stays as it is.",
        Where.HISTORY,
        Needs.DISK,
        footer=7,
    ),
    # sweep
    Action(
        "start",
        "sweep",
        "ctrl+s",
        "start",
        "Run the sweep as it is set up here; shows what it takes and asks first.",
        Where.SWEEP,
        CHANGE | Needs.NO_BURST,
        Danger.INTERRUPTS,
        footer=1,
    ),
    Action(
        "continue",
        "sweep",
        "ctrl+g",
        "go on",
        "Go on with the earlier sweep under the cursor where it was.",
        Where.SWEEP,
        CHANGE | Needs.NO_BURST,
        Danger.INTERRUPTS,
        footer=2,
    ),
    Action(
        "open-plan",
        "sweep",
        "i",
        "open plan",
        "Set up what a plan in a YAML file says.",
        Where.SWEEP,
        footer=4,
    ),
    Action(
        "save-plan",
        "sweep",
        "e",
        "save plan",
        "Write what is set up here to a YAML file, for `ddtui sweep --plan`.",
        Where.SWEEP,
        Needs.DISK,
        footer=5,
    ),
    Action(
        "calibrate",
        "sweep",
        "K",
        "calibrate",
        "Restart and measure the setting in force again and again: the noise of restarts.",
        Where.SWEEP,
        CHANGE | Needs.NO_BURST,
        Danger.INTERRUPTS,
        footer=3,
    ),
    # connect
    Action("retry", "host", "r", "try again", "Connect again.", Where.CONNECT, footer=10),
    Action("give-up", "host", "escape", "stop", "Stop connecting.", Where.CONNECT),
    # everywhere
    Action("tune", "go to", "1", "tune", "Layers, checks, knobs and charts on one screen.", footer=80),
    Action("logs", "go to", "2", "logs", "The journal on the whole screen.", footer=81),
    Action("bursts", "go to", "3", "bursts", "Every burst of this session with its numbers.", footer=82),
    Action(
        "compare",
        "go to",
        "4,c",
        "compare",
        "Two steps side by side: the answer in a sentence, then the table.",
        footer=83,
    ),
    Action(
        "sweep", "go to", "5,s", "sweep", "Many settings, unattended: set up, watch, go on with.", footer=84
    ),
    Action(
        "history",
        "go to",
        "6",
        "history",
        "Everything that was tried and measured, with charts and advice.",
        footer=85,
    ),
    Action("hosts", "go to", "H", "hosts", "Another host; each that is open goes on and keeps its state."),
    Action(
        "layers",
        "go to",
        "L",
        "layers",
        "Every layer: what it said, how old that is, and why one could not be read.",
    ),
    Action("commands", "go to", "C", "command log", "Every command that ddtui ran on the host."),
    Action("help", "help", "question_mark", "help", "The keys of where you are.", footer=90, shown="?"),
    Action(
        "palette",
        "help",
        "ctrl+p,colon",
        "palette",
        "Every action by name.",
        footer=91,
        brief="",
        shown="^p",
    ),
    Action("theme", "view", "T", "theme", "Choose a theme."),
    Action("quit", "help", "q,ctrl+q", "quit", "Leave ddtui; nothing on the host changes.", footer=92),
)

BY_ID: Mapping[str, Action] = {action.id: action for action in ACTIONS}


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


def at(*places: Where) -> tuple[Action, ...]:
    """The actions of these places and of everywhere."""
    wanted = {Where.EVERYWHERE, *places}
    return tuple(action for action in ACTIONS if action.where in wanted)


def own(place: Where) -> tuple[Action, ...]:
    """The actions of this place only."""
    return tuple(action for action in ACTIONS if action.where is place)


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


BESIDE_KNOBS = (Where.TUNE, Where.PANES, Where.EVERYWHERE)  # whose keys answer wherever a knob's does
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


def keys_of(action: Action, keymap: Mapping[str, str]) -> tuple[str, ...]:
    """The keys of an action under the user's keymap."""
    return tuple(key.strip() for key in keymap.get(action.id, action.keys).split(",") if key.strip())


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
