"""Watching a host and its service: one frozen `WatchState` after another, for whoever subscribes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ddtui.host.base import Link
from ddtui.tuning.change import Pending
from ddtui.tuning.context import Tuning
from ddtui.tuning.lock import LockState
from ddtui.tuning.model import KnobRow, Layer, Verdict
from ddtui.tuning.survey import Survey

if TYPE_CHECKING:
    from ddtui.engine.api import Loads
    from ddtui.host.service import ServiceStatus


@dataclass(frozen=True, slots=True)
class WatchState:
    """Everything known of the host at one moment. Nothing here is younger than its own `read_at`."""

    link: Link
    survey: Survey | None = None
    verdicts: tuple[Verdict, ...] = ()
    knobs: tuple[KnobRow, ...] = ()
    status: ServiceStatus | None = None
    status_at: float | None = None  # unix time
    loads: Loads | None = None
    loads_at: float | None = None
    step: int | None = None  # number of the setting in force, from the history
    lock: LockState | None = None
    pending: Pending | None = None  # a change that was cut
    read_only: str | None = None  # why nothing may be changed
    simulated: bool = False
    problem: str | None = None  # why the last poll gave nothing
    notices: tuple[str, ...] = field(default=())  # "unit changed by hand at 12:01:07", newest last


class Watch:
    """Polls cheaply, surveys when something moved, and survives the loss of the link."""

    def __init__(self, ctx: Tuning, *, interval: float = 2.0) -> None:
        raise NotImplementedError

    @property
    def state(self) -> WatchState:
        raise NotImplementedError

    def subscribe(self, callback: Callable[[WatchState], None]) -> Callable[[], None]:
        """Call back with every new state. Returns the function that ends it."""
        raise NotImplementedError

    async def run(self) -> None:
        """Watch until cancelled."""
        raise NotImplementedError

    async def refresh(self, layer: Layer | None = None) -> None:
        """Survey now: all layers, or one."""
        raise NotImplementedError
