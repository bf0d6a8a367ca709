"""What a start of the server leaves in the machine: its children, what it has read from disk, how far it is."""

from __future__ import annotations

import re

from ddtui.demo.image import SHARD_BYTES, SHARDS
from ddtui.demo.processes import Process, Processes

READY = "The server is fired up and ready to roll!"
LINE_SECONDS = 0.15  # what a line takes at boot, if it does not say
_RANK = re.compile(r"^\[[^\]]* TP(\d+)[^\]]*\]")
_ELAPSED = re.compile(r"elapsed[=:] ?([\d.]+) ?s")


class Start:
    """One start of the server, from its output."""

    def __init__(self, processes: Processes, pid: int) -> None:
        self.pid = pid
        self.ready = False
        self._processes = processes
        self._ranks: dict[int, Process] = {}
        self._told: set[str] = set()

    def see(self, text: str, loaded: float) -> None:
        """A line or a piece of one; `loaded` is the fraction of the target's weights."""
        if READY in text:
            self.ready = True
        rank = _RANK.match(text)
        if rank:
            self._child(int(rank[1]), f"sglang::scheduler_TP{rank[1]}")
        elif "Init torch distributed begin" in text and not self._ranks:
            self._child(0, "sglang::scheduler")
        share = int(loaded * SHARDS * SHARD_BYTES / max(1, len(self._ranks)))
        for process in self._ranks.values():
            process.read_bytes = max(process.read_bytes, share)
            process.rss = (3 << 30) + share // 40

    def _child(self, rank: int, title: str) -> None:
        parent = self._processes.table.get(self.pid)
        if rank in self._ranks or parent is None:
            return
        if not self._ranks:
            self._add(parent, "sglang::detokenizer")
        self._ranks[rank] = self._add(parent, title)

    def _add(self, parent: Process, title: str) -> Process:
        room = len(parent.cmdline) - len(title) - 1
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
                padding=max(0, room),
            )
        )

    def boot_step(self, text: str, whole: float) -> float:
        """Seconds that this line seems to have taken in a start at boot of `whole` seconds."""
        said = _ELAPSED.search(text)
        if said and text.partition("]")[2][:40] not in self._told:
            self._told.add(text.partition("]")[2][:40])
            return min(float(said[1]), whole)
        return LINE_SECONDS
