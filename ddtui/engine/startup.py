"""A start of SGLang as a progress that never goes back, from its log lines, in both known orders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from ddtui.engine.log import LogLine


class Phase(IntEnum):
    LAUNCHING = 0
    ARGUMENTS = 1
    DISTRIBUTED = 2
    TARGET_WEIGHTS = 3
    DRAFT_WEIGHTS = 4
    KV_POOL = 5
    GRAPHS = 6
    DRAFT_GRAPHS = 7
    HTTP = 8
    WARM_UP = 9
    READY = 10


@dataclass(frozen=True, slots=True)
class Start:
    """What is known of a start so far. `see` gives the next one; nothing is changed in place."""

    phase: Phase = Phase.LAUNCHING
    fraction: float = 0.0  # 0..1, never back
    text: str = "waiting for the first line"
    drafter: bool = True  # whether a drafter is to be expected
    ready_line_seen: bool = False
    http_up: bool = False
    entered: Mapping[Phase, float] = field(default_factory=dict)  # seconds since the start

    def see(self, line: LogLine, at: float | None = None) -> Start:
        """The start after this line. `at`: seconds since the start, for phase timings."""
        raise NotImplementedError

    def eta(self, elapsed: float, earlier: Mapping[Phase, float] | None) -> float | None:
        """Seconds to ready by an earlier start's `timings()`. None: not known."""
        raise NotImplementedError

    def timings(self) -> dict[Phase, float]:
        """When each phase was entered, in seconds since the start: to keep in the history."""
        raise NotImplementedError
