"""The GPUs of the host, as nvidia-smi tells them.

Command: `nvidia-smi --query-gpu=index,uuid,name,memory.total,memory.used,utilization.gpu,temperature.gpu,power.draw
--format=csv,noheader,nounits`, and `--query-compute-apps=gpu_uuid,pid,used_memory` for whose memory it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from ddtui.host.base import Host


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
    """A process that holds GPU memory."""

    gpu_uuid: str
    pid: int
    memory_mib: int | None


@dataclass(frozen=True, slots=True)
class GpuReading:
    """All GPUs, or in one sentence why they are not known."""

    gpus: tuple[Gpu, ...] = ()
    processes: tuple[GpuProcess, ...] = ()
    problem: str | None = None


async def read(host: Host) -> GpuReading:
    """One round trip."""
    raise NotImplementedError
