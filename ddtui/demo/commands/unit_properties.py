"""What `systemctl show` says of a unit of the demo host, in systemd 252's names, order and forms."""

from __future__ import annotations

import re
import signal
import time

from ddtui.demo.commands.program import Call
from ddtui.demo.unit import DEFAULT_RESTART, DEFAULT_START_LIMIT, DEFAULT_TIMEOUT_STOP, Unit
from ddtui.demo.unitfile import Command

VERSION = "252.39-1~deb12u2"
SPANS = (  # µs
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1000),
    ("us", 1),
)


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
    for unit, size in SPANS:
        if rest >= size:
            out.append(f"{rest // size}{unit}")
            rest %= size
    return " ".join(out)


def properties(call: Call, unit: Unit, style: str = "pretty") -> list[tuple[str, str]]:
    """All that `systemctl show` says of a unit, in its order; a name may come more than once."""
    manager, loaded, times = call.machine.systemd, unit.definition, unit.times
    exists = loaded.load_state != "not-found"
    running = unit.main_pid > 0

    def monotonic(at: float) -> str:
        return str(int(manager.clock.monotonic(at) * 1e6)) if at else "0"

    stop = loaded.seconds("Service.TimeoutStopSec", DEFAULT_TIMEOUT_STOP)
    members = manager.processes.in_cgroup(unit.cgroup)
    out: dict[str, str] = {
        "Type": loaded.get("Service.Type", "simple" if exists else ""),
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
        "UnitFileState": enabled(call, unit.name) if exists else "",
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


def _exec(unit: Unit, command: Command, flags: str) -> str:
    if command not in unit.commands_started:  # changed since: systemd forgot when it ran
        return (
            f"{{ path={command.path} ; argv[]={' '.join(command.argv)} ; {flags} ; "
            "start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }"
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


def enabled(call: Call, name: str) -> str:
    unit = call.machine.systemd.get(name)
    if unit.definition.load_state == "masked":
        return "masked"
    for target in unit.definition.settings.get("Install.WantedBy", ()):
        if call.machine.files.exists(f"/etc/systemd/system/{target}.wants/{name}"):
            return "enabled"
    return "disabled" if unit.definition.settings.get("Install.WantedBy") else "static"
