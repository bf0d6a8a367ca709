"""Which of a unit's values are secret: named, so that they can be masked, never shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ddtui import redact


def find(flags: Mapping[str, Any], variables: Mapping[str, str]) -> tuple[str, ...]:
    """`argv: --api-key`, `env: HF_TOKEN`, with what makes it secret where the name does not say so."""
    found = [f"argv: {name}{why}" for name, value in flags.items() if (why := _why(name, value)) is not None]
    found += [
        f"env: {name}{why}" for name, value in variables.items() if (why := _why(name, value)) is not None
    ]
    return tuple(dict.fromkeys(found))


def _why(name: str, value: Any) -> str | None:
    """None: not secret; else what to say after the name."""
    if isinstance(value, list):
        return next((why for one in value if (why := _why(name, one)) is not None), None)
    if not isinstance(value, str):
        return None
    if redact.value(name, value) == value:
        return None
    if redact.secret_name(name):
        return ""
    inside = _secret_keys(value)
    if inside:
        return f" ({', '.join(inside)} inside JSON)"
    if "://" in value and "@" in value:
        return " (password in the URL)"
    return " (it looks like a key)"


def _secret_keys(value: str) -> list[str]:
    if not value.lstrip().startswith(("{", "[")):
        return []
    try:
        parsed = json.loads(value)
    except ValueError:
        return []
    found: list[str] = []

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            for key, inner in node.items():
                if redact.secret_name(key) and isinstance(inner, str):
                    found.append(key)
                walk(inner)
        elif isinstance(node, list):
            for inner in node:
                walk(inner)

    walk(parsed)
    return found
