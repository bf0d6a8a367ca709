"""What bursts showed: accept length and time per step against context. Evidence, never a proof by itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measured:
    """What the bursts of the setting in force showed."""

    cells: int
    text: tuple[str, ...]  # each a sentence with its uncertainty and sample count
