"""The host's GPUs while a cell runs: a look every few seconds over the same link, and what they come to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from ddtui.bench.model import GpuUse
from ddtui.host import gpu
from ddtui.host.base import Host, HostError
from ddtui.host.gpu import GpuLoad

FIRST, EVERY = 0.5, 2.0  # s from the start of the load to the first look, and between looks


class GpuWatch:
    """Looks while it runs. A host without nvidia-smi is looked at once; a look that fails is left out."""

    def __init__(self, host: Host | None) -> None:
        self._host = host
        self._looks: list[tuple[GpuLoad, ...]] = []
        self.unknown = ""  # why nothing is to be seen

    async def run(self) -> None:
        """Until cancelled, or until it is known that there is nothing to see."""
        if self._host is None:
            return
        await asyncio.sleep(FIRST)
        while True:
            try:
                loads, why = await gpu.load(self._host)
            except (HostError, TimeoutError) as problem:
                loads, why = (), str(problem) or "nvidia-smi did not answer in time"
            else:
                if not loads and not self._looks:
                    self.unknown = why
                    return
            if loads:
                self._looks.append(loads)
            await asyncio.sleep(EVERY)

    def uses(self) -> tuple[GpuUse, ...]:
        return uses(self._looks)


def uses(looks: Iterable[Sequence[GpuLoad]]) -> tuple[GpuUse, ...]:
    """What the looks say of each GPU."""
    by_index: dict[int, list[GpuLoad]] = {}
    for look in looks:
        for load in look:
            by_index.setdefault(load.index, []).append(load)
    return tuple(_use(index, loads) for index, loads in sorted(by_index.items()))


def _use(index: int, loads: list[GpuLoad]) -> GpuUse:
    return GpuUse(
        index,
        len(loads),
        memory_used_mib=max(_known(load.memory_used_mib for load in loads), default=None),
        memory_total_mib=max(_known(load.memory_total_mib for load in loads), default=None),
        utilization=_mean(load.utilization for load in loads),
        power_w=_mean(load.power_w for load in loads),
        power_limit_w=max(_known(load.power_limit_w for load in loads), default=None),
        clock_mhz=_mean(load.clock_mhz for load in loads),
        clock_max_mhz=max(_known(load.clock_max_mhz for load in loads), default=None),
        throttles=tuple(dict.fromkeys(name for load in loads for name in load.throttles)),
    )


def _known(values: Iterable[float | None]) -> list[float]:
    return [float(value) for value in values if value is not None]


def _mean(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return sum(known) / len(known) if known else None


def in_words(gpus: Sequence[GpuUse], unknown: str) -> str:
    """All GPUs in a line: `8 GPUs  busy 86 %  512 of 700 W  1,980 of 1,980 MHz  118 of 140 GiB`."""
    if not gpus:
        return f"GPU: {unknown}" if unknown else ""
    parts = [f"{len(gpus)} GPUs" if len(gpus) > 1 else "1 GPU"]
    busy = _known(one.utilization for one in gpus)
    if busy:
        parts.append(f"busy {_span(busy)} %")
    for values, most, unit in (
        (_known(one.power_w for one in gpus), _known(one.power_limit_w for one in gpus), "W"),
        (_known(one.clock_mhz for one in gpus), _known(one.clock_max_mhz for one in gpus), "MHz"),
        (
            [mib / 1024 for mib in _known(one.memory_used_mib for one in gpus)],
            [mib / 1024 for mib in _known(one.memory_total_mib for one in gpus)],
            "GiB",
        ),
    ):
        if values:
            parts.append(f"{_span(values)}" + (f" of {max(most):.0f}" if most else "") + f" {unit}")
    held: dict[str, int] = {}
    for one in gpus:
        for name in one.throttles:
            held[name] = held.get(name, 0) + 1
    parts += [f"held by {name}" + (f" on {n}" if len(gpus) > 1 else "") for name, n in held.items()]
    return "  ".join(parts)


def _span(values: list[float]) -> str:
    """One number where all GPUs do the same, else the least and the most."""
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low}–{high}"
