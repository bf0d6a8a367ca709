"""One profile's work, from connecting to closing: the console's one door to the rooms below.

`Session` is what the console asks for; `open_session` gives the real one. Tests give a scripted one. Knows
nothing of Textual. Everything heavy is imported when it is first needed, after the first paint.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ddtui.bench.model import Burst, BurstSpec
from ddtui.host.base import Asker, LoggedCommand
from ddtui.profile import Profile
from ddtui.sanitize import Span
from ddtui.tuning.model import Plan, Progress, Turn
from ddtui.view import Decode, TuneView

if TYPE_CHECKING:
    from ddtui.bench.experiment import ExperimentPlan
    from ddtui.bench.quality import Quality
    from ddtui.host.base import Host
    from ddtui.past import Past
    from ddtui.store.history import History
    from ddtui.tuning.experiments import ExperimentState
    from ddtui.tuning.forecast import Forecast


# asked with one sentence when the old server does not stop: whether to kill it
AskKill = Callable[[str], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class JournalLine:
    """One line of the service's journal as the console shows it: sanitised and redacted."""

    at: float  # unix time
    text: str
    priority: int = 6  # syslog's: 3 error, 4 warning, 6 info, 7 debug
    decode: Decode | None = None  # what a `Decode batch` line says
    mark: bool = False  # ddtui's own marker: a change, a burst, a lost link
    spans: tuple[Span, ...] = ()  # the line's own colours
    cursor: str = ""  # its place in the host's journal
    pid: int | None = None


class Session(Protocol):
    """What the console may ask of the rooms. Failures are exceptions whose `str()` is one sentence."""

    @property
    def profile(self) -> Profile: ...

    @property
    def now(self) -> TuneView:
        """What is known at this moment."""
        ...

    def on_view(self, callback: Callable[[TuneView], None]) -> None:
        """Call back on the loop whenever what is known has changed."""
        ...

    def on_command(self, callback: Callable[[LoggedCommand], None]) -> None:
        """Call back after each command that ran on the host."""
        ...

    async def connect(self, asker: Asker) -> None:
        """Connect; asks where the host wants something only a person knows."""
        ...

    async def watch(self) -> None:
        """Keep reading every layer, until cancelled."""
        ...

    async def refresh(self) -> None:
        """Read every layer again now."""
        ...

    def journal(self) -> AsyncIterator[Sequence[JournalLine]]:
        """The service's journal: the last lines at once, then what comes, across reconnects."""
        ...

    async def earlier_lines(self, before: str, count: int) -> Sequence[JournalLine]:
        """Up to `count` lines before the one with this cursor, oldest first; none: it is the first."""
        ...

    async def host_time(self) -> float:
        """What the host's clock says now, unix time."""
        ...

    async def unit_text(self, file: str) -> Sequence[str]:
        """The unit with its drop-ins, as systemd reads them; and `file`, if it is none of them."""
        ...

    async def start_lines(self) -> Sequence[str]:
        """The journal of the running server's start, each line with its time."""
        ...

    async def plan(self, turns: Sequence[Turn]) -> Plan:
        """The exact change for these turns."""
        ...

    async def plan_back(self) -> Plan:
        """The change that leads back to the last verified setting."""
        ...

    def apply(self, plan: Plan, ask_kill: AskKill) -> AsyncIterator[Progress]:
        """Carry a plan out, of either kind."""
        ...

    def restart(self, ask_kill: AskKill) -> AsyncIterator[Progress]: ...

    def resume(self, *, undo: bool, ask_kill: AskKill) -> AsyncIterator[Progress]:
        """Finish the change that was cut (`TuneView.cut`), or undo it."""
        ...

    def burst(self, spec: BurstSpec) -> AsyncIterator[Burst]:
        """Closing the iterator cancels the burst; what was measured is kept."""
        ...

    async def check_output(self, tell: Callable[[str, float], None]) -> Quality:
        """Greedy answers to the coding tasks, compared and tested; kept in the history.

        `tell`: what it is at, and which part of it is done.
        """
        ...

    async def earlier_bursts(self) -> Sequence[Burst]:
        """Bursts of this host and unit from the history, newest first."""
        ...

    # decisions

    @property
    def past(self) -> Past | None:
        """What was tried and measured so far. None: there is no history; a notice says why."""
        ...

    async def forecast(self, wanted: ExperimentPlan, *, hosts: int = 1) -> Forecast:
        """The plan of a sweep, A/B or calibration made ready, and what it takes. Changes nothing.

        `hosts`: how many share it.
        """
        ...

    def experiment(
        self, what: ExperimentPlan | str, *, also: Sequence[Profile] = (), asker: Asker | None = None
    ) -> AsyncIterator[ExperimentState]:
        """Run a plan that was made ready, or go on with the earlier one of that id.

        `also`: further hosts of the same kind that share it; `asker` answers what they ask.

        Closing the iterator stops it where it is; what was measured is kept.
        """
        ...

    async def close(self) -> None: ...


def open_session(
    profile: Profile,
    *,
    read_only: bool = False,
    host: Host | None = None,
    history: History | None = None,
    refresh: float = 2.0,
) -> Session:
    """The real session. `host` and `history` are made from the profile when not given; `refresh`: seconds
    between two looks at the host.
    """
    from ddtui.live import LiveSession

    return LiveSession(profile, read_only=read_only, host=host, history=history, refresh=refresh)
