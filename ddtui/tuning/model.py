"""The words of the tuning room: layers, readings, evidence, verdicts, plans, changes. All frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from ddtui.sanitize import sanitize

T_co = TypeVar("T_co", covariant=True)


def _make_inert(thing: object, *names: str) -> None:
    """Fields whose words come from the host, so that no one who makes or shows them needs to think of it."""
    for name in names:
        text = getattr(thing, name)
        if text is not None and not text.isprintable():
            object.__setattr__(thing, name, sanitize(text))


class Layer(StrEnum):
    """A place where a setting lives. Each can override or ignore the one before it."""

    DRAFTER = "drafter config"
    ENGINE = "engine"
    UNIT = "unit"
    PROCESS = "process"
    SERVER = "server"
    JOURNAL = "journal"
    MEASURED = "measured"


@dataclass(frozen=True, slots=True)
class Reading(Generic[T_co]):
    """What one layer said when it was last read. Exactly one of `value` and `problem` is there,
    or neither while it has not been read."""

    layer: Layer
    value: T_co | None = None
    problem: str | None = None  # one sentence: what, where, what to do
    read_at: float | None = None  # unix time on this machine


@dataclass(frozen=True, slots=True)
class Evidence:
    """One line that a verdict rests on."""

    layer: Layer
    text: str
    source: str = (
        ""  # "/path/config.json", "/etc/…/x.service:12", "pid 41210", "GET /server_info", "12:01:07"
    )
    read_at: float | None = None

    def __post_init__(self) -> None:
        _make_inert(self, "text", "source")


class Status(StrEnum):
    IN_FORCE = "in force"
    NOT_IN_FORCE = "not in force"
    CONFLICTING = "conflicting"
    RESTART_PENDING = "restart pending"
    RELOAD_PENDING = "reload pending"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class NextAction:
    """What the operator can do from a verdict: an action's id (see ddtui/actions/) with arguments."""

    action: str  # "turn", "restart", "reload", "open-log", "burst"
    label: str
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the layers say together about one setting."""

    subject: str  # knob name, or "window.layers" (config's sliding layers honoured?), "window.flag"
    title: str  # "draft window: the config's own sliding layers"
    status: Status
    value: str | None  # the value that is (or should be) in force, for display
    summary: str  # one sentence
    evidence: tuple[Evidence, ...]
    settle: str | None = None  # when unknown: what would settle it
    next: tuple[NextAction, ...] = ()

    def __post_init__(self) -> None:
        _make_inert(self, "title", "value", "summary", "settle")

    @property
    def fine(self) -> bool:
        return self.status is Status.IN_FORCE


@dataclass(frozen=True, slots=True)
class KnobRow:
    """One knob across the layers, as text for the service pane; None: not set there or not known."""

    name: str
    flag: str
    in_unit: str | None
    running: str | None
    server: str | None
    default: str | None = None  # what the engine takes if the flag is absent, where it is known


class Op(StrEnum):
    SET = "set"
    UNSET = "unset"


@dataclass(frozen=True, slots=True)
class Turn:
    """A wish: set a flag (or environment variable) to a value, or take it away."""

    knob: str  # the knob's name, or the flag itself for any other flag ("--mem-fraction-static")
    op: Op
    value: str | None = None  # None with SET: a switch without value


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One file before and after. `before` None: it does not exist yet; `after` None: it is removed."""

    path: str
    before: bytes | None
    after: bytes | None
    ours: bool  # ddtui's own drop-in, or a file of the operator's
    like: str | None = None  # for a new file: the existing one whose owner and mode it takes


@dataclass(frozen=True, slots=True)
class FileTrace:
    """What a change did to one file, by hashes. The contents are kept on the host, with the file's mode."""

    path: str
    before: str | None  # sha256; None: it did not exist
    after: str | None  # sha256; None: it was removed
    ours: bool
    like: str | None = None


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What must not have moved between plan and apply."""

    files: Mapping[str, str]  # path -> sha256 of its content, "" if absent
    invocation: str  # systemd's InvocationID; "": the service is in a crash loop, and has many
    engine: str  # version and install path


@dataclass(frozen=True, slots=True)
class Plan:
    """An exact change, ready to be read and confirmed."""

    unit: str
    turns: tuple[Turn, ...]
    edits: tuple[FileEdit, ...]
    argv_before: tuple[str, ...]
    argv_after: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]  # exactly what will be run, in order, for display
    diff: str  # unified diff of all edits, secrets redacted
    fingerprint: Fingerprint
    interrupts: str  # "3 running requests, 0 queued" or why that is not known
    last_starts: tuple[float, ...]  # seconds to ready of the last starts, newest first
    problems: tuple[str, ...] = ()  # why it must not be applied: each a sentence
    warnings: tuple[str, ...] = ()  # what to know before applying
    why: str = ""  # the operator's note
    exec_start_after: tuple[
        tuple[str, ...], ...
    ] = ()  # what systemd must hold after the reload; (): not known
    restores: str | None = None  # a roll back: the change whose setting it leads to ("": before every change)


class Phase(StrEnum):
    """Where a change is. The order of a good run is the order here, up to READY or VERIFIED."""

    PLANNED = "planned"
    LOCKING = "locking"
    WRITING = "writing"
    RELOADING = "reloading"
    CHECKING = "checking what systemd loaded"
    DRAINING = "draining"
    STOPPING = "stopping"
    STARTING = "starting"
    VERIFYING = "verifying"
    VERIFIED = "verified"
    UNVERIFIED = "applied, not all in force"  # the server is ready, and a turned knob is not proven in force
    FAILED = "failed"
    ROLLING_BACK = "rolling back"
    ROLLED_BACK = "rolled back"
    STRANDED = "failed and not rolled back"

    @property
    def final(self) -> bool:
        """Whether a change in this phase is over."""
        return self in FINAL


FINAL = frozenset(
    {Phase.VERIFIED, Phase.UNVERIFIED, Phase.FAILED, Phase.ROLLED_BACK, Phase.STRANDED},
)  # FAILED is final when the change never reached the running server, and its files are as before


@dataclass(frozen=True, slots=True)
class Progress:
    """A change at one moment."""

    phase: Phase
    text: str  # what is happening, in words
    fraction: float | None = None  # of the start-up, 0..1, never goes back within one start
    eta_seconds: float | None = None
    elapsed: float = 0.0
    change: str | None = None  # the change's id
    failure: str | None = None  # the cause in a sentence
    evidence: tuple[str, ...] = ()  # journal lines the failure rests on
    advice: str | None = None  # what to try
    running: int | None = None  # while draining: requests that still run, by the server's own count
    verdicts: tuple[
        Verdict, ...
    ] = ()  # at the end: what the survey after the change says of each turned knob
    way_back: tuple[str, ...] = ()  # shell commands that undo the change without ddtui
    stages: tuple[str, ...] = ()  # that its supervisor takes, in order; (): not known yet


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """What is kept beside the unit on the host and in the local history."""

    id: str  # sortable: UTC time and a random tail
    at: float
    who: str  # user@machine:pid
    unit: str
    turns: tuple[Turn, ...]
    why: str
    files: tuple[FileTrace, ...]
    argv_before: tuple[str, ...]  # redacted
    argv_after: tuple[str, ...]  # redacted
    phase: Phase  # VERIFIED, ROLLED_BACK, STRANDED, or where it was cut
    result: str
    seconds_to_ready: float | None = None
    restores: str | None = None  # the change whose setting it went back to; "": the one before every change
    invocation: str = ""  # systemd's InvocationID when it began
    timings: Mapping[str, float] = field(
        default_factory=dict
    )  # start-up phase -> seconds, of a start that got ready
    loads: str = ""  # hash of the command line that systemd must hold after the reload
