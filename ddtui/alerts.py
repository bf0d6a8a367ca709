"""Telling the operator away from the screen: which events, and how a terminal is told to show them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ddtui.sanitize import sanitize
from ddtui.settings import When
from ddtui.terminal import passed_on

if TYPE_CHECKING:
    from ddtui.desk import Event

LONGEST = 200  # characters of a desktop notification


def wanted(when: When, event: Event) -> bool:
    """Whether an event is told in this way."""
    return when is When.ALL or (when is When.PROBLEMS and event.severity != "information")


def osc9(text: str, env: Mapping[str, str] = os.environ) -> str:
    """The sequence that makes a terminal show a desktop notification (OSC 9)."""
    shown = " ".join(sanitize(text).split())[:LONGEST]
    return passed_on(f"\x1b]9;{shown}\x07", env)
