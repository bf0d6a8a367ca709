"""SGLang's own constraints between arguments, for the code that is installed, checked before a change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ddtui.engine.drafter import DrafterConfig
from ddtui.engine.flags import ResolvedFlags
from ddtui.engine.installation import Installation


class Severity(StrEnum):
    ERROR = "error"  # SGLang refuses to start
    WARNING = "warning"  # it starts, and does something else than asked, or worse
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Problem:
    severity: Severity
    sentence: str  # in SGLang's own words where they are known
    source: str  # where the rule comes from
    flag: str | None = None


def check(
    flags: ResolvedFlags,
    installation: Installation,
    *,
    drafter: DrafterConfig | None = None,
    env: Mapping[str, str] | None = None,
    target_max_position: int | None = None,
    concurrency: int | None = None,  # the highest that is meant to run
    captured_batch: int | None = None,  # the largest captured graph, by the journal
) -> tuple[Problem, ...]:
    """Every rule that the arguments break, the worst first."""
    raise NotImplementedError
