"""One change at a time: a lock on the host, with its owner and age, that any console can see."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from ddtui.host.base import HostError
from ddtui.tuning.context import Tuning


@dataclass(frozen=True, slots=True)
class LockState:
    """Who holds the lock of a unit."""

    token: str
    owner: str  # user@machine:pid
    boot: str  # boot id of the owner's machine
    purpose: str  # "apply budget=16", "sweep 12 steps"
    taken_at: float  # unix time by the host's clock
    age: float  # seconds since it was last renewed, by the host's clock
    stale: bool  # not renewed for longer than a live owner ever takes
    ours: bool  # this ddtui holds it


class Locked(HostError):
    """Somebody else holds the lock. `holder` says who, since when and what for."""

    def __init__(self, holder: LockState) -> None:
        self.holder = holder
        super().__init__(f"{holder.owner} holds the lock: {holder.purpose}")


class LockLost(HostError):
    """The lock was taken over by another owner while we held it."""


async def look(ctx: Tuning) -> LockState | None:
    """Who holds the lock now. None: nobody."""
    raise NotImplementedError


def hold(
    ctx: Tuning, purpose: str, *, take_over: str | None = None
) -> AbstractAsyncContextManager[LockState]:
    """Hold the lock, renewed in the background, for as long as the context lasts.

    `take_over`: the token of a stale lock that the operator has seen and decided to take. Raises Locked, NotPermitted.
    """
    raise NotImplementedError
