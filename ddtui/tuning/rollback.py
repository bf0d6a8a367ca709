"""Back to the last verified setting, or to that of a named change."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ddtui.tuning.change import AskKill
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import ChangeRecord, Plan, Progress


async def make(ctx: Tuning, to: str | None = None) -> Plan:
    """The plan that leads back: to the last verified setting before the present one, or to the setting that change
    `to` established. Raises PlanError when there is nothing to go back to."""
    raise NotImplementedError


def rollback(
    ctx: Tuning, to: str | None = None, *, ask_kill: AskKill | None = None
) -> AsyncIterator[Progress]:
    """`make` and `change.apply` in one. Ends in VERIFIED, UNVERIFIED, FAILED or STRANDED."""
    raise NotImplementedError


async def changes(ctx: Tuning) -> tuple[ChangeRecord, ...]:
    """All changes in the host's record, oldest first."""
    raise NotImplementedError
