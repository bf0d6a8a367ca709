"""Reading every layer on its own: what it says, how old that is, and its own failure; the others go on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ddtui.tuning.context import Tuning
from ddtui.tuning.model import KnobRow, Layer, Reading

if TYPE_CHECKING:
    from ddtui.engine.api import Loads, ServerInfo
    from ddtui.engine.drafter import DrafterConfig
    from ddtui.engine.evidence import JournalEvidence
    from ddtui.engine.installation import Installation
    from ddtui.host.service import ServerProcess, ServiceStatus
    from ddtui.host.unit.read import UnitReading
    from ddtui.tuning.measured import Measured


@dataclass(frozen=True, slots=True)
class Survey:
    """What all layers said. A layer that was not read has an empty `Reading`."""

    at: float  # unix time on this machine
    drafter: Reading[DrafterConfig]
    engine: Reading[Installation]
    unit: Reading[UnitReading]
    process: Reading[ServerProcess]
    server: Reading[ServerInfo]
    journal: Reading[JournalEvidence]
    measured: Reading[Measured]
    status: ServiceStatus | None = None
    loads: Loads | None = None  # running and waiting requests, by the server's own numbers
    round_trips: int = 0  # how many this survey took
    stamps: Mapping[str, str] = field(default_factory=dict)  # path -> mtime, size and inode of the files read


async def read(ctx: Tuning, previous: Survey | None = None, only: Collection[Layer] | None = None) -> Survey:
    """Read all layers, or again those that may have moved since `previous`, or exactly `only`.

    Raises HostError only when the host cannot be reached at all; everything else is a layer's own `problem`.
    """
    raise NotImplementedError


def knob_rows(survey: Survey, ctx: Tuning) -> tuple[KnobRow, ...]:
    """Each knob of the profile across unit, process and server, for the service pane."""
    raise NotImplementedError
