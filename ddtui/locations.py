"""Where ddtui keeps its files on this machine: the XDG base directories."""

from __future__ import annotations

import os
from pathlib import Path


def _folder(variable: str, fallback: str) -> Path:
    """By the XDG specification a relative path in the variable is ignored."""
    value = os.environ.get(variable, "")
    base = Path(value) if value.startswith("/") else Path.home() / fallback
    return base / "ddtui"


def config_dir() -> Path:
    """Settings and the user's own profiles: ~/.config/ddtui."""
    return _folder("XDG_CONFIG_HOME", ".config")


def data_dir() -> Path:
    """The history and raw records: ~/.local/share/ddtui."""
    return _folder("XDG_DATA_HOME", ".local/share")


def state_dir() -> Path:
    """Logs and the kept demo host: ~/.local/state/ddtui."""
    return _folder("XDG_STATE_HOME", ".local/state")


def cache_dir() -> Path:
    """What can be made again: ~/.cache/ddtui."""
    return _folder("XDG_CACHE_HOME", ".cache")
