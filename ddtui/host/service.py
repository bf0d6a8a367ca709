"""The service on the host: what systemd says of it, what its unit says, and the server process that really runs.

Commands, all plain: `systemctl [--user] show UNIT -p A,B,… --timestamp=us+utc --no-pager`;
`busctl [--user] --json=short get-property org.freedesktop.systemd1 PATH org.freedesktop.systemd1.Service ExecStart`;
`cat -- FILE` (also /proc/PID/{cmdline,stat,status,environ,cgroup}, /proc/stat, /sys/fs/cgroup/…/cgroup.procs);
`head -c N -- FILE` for programs that may be scripts; `ls -1A -- DIR…`; `stat -L -c '%F|%s|%.9Y|%n' -- FILE…`;
`readlink -- LINK`; `id`; `getconf CLK_TCK`; `uname -a`; `hostname`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ddtui.host.base import Host
from ddtui.host.unit.read import UnitReading
from ddtui.host.unit.tree import Tree
from ddtui.profile import Scope, Service


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """What systemd says of a unit. Times are unix seconds; None: never, or not said."""

    unit: str
    scope: Scope
    load_state: str  # loaded, not-found, bad-setting, error, masked
    active_state: str  # active, inactive, failed, activating, deactivating, reloading
    sub_state: str  # running, dead, auto-restart, exited, …
    result: str  # success, exit-code, signal, oom-kill, timeout, start-limit-hit, …
    n_restarts: int
    invocation_id: str  # "" before the first start
    main_pid: int  # 0: none
    exec_main_code: int  # 1 exited, 2 killed, 3 dumped
    exec_main_status: int
    need_daemon_reload: bool
    fragment_path: str | None
    source_path: str | None
    drop_in_paths: tuple[str, ...]
    control_group: str | None
    service_type: str
    unit_file_state: str
    load_error: str | None
    active_enter: float | None
    state_change: float | None
    exec_main_start: float | None
    exec_main_exit: float | None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def exists(self) -> bool:
        return self.load_state not in ("not-found", "")

    @property
    def running(self) -> bool:
        return (
            self.active_state in ("active", "reloading", "activating", "deactivating") and self.main_pid > 0
        )


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """The real server process under the unit's cgroup."""

    pid: int
    argv: tuple[str, ...]
    started_at: float | None  # unix time by the host's clock
    environment: tuple[str, ...] | None  # names of its variables; None: not readable
    cwd: str | None
    executable: str | None  # what /proc/PID/exe leads to: the interpreter
    user: int | None  # uid
    main: bool  # it is systemd's MainPID
    others: int = 0  # further processes in the cgroup


@dataclass(frozen=True, slots=True)
class ServiceReading:
    """One service, read whole. Each part may be missing, with its problem in a sentence."""

    status: ServiceStatus
    unit: UnitReading | None
    process: ServerProcess | None
    problems: Mapping[str, str] = field(default_factory=dict)  # "unit" | "process" | "loaded" -> one sentence
    loaded_exec: tuple[tuple[str, ...], ...] | None = (
        None  # ExecStart as systemd holds it now; None: not known
    )
    reload_pending: str | None = None  # why the loaded unit is not the one on disk, in a sentence
    restart_pending: str | None = None  # why the running process is not the one on disk, in a sentence
    changed_at: Mapping[str, float] = field(
        default_factory=dict
    )  # file -> mtime, unix time by the host's clock
    tree: Tree = field(default_factory=Tree, repr=False, compare=False)  # for change_unit
    round_trips: int = 0


async def read_status(host: Host, service: Service) -> ServiceStatus:
    """One round trip. A unit that does not exist is a status with load_state "not-found"."""
    raise NotImplementedError


async def read_service(host: Host, service: Service, *, knobs: tuple[str, ...] = ()) -> ServiceReading:
    """Status, unit and process; usually three round trips. Raises only what the link raises."""
    raise NotImplementedError
