"""From a unit's definition to its process: environment, command line, user, folder, and what forbids it."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from ddtui.demo.accounts import GROUPS, ROOT, USERS, User
from ddtui.demo.filesystem import Filesystem
from ddtui.demo.processes import Process, Processes
from ddtui.demo.unit import Unit
from ddtui.demo.unitfile import environment_of
from ddtui.demo.unitwords import expand

LAUNCHER_RSS, LAUNCHER_THREADS = 900 << 20, 86  # what SGLang's launcher looks like
NO_PROCESS = "No such process"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the process cannot be: its exit status and what systemd's child says."""

    status: int
    said: tuple[str, ...]


def prepare(files: Filesystem, processes: Processes, unit: Unit) -> Process:
    """The process that the unit is to have, not yet in the table.

    Raises OSError for an environment file that is missing and not optional.
    """
    definition = unit.definition
    environment = environment_of(definition, files)
    command = definition.commands[0]
    argv = expand(command.argv, environment) if command.expand else list(command.argv)
    user_name = definition.get("Service.User")
    user = USERS.get(user_name, ROOT)
    cwd = definition.get("Service.WorkingDirectory", "/")
    pid = processes.new_pid()
    return Process(
        pid=pid,
        ppid=1,
        argv=tuple(argv),
        comm=posixpath.basename(command.path)[:15],
        uid=user.uid,
        gid=GROUPS.get(definition.get("Service.Group"), user.gid),
        started=processes.clock.now(),
        cgroup=unit.cgroup,
        exe=executable(files, command.path) or command.path,
        cwd=cwd.removeprefix("-").replace("~", user.home),
        environment=_environment(environment, unit.invocation, pid, user if user_name else None),
        rss=LAUNCHER_RSS,
        threads=LAUNCHER_THREADS,
    )


def _environment(own: Mapping[str, str], invocation: str, pid: int, user: User | None) -> dict[str, str]:
    """What systemd gives a service, and its own Environment= over it."""
    base = {
        "LANG": "C.UTF-8",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
        "INVOCATION_ID": invocation,
        "JOURNAL_STREAM": "8:24680",
        "SYSTEMD_EXEC_PID": str(pid),
    }
    if user:
        base |= {"HOME": user.home, "LOGNAME": user.name, "USER": user.name, "SHELL": user.shell}
    return base | dict(own)


def executable(files: Filesystem, path: str) -> str | None:
    """The canonical path of a program; None if there is none."""
    folders = ("/usr/local/bin", "/usr/bin", "/bin")
    for place in [path] if path.startswith("/") else [f"{folder}/{path}" for folder in folders]:
        try:
            canonical = files.resolve(place)
            node = files.lookup(canonical)
        except OSError:
            continue
        if node.is_file and node.mode & 0o111:
            return canonical
    return None


def refusal(files: Filesystem, unit: Unit, process: Process) -> Refusal | None:
    """Why the process cannot be started; None if it can."""
    path = unit.definition.commands[0].path
    user = unit.definition.get("Service.User")
    if user and user not in USERS:
        return _refused(217, "USER", path, "Failed to determine user credentials", NO_PROCESS)
    if not unit.definition.get("Service.WorkingDirectory").startswith("-"):
        try:
            if not files.lookup(process.cwd).is_dir:
                raise NotADirectoryError(20, "Not a directory")
        except OSError as error:
            why = error.strerror or "No such file or directory"
            return _refused(200, "CHDIR", path, "Changing to the requested working directory failed", why)
    if executable(files, path) is None:
        why = "No such file or directory"
        return _refused(203, "EXEC", path, f"Failed to locate executable {path}", why)
    if not posixpath.basename(process.exe).startswith("python3"):
        said = f"Failed to execute {path} (the demo host runs only Python)"
        return _refused(203, "EXEC", path, said, "Exec format error")
    return None


def _refused(status: int, step: str, path: str, said: str, why: str) -> Refusal:
    return Refusal(status, (f"{said}: {why}", f"Failed at step {step} spawning {path}: {why}"))
