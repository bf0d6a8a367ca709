"""busctl, as far as units are asked for through it, and systemd-analyze verify."""

from __future__ import annotations

import json
import re

from ddtui.demo import unitfile
from ddtui.demo.commands.program import Call, Usage, options
from ddtui.demo.commands.unit_properties import VERSION, properties
from ddtui.demo.spawning import executable
from ddtui.demo.unit import Unit


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
            if command.path.startswith("/") and executable(call.machine.files, command.path) is None:
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
        if not call.machine.systemd.in_memory(name):
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
                ["ignore-failure"] * ignored if name == "ExecStartEx" else ignored,
                *(
                    (
                        int(unit.exec_started * 1e6),
                        int(call.machine.clock.monotonic(unit.exec_started) * 1e6),
                        int(unit.exec_exited * 1e6), 0, unit.exec_pid, unit.exec_code, unit.exec_status,
                    )
                    if command in unit.commands_started
                    else (0, 0, 0, 0, 0, 0, 0)
                ),
            ]
            for command in unit.definition.commands
            for ignored in (command.ignore_failure,)
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
            f"Failed to get property {name} on interface {interface}: "
            f"Unknown interface {interface} or property {name}."
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
