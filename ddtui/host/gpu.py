"""The GPUs of the host, as nvidia-smi tells them.

Commands: `nvidia-smi --query-gpu=FIELDS --format=csv,noheader,nounits` for the GPUs, and `nvidia-smi
--query-compute-apps=gpu_uuid,pid,used_memory --format=csv,noheader,nounits` for whose memory it is.

`LOAD` is one command for how busy they are. What holds a clock down is a bit mask, named as in NVML's
nvmlClocksEventReasons; `clocks_throttle_reasons.active` is the name that old and new drivers take.
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


_LOAD_FIELDS = (
    "index,memory.used,memory.total,utilization.gpu,power.draw,power.limit,clocks.sm,clocks.max.sm,"
    "clocks_throttle_reasons.active"
)
LOAD = Command(("nvidia-smi", f"--query-gpu={_LOAD_FIELDS}", _FORMAT))
THROTTLES = {  # bit 0x1 is an idle GPU, which nothing holds down
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal (software)",
    0x40: "thermal (hardware)",
    0x80: "power brake",
    0x100: "display clocks",
}
LOAD_SECONDS = 10.0  # nvidia-smi is slow where nothing keeps the driver awake


@dataclass(frozen=True, slots=True)
class GpuLoad:
    """How busy one GPU is at one moment. None: the driver does not say."""

    index: int
    memory_used_mib: int | None
    memory_total_mib: int | None
    utilization: int | None  # percent of time with a kernel running
    power_w: float | None
    power_limit_w: float | None
    clock_mhz: int | None  # of the SMs
    clock_max_mhz: int | None
    throttles: tuple[str, ...] = ()  # what holds the clock down now


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


async def load(host: Host) -> tuple[tuple[GpuLoad, ...], str]:
    """How busy each GPU is; or none, and in a few words why not. Raises what the link raises."""
    return parse_load(await host.run(LOAD.argv, timeout=LOAD_SECONDS))


def parse_load(done: Completed) -> tuple[tuple[GpuLoad, ...], str]:
    """The answer to `LOAD`."""
    if done.exit_code == 127:
        return (), "no nvidia-smi"
    if not done.ok:
        return (), f"nvidia-smi: {_said(done)}"
    found = tuple(one for row in _rows(done) if (one := _gpu_load(row)) is not None)
    return found, "" if found else "nvidia-smi names no GPU"


def _gpu_load(row: list[str]) -> GpuLoad | None:
    if len(row) != len(_LOAD_FIELDS.split(",")) or not row[0].isdigit():
        return None
    used, total, busy = (_whole(cell) for cell in row[1:4])
    power, limit = _watts(row[4]), _watts(row[5])
    return GpuLoad(
        int(row[0]), used, total, busy, power, limit, _whole(row[6]), _whole(row[7]), _held(row[8])
    )


def _held(mask: str) -> tuple[str, ...]:
    """The names of a bit mask such as 0x0000000000000004."""
    bits = int(mask, 16) if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", mask) else 0
    return tuple(name for bit, name in THROTTLES.items() if bits & bit)


def _watts(cell: str) -> float | None:
    return float(cell) if re.fullmatch(r"\d+(\.\d+)?", cell) else None


def parse(done: list[Completed], host: str) -> GpuReading:
    """The answers to `COMMANDS`."""
    gpus, apps = done
    if gpus.exit_code == 127:
        return GpuReading(problem=f"{host} has no nvidia-smi, so its GPUs are not known")
    if not gpus.ok:
        return GpuReading(problem=f"nvidia-smi on {host} failed: {_said(gpus)}")
    found = tuple(gpu for row in _rows(gpus) if (gpu := _gpu(row)) is not None)
    if not found:
        return GpuReading(problem=f"nvidia-smi on {host} names no GPU")
    holders = tuple(
        GpuProcess(row[0], int(row[1]), _whole(row[2]))
        for row in (_rows(apps) if apps.ok else [])
        if len(row) == 3 and row[1].isdigit()
    )
    return GpuReading(found, holders)


def _said(done: Completed) -> str:
    """The first line of a failure, which nvidia-smi tells on stdout."""
    said = [line for line in (done.out + "\n" + done.err).splitlines() if line.strip()]
    return sanitize.line(said[0]).strip() if said else f"exit code {done.exit_code}"


def _rows(done: Completed) -> list[list[str]]:
    return [[sanitize.line(cell).strip() for cell in row] for row in csv.reader(done.out.splitlines())]


def _gpu(row: list[str]) -> Gpu | None:
    if len(row) != len(_FIELDS.split(",")) or not row[0].isdigit():
        return None
    total, used, busy, warm = (_whole(cell) for cell in row[3:7])
    return Gpu(int(row[0]), row[1], row[2], total, used, busy, warm, _watts(row[7]))


def _whole(cell: str) -> int | None:
    """`[N/A]`, `[Not Supported]` and the like are None."""
    return int(cell) if cell.isdigit() else None
