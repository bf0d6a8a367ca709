"""Knobs → plan: the exact diff and commands, what it interrupts, and what must not have moved when it is applied."""

from __future__ import annotations

from collections.abc import Sequence

from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Plan, Turn
from ddtui.tuning.survey import Survey


class PlanError(Exception):
    """No plan can be made: one sentence (the unit cannot be read, the knob does not exist, …)."""


class StalePlan(Exception):
    """Something moved since the plan was shown: one sentence that says what."""


async def make(ctx: Tuning, survey: Survey, turns: Sequence[Turn], why: str = "") -> Plan:
    """The plan for these turns. Changes nothing. Raises PlanError, HostError.

    A plan with `problems` is shown and cannot be applied.
    """
    raise NotImplementedError


def parse_turns(ctx: Tuning, sets: Sequence[str], unsets: Sequence[str]) -> tuple[Turn, ...]:
    """Turns from words: `budget=16`, `--mem-fraction-static=0.85`, `--enable-metrics`; unsets by name. Raises PlanError."""
    raise NotImplementedError


async def check_fresh(ctx: Tuning, plan: Plan) -> None:
    """Raises StalePlan if a file, the running invocation or the engine moved since the plan was made."""
    raise NotImplementedError
