"""What a start of the server leaves in the machine: its children, what it has read, how far it is."""

from __future__ import annotations

import re
from collections import Counter

from ddtui.demo.image import SHARD_BYTES, SHARDS
from ddtui.demo.processes import Process, Processes

READY = "The server is fired up and ready to roll!"
LINE_SECONDS = 0.004  # what a line takes in the start at boot, if it does not say
# what the phases take in the start at boot, first and second time, about as in the restarts that follow
BOOT_SECONDS = {
    "Init torch distributed ends.": (0.32, 0.01),
    "Load weight end.": (1.44, 0.20),
    "Capture cuda graph end. Time": (0.48, 0.20),
    "Capture piecewise CUDA graph end. Time": (0.24, 0.10),
}
_PREFIX = re.compile(r"\A\[[^\]]*?(?: TP(\d+))?(?: [A-Z_]+\d+)*\] (.*)", re.DOTALL)
_ELAPSED = re.compile(r"\A(.*?) (elapsed[=:] ?)[\d.]+ s")


class Start:
    """One start of the server, from its output."""

    def __init__(self, processes: Processes, pid: int) -> None:
        self.pid = pid
        self.ready = False
        self._processes = processes
        self._ranks: dict[int, Process] = {}
        self._passes: Counter[str] = Counter()

    def see(self, text: str, loaded: float) -> None:
        """A line or a piece of one; `loaded` is the fraction of the target's weights."""
        self.ready = self.ready or READY in text
        prefix = _PREFIX.match(text)
        if prefix and prefix[1]:
            self._child(int(prefix[1]), f"sglang::scheduler_TP{prefix[1]}")
        elif prefix and prefix[2].startswith("Init torch distributed begin") and not self._ranks:
            self._child(0, "sglang::scheduler")
        share = int(loaded * SHARDS * SHARD_BYTES / max(1, len(self._ranks)))
        for process in self._ranks.values():
            process.read_bytes = max(process.read_bytes, share)
            process.rss = (3 << 30) + share // 40

    def writer(self, text: str) -> Process | None:
        """The child that a line comes from; None: the launcher."""
        prefix = _PREFIX.match(text)
        return self._ranks.get(int(prefix[1])) if prefix and prefix[1] else None

    def _child(self, rank: int, title: str) -> None:
        parent = self._processes.table.get(self.pid)
        if rank in self._ranks or parent is None:
            return
        if not self._ranks:
            self._add(parent, "sglang::detokenizer")
        self._ranks[rank] = self._add(parent, title)

    def _add(self, parent: Process, title: str) -> Process:
        return self._processes.add(
            Process(
                pid=self._processes.new_pid(),
                ppid=parent.pid,
                argv=(title,),
                comm=title[:15],
                uid=parent.uid,
                gid=parent.gid,
                started=self._processes.clock.now(),
                cgroup=parent.cgroup,
                exe=parent.exe,
                cwd=parent.cwd,
                environment=parent.environment,
                threads=64,
                rss=3 << 30,
                padding=max(0, len(parent.cmdline) - len(title) - 1),
            )
        )

    def at_boot(self, text: str) -> tuple[float, str]:
        """(seconds that it took, the line) in the start at boot, which in truth took no time."""
        prefix = _PREFIX.match(text)
        first_rank = prefix is None or prefix[1] in (None, "0")
        said = _ELAPSED.match(prefix[2]) if prefix else None
        if not said or said[1] not in BOOT_SECONDS:
            return (LINE_SECONDS if first_rank else 0.0), text
        if first_rank:
            self._passes[said[1]] += 1
        seconds = BOOT_SECONDS[said[1]][min(self._passes[said[1]], 2) - 1]
        shown = text.replace(said[0], f"{said[1]} {said[2]}{seconds:.2f} s", 1)
        return (seconds if first_rank else 0.0), shown
