"""The service on the host: what systemd says of it, what its unit says, and the process that really runs.

Commands, all plain: `systemctl [--user] show UNIT -p A,B,… --timestamp=us+utc --no-pager`; `systemctl
[--user] show -p Version --no-pager`; `busctl [--user] --json=short get-property org.freedesktop.systemd1
PATH org.freedesktop.systemd1.Service ExecStart Environment`; `id`; `printenv HOME`; and those of `fetch`
and `processes`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from ddtui import sanitize
from ddtui.host import container, pending, processes
from ddtui.host.base import Command, CommandFailed, Completed, Host
from ddtui.host.container import Container
from ddtui.host.fetch import Fetched, Request
from ddtui.host.processes import Clock, ServerProcess
from ddtui.host.unit import merge, words
from ddtui.host.unit.facts import HostFacts
from ddtui.host.unit.read import UnitError, UnitReading, read_unit
from ddtui.host.unit.specifiers import UnitName
from ddtui.host.unit.text import Text
from ddtui.host.unit.tree import Tree
from ddtui.profile import Scope, Service

__all__ = ["ServerProcess", "ServiceReading", "ServiceStatus", "read_service", "read_status"]

PROPERTIES = (
    "Id,Names,LoadState,LoadError,ActiveState,SubState,Result,NRestarts,InvocationID,MainPID,ExecMainCode,"
    "ExecMainStatus,NeedDaemonReload,FragmentPath,SourcePath,DropInPaths,ControlGroup,Type,UnitFileState,"
    "ActiveEnterTimestamp,StateChangeTimestamp,ExecMainStartTimestamp,ExecMainExitTimestamp,ExecStart,Restart,"
    "RestartUSec,KillMode,TimeoutStartUSec,TimeoutStopUSec,StartLimitBurst,StartLimitIntervalUSec,MemoryCurrent,"
    "StatusText,User"
)
_ROUNDS = 8  # how often files that lead to further files are followed
_MANAGER = "org.freedesktop.systemd1"


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
class ServiceReading:
    """One service, read whole. Each part may be missing, with its problem in a sentence."""

    status: ServiceStatus
    unit: UnitReading | None
    process: ServerProcess | None
    problems: Mapping[str, str] = field(default_factory=dict)  # "unit" | "process" | "files" -> one sentence
    loaded_exec: tuple[tuple[str, ...], ...] | None = (
        None  # ExecStart as systemd holds it now; None: not known
    )
    reload_pending: str | None = None  # why the loaded unit is not the one on disk, in a sentence
    restart_pending: str | None = None  # why the running process is not the one on disk, in a sentence
    changed_at: Mapping[str, float] = field(default_factory=dict)  # file -> mtime, by the host's clock
    container: Container | None = None  # that the server runs in
    tree: Tree = field(default_factory=Tree, repr=False, compare=False)  # for change_unit
    round_trips: int = 0


# -- status ----------------------------------------------------------------------------------------------
def _systemctl(service: Service, *rest: str) -> tuple[str, ...]:
    return ("systemctl", *(("--user",) if service.scope is Scope.USER else ()), *rest)


def _show(service: Service, *, old: bool = False) -> Command:
    times = () if old else ("--timestamp=us+utc",)
    return Command(_systemctl(service, "show", service.unit, "-p", PROPERTIES, *times, "--no-pager"))


def _too_old(done: Completed) -> bool:
    """systemd before 247 has no --timestamp: its times are then known only where the host keeps UTC."""
    return not done.ok and "unrecognized option" in done.err


async def read_status(host: Host, service: Service) -> ServiceStatus:
    """One round trip. A unit that does not exist is a status with load_state "not-found".

    Raises CommandFailed if systemd cannot be asked.
    """
    done = await host.run(_show(service).argv)
    if _too_old(done):
        done = await host.run(_show(service, old=True).argv)
    return _status(service, done)


def _status(service: Service, done: Completed) -> ServiceStatus:
    if not done.ok:
        said = sanitize.line(
            done.err.strip().splitlines()[-1] if done.err.strip() else f"exit code {done.exit_code}"
        )
        if done.exit_code == 127:
            raise CommandFailed(
                "the host has no systemctl", "ddtui needs systemd, or a profile with commands"
            )
        raise CommandFailed(f"systemd does not answer about {service.unit}: {said}")
    properties = parse_show(done.out)

    def text(key: str) -> str | None:
        return properties.get(key) or None

    def number(key: str) -> int:
        value = properties.get(key, "")
        return int(value) if value.isdigit() else 0

    error = re.fullmatch(r'\S*\s*"(.*)"|(.*)', properties.get("LoadError", ""))
    return ServiceStatus(
        unit=service.unit,
        scope=service.scope,
        load_state=properties.get("LoadState", ""),
        active_state=properties.get("ActiveState", ""),
        sub_state=properties.get("SubState", ""),
        result=properties.get("Result", ""),
        n_restarts=number("NRestarts"),
        invocation_id=properties.get("InvocationID", ""),
        main_pid=number("MainPID"),
        exec_main_code=number("ExecMainCode"),
        exec_main_status=number("ExecMainStatus"),
        need_daemon_reload=properties.get("NeedDaemonReload") == "yes",
        fragment_path=text("FragmentPath"),
        source_path=text("SourcePath"),
        drop_in_paths=_paths(properties.get("DropInPaths", "")),
        control_group=text("ControlGroup"),
        service_type=properties.get("Type", ""),
        unit_file_state=properties.get("UnitFileState", ""),
        load_error=((error[1] or error[2]) or None) if error else None,
        active_enter=parse_time(properties.get("ActiveEnterTimestamp", "")),
        state_change=parse_time(properties.get("StateChangeTimestamp", "")),
        exec_main_start=parse_time(properties.get("ExecMainStartTimestamp", "")),
        exec_main_exit=parse_time(properties.get("ExecMainExitTimestamp", "")),
        properties=properties,
    )


def parse_show(output: str) -> dict[str, str]:
    """`Key=Value` lines; a key that comes more than once (ExecStart) is joined by line breaks."""
    found: dict[str, str] = {}
    key = ""
    for line in output.splitlines():
        name, equals, value = line.partition("=")
        if equals and re.fullmatch(r"[A-Z][A-Za-z0-9]*", name):
            found[name] = f"{found[name]}\n{value}" if name in found else value
            key = name
        elif key:
            found[key] += "\n" + line
    return found


def parse_time(text: str) -> float | None:
    """A time as `--timestamp=us+utc` prints it (older systemd: without µs), or `@seconds`, as unix time."""
    if text.startswith("@"):
        return float(text[1:]) if re.fullmatch(r"@\d+(\.\d+)?", text) else None
    found = re.fullmatch(r"(?:\w{3} )?(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(\.\d+)? UTC", text)
    if not found:
        return None
    whole = datetime.strptime(f"{found[1]} {found[2]}", "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
    return whole + float(found[3] or 0)


def _paths(text: str) -> tuple[str, ...]:
    try:
        return tuple(word.value for word in words.split(Text(text))[0])
    except words.WordError:
        return tuple(text.split())


# -- everything ------------------------------------------------------------------------------------------
async def read_service(
    host: Host, service: Service, *, knobs: tuple[str, ...] = (), sudo: bool = False
) -> ServiceReading:
    """Status, unit and process; usually three round trips.

    With `sudo`, files that this user may not read are read as root. Raises CommandFailed if systemd cannot be
    asked, and what the link raises.
    """
    return await Reader(host, service, knobs, sudo).read()


class Reader:
    """Reads one service in rounds: each asks in one batch for all that is known to be needed by then."""

    def __init__(self, host: Host, service: Service, knobs: tuple[str, ...], sudo: bool) -> None:
        self.host, self.service, self.knobs, self.sudo = host, service, knobs, sudo
        self.user = service.scope is Scope.USER
        self.tree = Tree()
        self.facts = HostFacts()
        self.changed_at: dict[str, float] = {}
        self.denied: set[str] = set()
        self.problems: dict[str, str] = {}
        self.numbers: list[int] = []
        self.clock: Clock | None = None
        self.container: Container | None = None
        self.looked: list[Completed] = []
        self.trips = 0

    async def read(self) -> ServiceReading:
        status, loaded, environment = await self.first()
        unit = await self.follow(status)
        process, process_environment = await self.process(status, unit)
        self.blame_denied(unit)
        if process is None and status.running and "process" not in self.problems:
            self.problems["process"] = (
                f"no server was found among the {len(self.numbers)} processes of {self.service.unit}"
            )
        reading = ServiceReading(
            status,
            unit,
            process,
            self.problems,
            loaded,
            changed_at=self.changed_at,
            tree=self.tree,
            round_trips=self.trips,
            container=self.container,
        )
        return replace(
            reading,
            reload_pending=pending.of_reload(reading, environment),
            restart_pending=pending.of_restart(reading, process_environment),
        )

    async def batch(self, commands: Sequence[Command]) -> list[Completed]:
        self.trips += 1
        return await self.host.batch(commands)

    async def first(
        self,
    ) -> tuple[ServiceStatus, tuple[tuple[str, ...], ...] | None, dict[str, str] | None]:
        """systemd's words, the host's names, and the places where a unit of that name usually is."""
        path = f"/org/freedesktop/systemd1/unit/{bus_label(self.service.unit)}"
        scope = ("--user",) if self.user else ()
        ask = (*scope, "--json=short", "get-property", _MANAGER, path, f"{_MANAGER}.Service")
        commands = [
            _show(self.service),
            Command(_systemctl(self.service, "show", "-p", "Version", "--no-pager")),
            Command(("busctl", *ask, "ExecStart", "Environment"), secret=True),
            *FACTS,
        ]
        if self.user:
            commands += [Command(("id",)), Command(("printenv", "HOME"))]
        guess = Request((), ())
        if not self.user:
            read_unit_quietly(self.tree, self.service.unit, "system", self.facts)
            guess = Request.of(self.tree.wanted)
            slice_guess = processes.cgroup_files(f"/system.slice/{self.service.unit}")
            commands += [Command(("cat", "--", one)) for one in slice_guess]
        asked = len(commands)
        done = await self.batch([*commands, *guess.commands()])
        if _too_old(done[0]):
            (done[0],) = await self.batch([_show(self.service, old=True)])
        status = _status(self.service, done[0])
        self.facts = self.read_facts(status, done[1], done[3:])
        if not self.user:
            self.take(guess.read(done[asked:]))
            listed = done[asked - 3 : asked]
            if status.control_group == f"/system.slice/{self.service.unit}":
                self.numbers = processes.pids(listed)
        loaded, environment = _loaded(done[2])
        return status, loaded if loaded is not None else _shown_exec(status), environment

    def read_facts(self, status: ServiceStatus, version: Completed, done: Sequence[Completed]) -> HostFacts:
        number = re.search(r"Version=(\d+)", version.out)
        names = tuple(n for n in status.properties.get("Names", "").split() if n != self.service.unit)
        facts = replace(
            facts_of(done),
            systemd=int(number[1]) if number else None,
            source_path=status.source_path,
            names=names,
        )
        if not self.user:
            return facts
        who = re.match(r"uid=(\d+)\(([^)]*)\) gid=(\d+)\(([^)]*)\)", done[len(FACTS)].out)
        home = done[len(FACTS) + 1].out.strip() or None
        if not who:
            return replace(facts, home=home)
        uid, user, gid, group = int(who[1]), who[2], int(who[3]), who[4]
        return replace(facts, home=home, uid=uid, user=user, gid=gid, group=group)

    def take(self, fetched: Fetched) -> None:
        self.tree = fetched.into(self.tree)
        self.changed_at |= fetched.changed_at
        self.denied |= fetched.denied

    async def follow(self, status: ServiceStatus) -> UnitReading | None:
        """Read the unit, fetch what it leads to, read it again; the processes come with the first round."""
        for _ in range(_ROUNDS):
            self.tree = self.tree.with_known({}, {}, {}, {})  # nothing wanted yet
            unit, problem = _read(self.tree, self.service.unit, self.service.scope, self.facts, self.knobs)
            wanted = self.tree.wanted
            listing, looking = self.process_commands(status, unit)
            times = [p for p in (unit.files if unit else ()) if p not in self.changed_at]
            if not wanted and not times and not listing and not looking:
                break
            request = Request.of(wanted, times=times)
            done = await self.batch([*listing, *looking, *request.commands()])
            self.take_processes(
                done[: len(listing)], done[len(listing) : len(listing) + len(looking)], bool(looking)
            )
            self.take(request.read(done[len(listing) + len(looking) :]))
            if self.sudo and self.denied:
                again = Request(tuple((path, 1 << 22) for path in sorted(self.denied)), sudo=True)
                self.denied = set()
                self.take(again.read(await self.batch(again.commands())))
        unit, problem = _read(self.tree, self.service.unit, self.service.scope, self.facts, self.knobs)
        if problem:
            self.problems["unit"] = problem
        elif unit is not None and unit.problems:
            self.problems["unit"] = unit.problems[0]
        return unit

    # -- processes ----------------------------------------------------------------------------------------
    def process_commands(
        self, status: ServiceStatus, unit: UnitReading | None
    ) -> tuple[list[Command], list[Command]]:
        """What to ask about processes now: for their numbers, or about those that are known."""
        if self.looked or (status.main_pid == 0 and not status.control_group):
            return [], []
        if not self.numbers and status.control_group:
            return [Command(("cat", "--", path)) for path in processes.cgroup_files(status.control_group)], []
        numbers = self.numbers or [status.main_pid]
        return [], [*processes.CLOCK, *processes.look(numbers)]

    def take_processes(self, listed: Sequence[Completed], looked: Sequence[Completed], asked: bool) -> None:
        if listed:
            self.numbers = processes.pids(listed)
        if asked:
            self.clock = processes.read_clock(looked[: len(processes.CLOCK)])
            self.looked = list(looked[len(processes.CLOCK) :])

    async def process(
        self, status: ServiceStatus, unit: UnitReading | None
    ) -> tuple[ServerProcess | None, dict[str, str] | None]:
        if not status.exists or status.active_state in ("inactive", "failed", ""):
            return None, None
        numbers = (self.numbers or [status.main_pid]) if self.looked else []
        expected = unit.launch_argv if unit else None
        found, environment = processes.read(numbers, self.looked, self.clock, status.main_pid, expected)
        if found is None and unit is not None and unit.inside:
            return await self.in_container(unit, status)
        return found, environment

    async def in_container(
        self, unit: UnitReading, status: ServiceStatus
    ) -> tuple[ServerProcess | None, dict[str, str] | None]:
        """The server in a container: its processes are not under the unit's cgroup."""
        found = await container.find(unit, self.batch)
        if found.container is None or found.pids is None:
            self.problems["process"] = found.problem
            return None, None
        self.container = found.container
        self.numbers = processes.pids([found.pids])
        done = await self.batch([*processes.CLOCK, *processes.look(self.numbers)])
        self.clock = processes.read_clock(done)
        return processes.read(
            self.numbers, done[len(processes.CLOCK) :], self.clock, status.main_pid, unit.launch_argv
        )

    def blame_denied(self, unit: UnitReading | None) -> None:
        if self.denied:
            path = sorted(self.denied)[0]
            more = f" (and {len(self.denied) - 1} more)" if len(self.denied) > 1 else ""
            what = (
                f"{sanitize.line(path)}{more} may not be read by this user, so what it says is missing here"
            )
            self.problems["files"] = what
            if unit is None:  # the only reason is that it is nowhere to be seen
                self.problems["unit"] = what


def read_unit_quietly(tree: Tree, unit: str, scope: str, facts: HostFacts) -> None:
    """Let the tree note what a unit of that name would be read from."""
    merge.load(tree, unit, scope, facts)
    if UnitName(unit).instance:
        tree.wanted.files.discard("")


def _read(
    tree: Tree, unit: str, scope: Scope, facts: HostFacts, knobs: tuple[str, ...]
) -> tuple[UnitReading | None, str]:
    try:
        return read_unit(tree, unit, scope.value, facts, knobs), ""
    except UnitError as error:
        return None, str(error)


FACTS = tuple(
    Command(("cat", "--", path))
    for path in (
        "/proc/sys/kernel/hostname",
        "/etc/machine-id",
        "/proc/sys/kernel/random/boot_id",
        "/proc/sys/kernel/osrelease",
        "/proc/sys/kernel/arch",
    )
)


def facts_of(done: Sequence[Completed]) -> HostFacts:
    """What the answers to `FACTS` say of the host."""
    hostname, machine, boot, kernel = (one.out.strip() or None if one.ok else None for one in done[:4])
    return HostFacts(
        hostname=hostname,
        machine_id=machine,
        boot_id=boot.replace("-", "") if boot else None,
        kernel=kernel,
    )


def bus_label(name: str) -> str:
    """A unit's name in its D-Bus path: what is no letter or digit as _XX (systemd's bus_label_escape)."""
    return "".join(
        c
        if c.isascii() and (c.isalpha() or (c.isdigit() and i > 0))
        else "".join(f"_{b:02x}" for b in c.encode())
        for i, c in enumerate(name)
    )


def _loaded(done: Completed) -> tuple[tuple[tuple[str, ...], ...] | None, dict[str, str] | None]:
    """ExecStart and Environment= as systemd holds them."""
    if not done.ok:
        return None, None
    try:
        commands, *more = (json.loads(line)["data"] for line in done.out.splitlines() if line.strip())
        loaded = tuple(tuple(str(word) for word in one[1]) for one in commands)
        pairs = [str(one).partition("=") for one in more[0]] if more else None
    except (ValueError, KeyError, IndexError, TypeError):
        return None, None
    return loaded, {name: value for name, _, value in pairs} if pairs is not None else None


def _shown_exec(status: ServiceStatus) -> tuple[tuple[str, ...], ...] | None:
    """The same from `show`, which loses the quotes: right only where no argument holds a blank."""
    shown = re.findall(r"argv\[\]=(.*?) ; ignore_errors=", status.properties.get("ExecStart", ""), re.DOTALL)
    return tuple(tuple(one.split()) for one in shown) if shown else None
