"""The fields of a journal entry in journald's JSON form (systemd's Journal JSON Format)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ddtui import sanitize

# Of a user's unit the manager's own lines have the id of user@.service too: the unit's comes first.
INVOCATION = ("USER_INVOCATION_ID", "INVOCATION_ID", "_SYSTEMD_INVOCATION_ID")


def message(value: Any) -> str:
    """Text, a list of bytes (control characters, bad UTF-8), null, or a list of these if repeated."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        if value and all(isinstance(part, int) for part in value):
            with suppress(ValueError):
                return sanitize.decode(bytes(value))
        return "\n".join(message(part) for part in value)
    return ""


def one(fields: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that is there, as text; of a repeated one the first value."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, list):
            value = message(value) if value and isinstance(value[0], int) else value[0] if value else None
        if isinstance(value, str):
            return value
    return ""
