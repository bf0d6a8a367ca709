"""Reading every layer on its own: what it says, how old that is, and its own failure; the others go on.

A first survey reads the service (status, unit, process), then side by side the drafter's config, the engine's
source, the journal of this start and the server's answer. A later one looks first at what may have moved,
systemd's status and the times of the files that the last survey rested on, and reads only that again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ddtui.tuning.context import Tuning
from ddtui.tuning.model import KnobRow, Layer, Reading

if TYPE_CHECKING:
    from ddtui.engine.api import ServerInfo
    from ddtui.engine.drafter import DrafterConfig
    from ddtui.engine.evidence import JournalEvidence
    from ddtui.engine.installation import Installation
    from ddtui.host.base import Link
    from ddtui.host.gpu import GpuReading
    from ddtui.host.service import ServerProcess, ServiceReading, ServiceStatus
    from ddtui.host.unit.read import UnitReading
    from ddtui.tuning.measured import Measured


AT_WORK, ROUND_TRIPS = 2.0, 8  # seconds of work on the host, and the ways there and back, of a first reading


@dataclass(frozen=True, slots=True)
class Survey:
    """What all layers said. A layer that was not read has an empty `Reading`."""

    at: float  # unix time on this machine
    drafter: Reading[DrafterConfig] = field(default=Reading(Layer.DRAFTER))
    engine: Reading[Installation] = field(default=Reading(Layer.ENGINE))
    unit: Reading[UnitReading] = field(default=Reading(Layer.UNIT))
    process: Reading[ServerProcess] = field(default=Reading(Layer.PROCESS))
    server: Reading[ServerInfo] = field(default=Reading(Layer.SERVER))
    journal: Reading[JournalEvidence] = field(default=Reading(Layer.JOURNAL))
    measured: Reading[Measured] = field(default=Reading(Layer.MEASURED))
    status: ServiceStatus | None = None
    service: ServiceReading | None = None  # status, unit and process as the host room read them
    stamps: Mapping[str, float] = field(default_factory=dict)  # path -> mtime by the host's clock, 0: absent
    drafter_path: str | None = None  # the folder or repo id that the profile or the flags name
    python: str | None = None  # the interpreter that the engine was read with
    round_trips: int = 0  # how many this survey took
    gpus: GpuReading | None = None  # which the host has, by the first reading; None: not read

    @property
    def readings(self) -> tuple[Reading[object], ...]:
        """The layers in their order, from the disk to what was measured."""
        return (
            self.drafter,
            self.engine,
            self.unit,
            self.process,
            self.server,
            self.journal,
            self.measured,
        )

    @property
    def changed_at(self) -> Mapping[str, float]:
        """When files were last changed, by the host's clock: path -> unix time."""
        return {**(self.service.changed_at if self.service else {}), **self.stamps}

    @property
    def restart_pending(self) -> str | None:
        """Why the running process is not what is on disk, in a sentence."""
        return self.service.restart_pending if self.service else None

    @property
    def reload_pending(self) -> str | None:
        """Why systemd has not loaded what is on disk, in a sentence."""
        return self.service.reload_pending if self.service else None


def usual_seconds(link: Link) -> float:
    """How long the first reading of every layer takes over this link, about."""
    return AT_WORK + ROUND_TRIPS * (link.rtt_ms or 0.0) / 1000


async def read(ctx: Tuning, previous: Survey | None = None, only: Collection[Layer] | None = None) -> Survey:
    """Read all layers, or again those that may have moved since `previous`, or exactly `only`.

    Raises HostError only when the host cannot be reached at all; everything else is a layer's own `problem`.
    """
    from ddtui.tuning import layers

    ctx, counter = layers.counted(ctx)
    survey = previous or Survey(time.time())
    if only is not None:
        moved = frozenset(only)
    elif previous is None or previous.service is None:
        moved = frozenset(Layer)
    else:
        survey, moved = await layers.look(ctx, previous)
    if moved & {Layer.UNIT, Layer.PROCESS} or survey.service is None:
        survey = await layers.read_service(ctx, survey)
        moved |= layers.follows(ctx, survey, previous) if only is None else frozenset()
    readers = {
        Layer.DRAFTER: layers.read_drafter,
        Layer.ENGINE: layers.read_engine,
        Layer.JOURNAL: layers.read_journal,
        Layer.SERVER: layers.read_server,
    }
    wanted = [reader(ctx, survey) for layer, reader in readers.items() if layer in moved]
    if survey.gpus is None:
        wanted.append(layers.read_gpus(ctx))
    found = await asyncio.gather(*wanted)
    for fields in found:
        stamps = fields.pop("stamps", {})
        survey = replace(survey, **fields, stamps={**survey.stamps, **stamps})
    if Layer.MEASURED in moved:
        survey = replace(survey, measured=layers.read_measured(ctx, survey))
    return replace(survey, at=time.time(), round_trips=counter.round_trips)


def knob_rows(survey: Survey, ctx: Tuning) -> tuple[KnobRow, ...]:
    """Each knob of the profile across unit, process and server, for the service pane."""
    from ddtui.tuning import said

    rows = []
    for knob in ctx.profile.knobs:
        if knob.flag is None:
            unit = survey.unit.value
            value = unit.environment.get(knob.env or "") if unit else None
            rows.append(KnobRow(knob.name, knob.env or "", value, None, None))
            continue
        known = said.table(survey).find(knob.flag)
        default = said.as_text(known.default) if known and known.default_known else None
        rows.append(
            KnobRow(
                name=knob.name,
                flag=knob.flag,
                in_unit=said.by_unit(survey, knob.flag).value,
                running=said.by_process(survey, knob.flag).value,
                server=said.by_server(survey, knob.flag).value,
                default=default,
            )
        )
    return tuple(rows)
