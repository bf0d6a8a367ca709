"""A service unit of the demo host and its state, in systemd's words."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass, field

from ddtui.demo.process import Spawned
from ddtui.demo.unitfile import Command, Definition

EXIT_NAMES = {
    0: "SUCCESS", 1: "FAILURE", 2: "INVALIDARGUMENT", 3: "NOTIMPLEMENTED", 4: "NOPERMISSION",
    5: "NOTINSTALLED", 6: "NOTCONFIGURED", 7: "NOTRUNNING", 200: "CHDIR", 203: "EXEC", 209: "STDOUT",
    217: "USER",
}  # fmt: skip
CLEAN_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)
CLD_EXITED, CLD_KILLED = 1, 2
DEFAULT_TIMEOUT_STOP = 90.0
DEFAULT_RESTART = 0.1
DEFAULT_START_LIMIT = (10.0, 5)  # seconds, starts


class JobFailed(Exception):
    """What systemctl says when a job did not do what it should; `code` is its exit status."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Times:
    """Unix times of changes of state; 0: never."""

    state_change: float = 0.0
    inactive_exit: float = 0.0
    active_enter: float = 0.0
    active_exit: float = 0.0
    inactive_enter: float = 0.0


@dataclass
class Unit:
    """A service unit. The fields have the names and meanings of systemd's properties."""

    name: str
    definition: Definition
    active: str = "inactive"
    sub: str = "dead"
    result: str = "success"
    invocation: str = ""
    restarts: int = 0
    main_pid: int = 0
    exec_pid: int = 0
    exec_code: int = 0
    exec_status: int = 0
    exec_started: float = 0.0
    exec_exited: float = 0.0
    times: Times = field(default_factory=Times)
    spawned: Spawned | None = None
    pending: list[int] = field(default_factory=list)  # signals that came before it was spawned
    stopping: bool = False
    killed_late: bool = False  # by SIGKILL after the stop timed out
    gone: asyncio.Event = field(default_factory=asyncio.Event)  # the main process ended and was dealt with
    job: asyncio.Task[None] | None = None
    job_type: str = ""
    timer: asyncio.Task[None] | None = None  # until it is restarted after a failure
    commands_started: tuple[Command, ...] = ()
    starts: list[float] = field(default_factory=list)  # monotonic, for the start limit

    @property
    def cgroup(self) -> str:
        return f"/system.slice/{self.name}"

    @property
    def title(self) -> str:
        return f"{self.name} - {self.definition.description}"

    @property
    def command_ignores_failure(self) -> bool:
        return bool(self.definition.commands) and self.definition.commands[0].ignore_failure

    def signal(self, number: int) -> None:
        """Send the main process a signal, as soon as there is one."""
        if self.spawned:
            self.spawned.signal(number)
        else:
            self.pending.append(number)

    def restarts_itself(self) -> bool:
        """Whether Restart= says so for the present result."""
        policy = self.definition.get("Service.Restart", "no")
        abnormal = self.result in ("signal", "timeout", "core-dump", "watchdog")
        return self.definition.loaded and (
            policy == "always"
            or (policy == "on-success" and self.result == "success")
            or (policy == "on-failure" and self.result != "success")
            or (policy in ("on-abnormal", "on-abort") and abnormal)
        )

    def start_limit_hit(self, now: float) -> bool:
        """Count a start at `now` (monotonic), unless it is one too many."""
        interval = self.definition.seconds("Unit.StartLimitIntervalSec", DEFAULT_START_LIMIT[0])
        burst = int(self.definition.get("Unit.StartLimitBurst", str(DEFAULT_START_LIMIT[1])) or 0)
        if not interval or not burst:
            return False
        self.starts = [at for at in self.starts if now - at < interval]
        if len(self.starts) >= burst:
            return True
        self.starts.append(now)
        return False

    def enter(self, active: str, sub: str, now: float) -> None:
        """Change state at unix time `now`."""
        times = self.times
        was_inactive, is_inactive = self.active in ("inactive", "failed"), active in ("inactive", "failed")
        times.state_change = now
        if was_inactive and not is_inactive:
            times.inactive_exit = now
        if (is_inactive and not was_inactive) or sub == "auto-restart":
            times.inactive_enter = now
        if active == "active" and self.active != "active":
            times.active_enter = now
        if self.active == "active" and active != "active":
            times.active_exit = now
        self.active, self.sub = active, sub
