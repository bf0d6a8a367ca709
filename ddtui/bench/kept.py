"""Bursts as plain values and back: what the store keeps and what exports hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ddtui.bench.model import Burst


def to_plain(burst: Burst) -> dict[str, Any]:
    """The burst as JSON can hold it."""
    raise NotImplementedError


def from_plain(kept: Mapping[str, Any]) -> Burst:
    """The inverse of `to_plain`; unknown keys are ignored, missing ones get their defaults."""
    raise NotImplementedError
