"""The demo host's systemd: loads units, runs jobs, starts and watches the service's process, restarts it, gives up.

States, messages, message ids, results and exit codes are those of systemd 252, as seen on a real one.
"""

from __future__ import annotations

import asyncio
import posixpath
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

from ddtui.demo import unitfile
from ddtui.demo.accounts import GROUPS, ROOT, USERS, User
from ddtui.demo.clock import Clock
from ddtui.demo.filesystem import Filesystem
from ddtui.demo.journal import Journal
from ddtui.demo.process import Spawn, Spawned
from ddtui.demo.processes import Process, Processes

STARTED = "39f53479d3a045ac8e11786248231fbf"
STOPPING = "de5b426a63be47a7b6ac3eaac82e2f6f"
STOPPED = "9d1aaa27d60140bd96365438aad20286"
FAILED_TO_START = "be02cf6855d2428ba40df7e9d022f03d"
DEACTIVATED = "7ad2d189f7e94e70a38c781354912448"
EXITED = "98e322203f7a4ed290d09fe03c09fe15"
FAILED = "d9b373ed55a64feb8242e02dbe79a49c"
RESTARTING = "5eb03494b6584870a536b337290809b3"

EXIT_NAMES = {
    0: "SUCCESS", 1: "FAILURE", 2: "INVALIDARGUMENT", 3: "NOTIMPLEMENTED", 4: "NOPERMISSION", 5: "NOTINSTALLED",
    6: "NOTCONFIGURED", 7: "NOTRUNNING", 200: "CHDIR", 203: "EXEC", 209: "STDOUT", 217: "USER",
}  # fmt: skip
CLEAN_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)
CLD_EXITED, CLD_KILLED = 1, 2
DEFAULT_TIMEOUT_STOP = 90.0
DEFAULT_RESTART = 0.1
DEFAULT_START_LIMIT = (10.0, 5)


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
    """A service unit and its state."""

    name: str
    definition: unitfile.Definition
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
    stopping: bool = False
    killed_late: bool = False  # by SIGKILL after the stop timed out
    gone: asyncio.Event = field(
        default_factory=asyncio.Event
    )  # the main process has ended and been dealt with
    job: asyncio.Task[None] | None = None
    job_type: str = ""
    timer: asyncio.Task[None] | None = None
    commands_started: tuple[unitfile.Command, ...] = ()
    starts: list[float] = field(default_factory=list)  # monotonic, for the start limit

    @property
    def cgroup(self) -> str:
        return f"/system.slice/{self.name}"

    @property
    def title(self) -> str:
        return f"{self.name} - {self.definition.description}"


@dataclass
class Manager:
    """PID 1."""

    files: Filesystem
    journal: Journal
    processes: Processes
    clock: Clock
    spawn: Spawn
    on_output: Callable[[Unit, str], None]  # every piece of output, as it comes
    on_exit: Callable[[Unit], None]
    hostname: str = "demo"
    units: dict[str, Unit] = field(default_factory=dict)
    last_job: int = 40
    _background: set[asyncio.Task[None]] = field(default_factory=set)

    # -- loading --------------------------------------------------------------------------------------------

    def get(self, name: str) -> Unit:
        """The unit, loaded from disk if it is not in memory."""
        if name not in self.units:
            definition = unitfile.load(self.files, name, self.hostname)
            unit = Unit(name, definition)
            unit.gone.set()
            if definition.load_state == "not-found":
                return unit
            self.units[name] = unit
            self._complain(unit)
        return self.units[name]

    def reload(self) -> None:
        """daemon-reload: read every unit again. The start limit's count is forgotten, as in 252."""
        self._say("", "Reloading.")
        for name, unit in list(self.units.items()):
            unit.definition = unitfile.load(self.files, name, self.hostname)
            unit.starts.clear()
            self._complain(unit)
            if unit.definition.load_state == "not-found" and unit.active == "inactive":
                del self.units[name]

    def needs_reload(self, unit: Unit) -> bool:
        """Whether the files on disk are not those that were loaded. The first drop-in goes unnoticed, as in 252."""
        loaded = unit.definition
        if loaded.load_state == "not-found":
            return False
        if loaded.load_state == "bad-setting":
            return True
        fragment, drop_ins = unitfile.find(self.files, unit.name)
        if unitfile.stamp(self.files, tuple(path for path, *_ in loaded.stamp)) != loaded.stamp:
            return True
        if fragment != loaded.fragment:
            return True
        return bool(loaded.drop_ins) and drop_ins != loaded.drop_ins

    def known_names(self) -> list[str]:
        """Names of all service unit files on disk."""
        names: set[str] = set()
        for folder in unitfile.FOLDERS:
            try:
                names |= {name for name in self.files.list(folder) if name.endswith(".service")}
            except OSError:
                continue
        return sorted(names)

    def _complain(self, unit: Unit) -> None:
        for problem in unit.definition.problems:
            self._say(unit.name, str(problem), priority=4 if problem.path else 3)

    # -- jobs -----------------------------------------------------------------------------------------------

    def enqueue(self, kind: str, name: str) -> asyncio.Task[None]:
        """A job (start, stop, restart). One of the same kind is joined, another one replaced.

        Raises JobFailed at once for a unit that cannot be started.
        """
        unit = self.get(name)
        definition = unit.definition
        if kind != "stop" and not definition.loaded:
            verb = {"start": "start", "restart": "restart"}[kind]
            raise JobFailed(
                {
                    "not-found": f"Failed to {verb} {name}: Unit {name} not found.",
                    "masked": f"Failed to {verb} {name}: Unit {name} is masked.",
                    "bad-setting": f"Failed to {verb} {name}: Unit {name} has a bad unit file setting.\n"
                    f"See system logs and 'systemctl status {name}' for details.",
                }[definition.load_state],
                5 if definition.load_state == "not-found" else 1,
            )
        if kind == "stop" and definition.load_state == "not-found":
            raise JobFailed(f"Failed to stop {name}: Unit {name} not loaded.", 5)
        if unit.job is not None and not unit.job.done():
            if unit.job_type == kind:
                return unit.job
            unit.job.cancel()
        self.last_job += 1
        unit.job_type = kind
        unit.job = self._keep(self._run_job(unit, kind, self.last_job))
        return unit.job

    async def _run_job(self, unit: Unit, kind: str, number: int) -> None:
        if kind != "start" or unit.stopping:
            if kind == "start":
                await unit.gone.wait()
            else:
                await self._stop(unit, kind, number)
        if kind == "stop" or unit.active == "active":
            return
        if unit.timer:
            unit.timer.cancel()
            unit.timer = None
        unit.restarts = 0
        self._start(unit, number)

    async def _stop(self, unit: Unit, kind: str, number: int) -> None:
        if unit.timer is not None:  # waiting to be restarted
            unit.timer.cancel()
            unit.timer = None
            if kind == "stop":
                self._enter(unit, "inactive", "dead")
                self._say_job(unit, STOPPED, f"Stopped {unit.title}.", "stop", number)
            else:
                self._say_job(unit, STOPPED, f"Stopped {unit.title}.", "restart", number)
            return
        if unit.spawned is None:
            return
        if not unit.stopping:
            self._say_job(unit, STOPPING, f"Stopping {unit.title}...", "stop", number, done=False)
            unit.stopping = True
            self._enter(unit, "deactivating", "stop-sigterm")
            unit.spawned.signal(unit.definition.kill_signal)
        await self._until_gone(unit)
        self._say_job(unit, STOPPED, f"Stopped {unit.title}.", kind, number)

    async def _until_gone(self, unit: Unit) -> None:
        limit = unit.definition.seconds("Service.TimeoutStopSec", DEFAULT_TIMEOUT_STOP)
        try:
            await asyncio.wait_for(unit.gone.wait(), None if limit == float("inf") else limit)
        except TimeoutError:
            spawned = unit.spawned
            if spawned is None:
                return
            self._say(unit.name, f"{unit.name}: State 'stop-sigterm' timed out. Killing.", 4, unit=unit)
            text = f"{unit.name}: Killing process {unit.main_pid} (python3) with signal SIGKILL."
            self._say(unit.name, text, 5, unit=unit)
            unit.killed_late = True
            unit.sub = "stop-sigkill"
            spawned.signal(signal.SIGKILL)
            await unit.gone.wait()

    def kill(self, name: str, number: int, *, whom: str = "all") -> None:
        """systemctl kill. Raises JobFailed."""
        unit = self.units.get(name)
        if unit is None:
            raise JobFailed(f"Failed to kill unit {name}: Unit {name} not loaded.")
        if unit.spawned is None:
            if whom == "main":
                raise JobFailed(f"Failed to kill unit {name}: No main process to kill")
            return
        text = (
            f"{name}: Sent signal {signal.Signals(number).name} to main process {unit.main_pid} (python3) "
            "on client request."
        )
        self._say(name, text, unit=unit)
        unit.spawned.signal(number)

    def reset_failed(self, name: str) -> None:
        """Forget that it failed, and how often it was started. Raises JobFailed."""
        unit = self.units.get(name) or self.get(name)
        if unit.definition.load_state == "not-found":
            raise JobFailed(f"Failed to reset failed state of unit {name}: Unit {name} not loaded.")
        unit.starts.clear()
        unit.restarts = 0
        if unit.active == "failed":
            unit.result = "success"
            self._enter(unit, "inactive", "dead")

    # -- starting -------------------------------------------------------------------------------------------

    def _start(self, unit: Unit, number: int) -> None:
        """Raises JobFailed."""
        name, definition = unit.name, unit.definition
        if self._limit_hit(unit):
            self._say(name, f"{name}: Start request repeated too quickly.", 4, unit=unit)
            failed_before = unit.result != "success"
            unit.result = unit.result if failed_before else "start-limit-hit"
            self._fail(unit)
            self._say_job(
                unit, FAILED_TO_START, f"Failed to start {unit.title}.", "start", number, failed=True
            )
            raise JobFailed(_too_often(name) if not failed_before else _control_failed(name))
        unit.invocation = uuid4().hex
        unit.result, unit.killed_late, unit.stopping = "success", False, False
        try:
            environment = unitfile.environment_of(definition, self.files)
        except OSError as error:
            text = f"{name}: Failed to load environment files: {error.strerror}"
            self._say(name, text, 4, unit=unit)
            self._say(name, f"{name}: Failed to run 'start' task: {error.strerror}", 4, unit=unit)
            unit.result = "resources"
            self._fail(unit)
            self._say_job(
                unit, FAILED_TO_START, f"Failed to start {unit.title}.", "start", number, failed=True
            )
            raise JobFailed(
                f"Job for {name} failed because of unavailable resources or another system error.\n{_see(name)}"
            ) from None
        command = definition.commands[0]
        argv = unitfile.expand(command.argv, environment) if command.expand else list(command.argv)
        user_name = definition.get("Service.User")
        user = USERS.get(user_name, ROOT)
        cwd = definition.get("Service.WorkingDirectory", "/")
        process = Process(
            pid=self.processes.new_pid(),
            ppid=1,
            argv=tuple(argv),
            comm=posixpath.basename(command.path)[:15],
            uid=user.uid,
            gid=GROUPS.get(definition.get("Service.Group"), user.gid),
            started=self.clock.now(),
            cgroup=unit.cgroup,
            exe=command.path,
            cwd=cwd.removeprefix("-").replace("~", user.home),
            environment=_base_environment(environment, unit, user, user_name),
            rss=900 << 20,
            threads=86,
        )
        process.exe = self._program(command.path) or command.path
        unit.main_pid = unit.exec_pid = process.pid
        unit.exec_code = unit.exec_status = 0
        unit.exec_started, unit.exec_exited = self.clock.now(), 0.0
        unit.commands_started = definition.commands
        self.processes.add(process)
        unit.gone.clear()
        self._enter(unit, "active", "running")
        self._say_job(unit, STARTED, f"Started {unit.title}.", "start", number)
        refusal = self._refusal(process, command.path, user_name, cwd)
        if refusal:
            status, texts = refusal
            for text in texts:
                self._say_child(unit, process, f"{name}: {text}")
            self._main_ended(unit, CLD_EXITED, status)
            return
        self._keep(self._watch(unit, process))

    def _program(self, path: str) -> str | None:
        """The canonical path of an executable; None if there is none."""
        places = (
            [path]
            if path.startswith("/")
            else [f"{d}/{path}" for d in ("/usr/local/bin", "/usr/bin", "/bin")]
        )
        for place in places:
            try:
                canonical = self.files.resolve(place)
                node = self.files.lookup(canonical)
            except OSError:
                continue
            if node.is_file and node.mode & 0o111:
                return canonical
        return None

    def _refusal(self, process: Process, path: str, user: str, cwd: str) -> tuple[int, list[str]] | None:
        """Why the process cannot be: exit status and what systemd's child says."""
        program = posixpath.basename(path)
        if user and user not in USERS:
            missing = "No such process"
            return 217, [
                f"Failed to determine user credentials: {missing}",
                f"Failed at step USER spawning {path}: {missing}",
            ]
        try:
            optional = cwd.startswith("-")
            if not self.files.lookup(process.cwd).is_dir and not optional:
                raise NotADirectoryError
        except OSError as error:
            why = error.strerror or "Not a directory"
            return 200, [
                f"Changing to the requested working directory failed: {why}",
                f"Failed at step CHDIR spawning {path}: {why}",
            ]
        if self._program(path) is None:
            missing = "No such file or directory"
            return 203, [
                f"Failed to locate executable {path}: {missing}",
                f"Failed at step EXEC spawning {path}: {missing}",
            ]
        if not program.startswith("python3"):
            return 203, [
                f"Failed to execute {path}: the demo host only runs Python",
                f"Failed at step EXEC spawning {path}: Exec format error",
            ]
        return None

    async def _watch(self, unit: Unit, process: Process) -> None:
        """Run the process to its end, its output into the journal."""

        def output(text: str, line: bool) -> None:
            self.on_output(unit, text)
            if line:
                self._take_line(unit, process, self.clock.restamp(text))

        unit.spawned = spawned = await self.spawn(process, output)
        if unit.stopping:  # a stop came while it was being started
            spawned.signal(unit.definition.kill_signal)
        code = await spawned.ended()
        if code < 0:
            self._main_ended(unit, CLD_KILLED, -code)
        else:
            self._main_ended(unit, CLD_EXITED, code)

    def _main_ended(self, unit: Unit, code: int, status: int) -> None:
        name = unit.name
        for process in self.processes.in_cgroup(unit.cgroup):
            self.processes.end(process.pid)
        unit.spawned = None
        unit.exec_code, unit.exec_status, unit.exec_exited = code, status, self.clock.now()
        pid, unit.main_pid = unit.main_pid, 0
        self.on_exit(unit)
        killed = code == CLD_KILLED
        clean = status in CLEAN_SIGNALS if killed else status == 0
        if not clean:
            what = (
                signal.Signals(status).name.removeprefix("SIG") if killed else EXIT_NAMES.get(status, "n/a")
            )
            how = "killed" if killed else "exited"
            fields = {
                "EXIT_CODE": how,
                "EXIT_STATUS": str(status),
                "COMMAND": "ExecStart",
                "MESSAGE_ID": EXITED,
            }
            text = f"{name}: Main process exited, code={how}, status={status}/{what}"
            self._say(name, text, 4 if killed else 5, unit=unit, fields=fields)
            ignored = unit.definition.commands and unit.definition.commands[0].ignore_failure
            unit.result = "success" if ignored else "signal" if killed else "exit-code"
        if unit.killed_late:
            unit.result = "timeout"
        del pid
        was_stopping, unit.stopping = unit.stopping, False
        if not was_stopping and self._restarts(unit):
            if unit.result == "success":
                self._say(
                    name, f"{name}: Deactivated successfully.", unit=unit, fields={"MESSAGE_ID": DEACTIVATED}
                )
            else:
                self._say_failed(unit)
            self._enter(unit, "activating", "auto-restart")
            unit.timer = self._keep(self._restart_later(unit))
        elif unit.result == "success":
            self._say(
                name, f"{name}: Deactivated successfully.", unit=unit, fields={"MESSAGE_ID": DEACTIVATED}
            )
            self._enter(unit, "inactive", "dead")
        else:
            self._fail(unit)
        unit.gone.set()

    def _restarts(self, unit: Unit) -> bool:
        policy = unit.definition.get("Service.Restart", "no")
        abnormal = unit.result in ("signal", "timeout", "core-dump", "watchdog")
        return unit.definition.loaded and (
            policy == "always"
            or (policy == "on-success" and unit.result == "success")
            or (policy == "on-failure" and unit.result != "success")
            or (policy in ("on-abnormal", "on-abort") and abnormal)
        )

    async def _restart_later(self, unit: Unit) -> None:
        await asyncio.sleep(unit.definition.seconds("Service.RestartSec", DEFAULT_RESTART))
        unit.timer = None
        unit.restarts += 1
        text = f"{unit.name}: Scheduled restart job, restart counter is at {unit.restarts}."
        fields = {"MESSAGE_ID": RESTARTING, "N_RESTARTS": str(unit.restarts)}
        self._say(unit.name, text, unit=unit, fields=fields)
        self.last_job += 1
        self._enter(unit, "inactive", "dead")
        self._say_job(unit, STOPPED, f"Stopped {unit.title}.", "restart", self.last_job)
        try:
            self._start(unit, self.last_job)
        except JobFailed:
            pass

    def _limit_hit(self, unit: Unit) -> bool:
        interval = unit.definition.seconds("Unit.StartLimitIntervalSec", DEFAULT_START_LIMIT[0])
        burst = int(unit.definition.get("Unit.StartLimitBurst", str(DEFAULT_START_LIMIT[1])) or 0)
        if not interval or not burst:
            return False
        now = time.monotonic()
        unit.starts = [at for at in unit.starts if now - at < interval]
        if len(unit.starts) >= burst:
            return True
        unit.starts.append(now)
        return False

    # -- state and messages ---------------------------------------------------------------------------------

    def _enter(self, unit: Unit, active: str, sub: str) -> None:
        now, times = self.clock.now(), unit.times
        was_inactive = unit.active in ("inactive", "failed")
        is_inactive = active in ("inactive", "failed")
        was_up, is_up = unit.active == "active", active == "active"
        times.state_change = now
        if was_inactive and not is_inactive:
            times.inactive_exit = now
        if is_inactive and not was_inactive:
            times.inactive_enter = now
        if is_up and not was_up:
            times.active_enter = now
        if was_up and not is_up:
            times.active_exit = now
        if sub == "auto-restart":
            times.inactive_enter = now
        unit.active, unit.sub = active, sub

    def _fail(self, unit: Unit) -> None:
        self._say_failed(unit)
        self._enter(unit, "failed", "failed")

    def _say_failed(self, unit: Unit) -> None:
        fields = {"MESSAGE_ID": FAILED, "UNIT_RESULT": unit.result}
        self._say(unit.name, f"{unit.name}: Failed with result '{unit.result}'.", 4, unit=unit, fields=fields)

    def _say_job(
        self,
        unit: Unit,
        message_id: str,
        text: str,
        kind: str,
        number: int,
        *,
        done: bool = True,
        failed: bool = False,
    ) -> None:
        fields = {"MESSAGE_ID": message_id, "JOB_TYPE": kind, "JOB_ID": str(number)}
        if done or failed:
            fields["JOB_RESULT"] = "failed" if failed else "done"
        self._say(unit.name, text, 3 if failed else 6, unit=unit, fields=fields)

    def _say(
        self,
        name: str,
        text: str,
        priority: int = 6,
        *,
        unit: Unit | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> None:
        """A line of PID 1's own."""
        about = {"UNIT": name} if name else {}
        if unit is not None and unit.invocation:
            about["INVOCATION_ID"] = unit.invocation
        self.journal.add(
            {
                "MESSAGE": text,
                "PRIORITY": str(priority),
                "SYSLOG_FACILITY": "3",
                "SYSLOG_IDENTIFIER": "systemd",
                **about,
                **(fields or {}),
                "TID": "1",
                "_TRANSPORT": "journal",
                "_PID": "1",
                "_UID": "0",
                "_GID": "0",
                "_COMM": "systemd",
                "_EXE": "/usr/lib/systemd/systemd",
                "_CMDLINE": "/sbin/init",
                "_CAP_EFFECTIVE": "1ffffffffff",
                "_SYSTEMD_CGROUP": "/init.scope",
                "_SYSTEMD_UNIT": "init.scope",
                "_SYSTEMD_SLICE": "-.slice",
                **self.journal.common(),
            }
        )

    def _say_child(self, unit: Unit, process: Process, text: str) -> None:
        """A line that systemd's child writes before it would have become the service."""
        self.journal.add(
            {
                "MESSAGE": text,
                "PRIORITY": "3",
                "SYSLOG_FACILITY": "3",
                "SYSLOG_IDENTIFIER": "systemd",
                "UNIT": unit.name,
                "INVOCATION_ID": unit.invocation,
                "_TRANSPORT": "journal",
                "_PID": str(process.pid),
                "_UID": "0",
                "_GID": "0",
                "_COMM": f"({process.comm})"[:15],
                "_SYSTEMD_CGROUP": unit.cgroup,
                "_SYSTEMD_UNIT": unit.name,
                "_SYSTEMD_SLICE": "system.slice",
                "_SYSTEMD_INVOCATION_ID": unit.invocation,
                **self.journal.common(),
            }
        )

    def _take_line(self, unit: Unit, process: Process, text: str) -> None:
        """A line of the service, as journald takes it from its stdout and stderr."""
        priority = "6"
        if len(text) > 2 and text[0] == "<" and text[2] == ">" and text[1] in "01234567":
            priority, text = text[1], text[3:]
        text = text.rstrip(" \t\r") or text
        if not text:
            return
        self.journal.add(
            {
                "MESSAGE": text,
                "PRIORITY": priority,
                "SYSLOG_FACILITY": "3",
                "SYSLOG_IDENTIFIER": process.comm,
                "_TRANSPORT": "stdout",
                "_STREAM_ID": unit.invocation,
                "_PID": str(process.pid),
                "_UID": str(process.uid),
                "_GID": str(process.gid),
                "_COMM": process.comm,
                "_EXE": process.exe,
                "_CMDLINE": " ".join(process.argv),
                "_CAP_EFFECTIVE": "0",
                "_SYSTEMD_CGROUP": unit.cgroup,
                "_SYSTEMD_UNIT": unit.name,
                "_SYSTEMD_SLICE": "system.slice",
                "_SYSTEMD_INVOCATION_ID": unit.invocation,
                **self.journal.common(),
            }
        )

    # -- end ------------------------------------------------------------------------------------------------

    def _keep(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def shut_down(self) -> None:
        """End everything at once, as when the power goes."""
        for unit in self.units.values():
            if unit.timer:
                unit.timer.cancel()
            if unit.job:
                unit.job.cancel()
            if unit.spawned:
                unit.spawned.signal(signal.SIGKILL)
        for task in tuple(self._background):
            if not task.done():
                await asyncio.wait([task], timeout=2.0)


def _base_environment(
    environment: Mapping[str, str], unit: Unit, user: User, user_name: str
) -> dict[str, str]:
    """What systemd gives a service beside its own Environment=."""
    base = {
        "LANG": "C.UTF-8",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
        "INVOCATION_ID": unit.invocation,
        "JOURNAL_STREAM": "8:24680",
        "SYSTEMD_EXEC_PID": str(unit.main_pid),
    }
    if user_name:
        base |= {"HOME": user.home, "LOGNAME": user.name, "USER": user.name, "SHELL": user.shell}
    return base | dict(environment)


def _see(name: str) -> str:
    return f'See "systemctl status {name}" and "journalctl -xeu {name}" for details.'


def _too_often(name: str) -> str:
    return (
        f"Job for {name} failed because start of the service was attempted too often.\n{_see(name)}\n"
        f'To force a start use "systemctl reset-failed {name}"\n'
        f'followed by "systemctl start {name}" again.'
    )


def _control_failed(name: str) -> str:
    return f"Job for {name} failed because the control process exited with error code.\n{_see(name)}"
