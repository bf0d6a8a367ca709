"""Bursts as plain values and back: what the store keeps and what exports hold."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ddtui.bench.model import Burst, BurstState, Estimate, Point


def to_plain(burst: Burst) -> dict[str, Any]:
    """The burst as JSON can hold it."""
    plain: dict[str, Any] = _plain(burst)
    return plain


def unfinished(burst: Burst) -> Burst:
    """What is true of a burst that runs should ddtui be killed now: the cells that are over, and its end."""
    return replace(
        burst,
        state=BurstState.CANCELLED,
        text="ddtui ended before it was done",
        cell=None,
        eta_seconds=None,
        points=tuple(point for point in burst.points if point.final),
    )


def from_plain(kept: Mapping[str, Any]) -> Burst:
    """The inverse of `to_plain`. Unknown keys are ignored, missing ones get their defaults; raises
    ValueError.
    """
    burst: Burst = _made(Burst, kept)
    return burst


def point_from_plain(kept: Mapping[str, Any]) -> Point:
    """A point of a kept burst."""
    point: Point = _made(Point, kept)
    return point


def estimate_from_plain(kept: Any) -> Estimate | None:
    """An estimate of a kept point; None where there is none."""
    if not isinstance(kept, Mapping) or kept.get("value") is None:
        return None
    return Estimate(float(kept["value"]), float(kept["low"]), float(kept["high"]), int(kept["n"]))


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


_hints = lru_cache(maxsize=None)(get_type_hints)


def _made(wanted: Any, value: Any) -> Any:
    """`value` as the type says."""
    origin, inside = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        return _made(next(one for one in inside if one is not type(None)), value)
    if origin is tuple:
        return tuple(_made(inside[0], item) for item in value)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: _made(inside[1], item) for key, item in value.items()}
    if origin is Literal:
        return value
    if is_dataclass(wanted) and isinstance(wanted, type):
        hints = _hints(wanted)
        given = {}
        for field in fields(wanted):
            if field.name in value:
                given[field.name] = _made(hints[field.name], value[field.name])
            elif field.default is MISSING and field.default_factory is MISSING:
                raise ValueError(f"a kept {wanted.__name__.lower()} lacks {field.name!r}")
        return wanted(**given)
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return wanted(value)
    return float(value) if wanted is float else value
