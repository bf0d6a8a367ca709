"""Whether a server can start: nothing of the old one is left, the port is free, GPU memory is back.

Commands: `cat -- /sys/fs/cgroup/…/cgroup.procs`, `ss -ltnH`, host/gpu's nvidia-smi.
"""

from __future__ import annotations

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

    @property
    def clear(self) -> bool:
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
        return "; ".join(parts) or "nothing is in the way"


async def look(ctx: Tuning, status: ServiceStatus, port: int) -> Ground:
    """The ground for the next start, while the service does not run. One round trip."""
    group = status.control_group or ""
    procs = [Command(("cat", "--", f"{root}{group}/cgroup.procs")) for root in CGROUPS if group]
    sockets = Command(("ss", "-ltnH"))
    *lists, listening, smi, apps = await ctx.host.batch([*procs, sockets, *gpu.COMMANDS])
    pids = tuple(dict.fromkeys(int(word) for done in lists for word in done.out.split() if word.isdigit()))
    holders = gpu.parse([smi, apps], ctx.host.name).processes
    held = sum(process.memory_mib or 0 for process in holders if process.pid in pids)
    return Ground(pids, _taken(listening, port), held)


def _taken(done: Completed, port: int) -> bool | None:
    if not done.ok:
        return None
    local = [columns[3] for line in done.out.splitlines() if len(columns := line.split()) > 3]
    return any(address.endswith(f":{port}") for address in local)


def leaves_processes(status: ServiceStatus) -> bool:
    """Whether stopping this unit may leave processes behind, by its KillMode."""
    return status.properties.get("KillMode") in LEAVES_PROCESSES
