"""Telling the operator away from the screen: which events, and how a terminal is told to show them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ddtui.sanitize import sanitize
from ddtui.settings import When

if TYPE_CHECKING:
    from ddtui.desk import Event

LONGEST = 200  # characters of a desktop notification


def wanted(when: When, event: Event) -> bool:
    """Whether an event is told in this way."""
    return when is When.ALL or (when is When.PROBLEMS and event.severity != "information")


def osc9(text: str, *, tmux: bool | None = None) -> str:
    """The sequence that makes a terminal show a desktop notification (OSC 9); wrapped so that tmux passes
    it on where its `allow-passthrough` is on.
    """
    shown = " ".join(sanitize(text).split())[:LONGEST]
    sequence = f"\x1b]9;{shown}\x07"
    if os.environ.get("TMUX") if tmux is None else tmux:
        return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    return sequence
