"""What the console shows at one moment: frozen, plain, already safe to draw.

The session makes these from what the rooms publish; screens and widgets only read them. Text in here has been
sanitised and redacted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from ddtui.bench.model import Burst, BurstState
from ddtui.host.base import Link, LinkState
from ddtui.host.gpu import GpuLoad
from ddtui.profile import Knob, Profile
from ddtui.tuning.model import KnobRow, Layer, Op, Progress, Turn, Verdict

if TYPE_CHECKING:
    from ddtui.tuning.experiments import ExperimentState


@dataclass(frozen=True, slots=True)
class Fact:
    """One labelled value; `note` is shown dim after it. None: not known."""

    label: str
    value: str | None
    note: str = ""
    warn: bool = False


@dataclass(frozen=True, slots=True)
class DrafterView:
    """The drafter's config as it stands on the host's disk."""

    name: str | None = None
    path: str | None = None
    facts: tuple[Fact, ...] = ()
    problem: str | None = None
    read_at: float | None = None


@dataclass(frozen=True, slots=True)
class FlagRow:
    """One flag of the server, in the unit and in the running process; `switch`: given without a value."""

    flag: str
    in_unit: str | None
    running: str | None
    source: str = ""  # file:line of the unit's value
    help: str = ""


@dataclass(frozen=True, slots=True)
class ServiceView:
    """The unit and its process as systemd and /proc tell."""

    unit: str = ""
    active: str | None = None  # ActiveState; None: not read
    sub: str = ""
    since: float | None = None  # unix time by this machine's clock; None: not known
    pid: int | None = None
    restarts: int = 0
    problem: str | None = None
    warnings: tuple[str, ...] = ()
    flags: tuple[FlagRow, ...] = ()
    read_at: float | None = field(default=None, compare=False)  # that alone is no news


@dataclass(frozen=True, slots=True)
class ServerView:
    """What the server itself answers."""

    version: str | None = None
    algorithm: str | None = None
    running: int | None = None  # requests
    queued: int | None = None
    problem: str | None = None
    read_at: float | None = field(default=None, compare=False)  # that alone is no news


@dataclass(frozen=True, slots=True)
class LayerView:
    """One layer's reading: how old it is, what it said, or why there is none."""

    name: str
    read_at: float | None = None  # unix time
    problem: str | None = None
    lines: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it could not be read; that nothing was measured yet is no failure."""
        return self.problem is not None and self.name != Layer.MEASURED


@dataclass(frozen=True, slots=True)
class TuneView:
    """Everything that is known of the host and its service."""

    link: Link
    drafter: DrafterView = DrafterView()
    service: ServiceView = ServiceView()
    server: ServerView = ServerView()
    knobs: tuple[KnobRow, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    layers: tuple[LayerView, ...] = ()
    known_flags: tuple[FlagRow, ...] = ()  # all that the installed engine takes
    step: int | None = None
    read_only: str | None = None  # why; None: changes are possible
    simulated: bool = False
    others: tuple[str, ...] = ()  # who else is at work here: who holds the lock
    stale_lock: str | None = (
        None  # whose lock was left behind, in words: a change asks before it takes it over
    )
    notices: tuple[str, ...] = ()  # what moved by itself, newest last: "unit changed by hand at 12:01:07"
    cut: str | None = None  # a change that was cut and is neither finished nor undone: what happened
    gpus: tuple[GpuLoad, ...] = ()
    gpus_unknown: str = ""  # why there are none
    people: tuple[str, ...] = ()  # who is logged in on the host: "ann from 10.0.0.5"
    ahead: float = 0.0  # seconds that the host's clock is ahead of this machine's
    surveyed: bool = False  # every layer has been read at least once


ChangeKind = Literal["apply", "restart", "roll back", "finish", "undo"]


@dataclass(frozen=True, slots=True)
class ChangeView:
    """The change that runs, or the last one that ran."""

    kind: ChangeKind
    title: str  # "window 2048"
    progress: Progress
    done: bool = False
    started_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Decode:
    """One `Decode batch` line of the journal, or as much of it as was there."""

    at: float
    rate: float | None = None  # tok/s
    accept_length: float | None = None
    running: int | None = None
    queued: int | None = None
    whole: bool = True  # it speaks for the whole server, not for one of several data-parallel ranks


@dataclass(frozen=True, slots=True)
class View:
    """The whole console at one moment."""

    profile: Profile
    tune: TuneView
    turns: Mapping[str, Turn] = field(default_factory=dict)  # turned and not applied yet, by knob or flag
    change: ChangeView | None = None
    bursts: tuple[Burst, ...] = ()  # newest first; the first one may still run
    experiment: ExperimentState | None = None  # the sweep, A/B or calibration that runs, or the last one

    @property
    def connected(self) -> bool:
        return self.tune.link.state is LinkState.CONNECTED

    @property
    def changing(self) -> bool:
        return self.change is not None and not self.change.done

    @property
    def trying(self) -> bool:
        """Whether a sweep, an A/B or a calibration runs."""
        return self.experiment is not None and self.experiment.state == "running"

    @property
    def burst(self) -> Burst | None:
        """The burst that runs."""
        return next((b for b in self.bursts if b.state in RUNNING), None)

    @property
    def possible(self) -> tuple[object, ...]:
        """What decides which actions can be done now."""
        bursting = self.burst is not None
        return self.connected, self.tune.read_only, self.changing, bursting, bool(self.turns), self.trying

    @property
    def overlay(self) -> tuple[Burst | None, Burst | None]:
        """The bursts to draw over each other: the step before (A) and the newest step (B)."""
        with_points = [burst for burst in self.bursts if burst.points]
        if not with_points:
            return None, None
        newest = with_points[0]
        before = next((b for b in with_points[1:] if b.step != newest.step), None)
        return before, newest

    def knob_of(self, name: str) -> Knob | None:
        """The profile's knob of that name, None for any other flag."""
        return next((knob for knob in self.profile.knobs if knob.name == name), None)

    def row_of(self, name: str) -> KnobRow | None:
        return next((row for row in self.tune.knobs if row.name == name), None)

    def with_turn(self, turn: Turn) -> View:
        """The view with this wish; a wish for what the unit already says is no wish."""
        row = self.row_of(turn.knob)
        now = row.in_unit if row is not None else self.flag_in_unit(turn.knob)
        turns = {name: kept for name, kept in self.turns.items() if name != turn.knob}
        same = now is None if turn.op is Op.UNSET else now is not None and now == (turn.value or "on")
        if not same:
            turns[turn.knob] = turn
        return replace(self, turns=turns)

    def flag_in_unit(self, flag: str) -> str | None:
        return next((row.in_unit for row in self.tune.service.flags if row.flag == flag), None)

    def without_turns(self) -> View:
        return replace(self, turns={})


RUNNING = frozenset({BurstState.WAITING, BurstState.PREPARING, BurstState.RUNNING})


def next_value(view: View, row: KnobRow) -> str | None:
    """What the knob will be: the wish if there is one, else what the unit says."""
    turn = view.turns.get(row.name)
    if turn is None:
        return row.in_unit
    return None if turn.op is Op.UNSET else (turn.value or "on")
