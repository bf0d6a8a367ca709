"""What commands print: text for people, or one JSON object with its schema."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from ddtui.profile import Model


def plain(value: Any) -> Any:
    """Any value of ddtui's (dataclasses, enums, bytes, paths) as JSON can hold it; NaN becomes null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Model):
        return value.model_dump(mode="json")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def emit(as_json: bool, command: str, report: Mapping[str, Any], lines: Iterable[str]) -> None:
    """Print the report: one JSON object with `"schema": "ddtui/<command>/1"`, or the lines."""
    if as_json:
        emit_json(command, report)
    else:
        for line in lines:
            print(line)


def emit_json(command: str, report: Mapping[str, Any]) -> None:
    """One JSON object on one line."""
    whole = {"schema": f"ddtui/{command}/1", **plain(report)}
    sys.stdout.write(json.dumps(whole, ensure_ascii=False, allow_nan=False) + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """Progress and messages, on stderr."""
    print(text, file=sys.stderr, flush=True)
