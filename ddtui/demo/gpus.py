"""The demo host's eight simulated GPUs: what they show follows from what the server's log says."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass

COUNT = 8
NAME = "NVIDIA H200 (simulated)"
TOTAL_MIB = 143771
IDLE_MIB = 4  # what the driver keeps
WEIGHTS_MIB = 76_800  # of the target, per GPU
DRIVER = "580.00"
POWER_LIMIT_W = 700.0
BUSY_SECONDS = 2.5  # how long a line about a running batch counts

_SHARDS = re.compile(r"shards?:\s+(\d+)% Completed|shards?:\s+(\d+)%")
_RUNNING = re.compile(r"(?:Decode|Prefill) batch,.*?#running-req: (\d+)")
_AVAILABLE = re.compile(r"avail(?:able)?[_ ](?:gpu_)?mem=([\d.]+) GB")
_LISTENING = re.compile(r"Uvicorn running on https?://(\[[^\]]*\]|[^:/ ]+):(\d+)")
_TARGET = re.compile(r"Load weight end\..*type=(?!DFlash)")


@dataclass
class Gpus:
    """Memory and load of all GPUs (they do the same), as of the last lines of the server."""

    used_mib: float = IDLE_MIB
    fraction: float = 0.0  # of the target's weights
    running: int = 0
    busy_until: float = 0.0  # monotonic time of this machine

    def see(self, text: str) -> None:
        """One line, or piece of a progress bar, of the server."""
        shards = _SHARDS.search(text)
        if shards and self.fraction < 1:
            self.fraction = max(self.fraction, int(shards[1] or shards[2]) / 100)
            self.used_mib = max(self.used_mib, IDLE_MIB + 1400 + self.fraction * WEIGHTS_MIB)
        if _TARGET.search(text):
            self.fraction = 1.0
        available = _AVAILABLE.search(text)
        if available:
            self.used_mib = min(max(IDLE_MIB, TOTAL_MIB - float(available[1]) * 1024), TOTAL_MIB)
        running = _RUNNING.search(text)
        if running:
            self.running = int(running[1]) or 1
            self.busy_until = time.monotonic() + BUSY_SECONDS

    def reset(self) -> None:
        """The server is gone: memory is back."""
        self.used_mib, self.fraction, self.running, self.busy_until = IDLE_MIB, 0.0, 0, 0.0

    @property
    def busy(self) -> bool:
        return time.monotonic() < self.busy_until

    @property
    def loading(self) -> bool:
        return 0 < self.fraction < 1

    def row(self, index: int, fields: list[str], units: bool) -> list[str]:
        """What `nvidia-smi --query-gpu=FIELDS` says of one GPU. Raises KeyError for an unknown field."""
        wobble = math.sin(time.monotonic() * 1.7 + index)
        util = 0.0
        if self.busy:
            util = min(99.0, 62 + 14 * math.log2(1 + self.running) + 3 * wobble)
        elif self.loading:
            util = 6 + 3 * wobble
        power = 122 + 1.5 * wobble + util * 4.6
        celsius = 31 + index % 3 + util * 0.32
        memory_util = util * 0.78
        values: dict[str, tuple[str, str]] = {
            "index": (str(index), ""),
            "name": (NAME, ""),
            "gpu_name": (NAME, ""),
            "uuid": (f"GPU-demo{index:04d}-0000-0000-0000-000000000000", ""),
            "gpu_uuid": (f"GPU-demo{index:04d}-0000-0000-0000-000000000000", ""),
            "count": (str(COUNT), ""),
            "driver_version": (DRIVER, ""),
            "pci.bus_id": (f"00000000:{0x18 + index * 0x11:02X}:00.0", ""),
            "memory.total": (str(TOTAL_MIB), "MiB"),
            "memory.used": (f"{self.used_mib:.0f}", "MiB"),
            "memory.free": (f"{TOTAL_MIB - self.used_mib:.0f}", "MiB"),
            "memory.reserved": ("619", "MiB"),
            "utilization.gpu": (f"{util:.0f}", "%"),
            "utilization.memory": (f"{memory_util:.0f}", "%"),
            "power.draw": (f"{power:.2f}", "W"),
            "power.draw.instant": (f"{power:.2f}", "W"),
            "power.draw.average": (f"{power:.2f}", "W"),
            "power.limit": (f"{POWER_LIMIT_W:.2f}", "W"),
            "enforced.power.limit": (f"{POWER_LIMIT_W:.2f}", "W"),
            "temperature.gpu": (f"{celsius:.0f}", ""),
            "temperature.memory": (f"{celsius + 6:.0f}", ""),
            "clocks.sm": (str(1980 if util else 345), "MHz"),
            "clocks.current.sm": (str(1980 if util else 345), "MHz"),
            "clocks.gr": (str(1980 if util else 345), "MHz"),
            "clocks.mem": ("3201", "MHz"),
            "clocks.current.memory": ("3201", "MHz"),
            "clocks.max.sm": ("1980", "MHz"),
            "pstate": ("P0", ""),
            "compute_mode": ("Default", ""),
            "persistence_mode": ("Enabled", ""),
            "mig.mode.current": ("Disabled", ""),
            "ecc.errors.uncorrected.volatile.total": ("0", ""),
            "clocks_throttle_reasons.active": ("0x0000000000000000", ""),
            "clocks_event_reasons.active": ("0x0000000000000000", ""),
            "fan.speed": ("[N/A]", ""),
        }
        out = []
        for name in fields:
            value, unit = values[name]
            out.append(f"{value} {unit}" if units and unit else value)
        return out


def listens_on(text: str) -> tuple[str, int] | None:
    """The address of the line by which the server says that its port is open."""
    found = _LISTENING.search(text)
    return (found[1], int(found[2])) if found else None
