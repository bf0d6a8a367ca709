"""The server's own process among those of a unit: found by what it runs, not by systemd's MainPID.

MainPID may be a shell, `docker`, `tmux`. Commands: `cat -- FILE…` for cgroup.procs and /proc/PID/…,
`readlink -- /proc/PID/cwd`, `/proc/PID/exe`, `date +%s.%N`, `getconf CLK_TCK`, `docker top NAME -o pid`,
`podman top NAME hpid`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ddtui.host.base import Command, Completed
from ddtui.host.clock import NOW
from ddtui.host.unit import engines


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
    engine: str | None = None  # what its command line starts; None: not known


@dataclass(frozen=True, slots=True)
class Clock:
    """The host's clocks at one moment."""

    now: float
    uptime: float
    ticks: int  # per second

    def time_of(self, ticks_after_boot: int) -> float:
        """Unix time of a moment that /proc gives in ticks after boot."""
        return self.now - (self.uptime - ticks_after_boot / self.ticks)


CLOCK = (
    NOW,
    Command(("cat", "--", "/proc/uptime")),
    Command(("getconf", "CLK_TCK")),
)


def read_clock(done: Sequence[Completed]) -> Clock | None:
    """The answers to `CLOCK`. None: the host does not say."""
    try:
        now, uptime, ticks = float(done[0].out), float(done[1].out.split()[0]), int(done[2].out)
    except (ValueError, IndexError):
        return None
    return Clock(now, uptime, ticks) if ticks > 0 else None


def cgroup_files(control_group: str) -> tuple[str, ...]:
    """Where the processes of a cgroup are listed: version 2, or 1 and its mixtures."""
    return tuple(f"/sys/fs/cgroup{root}{control_group}/cgroup.procs" for root in ("", "/unified", "/systemd"))


def pids(listings: Sequence[Completed]) -> list[int]:
    """The numbers in several listings, each once."""
    words = [word for one in listings for word in one.out.split() if word.isdigit()]
    return list(dict.fromkeys(int(word) for word in words if int(word) > 0))


def look(numbers: Sequence[int]) -> list[Command]:
    """What to ask of each process; `read` reads the answers."""
    commands: list[Command] = []
    for pid in numbers:
        commands += [
            Command(("cat", "--", f"/proc/{pid}/cmdline"), secret=True),
            Command(("cat", "--", f"/proc/{pid}/stat")),
            Command(("stat", "-L", "-c", "%u", "--", f"/proc/{pid}")),
            Command(("readlink", "--", f"/proc/{pid}/cwd")),
            Command(("readlink", "--", f"/proc/{pid}/exe")),
            Command(("cat", "--", f"/proc/{pid}/environ"), secret=True),
        ]
    return commands


_ASKED = 6


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    argv: tuple[str, ...]
    environment: dict[str, str] | None
    found: ServerProcess


def read(
    numbers: Sequence[int],
    done: Sequence[Completed],
    clock: Clock | None,
    main_pid: int,
    expected: Sequence[str] | None,
) -> tuple[ServerProcess | None, dict[str, str] | None]:
    """The server among the processes, and its environment where it could be read.

    `expected` is the command line that the unit says, to choose by where several servers run.
    """
    seen = [_one(pid, done[i * _ASKED : (i + 1) * _ASKED], clock, main_pid) for i, pid in enumerate(numbers)]
    processes = [p for p in seen if p is not None]
    servers = [p for p in processes if p.found.engine is not None]
    inside = {p.pid for p in servers}
    roots = [p for p in servers if p.parent not in inside] or servers
    exact = [p for p in roots if expected is not None and arguments(p.argv) == arguments(expected)]
    chosen = next(iter(exact or roots), None)
    if chosen is None:
        return None, None
    one = chosen.found
    others = len(processes) - 1
    process = ServerProcess(
        one.pid,
        one.argv,
        one.started_at,
        one.environment,
        one.cwd,
        one.executable,
        one.user,
        one.main,
        others,
        one.engine,
    )
    return process, chosen.environment


def arguments(argv: Sequence[str]) -> tuple[str, ...]:
    """The engine's own arguments: a console script's process shows its interpreter first."""
    engine = engines.recognise(argv)
    return tuple(argv[engine.start :] if engine else argv)


def _one(pid: int, done: Sequence[Completed], clock: Clock | None, main_pid: int) -> _Process | None:
    cmdline, stat, owner, cwd, exe, environ = done
    argv = split_cmdline(cmdline.stdout) if cmdline.ok else ()
    fields = stat.stdout.rpartition(b")")[2].split()
    if not argv or len(fields) < 20:
        return None
    engine = engines.recognise(argv)
    environment: dict[str, str] | None = None
    if environ.ok and environ.stdout:
        pairs = [
            e.decode("utf-8", "surrogateescape").partition("=") for e in environ.stdout.split(b"\0") if e
        ]
        environment = {name: value for name, _, value in pairs}
    process = ServerProcess(
        pid,
        argv,
        clock.time_of(int(fields[19])) if clock and fields[19].isdigit() else None,
        tuple(sorted(environment)) if environment is not None else None,
        _link(cwd),
        _link(exe),
        int(owner.out) if owner.ok and owner.out.strip().isdigit() else None,
        pid == main_pid,
        0,
        engine.name if engine else None,
    )
    return _Process(pid, int(fields[1]), argv, environment, process)


def split_cmdline(data: bytes) -> tuple[str, ...]:
    """/proc/PID/cmdline as argv: every argument ends with a NUL, empty ones too."""
    if not data:
        return ()
    return tuple(w.decode("utf-8", "surrogateescape") for w in data.removesuffix(b"\0").split(b"\0"))


def _link(done: Completed) -> str | None:
    path = done.stdout.removesuffix(b"\n").decode("utf-8", "surrogateescape") if done.ok else ""
    return path.removesuffix(" (deleted)") or None
