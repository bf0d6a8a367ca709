"""systemctl, systemd-analyze verify and busctl, as systemd 252 prints."""

from __future__ import annotations

import fnmatch
import json
import re
import signal
import time
from collections.abc import Callable, Sequence

from ddtui.demo import unitfile
from ddtui.demo.commands.program import Call, Usage, options
from ddtui.demo.systemd import DEFAULT_RESTART, DEFAULT_START_LIMIT, DEFAULT_TIMEOUT_STOP, JobFailed, Unit

VERSION = "252.39-1~deb12u2"
DENIED = "Access denied"
LONG = [
    "user", "system", "property=", "value", "no-pager", "no-block", "type=", "all", "full", "no-legend", "plain", "signal=",
    "kill-who=", "kill-whom=", "state=", "quiet", "timestamp=", "output=", "lines=", "version", "no-ask-password",
    "failed", "job-mode=", "wait", "no-reload",
]  # fmt: skip


async def systemctl(call: Call) -> int:
    given = options(call, "p:t:aqls:n:o:P:M:H:", LONG, hint=False)
    if "version" in given:
        call.out(f"systemd 252 ({VERSION})\n+PAM +AUDIT +SELINUX default-hierarchy=unified\n")
        return 0
    if "user" in given:
        raise Usage("Failed to connect to bus: No medium found", 1)
    verb, *names = given.operands or ("list-units",)
    names = [name if "." in name or "*" in name or verb in ("list-units", "list-unit-files") else name + ".service"
             for name in names]  # fmt: skip
    if verb == "show":
        wanted = (
            [n for text in given.all("p property P") for n in text.split(",") if n]
            if "p property P" in given
            else None
        )
        return _show(call, names, wanted, "value P" in given, given.get("timestamp", "pretty"))
    if verb == "cat":
        return _cat(call, names)
    if verb == "status":
        return _status(call, names)
    if verb in ("is-active", "is-failed"):
        return _is(call, verb, names, "q quiet" in given)
    if verb == "is-enabled":
        return _is_enabled(call, names, "q quiet" in given)
    if verb == "is-system-running":
        failed = any(unit.active == "failed" for unit in call.machine.systemd.units.values())
        call.out("degraded\n" if failed else "running\n")
        return int(failed)
    if verb == "list-units":
        return _list_units(call, names, given)
    if verb == "list-unit-files":
        return _list_files(call, names, given)
    if verb in (
        "start",
        "stop",
        "restart",
        "try-restart",
        "reload-or-restart",
        "kill",
        "reset-failed",
        "daemon-reload",
    ):
        return await _change(call, verb, names, given)
    raise Usage(f"Unknown command verb {verb}.")


async def _change(call: Call, verb: str, names: Sequence[str], given: object) -> int:
    manager = call.machine.systemd
    words = call.argv
    if not call.user.is_root:
        if verb == "daemon-reload":
            raise Usage(f"Reload daemon failed: {DENIED}", 1)
        if verb == "kill":
            raise Usage("".join(f"Failed to kill unit {n}: {DENIED}\n" for n in names).rstrip(), 1)
        if verb == "reset-failed":
            raise Usage(
                "".join(f"Failed to reset failed state of unit {n}: {DENIED}\n" for n in names).rstrip(), 1
            )
        what = "restart" if verb != "start" and verb != "stop" else verb
        text = [
            f"Failed to {what} {n}: {DENIED}\nSee system logs and 'systemctl status {n}' for details."
            for n in names
        ]
        raise Usage("\n".join(text), 4)
    if verb == "daemon-reload":
        await call.machine.pause(0.02)
        manager.reload()
        return 0
    if not names and verb == "reset-failed":
        names = list(manager.units)
    if not names:
        raise Usage("Too few arguments.")
    code = 0
    for name in names:
        try:
            if verb == "kill":
                manager.kill(name, _signal(words))
            elif verb == "reset-failed":
                manager.reset_failed(name)
            else:
                unit = manager.get(name)
                if manager.needs_reload(unit):
                    call.err(
                        f"Warning: The unit file, source configuration file or drop-ins of {name} changed on disk. "
                        "Run 'systemctl daemon-reload' to reload units."
                    )
                if verb == "try-restart" and unit.active != "active":
                    continue
                job = manager.enqueue(verb if verb in ("start", "stop") else "restart", name)
                if "--no-block" in words:
                    job.add_done_callback(_forget)
                else:
                    await call.machine.wait_for_job(job)
        except JobFailed as error:
            call.err(str(error))
            code = error.code
    return code


def _forget(job: object) -> None:
    """A job that nobody waits for: its failure is in the journal."""
    if not job.cancelled():  # type: ignore[attr-defined]
        job.exception()  # type: ignore[attr-defined]


def _signal(words: Sequence[str]) -> int:
    found = re.search(r"(?:--signal[= ]|-s ?)(\S+)", " ".join(words))
    if not found:
        return signal.SIGTERM
    name = found[1]
    try:
        return int(name) if name.isdigit() else signal.Signals["SIG" + name.upper().removeprefix("SIG")].value
    except KeyError:
        raise Usage(f'Failed to parse signal string "{name}".') from None


# -- show ---------------------------------------------------------------------------------------------------


def stamp(at: float, style: str = "pretty") -> str:
    """A time as `show` prints it."""
    if not at:
        return "n/a" if style == "bracket" else ""
    if style == "unix":
        return f"@{int(at)}"
    text = time.strftime("%a %Y-%m-%d %H:%M:%S", time.gmtime(at))
    micro = f".{int(at % 1 * 1e6):06d}" if style.startswith("us") else ""
    return f"{text}{micro} UTC"


def span(seconds: float) -> str:
    """A time span as `show` prints it: `1min 30s`, `100ms`, `infinity`."""
    if seconds == float("inf"):
        return "infinity"
    if not seconds:
        return "0"
    out, rest = [], round(seconds * 1e6)
    for unit, size in (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1000),
                       ("us", 1)):  # fmt: skip
        if rest >= size:
            out.append(f"{rest // size}{unit}")
            rest %= size
    return " ".join(out)


def properties(call: Call, unit: Unit, style: str = "pretty") -> list[tuple[str, str]]:
    """All that `systemctl show` says of a unit, in its order; a name may come more than once."""
    manager, loaded, times = call.machine.systemd, unit.definition, unit.times
    exists = loaded.load_state != "not-found"
    running = unit.main_pid > 0
    monotonic: Callable[[float], str] = lambda at: str(int(manager.clock.monotonic(at) * 1e6)) if at else "0"  # noqa: E731
    stop = loaded.seconds("Service.TimeoutStopSec", DEFAULT_TIMEOUT_STOP)
    members = manager.processes.in_cgroup(unit.cgroup)
    out: dict[str, str] = {
        "Type": loaded.get("Service.Type", "simple"),
        "ExitType": "main",
        "Restart": loaded.get("Service.Restart", "no"),
        "NotifyAccess": "none",
        "RestartUSec": span(loaded.seconds("Service.RestartSec", DEFAULT_RESTART)),
        "TimeoutStartUSec": span(loaded.seconds("Service.TimeoutStartSec", 90.0)),
        "TimeoutStopUSec": span(stop),
        "TimeoutAbortUSec": span(stop),
        "RuntimeMaxUSec": "infinity",
        "WatchdogUSec": "0",
        "RemainAfterExit": "no",
        "GuessMainPID": "yes",
        "MainPID": str(unit.main_pid),
        "ControlPID": "0",
        "StatusText": "",
        "StatusErrno": "0",
        "Result": unit.result,
        "ReloadResult": "success",
        "CleanResult": "success",
        "UID": str(members[0].uid) if members else "[not set]",
        "GID": str(members[0].gid) if members else "[not set]",
        "NRestarts": str(unit.restarts),
        "OOMPolicy": loaded.get("Service.OOMPolicy", "stop"),
        "ExecMainStartTimestamp": stamp(unit.exec_started, style),
        "ExecMainStartTimestampMonotonic": monotonic(unit.exec_started),
        "ExecMainExitTimestamp": stamp(unit.exec_exited, style),
        "ExecMainExitTimestampMonotonic": monotonic(unit.exec_exited),
        "ExecMainPID": str(unit.exec_pid),
        "ExecMainCode": str(unit.exec_code),
        "ExecMainStatus": str(unit.exec_status),
    }
    rows = list(out.items())
    for command in loaded.commands:
        ignored = command.ignore_failure
        rows.append(("ExecStart", _exec(unit, command, f"ignore_errors={'yes' if ignored else 'no'}")))
    for command in loaded.commands:
        ignored = command.ignore_failure
        rows.append(("ExecStartEx", _exec(unit, command, f"flags={'ignore-failure' if ignored else ''}")))
    out = {
        "Slice": "system.slice" if exists else "",
        "ControlGroup": unit.cgroup if members else "",
        "MemoryCurrent": str(sum(process.rss for process in members)) if members else "[not set]",
        "MemoryAvailable": "infinity",
        "CPUUsageNSec": str(int(manager.clock.monotonic() * 4e9)) if running else "[not set]",
        "TasksCurrent": str(sum(process.threads for process in members)) if members else "[not set]",
        "Delegate": "no",
        "CPUAccounting": "yes",
        "MemoryAccounting": "yes",
        "MemoryMax": loaded.get("Service.MemoryMax", "infinity"),
        "TasksMax": loaded.get("Service.TasksMax", "infinity"),
    }
    if loaded.environment:
        out["Environment"] = " ".join(_shell_word(f"{k}={v}") for k, v in loaded.environment)
    rows += out.items()
    for file in loaded.environment_files:
        optional = "yes" if file.startswith("-") else "no"
        rows.append(("EnvironmentFiles", f"{file.removeprefix('-')} (ignore_errors={optional})"))
    out = {
        "UMask": "0022",
        "LimitNOFILE": loaded.get("Service.LimitNOFILE", "524288"),
        "LimitNOFILESoft": loaded.get("Service.LimitNOFILE", "1024"),
        "WorkingDirectory": loaded.get("Service.WorkingDirectory", ""),
        "StandardInput": "null",
        "StandardOutput": loaded.get("Service.StandardOutput", "journal"),
        "StandardError": loaded.get("Service.StandardError", "inherit"),
        "SyslogIdentifier": loaded.get("Service.SyslogIdentifier", ""),
        "User": loaded.get("Service.User", ""),
        "Group": loaded.get("Service.Group", ""),
        "KillMode": loaded.get("Service.KillMode", "control-group"),
        "KillSignal": str(loaded.kill_signal),
        "RestartKillSignal": str(loaded.kill_signal),
        "FinalKillSignal": "9",
        "SendSIGKILL": "yes",
        "Id": unit.name,
        "Names": unit.name,
        "Requires": "sysinit.target system.slice" if exists else "",
        "WantedBy": " ".join(loaded.settings.get("Install.WantedBy", ())),
        "Conflicts": "shutdown.target" if exists else "",
        "Before": "shutdown.target multi-user.target" if exists else "",
        "After": "system.slice basic.target systemd-journald.socket "
        + " ".join(loaded.settings.get("Unit.After", ()))
        if exists
        else "",
        "Description": loaded.description or unit.name,
        "LoadState": loaded.load_state,
        "ActiveState": unit.active,
        "FreezerState": "running",
        "SubState": unit.sub,
        "FragmentPath": loaded.fragment,
        "SourcePath": "",
        "DropInPaths": " ".join(_shell_word(path) for path in loaded.drop_ins),
        "UnitFileState": _enabled(call, unit.name) if exists else "",
        "UnitFilePreset": "enabled" if exists else "",
        "StateChangeTimestamp": stamp(times.state_change, style),
        "StateChangeTimestampMonotonic": monotonic(times.state_change),
        "InactiveExitTimestamp": stamp(times.inactive_exit, style),
        "InactiveExitTimestampMonotonic": monotonic(times.inactive_exit),
        "ActiveEnterTimestamp": stamp(times.active_enter, style),
        "ActiveEnterTimestampMonotonic": monotonic(times.active_enter),
        "ActiveExitTimestamp": stamp(times.active_exit, style),
        "ActiveExitTimestampMonotonic": monotonic(times.active_exit),
        "InactiveEnterTimestamp": stamp(times.inactive_enter, style),
        "InactiveEnterTimestampMonotonic": monotonic(times.inactive_enter),
        "CanStart": "yes" if exists else "no",
        "CanStop": "yes" if exists else "no",
        "CanReload": "no",
        "Job": "" if unit.job is None or unit.job.done() else str(call.machine.systemd.last_job),
        "NeedDaemonReload": "yes" if manager.needs_reload(unit) else "no",
        "LoadError": _load_error(unit),
        "Transient": "no",
        "StartLimitIntervalUSec": span(loaded.seconds("Unit.StartLimitIntervalSec", DEFAULT_START_LIMIT[0])),
        "StartLimitBurst": loaded.get("Unit.StartLimitBurst", str(DEFAULT_START_LIMIT[1])),
        "InvocationID": unit.invocation,
    }
    return [*rows, *out.items()]


def _load_error(unit: Unit) -> str:
    name = unit.name
    return {
        "not-found": f'org.freedesktop.systemd1.NoSuchUnit "Unit {name} not found."',
        "bad-setting": f'org.freedesktop.systemd1.BadUnitSetting "Unit {name} has a bad unit file setting."',
        "masked": f'org.freedesktop.systemd1.UnitMasked "Unit {name} is masked."',
    }.get(unit.definition.load_state, "")


def _exec(unit: Unit, command: unitfile.Command, flags: str) -> str:
    if command not in unit.commands_started:  # changed since: systemd forgot when it ran
        return (
            f"{{ path={command.path} ; argv[]={' '.join(command.argv)} ; {flags} ; start_time=[n/a] ; stop_time=[n/a] ; "
            "pid=0 ; code=(null) ; status=0/0 }"
        )
    started, exited = stamp(unit.exec_started, "bracket"), stamp(unit.exec_exited, "bracket")
    code = {0: "(null)", 1: "exited", 2: "killed"}[unit.exec_code]
    status = (
        f"{unit.exec_status}/{signal.Signals(unit.exec_status).name[3:]}"
        if unit.exec_code == 2
        else (f"{unit.exec_status}" if unit.exec_code == 1 else "0/0")
    )
    return (
        f"{{ path={command.path} ; argv[]={' '.join(command.argv)} ; {flags} ; start_time=[{started}] ; "
        f"stop_time=[{exited}] ; pid={unit.exec_pid} ; code={code} ; status={status} }}"
    )


def _shell_word(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_.\-/:=,+@%^~]*", text):
        return text
    return '"' + re.sub(r'(["\\`$])', r"\\\1", text) + '"'


def _show(call: Call, names: Sequence[str], wanted: list[str] | None, value_only: bool, style: str) -> int:
    if not names:
        manager = {"Version": VERSION, "SystemState": "running", "NNames": "151", "NFailedUnits": "0"}
        for name, value in manager.items():
            if wanted is None or name in wanted:
                call.out(f"{value}\n" if value_only else f"{name}={value}\n")
        return 0
    for index, name in enumerate(names):
        if index:
            call.out("\n")
        unit = call.machine.systemd.get(name)
        for key, value in properties(call, unit, style):
            if (wanted is not None and key not in wanted) or (wanted is None and not value):
                continue
            call.out(f"{value}\n" if value_only else f"{key}={value}\n")
    return 0


# -- the other verbs ----------------------------------------------------------------------------------------


def _cat(call: Call, names: Sequence[str]) -> int:
    code, first = 0, True
    for name in names:
        unit = call.machine.systemd.get(name)
        loaded = unit.definition
        if loaded.load_state == "not-found":
            call.err(f"No files found for {name}.")
            code = 1
            continue
        if call.machine.systemd.needs_reload(unit):
            call.out(
                f"# Warning: {name} changed on disk, the version systemd has loaded is outdated.\n"
                "# This output shows the current version of the unit's original fragment and drop-in files.\n"
                "# If fragments or drop-ins were added or removed, they are not properly reflected in this output.\n"
                "# Run 'systemctl daemon-reload' to reload units.\n"
            )
        for path in (loaded.fragment, *loaded.drop_ins):
            if not first:
                call.out("\n")
            first = False
            call.out(f"# {path}\n")
            try:
                call.out(call.machine.files.read(path, user=call.user))
            except OSError as error:
                call.err(f"Failed to cat {path}: {error.strerror}")
                code = 1
    return code


def _is(call: Call, verb: str, names: Sequence[str], quiet: bool) -> int:
    good = False
    for name in names:
        unit = call.machine.systemd.get(name)
        good = good or unit.active == ("active" if verb == "is-active" else "failed")
        if not quiet:
            call.out(unit.active + "\n")
    return 0 if good else 3 if verb == "is-active" else 1


def _enabled(call: Call, name: str) -> str:
    unit = call.machine.systemd.get(name)
    if unit.definition.load_state == "masked":
        return "masked"
    for target in unit.definition.settings.get("Install.WantedBy", ()):
        if call.machine.files.exists(f"/etc/systemd/system/{target}.wants/{name}"):
            return "enabled"
    return "disabled" if unit.definition.settings.get("Install.WantedBy") else "static"


def _is_enabled(call: Call, names: Sequence[str], quiet: bool) -> int:
    good = False
    for name in names:
        if call.machine.systemd.get(name).definition.load_state == "not-found":
            call.err(f"Failed to get unit file state for {name}: No such file or directory")
            return 1
        state = _enabled(call, name)
        good = good or state in ("enabled", "static")
        if not quiet:
            call.out(state + "\n")
    return 0 if good else 1


def _status(call: Call, names: Sequence[str]) -> int:
    code = 0
    for name in names:
        unit = call.machine.systemd.get(name)
        loaded = unit.definition
        if loaded.load_state == "not-found":
            call.err(f"Unit {name} could not be found.")
            return 4
        call.out(f"* {unit.title}\n")
        call.out(
            f"     Loaded: {loaded.load_state} ({loaded.fragment}; {_enabled(call, name)}; preset: enabled)\n"
        )
        if loaded.drop_ins:
            folder = loaded.drop_ins[0].rpartition("/")[0]
            files = ", ".join(path.rpartition("/")[2] for path in loaded.drop_ins)
            call.out(f"    Drop-In: {folder}\n             `-{files}\n")
        since = stamp(unit.times.state_change)
        why = f" (Result: {unit.result})" if unit.result != "success" else ""
        call.out(f"     Active: {unit.active} ({unit.sub}){why}" + (f" since {since}\n" if since else "\n"))
        if unit.main_pid:
            process = call.machine.processes.table[unit.main_pid]
            call.out(f"   Main PID: {unit.main_pid} ({process.comm})\n     CGroup: {unit.cgroup}\n")
            for process in call.machine.processes.in_cgroup(unit.cgroup):
                call.out(f"             |-{process.pid} {' '.join(process.argv)}\n")
        if unit.active != "active":
            code = 3
    return code


def _list_units(call: Call, patterns: Sequence[str], given: object) -> int:
    words = call.argv
    rows = []
    everything = "--all" in words or "-a" in words
    for name in call.machine.systemd.known_names():
        unit = call.machine.systemd.get(name)
        if patterns and not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            continue
        if unit.active == "inactive" and not everything and not (patterns and name in patterns):
            continue
        rows.append(
            (name, unit.definition.load_state, unit.active, unit.sub, unit.definition.description or name)
        )
    rows += [row for row in call.machine.other_services() if _listed(row[0], patterns)]
    rows.sort()
    if "--output=json" in words:
        keys = ("unit", "load", "active", "sub", "description")
        call.out(
            json.dumps([dict(zip(keys, row, strict=True)) for row in rows], separators=(",", ":")) + "\n"
        )
        return 0
    legend = "--no-legend" not in words
    return _table(call, ("UNIT", "LOAD", "ACTIVE", "SUB", "DESCRIPTION"), rows, legend, "--plain" in words)


def _listed(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _table(
    call: Call, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], legend: bool, plain: bool
) -> int:
    shown = [heads, *rows] if legend else list(rows)
    widths = [max((len(row[i]) for row in shown), default=0) for i in range(len(heads))]
    indent = "" if plain else "  "
    for row in shown:
        call.out(
            indent + " ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() + "\n"
        )
    if legend:
        call.out(f"\n{len(rows)} {'unit files' if len(heads) == 3 else 'loaded units'} listed.\n")
    return 0


def _list_files(call: Call, patterns: Sequence[str], given: object) -> int:
    words = call.argv
    rows = [
        (name, _enabled(call, name), "enabled")
        for name in call.machine.systemd.known_names()
        if _listed(name, patterns)
    ]
    rows += [
        (row[0], "enabled", "enabled") for row in call.machine.other_services() if _listed(row[0], patterns)
    ]
    rows.sort()
    if "--output=json" in words:
        keys = ("unit_file", "state", "preset")
        call.out(
            json.dumps([dict(zip(keys, row, strict=True)) for row in rows], separators=(",", ":")) + "\n"
        )
        return 0
    return _table(call, ("UNIT FILE", "STATE", "PRESET"), rows, "--no-legend" not in words, True)


# -- systemd-analyze and busctl -----------------------------------------------------------------------------


async def systemd_analyze(call: Call) -> int:
    given = options(call, "q", ["user", "system", "no-pager", "man=", "recursive-errors=", "version"])
    if "version" in given:
        call.out(f"systemd 252 ({VERSION})\n")
        return 0
    if not given.operands or given.operands[0] != "verify":
        raise Usage("Unknown command verb " + (given.operands[0] if given.operands else "time") + ".")
    code = 0
    for operand in given.operands[1:]:
        name = operand.rpartition("/")[2]
        if not re.search(r"\.(service|socket|target|timer)$", name):
            call.err(f"Failed to prepare filename {operand}: Invalid argument")
            code = 1
            continue
        definition = unitfile.load(call.machine.files, name, call.machine.hostname)
        if definition.load_state == "not-found":
            call.err(f"Unit {name} not found.")
            code = 1
            continue
        for problem in definition.problems:
            call.err(str(problem))
        if definition.load_state == "bad-setting":
            call.err(f"Unit {name} has a bad unit file setting.")
            code = 1
            continue
        for command in definition.commands:
            if command.path.startswith("/") and call.machine.systemd._program(command.path) is None:
                call.err(f"{name}: Command {command.path} is not executable: No such file or directory")
                code = 1
    return code


BUS = "org.freedesktop.systemd1"
PATH = "/org/freedesktop/systemd1"


async def busctl(call: Call) -> int:
    given = options(call, "jql", ["json=", "user", "system", "no-pager", "quiet"], hint=False)
    if "user" in given:
        raise Usage("Failed to connect to bus: No medium found")
    as_json = "json j" in given and given.get("json") != "off"
    words = given.operands
    if words[:1] == ("call",) and words[1:5] == (BUS, PATH, f"{BUS}.Manager", "GetUnit") and len(words) == 7:
        name = words[6]
        if name not in call.machine.systemd.units:
            raise Usage(f"Call failed: Unit {name} not loaded.")
        found = f"{PATH}/unit/{unitfile.escape_name(name)}"
        call.out(
            json.dumps({"type": "o", "data": [found]}, separators=(",", ":")) if as_json else f'o "{found}"'
        )
        call.out("\n")
        return 0
    if words[:1] == ("call",) and words[1:5] == (BUS, PATH, f"{BUS}.Manager", "LoadUnit") and len(words) == 7:
        call.machine.systemd.get(words[6])
        found = f"{PATH}/unit/{unitfile.escape_name(words[6])}"
        call.out(
            json.dumps({"type": "o", "data": [found]}, separators=(",", ":")) if as_json else f'o "{found}"'
        )
        call.out("\n")
        return 0
    if words[:2] == ("get-property", BUS) and len(words) >= 5:
        units = {
            f"{PATH}/unit/{unitfile.escape_name(name)}": unit
            for name, unit in call.machine.systemd.units.items()
        }
        unit = units.get(words[2])
        if unit is None:
            raise Usage(
                f"Failed to get property {words[4]} on interface {words[3]}: Unknown object '{words[2]}'."
            )
        for name in words[4:]:
            call.out(_property(call, unit, words[3], name, as_json) + "\n")
        return 0
    raise Usage(
        f"Call failed: No such method '{' '.join(words)}'"
        if words[:1] == ("call",)
        else (f"Unknown command verb {words[0] if words else 'list'}.")
    )


def _property(call: Call, unit: Unit, interface: str, name: str, as_json: bool) -> str:
    if name in ("ExecStart", "ExecStartEx"):
        data = [
            [
                command.path, list(command.argv),
                command.ignore_failure if name == "ExecStart" else (["ignore-failure"] if command.ignore_failure else []),
                *(
                    (
                        int(unit.exec_started * 1e6), int(call.machine.clock.monotonic(unit.exec_started) * 1e6),
                        int(unit.exec_exited * 1e6), 0, unit.exec_pid, unit.exec_code, unit.exec_status,
                    )
                    if command in unit.commands_started
                    else (0, 0, 0, 0, 0, 0, 0)
                ),
            ]
            for command in unit.definition.commands
        ]  # fmt: skip
        kind = "a(sasbttttuii)" if name == "ExecStart" else "a(sasasttttuii)"
        return _variant(kind, data, as_json)
    if name == "Environment":
        return _variant("as", [f"{k}={v}" for k, v in unit.definition.environment], as_json)
    if name == "DropInPaths":
        return _variant("as", list(unit.definition.drop_ins), as_json)
    if name == "InvocationID":
        return _variant("ay", list(bytes.fromhex(unit.invocation)), as_json)
    known = dict(properties(call, unit))
    if name not in known:
        raise Usage(
            f"Failed to get property {name} on interface {interface}: Unknown interface {interface} or property {name}."
        )
    value = known[name]
    if name == "NeedDaemonReload":
        return _variant("b", value == "yes", as_json)
    if name in ("MainPID", "ControlPID", "NRestarts", "ExecMainPID", "StartLimitBurst"):
        return _variant("u", int(value), as_json)
    if name in ("ExecMainCode", "ExecMainStatus"):
        return _variant("i", int(value), as_json)
    return _variant("s", value, as_json)


def _variant(kind: str, data: object, as_json: bool) -> str:
    if as_json:
        return json.dumps({"type": kind, "data": data}, separators=(",", ":"), ensure_ascii=False)

    def shown(value: object) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, list):
            return " ".join([str(len(value)), *(shown(each) for each in value)])
        return f'"{value}"' if isinstance(value, str) else str(value)

    return f"{kind} {shown(data)}"
