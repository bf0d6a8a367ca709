"""The demo host's systemd: loads units, runs jobs, starts and watches a service, restarts it, gives it up.

States, messages, results and exit codes are those of systemd 252, as seen on a real one.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from uuid import uuid4

from ddtui.demo import unitfile
from ddtui.demo.clock import Clock
from ddtui.demo.filesystem import Filesystem
from ddtui.demo.process import Spawn
from ddtui.demo.processes import Process, Processes
from ddtui.demo.service_log import EXITED, FAILED_TO_START, RESTARTING, STARTED, STOPPED, STOPPING, ServiceLog
from ddtui.demo.spawning import prepare, refusal
from ddtui.demo.unit import (
    CLD_EXITED,
    CLD_KILLED,
    CLEAN_SIGNALS,
    DEFAULT_RESTART,
    DEFAULT_TIMEOUT_STOP,
    EXIT_NAMES,
    JobFailed,
    Unit,
)


@dataclass
class Manager:
    """PID 1."""

    files: Filesystem
    log: ServiceLog
    processes: Processes
    clock: Clock
    spawn: Spawn
    on_output: Callable[
        [Unit, Process, str], tuple[Process, str]
    ]  # sees all output; whose line it is, and its text
    on_exit: Callable[[Unit], None]
    hostname: str
    units: dict[str, Unit] = field(default_factory=dict)
    last_job: int = 40
    _background: set[asyncio.Task[None]] = field(default_factory=set)

    # -- loading --------------------------------------------------------------------------------------------

    def get(self, name: str) -> Unit:
        """The unit, loaded from disk if it is not in memory."""
        if name in self.units:
            return self.units[name]
        unit = Unit(name, unitfile.load(self.files, name, self.hostname))
        unit.gone.set()
        if unit.definition.load_state != "not-found":
            self.units[name] = unit
            self._complain(unit)
        return unit

    def reload(self) -> None:
        """daemon-reload: read every unit again. The start limit's count is forgotten, as in 252."""
        self.log.manager("Reloading.")
        for name, unit in list(self.units.items()):
            unit.definition = unitfile.load(self.files, name, self.hostname)
            unit.starts.clear()
            self._complain(unit)
            if unit.definition.load_state == "not-found" and unit.active == "inactive":
                del self.units[name]

    def needs_reload(self, unit: Unit) -> bool:
        """Whether the files on disk are not those loaded. The first drop-in goes unnoticed, as in 252."""
        loaded = unit.definition
        if loaded.load_state in ("not-found", "bad-setting"):
            return loaded.load_state == "bad-setting"
        fragment, drop_ins = unitfile.find(self.files, unit.name)
        if unitfile.stamp(self.files, [path for path, *_ in loaded.stamp]) != loaded.stamp:
            return True
        return fragment != loaded.fragment or (bool(loaded.drop_ins) and drop_ins != loaded.drop_ins)

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
            self.log.unit(unit, str(problem), 4 if problem.path else 3)

    # -- jobs -----------------------------------------------------------------------------------------------

    def enqueue(self, kind: str, name: str) -> asyncio.Task[None]:
        """A job (start, stop, restart). One of the same kind is joined, another one replaced.

        Raises JobFailed at once for a unit that has none.
        """
        unit = self.get(name)
        state = unit.definition.load_state
        if kind == "stop" and state == "not-found":
            raise JobFailed(f"Failed to stop {name}: Unit {name} not loaded.", 5)
        if kind != "stop" and state != "loaded":
            why, code = {
                "not-found": (f"Unit {name} not found.", 5),
                "masked": (f"Unit {name} is masked.", 1),
                "bad-setting": (
                    f"Unit {name} has a bad unit file setting.\n"
                    f"See system logs and 'systemctl status {name}' for details.",
                    1,
                ),
            }[state]
            raise JobFailed(f"Failed to {kind} {name}: {why}", code)
        if unit.job is not None and not unit.job.done():
            if unit.job_type == kind:
                return unit.job
            unit.job.cancel()
        self.last_job += 1
        unit.job_type = kind
        unit.job = self._keep(self._run_job(unit, kind, self.last_job))
        return unit.job

    async def _run_job(self, unit: Unit, kind: str, number: int) -> None:
        if kind == "start":
            if unit.stopping:
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
            unit.enter("inactive", "dead", self.clock.now())
            self.log.job(unit, STOPPED, f"Stopped {unit.title}.", kind, number)
            return
        if unit.gone.is_set():
            return
        if not unit.stopping:
            self.log.job(unit, STOPPING, f"Stopping {unit.title}...", "stop", number)
            unit.stopping = True
            unit.enter("deactivating", "stop-sigterm", self.clock.now())
            unit.signal(unit.definition.kill_signal)
        await self._until_gone(unit)
        self.log.job(unit, STOPPED, f"Stopped {unit.title}.", kind, number)

    async def _until_gone(self, unit: Unit) -> None:
        limit = unit.definition.seconds("Service.TimeoutStopSec", DEFAULT_TIMEOUT_STOP)
        try:
            await asyncio.wait_for(unit.gone.wait(), None if limit == float("inf") else limit)
        except TimeoutError:
            self.log.unit(unit, f"{unit.name}: State 'stop-sigterm' timed out. Killing.", 4)
            killing = f"{unit.name}: Killing process {unit.main_pid} (python3) with signal SIGKILL."
            self.log.unit(unit, killing, 5)
            unit.killed_late, unit.sub = True, "stop-sigkill"
            unit.signal(signal.SIGKILL)
            await unit.gone.wait()

    def in_memory(self, name: str) -> bool:
        """Whether systemd holds the unit: it is not idle, or a target wants it; others are let go of."""
        unit = self.units.get(name)
        wanted = any(
            self.files.exists(f"/etc/systemd/system/{target}.wants/{name}")
            for target in (unit.definition.settings.get("Install.WantedBy", ()) if unit else ())
        )
        return unit is not None and (wanted or unit.active != "inactive")

    def kill(self, name: str, number: int) -> None:
        """systemctl kill. Raises JobFailed."""
        unit = self.units.get(name)
        if unit is None or not self.in_memory(name):
            raise JobFailed(f"Failed to kill unit {name}: Unit {name} not loaded.")
        if unit.gone.is_set():
            return
        what = f"Sent signal {signal.Signals(number).name} to main process {unit.main_pid} (python3)"
        self.log.unit(unit, f"{name}: {what} on client request.")
        unit.signal(number)

    def reset_failed(self, name: str) -> None:
        """Forget that it failed, and how often it was started. Raises JobFailed."""
        unit = self.get(name)
        if not self.in_memory(name):
            raise JobFailed(f"Failed to reset failed state of unit {name}: Unit {name} not loaded.")
        unit.starts.clear()
        unit.restarts = 0
        if unit.active == "failed":
            unit.result = "success"
            unit.enter("inactive", "dead", self.clock.now())

    # -- starting -------------------------------------------------------------------------------------------

    def _start(self, unit: Unit, number: int) -> None:
        """Raises JobFailed."""
        name = unit.name
        if unit.start_limit_hit(time.monotonic()):
            self.log.unit(unit, f"{name}: Start request repeated too quickly.", 4)
            failed_before = unit.result != "success"
            unit.result = unit.result if failed_before else "start-limit-hit"
            self._fail(unit)
            self.log.job(unit, FAILED_TO_START, f"Failed to start {unit.title}.", "start", number)
            raise JobFailed(_control_failed(name) if failed_before else _too_often(name))
        unit.invocation = uuid4().hex
        unit.result, unit.killed_late, unit.stopping = "success", False, False
        try:
            process = prepare(self.files, self.processes, unit)
        except OSError as error:
            self.log.unit(unit, f"{name}: Failed to load environment files: {error.strerror}", 4)
            self.log.unit(unit, f"{name}: Failed to run 'start' task: {error.strerror}", 4)
            unit.result = "resources"
            self._fail(unit)
            self.log.job(unit, FAILED_TO_START, f"Failed to start {unit.title}.", "start", number)
            raise JobFailed(_no_resources(name)) from None
        self.processes.add(process)
        unit.main_pid = unit.exec_pid = process.pid
        unit.exec_code = unit.exec_status = 0
        unit.exec_started, unit.exec_exited = process.started, 0.0
        unit.commands_started = unit.definition.commands
        unit.gone.clear()
        unit.pending.clear()
        unit.enter("active", "running", self.clock.now())
        self.log.job(unit, STARTED, f"Started {unit.title}.", "start", number)
        refused = refusal(self.files, unit, process)
        if refused:
            for text in refused.said:
                self.log.child(unit, process, f"{name}: {text}")
            self._main_ended(unit, CLD_EXITED, refused.status)
        else:
            self._keep(self._watch(unit, process))

    async def _watch(self, unit: Unit, process: Process) -> None:
        """Run the process to its end, its output into the journal."""

        def output(text: str, line: bool) -> None:
            writer, text = self.on_output(unit, process, text)
            if line:
                self.log.line(unit, writer, text)

        try:
            unit.spawned = spawned = await self.spawn(process, output)
        except OSError as error:
            self.log.child(unit, process, f"{unit.name}: Failed to execute {process.exe}: {error.strerror}")
            self._main_ended(unit, CLD_EXITED, 203)
            return
        for number in unit.pending:
            spawned.signal(number)
        code = await spawned.ended()
        self._main_ended(unit, CLD_KILLED if code < 0 else CLD_EXITED, abs(code))

    def _main_ended(self, unit: Unit, code: int, status: int) -> None:
        for process in self.processes.in_cgroup(unit.cgroup):
            self.processes.end(process.pid)
        unit.spawned = None
        unit.main_pid = 0
        unit.exec_code, unit.exec_status, unit.exec_exited = code, status, self.clock.now()
        self.on_exit(unit)
        killed = code == CLD_KILLED
        if not (status in CLEAN_SIGNALS if killed else status == 0):
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
            text = f"{unit.name}: Main process exited, code={how}, status={status}/{what}"
            self.log.unit(unit, text, 4 if killed else 5, fields)
            if not unit.command_ignores_failure:
                unit.result = "signal" if killed else "exit-code"
        if unit.killed_late:
            unit.result = "timeout"
        was_stopping, unit.stopping = unit.stopping, False
        restarts = not was_stopping and unit.restarts_itself()
        if unit.result == "success":
            self.log.deactivated(unit)
            if not restarts:
                unit.enter("inactive", "dead", self.clock.now())
        elif restarts:
            self.log.failed(unit)
        else:
            self._fail(unit)
        if restarts:
            unit.enter("activating", "auto-restart", self.clock.now())
            unit.timer = self._keep(self._restart_later(unit))
        unit.gone.set()

    async def _restart_later(self, unit: Unit) -> None:
        await asyncio.sleep(unit.definition.seconds("Service.RestartSec", DEFAULT_RESTART))
        unit.timer = None
        unit.restarts += 1
        text = f"{unit.name}: Scheduled restart job, restart counter is at {unit.restarts}."
        self.log.unit(unit, text, 6, {"MESSAGE_ID": RESTARTING, "N_RESTARTS": str(unit.restarts)})
        self.last_job += 1
        unit.enter("inactive", "dead", self.clock.now())
        self.log.job(unit, STOPPED, f"Stopped {unit.title}.", "restart", self.last_job)
        try:
            self._start(unit, self.last_job)
        except JobFailed:  # the journal has it
            return

    def _fail(self, unit: Unit) -> None:
        self.log.failed(unit)
        unit.enter("failed", "failed", self.clock.now())

    # -- end ------------------------------------------------------------------------------------------------

    def _keep(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        failure = None if task.cancelled() else task.exception()
        if failure and not isinstance(failure, JobFailed):
            self.log.manager(f"Fault of the demo host: {type(failure).__name__}: {failure}")

    async def shut_down(self) -> None:
        """End everything at once, as when the power goes."""
        for unit in self.units.values():
            for task in (unit.timer, unit.job):
                if task:
                    task.cancel()
            unit.stopping = True  # and not to be restarted
            unit.signal(signal.SIGKILL)
        running = tuple(self._background)
        if running:
            await asyncio.wait(running, timeout=3.0)


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


def _no_resources(name: str) -> str:
    why = "unavailable resources or another system error"
    return f"Job for {name} failed because of {why}.\n{_see(name)}"
