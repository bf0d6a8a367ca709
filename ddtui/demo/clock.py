"""The demo host's clock: the machine's own, but behind it while the host boots.

The host has "been up" for hours when it is first seen. So its boot and the server's start happen on a clock
that lags, and as soon as the server is ready (or has failed) the clock catches up.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field

BOOT_TO_READY = 4.0  # seconds that the start at boot seems to take
SINCE_READY = 2 * 3600 + 13 * 60.0  # how long the server then seems to have been up
POWER_ON = 31.0  # seconds from power-on to the first service

_STAMP = re.compile(r"\A\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{3})?")


@dataclass
class Clock:
    """Real time minus a lag. `booted_at` is power-on by the host's clock."""

    lag: float = 0.0
    booted_at: float = field(default_factory=time.time)

    @classmethod
    def booting(cls, not_before: float) -> Clock:
        """A clock that starts as far back as it may: never before what the host has already seen."""
        now = time.time()
        wanted = now - SINCE_READY - BOOT_TO_READY - POWER_ON
        power_on = min(max(wanted, not_before + 1.0), now)
        clock = cls(lag=max(0.0, now - power_on - POWER_ON), booted_at=power_on)
        return clock

    @property
    def behind(self) -> bool:
        return self.lag > 0

    def now(self) -> float:
        """Unix time on the host."""
        return time.time() - self.lag

    def monotonic(self, at: float | None = None) -> float:
        """Seconds since power-on."""
        return max(0.0, (self.now() if at is None else at) - self.booted_at)

    def pass_time(self, seconds: float) -> None:
        """While behind: let `seconds` pass at once, never beyond the present."""
        self.lag = max(0.0, self.lag - seconds)

    def restamp(self, line: str) -> str:
        """A log line that carries this machine's time, with the host's in its place."""
        if not self.behind:
            return line
        return _STAMP.sub(lambda found: self._stamp(bool(found[1])), line)

    def _stamp(self, with_ms: bool) -> str:
        now = self.now()
        text = time.strftime("[%Y-%m-%d %H:%M:%S", time.gmtime(now))
        return f"{text}.{int(now % 1 * 1000):03d}" if with_ms else text

    def stamp(self, line: str) -> str:
        """A log line whose time was left out (`[] …`, `[ TP0] …`), with the host's in its place."""
        return line.replace("[", self._stamp(False), 1)

    def set_behind(self, seconds: float) -> None:
        """Set the clock so far behind, if that is not further back than it is."""
        self.lag = min(self.lag, seconds)

    def catch_up(self) -> None:
        self.lag = 0.0
