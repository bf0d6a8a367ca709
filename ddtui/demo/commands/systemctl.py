"""systemctl, as systemd 252 prints."""

from __future__ import annotations

import asyncio
import fnmatch
import json
import signal
from collections.abc import Callable, Sequence

from ddtui.demo.commands.program import Call, Options, Usage, options
from ddtui.demo.commands.unit_properties import VERSION, enabled, properties, stamp
from ddtui.demo.unit import JobFailed

DENIED = "Access denied"
LONG = [
    "user", "system", "property=", "value", "no-pager", "no-block", "type=", "all", "full", "no-legend",
    "plain", "signal=", "kill-who=", "kill-whom=", "state=", "quiet", "timestamp=", "output=", "lines=",
    "version", "failed", "no-ask-password", "job-mode=", "wait",
]  # fmt: skip
CHANGES = (
    "start",
    "stop",
    "restart",
    "try-restart",
    "reload-or-restart",
    "kill",
    "reset-failed",
    "daemon-reload",
)
LISTS = ("list-units", "list-unit-files")


async def systemctl(call: Call) -> int:
    given = options(call, "p:t:aqls:n:o:P:M:H:", LONG, hint=False)
    if "version" in given:
        call.out(f"systemd 252 ({VERSION})\n+PAM +AUDIT +SELINUX default-hierarchy=unified\n")
        return 0
    if "user" in given:
        raise Usage("Failed to connect to bus: No medium found")
    verb, *names = given.operands or ("list-units",)
    if verb not in LISTS:
        names = [name if "." in name else name + ".service" for name in names]
    if verb in CHANGES:
        return await _change(call, verb, names, given)
    if verb not in READS:
        raise Usage(f"Unknown command verb {verb}.")
    return READS[verb](call, names, given)


async def _change(call: Call, verb: str, names: Sequence[str], given: Options) -> int:
    manager = call.machine.systemd
    if not call.user.is_root:
        raise _denied(call, verb, names)
    if verb == "daemon-reload":
        manager.reload()
        return 0
    if not names and verb != "reset-failed":
        raise Usage("Too few arguments.")
    code = 0
    for name in names or tuple(manager.units):
        try:
            if verb == "kill":
                manager.kill(name, _signal(given.get("s signal", "SIGTERM")))
            elif verb == "reset-failed":
                manager.reset_failed(name)
            else:
                await _job(call, verb, name, wait="no-block" not in given)
        except JobFailed as error:
            call.err(str(error))
            code = error.code
    return code


def _denied(call: Call, verb: str, names: Sequence[str]) -> Usage:
    """What a user without rights is told."""
    manager = call.machine.systemd
    if verb == "daemon-reload":
        return Usage(f"Reload daemon failed: {DENIED}")
    if verb in ("kill", "reset-failed"):
        what = "kill unit" if verb == "kill" else "reset failed state of unit"
        why = {name: DENIED if manager.in_memory(name) else f"Unit {name} not loaded." for name in names}
        return Usage("\n".join(f"Failed to {what} {name}: {why[name]}" for name in names))
    what = verb if verb in ("start", "stop") else "restart"
    see = "See system logs and 'systemctl status {}' for details."
    return Usage("\n".join(f"Failed to {what} {name}: {DENIED}\n{see.format(name)}" for name in names), 4)


async def _job(call: Call, verb: str, name: str, *, wait: bool) -> None:
    """Raises JobFailed."""
    manager = call.machine.systemd
    unit = manager.get(name)
    if unit.definition.loaded and manager.needs_reload(unit):
        call.err(
            f"Warning: The unit file, source configuration file or drop-ins of {name} changed on disk. "
            "Run 'systemctl daemon-reload' to reload units."
        )
    if verb == "try-restart" and unit.active != "active":
        return
    job = manager.enqueue(verb if verb in ("start", "stop") else "restart", name)
    if not wait:
        return
    await asyncio.wait([job])
    if job.cancelled():
        raise JobFailed(f"Job for {name} canceled.")
    failure = job.exception()
    if failure:
        raise failure


def _signal(name: str) -> int:
    try:
        number = (
            int(name) if name.isdigit() else signal.Signals["SIG" + name.upper().removeprefix("SIG")].value
        )
        return signal.Signals(number).value
    except (KeyError, ValueError):
        raise Usage(f'Failed to parse signal string "{name}".') from None


def _show(call: Call, names: Sequence[str], given: Options) -> int:
    wanted = [name for text in given.all("p property P") for name in text.split(",") if name]
    value_only, style = "value P" in given, given.get("timestamp", "pretty")

    def print_rows(rows: Sequence[tuple[str, str]]) -> None:
        for key, value in rows:
            if key in wanted or (not wanted and value):
                call.out(f"{value}\n" if value_only else f"{key}={value}\n")

    if not names:
        print_rows(
            [("Version", VERSION), ("NNames", "151"), ("NFailedUnits", "0"), ("SystemState", "running")]
        )
    for index, name in enumerate(names):
        if index:
            call.out("\n")
        print_rows(properties(call, call.machine.systemd.get(name), style))
    return 0


def _cat(call: Call, names: Sequence[str], given: Options) -> int:
    code, first = 0, True
    for name in names:
        unit = call.machine.systemd.get(name)
        loaded = unit.definition
        if loaded.load_state == "not-found":
            call.err(f"No files found for {name}.")
            code = 1
            continue
        if call.machine.systemd.needs_reload(unit):
            call.err(
                f"# Warning: {name} changed on disk, the version systemd has loaded is outdated.\n"
                "# This output shows the current version of the unit's original fragment and drop-in files.\n"
                "# If fragments or drop-ins were added or removed, "
                "they are not properly reflected in this output.\n"
                "# Run 'systemctl daemon-reload' to reload units."
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


def _is_active(call: Call, names: Sequence[str], given: Options) -> int:
    return 0 if _states(call, names, given, "active") else 3


def _is_failed(call: Call, names: Sequence[str], given: Options) -> int:
    return 0 if _states(call, names, given, "failed") else 1


def _states(call: Call, names: Sequence[str], given: Options, wanted: str) -> bool:
    """Print the state of each; whether one of them is the wanted one."""
    states = [call.machine.systemd.get(name).active for name in names]
    if "q quiet" not in given:
        call.out("".join(f"{state}\n" for state in states))
    return wanted in states


def _is_running(call: Call, names: Sequence[str], given: Options) -> int:
    failed = any(unit.active == "failed" for unit in call.machine.systemd.units.values())
    call.out("degraded\n" if failed else "running\n")
    return int(failed)


def _is_enabled(call: Call, names: Sequence[str], given: Options) -> int:
    good = False
    for name in names:
        if call.machine.systemd.get(name).definition.load_state == "not-found":
            call.err(f"Failed to get unit file state for {name}: No such file or directory")
            return 1
        state = enabled(call, name)
        good = good or state in ("enabled", "static")
        if "q quiet" not in given:
            call.out(state + "\n")
    return 0 if good else 1


def _status(call: Call, names: Sequence[str], given: Options) -> int:
    code = 0
    for name in names:
        unit = call.machine.systemd.get(name)
        loaded = unit.definition
        if loaded.load_state == "not-found":
            call.err(f"Unit {name} could not be found.")
            return 4
        call.out(f"* {unit.title}\n")
        call.out(
            f"     Loaded: {loaded.load_state} ({loaded.fragment}; {enabled(call, name)}; preset: enabled)\n"
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


def _list_units(call: Call, patterns: Sequence[str], given: Options) -> int:
    manager = call.machine.systemd
    rows = list(call.machine.other_services())
    for name in manager.known_names():
        unit = manager.get(name)
        if unit.active != "inactive" or "a all" in given or name in patterns:
            loaded = unit.definition
            rows.append((name, loaded.load_state, unit.active, unit.sub, loaded.description or name))
    heads = ("unit", "load", "active", "sub", "description")
    return _table(call, heads, rows, patterns, given, indent="" if "plain" in given else "  ")


def _list_files(call: Call, patterns: Sequence[str], given: Options) -> int:
    states = {name: enabled(call, name) for name in call.machine.systemd.known_names()}
    rows = [(name, state, "-" if state == "static" else "enabled") for name, state in states.items()]
    rows += [(row[0], "enabled", "enabled") for row in call.machine.other_services()]
    return _table(call, ("unit_file", "state", "preset"), rows, patterns, given)


def _table(
    call: Call,
    heads: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    patterns: Sequence[str],
    given: Options,
    indent: str = "",
) -> int:
    if given.get("t type", "service") != "service":
        rows = []
    rows = sorted(
        row for row in rows if not patterns or any(fnmatch.fnmatchcase(row[0], p) for p in patterns)
    )
    if given.get("o output") == "json":
        call.out(
            json.dumps([dict(zip(heads, row, strict=True)) for row in rows], separators=(",", ":")) + "\n"
        )
        return 0
    legend = "no-legend" not in given
    shown = [tuple(head.upper().replace("_", " ") for head in heads), *rows] if legend else rows
    widths = [max((len(row[i]) for row in shown), default=0) for i in range(len(heads))]
    for row in shown:
        call.out(
            indent + " ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() + "\n"
        )
    if legend:
        what = "unit files" if heads[0] == "unit_file" else "loaded units"
        call.out(f"\n{len(rows)} {what} listed.\n")
    return 0


READS: dict[str, Callable[[Call, Sequence[str], Options], int]] = {
    "show": _show,
    "cat": _cat,
    "status": _status,
    "is-active": _is_active,
    "is-failed": _is_failed,
    "is-enabled": _is_enabled,
    "is-system-running": _is_running,
    "list-units": _list_units,
    "list-unit-files": _list_files,
}
