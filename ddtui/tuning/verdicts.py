"""Layers → verdicts: what is in force, what is not, and the lines that say so. Pure."""

from __future__ import annotations

from ddtui.profile import Profile
from ddtui.tuning.model import Turn, Verdict
from ddtui.tuning.survey import Survey


def judge(survey: Survey, profile: Profile) -> tuple[Verdict, ...]:
    """A verdict per knob of the profile, and for the drafter's window the two questions apart:
    `window.layers` (are its own sliding layers honoured?) and `window.flag` (does the engine's flag limit it?)."""
    raise NotImplementedError


def judge_turn(survey: Survey, profile: Profile, turn: Turn) -> Verdict:
    """Whether what a turn asked for is in force now: a knob, or any flag."""
    raise NotImplementedError
