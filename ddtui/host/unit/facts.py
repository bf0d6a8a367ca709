"""What must be known of the host beyond its files to read a unit: names and ids that specifiers stand for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostFacts:
    """None: not known; what depends on it is then shown as written, with a warning."""

    home: str | None = None  # of the account whose user manager runs the unit; system units: /root
    user: str | None = None
    uid: int | None = None
    group: str | None = None
    gid: int | None = None
    hostname: str | None = None
    machine_id: str | None = None
    boot_id: str | None = None
    kernel: str | None = None
    architecture: str | None = None  # systemd's name: x86-64, arm64
    systemd: int | None = None  # its version
    source_path: str | None = None  # the unit's SourcePath: what it was generated from
    names: tuple[str, ...] = ()  # the unit's other names (aliases), where systemd told them
