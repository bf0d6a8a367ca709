"""The demo host as a whole: disk, clock, journal, systemd, processes, GPUs; its boot and its end."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from ddtui.demo import image
from ddtui.demo.accounts import User
from ddtui.demo.clock import Clock
from ddtui.demo.commands import path as programs
from ddtui.demo.commands.program import Call, Streams
from ddtui.demo.filesystem import Filesystem, devices
from ddtui.demo.gpus import COUNT, Gpus, listens_on
from ddtui.demo.journal import Journal
from ddtui.demo.process import Standin
from ddtui.demo.processes import Process, Processes
from ddtui.demo.service_log import ServiceLog
from ddtui.demo.systemd import Manager
from ddtui.demo.traces import Start
from ddtui.demo.unit import JobFailed, Unit

UNIT = image.UNIT
HOSTNAME = "demo"
TRAFFIC = Path(__file__).parent / "earlier_traffic.txt"
SINCE_TRAFFIC = 75.0  # seconds since its last line
BOOT_LIMIT = 6.0  # seconds of real time that the host's clock may lag while the server starts at boot
SOCKET_NAME_MAX = 100  # bytes of a Unix socket's path, on every system


@dataclass
class Machine:
    """A running demo host. `state` holds its disk and journal."""

    state: Path
    files: Filesystem
    clock: Clock
    journal: Journal
    processes: Processes
    systemd: Manager
    gpus: Gpus
    run_dir: Path
    server_socket: Path
    hostname: str = HOSTNAME
    guests: dict[int, tuple[asyncio.subprocess.Process, User]] = field(default_factory=dict)
    booted: asyncio.Event = field(default_factory=asyncio.Event)
    start: Start | None = None
    is_new: bool = False  # its disk was made just now
    _relay: asyncio.Server | None = None

    # -- power ----------------------------------------------------------------------------------------------

    @classmethod
    def assemble(cls, state: Path, *, fresh: bool = False) -> Machine:
        """The machine with its disk, made if there is none, and the power still off: see `boot`."""
        if fresh and state.exists():
            for name in ("root", "metadata.json", "journal.jsonl", "machine.json"):
                target = state / name
                shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        facts = state / "machine.json"
        complete = facts.exists()
        if not complete and (state / "root").exists():  # a first start that was cut
            shutil.rmtree(state / "root")
            (state / "metadata.json").unlink(missing_ok=True)
        machine_id = json.loads(facts.read_text())["machine_id"] if complete else uuid4().hex
        mounts = {"/opt/sglang": image.STANDIN}
        files = Filesystem(state / "root", state / "metadata.json", mounts)
        if not complete:
            image.install(files, machine_id)
            facts.write_text(json.dumps({"machine_id": machine_id}))
        boot_id = uuid4().hex
        clock = Clock.booting(not_before=_last_sign(state) if complete else 0.0)
        journal = Journal(state / "journal.jsonl", clock, machine_id, boot_id, HOSTNAME)
        processes = Processes(clock, boot_id, machine_id)
        processes.boot()
        files.synthetic = {"/dev": devices, "/proc": processes.proc, "/sys": processes.sys}
        run_dir = _run_dir(state)
        socket = run_dir / "http"
        gpus = Gpus()
        booted = asyncio.Event()
        standin = Standin(files, socket, at_once=lambda: not booted.is_set())
        systemd = Manager(
            files=files,
            log=ServiceLog(journal),
            processes=processes,
            clock=clock,
            spawn=standin.spawn,
            on_output=lambda unit, process, text: (process, text),
            on_exit=lambda unit: None,
            hostname=HOSTNAME,
        )
        machine = cls(
            state=state,
            files=files,
            clock=clock,
            journal=journal,
            processes=processes,
            systemd=systemd,
            gpus=gpus,
            run_dir=run_dir,
            server_socket=socket,
            booted=booted,
            is_new=not complete,
        )
        systemd.on_output, systemd.on_exit = machine._see, machine._server_gone
        return machine

    def boot(self) -> None:
        """Power on. The service is being started when this returns; `booted` tells when that is over."""
        self.journal.add(_kernel_line(self, f"Linux version 6.1.0-demo (simulated) on {self.hostname}"))
        self.journal.add(_kernel_line(self, f"NVRM: loading simulated driver for {COUNT} GPUs"))
        self.systemd.log.manager("Startup finished in 11.204s (kernel) + 19.702s (userspace) = 30.906s.")
        if not self.files.exists(f"/etc/systemd/system/multi-user.target.wants/{UNIT}"):
            self._boot_is_over()
            return
        try:
            job = self.systemd.enqueue("start", UNIT)
        except JobFailed:
            self._boot_is_over()
            return
        job.add_done_callback(lambda done: done.cancelled() or done.exception())
        asyncio.get_running_loop().call_later(BOOT_LIMIT, self._boot_is_over)

    def _boot_is_over(self) -> None:
        """From now on the host's clock is right."""
        if self.is_new and self.start and self.start.ready and not self.booted.is_set():
            self._recall_traffic()
        self.clock.catch_up()
        self.gpus.busy_until = 0.0
        self.booted.set()

    def _recall_traffic(self) -> None:
        """Put into the journal what customers did before ddtui came."""
        unit = self.systemd.get(UNIT)
        launcher = self.processes.table.get(unit.main_pid)
        lines = [line for line in TRAFFIC.read_text().splitlines() if line and not line.startswith("#")]
        spans = [(float(line[:6]), line[7:]) for line in lines]
        for at, text in spans:
            self.clock.set_behind(SINCE_TRAFFIC + spans[-1][0] - at)
            stamped = self.clock.stamp(text)
            if launcher and self.start:
                self.systemd.log.line(unit, self.start.writer(stamped) or launcher, stamped)

    async def shut_down(self) -> None:
        """End everything that was started, and leave only what `state` keeps."""
        for child, _ in tuple(self.guests.values()):
            try:
                child.kill()
            except ProcessLookupError:
                pass
        self.journal.close()  # as when the power goes: nobody writes how it ended
        await self.systemd.shut_down()
        if self._relay:
            self._relay.close()
        shutil.rmtree(self.run_dir, ignore_errors=True)

    # -- the server, as the host sees it --------------------------------------------------------------------

    def _see(self, unit: Unit, process: Process, text: str) -> tuple[Process, str]:
        """Some output of the server: the machine follows suit. Gives whose line it is, and its text."""
        self.gpus.see(text)
        address = listens_on(text)
        if address and unit.main_pid:
            self.processes.listening[address] = unit.main_pid
        if self.start is None or self.start.pid != unit.main_pid:
            self.start = Start(self.processes, unit.main_pid)
        self.start.see(text, self.gpus.fraction)
        if self.start.ready and not self.booted.is_set():
            asyncio.get_running_loop().call_soon(self._boot_is_over)  # once this line is in the journal
        if self.clock.behind:
            seconds, text = self.start.at_boot(text)
            self.clock.pass_time(seconds)
            text = self.clock.restamp(text)
        return self.start.writer(text) or process, text

    def _server_gone(self, unit: Unit) -> None:
        self.gpus.reset()
        if not self.booted.is_set():
            self._boot_is_over()

    # -- what programs need ---------------------------------------------------------------------------------

    async def run(self, call: Call) -> int:
        return await programs.run(call)

    def call(self, user: User, argv: tuple[str, ...], streams: Streams, place: str = "1") -> Call:
        return Call(self, user, argv, streams, user.home, place)

    def program_path(self, name: str) -> str | None:
        return programs.find(self, name)

    def path_names(self) -> list[tuple[str, str]]:
        """(folder on this machine, path on the host), the longest first."""
        pairs = [(str(folder), point) for point, folder in self.files.mounts.items()]
        tops = [name for name in self.files.list("/") if name not in ("proc", "sys")]
        pairs += [(f"{self.files.root}/{name}", f"/{name}") for name in tops]
        pairs += [
            (os.path.realpath(real), virtual) for real, virtual in pairs if os.path.realpath(real) != real
        ]
        return sorted(pairs, key=lambda pair: -len(pair[0]))

    def other_services(self) -> list[tuple[str, str, str, str, str]]:
        """What else `systemctl list-units` shows."""
        return [
            ("dbus.service", "loaded", "active", "running", "D-Bus System Message Bus"),
            (
                "nvidia-persistenced.service",
                "loaded",
                "active",
                "running",
                "NVIDIA Persistence Daemon (simulated)",
            ),
            ("ssh.service", "loaded", "active", "running", "OpenBSD Secure Shell server"),
            ("systemd-journald.service", "loaded", "active", "running", "Journal Service"),
            ("systemd-logind.service", "loaded", "active", "running", "User Login Management"),
        ]

    def signal(self, pid: int, number: int, user: User) -> str:
        """Send a signal to a process; why not, or ""."""
        if pid in self.guests:
            child, owner = self.guests[pid]
            if not user.is_root and user.uid != owner.uid:
                return "Operation not permitted"
            child.send_signal(number)
            return ""
        process = self.processes.table.get(pid)
        if process is None:
            return "No such process"
        if not user.is_root and user.uid != process.uid:
            return "Operation not permitted"
        for unit in self.systemd.units.values():
            if unit.main_pid == pid and unit.spawned:
                unit.spawned.signal(number)
            elif process.cgroup == unit.cgroup and unit.spawned and number == signal.SIGKILL:
                unit.spawned.signal_child(process.comm, number)
        return ""

    async def guest_ports(self) -> str:
        """PORT=PORT HERE for the server's port, by way of a relay on this machine's loopback."""
        if self._relay is None:
            self._relay = await asyncio.start_server(self._relayed, "127.0.0.1", 0)
        here = self._relay.sockets[0].getsockname()[1]
        ours = [port for (_, port), pid in self.processes.listening.items() if pid in self._service_pids()]
        return " ".join(f"{port}={here}" for port in ours)

    def _service_pids(self) -> set[int]:
        return {unit.main_pid for unit in self.systemd.units.values() if unit.main_pid}

    def serves(self, host: str, port: int) -> bool:
        """Whether host:port, from the host itself, is the server's."""
        return self.processes.listener(host, port) in self._service_pids()

    async def _relayed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_unix_connection(str(self.server_socket))
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer), return_exceptions=True)
        far_writer.close()
        writer.close()

    def scheduler_count(self) -> int:
        return sum(process.comm.startswith("sglang::schedul") for process in self.processes.table.values())


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def _run_dir(state: Path) -> Path:
    """A folder for Unix sockets, whose paths must be short; in `state` if they are there."""
    inside = state / "run"
    if len(os.fsencode(inside)) + 10 < SOCKET_NAME_MAX:
        shutil.rmtree(inside, ignore_errors=True)  # of a host that was killed
        inside.mkdir(mode=0o700)
        return inside
    return Path(tempfile.mkdtemp(prefix="ddtui-demo-", dir="/tmp"))


def _last_sign(state: Path) -> float:
    """Unix time of the last thing that happened on a kept host."""
    newest = 0.0
    for folder, _, names in os.walk(state):
        for name in names:
            try:
                newest = max(newest, Path(folder, name).lstat().st_mtime)
            except OSError:
                continue
    return newest


def _kernel_line(machine: Machine, text: str) -> dict[str, str]:
    return {
        "MESSAGE": text,
        "PRIORITY": "5",
        "SYSLOG_FACILITY": "0",
        "SYSLOG_IDENTIFIER": "kernel",
        "_TRANSPORT": "kernel",
        **machine.journal.common(),
    }


__all__ = ["Machine", "Process"]
