"""Plan → apply → watch → verify, or roll back: a change of a live server that survives a cut at any point."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from ddtui.tuning.context import Tuning
from ddtui.tuning.model import ChangeRecord, Plan, Progress


@dataclass(frozen=True, slots=True)
class Stuck:
    """The server does not stop: what is known, for the question whether to kill it."""

    seconds: float
    running: int | None  # requests that still run, by the server's own count
    text: str


AskKill = Callable[[Stuck], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Pending:
    """A change that was cut: found in the host's own record."""

    record: ChangeRecord
    on_disk: str  # "before", "after", "between", "changed by hand"
    text: str  # what happened, in a sentence


def apply(
    ctx: Tuning, plan: Plan, *, roll_back: bool = True, ask_kill: AskKill | None = None
) -> AsyncIterator[Progress]:
    """Carry the plan out. The last Progress has a final phase. Raises StalePlan, Locked, NotPermitted, HostError.

    `ask_kill` is asked when the old server does not stop within the profile's limit; without it ddtui waits on for
    systemd's own limit. Closing the iterator leaves the change where it is: `pending` finds it.
    """
    raise NotImplementedError


def restart(ctx: Tuning, *, ask_kill: AskKill | None = None, why: str = "") -> AsyncIterator[Progress]:
    """Restart the service (after a daemon-reload if one is pending) and watch it until it is ready."""
    raise NotImplementedError


async def pending(ctx: Tuning) -> Pending | None:
    """The change that was cut and is neither finished nor undone; None: all is done."""
    raise NotImplementedError


def resume(
    ctx: Tuning, cut: Pending, *, undo: bool = False, roll_back: bool = True, ask_kill: AskKill | None = None
) -> AsyncIterator[Progress]:
    """Finish a cut change, or undo it."""
    raise NotImplementedError
