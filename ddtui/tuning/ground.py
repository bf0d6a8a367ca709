"""Whether a server can start: nothing of the old one is left, the port is free, GPU memory is back.

Commands: `cat -- /sys/fs/cgroup/…/cgroup.procs`, `ss -ltnH`, host/gpu's nvidia-smi.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ddtui.host import gpu
from ddtui.host.base import Command, Completed
from ddtui.host.service import ServiceStatus
from ddtui.tuning.context import Tuning

LEAVES_PROCESSES = ("process", "none")  # KillMode values under which a stop may leave children alive
CGROUPS = ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified")  # v2, v1, hybrid


@dataclass(frozen=True, slots=True)
class Ground:
    """What stands in the way of a start. `port_taken` None: not known."""

    leftovers: tuple[int, ...] = ()  # pids in the unit's cgroup
    port_taken: bool | None = None
    gpu_mib: int = 0  # GPU memory that the leftovers hold
    unfreed_mib: int = 0  # GPU memory of the old server that its GPUs have not got back

    @property
    def clear(self) -> bool:
        """Nothing stands in the way for certain. Memory that is not back yet is waited for, but another
        program may have taken it meanwhile.
        """
        return not self.leftovers and not self.port_taken

    def words(self, port: int) -> str:
        """What is in the way, in a sentence."""
        parts = []
        if self.leftovers:
            count = len(self.leftovers)
            held = f" with {self.gpu_mib / 1024:.0f} GiB of GPU memory" if self.gpu_mib else ""
            pids = ", ".join(map(str, self.leftovers[:5]))
            parts.append(
                f"{count} process{'es' if count > 1 else ''} of the old server live on{held} (pid {pids})"
            )
        if self.port_taken:
            parts.append(f"port {port} is taken")
        if self.unfreed_mib and not self.leftovers:
            parts.append(f"{self.unfreed_mib / 1024:.0f} GiB of GPU memory are not given back yet")
        return "; ".join(parts) or "nothing is in the way"


@dataclass(frozen=True, slots=True)
class Held:
    """A GPU before the stop."""

    used_mib: int
    ours_mib: int  # of the service's own processes


FREED = 0.8  # of what a dead process held, that must be back


async def held(ctx: Tuning, status: ServiceStatus) -> dict[str, Held]:
    """What the running service holds, by GPU. Empty where nvidia-smi does not tell: no GPU, a container."""
    *lists, smi, apps = await ctx.host.batch([*_cgroup(status), *gpu.COMMANDS])
    return held_by(_pids(lists), gpu.parse([smi, apps], ctx.host.name))


def held_by(pids: tuple[int, ...], reading: gpu.GpuReading) -> dict[str, Held]:
    ours: dict[str, int] = {}
    for process in reading.processes:
        if process.pid in pids:
            ours[process.gpu_uuid] = ours.get(process.gpu_uuid, 0) + (process.memory_mib or 0)
    used = {one.uuid: one.memory_used_mib for one in reading.gpus}
    return {name: Held(before, mib) for name, mib in ours.items() if mib and (before := used.get(name))}


def unfreed(before: Mapping[str, Held], reading: gpu.GpuReading) -> int:
    """MiB of the old server's that its GPUs still count as used."""
    now = {one.uuid: one.memory_used_mib for one in reading.gpus}
    missing = 0
    for name, one in before.items():
        used = now.get(name)
        if used is not None and used > one.used_mib - FREED * one.ours_mib:
            missing += used - (one.used_mib - one.ours_mib)
    return missing


async def look(
    ctx: Tuning, status: ServiceStatus, port: int, before: Mapping[str, Held] | None = None
) -> Ground:
    """The ground for the next start, while the service does not run. One round trip. `before`: `held`."""
    sockets = Command(("ss", "-ltnH"))
    *lists, listening, smi, apps = await ctx.host.batch([*_cgroup(status), sockets, *gpu.COMMANDS])
    pids, reading = _pids(lists), gpu.parse([smi, apps], ctx.host.name)
    mib = sum(process.memory_mib or 0 for process in reading.processes if process.pid in pids)
    return Ground(pids, _taken(listening, port), mib, unfreed(before or {}, reading))


def _cgroup(status: ServiceStatus) -> list[Command]:
    group = status.control_group or ""
    return [Command(("cat", "--", f"{root}{group}/cgroup.procs")) for root in CGROUPS if group]


def _pids(lists: Sequence[Completed]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(int(word) for done in lists for word in done.out.split() if word.isdigit()))


def _taken(done: Completed, port: int) -> bool | None:
    if not done.ok:
        return None
    local = [columns[3] for line in done.out.splitlines() if len(columns := line.split()) > 3]
    return any(address.endswith(f":{port}") for address in local)


def leaves_processes(status: ServiceStatus) -> bool:
    """Whether stopping this unit may leave processes behind, by its KillMode."""
    return status.properties.get("KillMode") in LEAVES_PROCESSES
