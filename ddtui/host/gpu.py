"""The GPUs of the host, as nvidia-smi tells them.

Commands: `nvidia-smi --query-gpu=FIELDS --format=csv,noheader,nounits` for the GPUs, and `nvidia-smi
--query-compute-apps=gpu_uuid,pid,used_memory --format=csv,noheader,nounits` for whose memory it is.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass

from ddtui import sanitize
from ddtui.host.base import Command, Completed, Host

_FIELDS = "index,uuid,name,memory.total,memory.used,utilization.gpu,temperature.gpu,power.draw"
_FORMAT = "--format=csv,noheader,nounits"
COMMANDS = (
    Command(("nvidia-smi", f"--query-gpu={_FIELDS}", _FORMAT)),
    Command(("nvidia-smi", "--query-compute-apps=gpu_uuid,pid,used_memory", _FORMAT)),
)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU at one moment. None: the driver does not say."""

    index: int
    uuid: str
    name: str
    memory_total_mib: int | None
    memory_used_mib: int | None
    utilization: int | None  # percent of time with a kernel running
    temperature: int | None  # °C
    power_w: float | None


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds GPU memory. Under a MIG or in a container its pid may be another's."""

    gpu_uuid: str
    pid: int
    memory_mib: int | None


@dataclass(frozen=True, slots=True)
class GpuReading:
    """All GPUs, or in one sentence why they are not known."""

    gpus: tuple[Gpu, ...] = ()
    processes: tuple[GpuProcess, ...] = ()
    problem: str | None = None

    @property
    def memory_used_mib(self) -> int | None:
        """Of all GPUs together; None: not known."""
        used = [g.memory_used_mib for g in self.gpus]
        return sum(u for u in used if u is not None) if used and None not in used else None


async def read(host: Host) -> GpuReading:
    """One round trip. Raises what the link raises."""
    return parse(await host.batch(COMMANDS), host.name)


def parse(done: list[Completed], host: str) -> GpuReading:
    """The answers to `COMMANDS`."""
    gpus, apps = done
    if gpus.exit_code == 127:
        return GpuReading(problem=f"{host} has no nvidia-smi, so its GPUs are not known")
    if not gpus.ok:
        # nvidia-smi tells its failures on stdout
        said = [line for line in (gpus.out + "\n" + gpus.err).splitlines() if line.strip()]
        words = sanitize.line(said[0]).strip() if said else f"exit code {gpus.exit_code}"
        return GpuReading(problem=f"nvidia-smi on {host} failed: {words}")
    found = tuple(gpu for row in _rows(gpus) if (gpu := _gpu(row)) is not None)
    if not found:
        return GpuReading(problem=f"nvidia-smi on {host} names no GPU")
    holders = tuple(
        GpuProcess(row[0], int(row[1]), _whole(row[2]))
        for row in (_rows(apps) if apps.ok else [])
        if len(row) == 3 and row[1].isdigit()
    )
    return GpuReading(found, holders)


def _rows(done: Completed) -> list[list[str]]:
    return [[sanitize.line(cell).strip() for cell in row] for row in csv.reader(done.out.splitlines())]


def _gpu(row: list[str]) -> Gpu | None:
    if len(row) != len(_FIELDS.split(",")) or not row[0].isdigit():
        return None
    total, used, busy, warm = (_whole(cell) for cell in row[3:7])
    power = re.fullmatch(r"\d+(\.\d+)?", row[7])
    return Gpu(int(row[0]), row[1], row[2], total, used, busy, warm, float(row[7]) if power else None)


def _whole(cell: str) -> int | None:
    """`[N/A]`, `[Not Supported]` and the like are None."""
    return int(cell) if cell.isdigit() else None
