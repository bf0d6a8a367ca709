"""What is on disk and not yet loaded, or loaded and not yet running."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ddtui.host import processes

if TYPE_CHECKING:
    from ddtui.host.service import ServiceReading


def of_reload(reading: ServiceReading, loaded_environment: Mapping[str, str] | None) -> str | None:
    """Why the loaded unit is not the one on disk. systemd's own word is not enough: 252 overlooks a first
    drop-in.
    """
    unit, status = reading.unit, reading.status
    if unit is None or not status.exists or status.load_state not in ("loaded", "bad-setting"):
        return None
    name = status.unit
    missing = [p for p in unit.drop_ins if p not in status.drop_in_paths]
    if missing:
        return f"{missing[0]} is on disk, and systemd has not loaded it: a daemon-reload is needed"
    gone = [p for p in status.drop_in_paths if p not in unit.drop_ins and reading.tree.read(p) is None]
    if gone:
        return f"systemd still holds {gone[0]}, which is gone: a daemon-reload is needed"
    disk, loaded = unit.exec_start, reading.loaded_exec
    generated = unit.exec_start is None or (unit.container is not None and status.source_path is not None)
    if disk is not None and loaded is not None and not generated and _differ(disk, loaded):
        return (
            f"systemd has loaded another command for {name} than the files now say: a daemon-reload is needed"
        )
    if loaded_environment is not None and any(
        loaded_environment.get(k) != v for k, v in unit.unit_environment.items()
    ):
        return (
            f"systemd has loaded other variables for {name} than the files now say: a daemon-reload is needed"
        )
    if status.need_daemon_reload:
        return (
            f"systemd says that files of {name} have changed since it loaded them: a daemon-reload is needed"
        )
    return None


def _differ(disk: tuple[tuple[str, ...], ...], loaded: tuple[tuple[str, ...], ...]) -> bool:
    """Compared as joined text where systemd's own words may have lost their quotes."""
    if disk == loaded:
        return False
    return [" ".join(one).split() for one in disk] != [" ".join(one).split() for one in loaded]


def of_restart(reading: ServiceReading, environment: Mapping[str, str] | None) -> str | None:
    """Why the running process is not what the files now say."""
    unit, process = reading.unit, reading.process
    if unit is None or process is None or unit.launch_argv is None:
        return None
    now, then = processes.arguments(unit.launch_argv), processes.arguments(process.argv)
    certain = not any("known only when" in warning for warning in unit.warnings)
    if certain and now != then:
        return f"pid {process.pid} runs with other arguments than the files now say: {_difference(then, now)}"
    if environment is not None:
        other = [
            n for n, v in unit.env.items() if n in environment and environment[n] != v and not unit.container
        ]
        if other:
            return f"pid {process.pid} runs with another {other[0]} in its environment than the files now say"
    if process.started_at is None:
        return None
    alone = {unit.fragment, *unit.drop_ins}  # what these say was compared just now
    later = [
        p for p in unit.files if reading.changed_at.get(p, 0.0) > process.started_at + 0.05 and p not in alone
    ]
    if later:
        return f"{later[0]} was changed after pid {process.pid} had started"
    return None


def _difference(then: Sequence[str], now: Sequence[str]) -> str:
    """The first arguments that differ, in words."""
    at = next(
        (i for i, (a, b) in enumerate(zip(then, now, strict=False)) if a != b), min(len(then), len(now))
    )
    begin = (
        at - 1 if at and at < max(len(then), len(now)) and not _flag(then, at) and not _flag(now, at) else at
    )
    old, new = " ".join(then[begin : at + 1]), " ".join(now[begin : at + 1])
    return f"{old or 'nothing more'} there, {new or 'nothing more'} here"


def _flag(argv: Sequence[str], at: int) -> bool:
    return at < len(argv) and argv[at].startswith("-")
