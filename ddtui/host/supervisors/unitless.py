"""Reading a service that no systemd unit stands for: what starts it is read as a unit's command would be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ddtui.host import processes
from ddtui.host.base import Command, Completed, Host
from ddtui.host.service import FACTS, Reader, ServiceReading, ServiceStatus, facts_of
from ddtui.host.unit.read import UnitReading
from ddtui.host.unit.words import quote, quote_argument
from ddtui.profile import Scope, Service

GENERATIONS = 3  # of a process's children that are looked through for the server


@dataclass(frozen=True, slots=True)
class Started:
    """How a service is started."""

    argv: tuple[str, ...]
    folder: str = ""  # that it is started in
    contained: bool = False  # its server runs in a container, which is asked


def status_of(service: Service, **known: object) -> ServiceStatus:
    """A status in systemd's words, of a service that systemd does not know."""
    blank = ServiceStatus(
        unit=service.unit,
        scope=service.scope,
        load_state="loaded",
        active_state="inactive",
        sub_state="dead",
        result="success",
        n_restarts=0,
        invocation_id="",
        main_pid=0,
        exec_main_code=0,
        exec_main_status=0,
        need_daemon_reload=False,
        fragment_path=None,
        source_path=None,
        drop_in_paths=(),
        control_group=None,
        service_type="simple",
        unit_file_state="",
        load_error=None,
        active_enter=None,
        state_change=None,
        exec_main_start=None,
        exec_main_exit=None,
    )
    return replace(blank, **known)  # type: ignore[arg-type]


async def read(
    host: Host, service: Service, status: ServiceStatus, started: Started, knobs: tuple[str, ...], sudo: bool
) -> ServiceReading:
    """The service, whole. Raises what the link raises."""
    found = await _Reader(host, service, knobs, sudo, status, started).read()
    return replace(found, unit=_without(found.unit, _place(service))) if found.unit else found


def _place(service: Service) -> str:
    """Where the unit would be that is read in place of none."""
    return f"/etc/systemd/system/{_unit(service)}"


def _unit(service: Service) -> str:
    name = service.unit.removesuffix(".service")
    return f"{name}.service"


def _without(unit: UnitReading, path: str) -> UnitReading:
    """The reading as if there were no unit, which there is not."""
    return replace(
        unit,
        unit=None,
        fragment=None,
        file="the profile" if unit.file == path else unit.file,
        line=None if unit.file == path else unit.line,
        flag_sources={flag: at for flag, at in unit.flag_sources.items() if at.file != path},
        files=tuple(one for one in unit.files if one != path),
    )


class _Reader(Reader):
    """As for a unit, but its text is made here and its processes are found from one that is known."""

    def __init__(
        self,
        host: Host,
        service: Service,
        knobs: tuple[str, ...],
        sudo: bool,
        status: ServiceStatus,
        started: Started,
    ) -> None:
        named = service.model_copy(update={"unit": _unit(service), "scope": Scope.SYSTEM})
        super().__init__(host, named, knobs, sudo)
        self.user = False
        self.status, self.started = status, started

    async def first(
        self,
    ) -> tuple[ServiceStatus, tuple[tuple[str, ...], ...] | None, dict[str, str] | None]:
        *facts, who, home = await self.batch([*FACTS, Command(("id", "-un")), Command(("printenv", "HOME"))])
        self.facts = facts_of(facts)
        self.tree = self.tree.with_known(
            {_place(self.service): self.text(who, home)}, {f"{_place(self.service)}.d": ()}, {}, {}
        )
        if self.status.main_pid and not self.started.contained:
            self.numbers = await self.descendants(self.status.main_pid)
        return self.status, None, None

    def text(self, who: Completed, home: Completed) -> bytes:
        lines = ["[Service]", "ExecStart=" + " ".join(map(quote_argument, self.started.argv))]
        if self.started.folder:
            lines.append(f"WorkingDirectory={self.started.folder.replace('%', '%%')}")
        if who.ok and who.out.strip() not in ("", "root"):
            lines.append(f"User={who.out.strip()}")
        if home.ok and home.out.strip():
            lines.append("Environment=" + quote(f"HOME={home.out.strip()}").replace("%", "%%"))
        return ("\n".join(lines) + "\n").encode()

    async def descendants(self, pid: int) -> list[int]:
        """A process and those that come from it."""
        found, last = [pid], [pid]
        for _ in range(GENERATIONS):
            done = await self.batch([Command(("cat", "--", f"/proc/{p}/task/{p}/children")) for p in last])
            last = [p for p in processes.pids(done) if p not in found]
            found += last
            if not last:
                break
        return found

    def process_commands(
        self, status: ServiceStatus, unit: UnitReading | None
    ) -> tuple[list[Command], list[Command]]:
        if self.started.contained or self.looked or not self.numbers:
            return [], []
        return [], [*processes.CLOCK, *processes.look(self.numbers)]

    def take_processes(self, listed: Sequence[Completed], looked: Sequence[Completed], asked: bool) -> None:
        super().take_processes((), looked, asked)
