"""Surveys for the verdicts' tests, made of real captures where there are some."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ddtui import redact
from ddtui.engine import drafter, evidence
from ddtui.engine.api import ServerInfo
from ddtui.engine.drafter import DrafterConfig
from ddtui.engine.flags import Flag, FlagTable
from ddtui.engine.installation import DDTree, Installation
from ddtui.host.service import ServerProcess, ServiceReading, ServiceStatus
from ddtui.host.unit.read import Source, UnitReading
from ddtui.profile import Connection, Knob, Profile, Scope, Service
from ddtui.tuning.model import Layer, Reading
from ddtui.tuning.survey import Survey

CAPTURES = Path(__file__).parents[1] / "captures/sglang-0.5.11"
OLD_WINDOW = "--speculative-dflash-draft-window-size"
NEW_WINDOW = "--speculative-draft-window-size"
BASE = [
    "python",
    "-m",
    "sglang.launch_server",
    "--model-path",
    "/opt/models/target",
    "--host",
    "127.0.0.1",
    "--port",
    "30000",
    "--speculative-algorithm",
    "DFLASH",
    "--speculative-draft-model-path",
    "/opt/models/drafter",
    "--enable-metrics",
]
PROFILE = Profile(
    name="test",
    connection=Connection(host="ct200"),
    service=Service(unit="sglang.service"),
    knobs=(
        Knob(name="budget", flag="--speculative-ddtree-budget", key="b"),
        Knob(name="topk", flag="--speculative-ddtree-topk-cap", key="t"),
        Knob(name="window", flag=OLD_WINDOW, key="w"),
    ),
)


def flag(name: str, *more: str, type: str = "int", **fields: Any) -> Flag:
    return Flag(
        (name, *more),
        name.removeprefix("--").replace("-", "_"),
        type,
        source="srt/server_args.py:1",
        **fields,
    )


COMMON = (
    flag("--model-path", type="str"),
    flag("--host", type="str"),
    flag("--port"),
    flag("--speculative-algorithm", type="str"),
    flag("--speculative-draft-model-path", type="str"),
    flag("--speculative-eagle-topk"),
    flag("--mem-fraction-static", type="float"),
    flag("--api-key", type="str"),
    flag("--enable-metrics", nargs=0, type="bool"),
)
DDTREE_FLAGS = (flag("--speculative-ddtree-budget"), flag("--speculative-ddtree-topk-cap"))


def installation(version: str, **fields: Any) -> Installation:
    """An installed SGLang of that release, as far as verdicts look at it."""
    patch = int(version.split(".")[2])
    window: tuple[Flag, ...] = ()
    if patch == 11:
        window = (flag(OLD_WINDOW),)
    elif 12 <= patch < 20:
        window = (flag(NEW_WINDOW, OLD_WINDOW),)
    elif patch >= 20:
        window = (flag(NEW_WINDOW),)
    table = FlagTable((*COMMON, *window, *fields.pop("flags", ())))
    known: dict[str, Any] = {
        "version": version,
        "location": "/opt/site/sglang",
        "python": "/opt/venv/bin/python",
        "python_version": "3.12.3",
        "editable": False,
        "flags": table,
        "has_dflash": patch >= 11,
        "reads_layer_types": patch >= 14,
        "reads_sliding_window": patch >= 14,
        "has_compact_cache": patch >= 11,
        "reads_rope_parameters": patch >= 13,
        "overlap_with_dflash": patch >= 14,
        "draft_runner_text": "Initialized DFLASH draft runner. ...",
        "draft_backends": None,
        "window_algorithms": None,
        "ddtree": DDTree(),
        "algorithms": None,
    }
    return Installation(**{**known, **fields})


def status(**fields: Any) -> ServiceStatus:
    known: dict[str, Any] = {
        "unit": "sglang.service",
        "scope": Scope.SYSTEM,
        "load_state": "loaded",
        "active_state": "active",
        "sub_state": "running",
        "result": "success",
        "n_restarts": 0,
        "invocation_id": "aa11",
        "main_pid": 41210,
        "exec_main_code": 0,
        "exec_main_status": 0,
        "need_daemon_reload": False,
        "fragment_path": "/etc/systemd/system/sglang.service",
        "source_path": None,
        "drop_in_paths": (),
        "control_group": "/system.slice/sglang.service",
        "service_type": "simple",
        "unit_file_state": "enabled",
        "load_error": None,
        "active_enter": 1000.0,
        "state_change": 1000.0,
        "exec_main_start": 1000.0,
        "exec_main_exit": None,
    }
    return ServiceStatus(**{**known, **fields})


def flags_of(argv: list[str]) -> dict[str, str | bool]:
    found: dict[str, str | bool] = {}
    for index, word in enumerate(argv):
        if word.startswith("--"):
            after = argv[index + 1] if index + 1 < len(argv) else "--"
            found[word] = True if after.startswith("--") else after
    return found


def unit(argv: list[str], **fields: Any) -> UnitReading:
    flags = flags_of(argv)
    fragment = "/etc/systemd/system/sglang.service"
    known: dict[str, Any] = {
        "unit": "sglang.service",
        "scope": "system",
        "engine": "sglang",
        "lives": "unit",
        "file": fragment,
        "line": 7,
        "wrappers": (),
        "exec_start": (tuple(argv),),
        "argv": tuple(argv),
        "launch_argv": tuple(argv),
        "flags": flags,
        "flag_sources": {name: Source(fragment, 8 + i) for i, name in enumerate(flags)},
        "fragment": fragment,
        "files": (fragment,),
    }
    return UnitReading(**{**known, **fields})


def process(argv: list[str], **fields: Any) -> ServerProcess:
    known: dict[str, Any] = {
        "pid": 41210,
        "argv": tuple(argv),
        "started_at": 1000.0,
        "environment": (),
        "cwd": "/",
        "executable": "/usr/bin/python3",
        "user": 0,
        "main": True,
    }
    return ServerProcess(**{**known, **fields})


def captured_drafter(**changes: Any) -> DrafterConfig:
    """The config of the captured drafter, with changes; a value of None takes a key away."""
    raw = json.loads((CAPTURES / "models/drafter/config.json").read_text())
    for key, value in changes.items():
        if value is None:
            raw.pop(key, None)
        else:
            raw[key] = value
    return drafter.parse(json.dumps(raw).encode(), "/opt/models/drafter/config.json")


def captured_journal(name: str, *, without: str = "", replaced: tuple[str, str] | None = None) -> list[str]:
    """The lines of a captured start."""
    text = (CAPTURES / f"logs/{name}.log").read_text("utf-8", "replace")
    if replaced:
        assert replaced[0] in text
        text = text.replace(*replaced)
    return [line for line in text.splitlines() if not without or without not in line]


def server_info(arguments: Mapping[str, Any], version: str = "0.5.11") -> ServerInfo:
    window = arguments.get(
        "speculative_draft_window_size", arguments.get("speculative_dflash_draft_window_size")
    )
    return ServerInfo(
        version=version,
        arguments={name: redact.value(name, v) if isinstance(v, str) else v for name, v in arguments.items()},
        accept_length=None,
        gen_throughput=None,
        dp=(),
        weight_gb=None,
        kv_gb=None,
        graph_gb=None,
        token_capacity=None,
        max_running_requests=None,
        max_total_num_tokens=None,
        draft_window=window,
        raw={},
    )


def captured_server(name: str) -> ServerInfo:
    """The server's captured answer to /server_info."""
    raw = (CAPTURES / f"http/{name}.raw").read_bytes().split(b"\r\n\r\n", 1)[1]
    start, end = raw.index(b"{"), raw.rindex(b"}") + 1
    return server_info(json.loads(raw[start:end]))


def survey(
    argv: list[str],
    *,
    engine: Installation | None = None,
    log: list[str] | None = None,
    server: ServerInfo | None = None,
    config: DrafterConfig | None = None,
    in_unit: list[str] | None = None,
    **fields: Any,
) -> Survey:
    """A survey of a server that runs with `argv`. What is not given could not be read."""

    def reading(layer: Layer, value: Any) -> Any:
        return Reading(layer, value, None if value is not None else f"no {layer}", 2000.0)

    read_unit = unit(in_unit if in_unit is not None else argv)
    read_status = fields.pop("status", status())
    service = ServiceReading(read_status, read_unit, process(argv))
    made = Survey(
        at=2000.0,
        drafter=reading(Layer.DRAFTER, config),
        engine=reading(Layer.ENGINE, engine),
        unit=reading(Layer.UNIT, read_unit),
        process=reading(Layer.PROCESS, process(argv)),
        server=reading(Layer.SERVER, server),
        journal=reading(Layer.JOURNAL, evidence.of_start(log) if log is not None else None),
        status=read_status,
        service=service,
    )
    return replace(made, **fields)
