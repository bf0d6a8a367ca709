"""What each layer said, in labelled lines: the facts that verdicts rest on and those that none speaks of.

Read by `ddtui check` and by the console's view of the layers. Pure; sanitised and redacted.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ddtui import redact
from ddtui.engine.answers import ServerInfo
from ddtui.engine.drafter import DrafterConfig, Rope
from ddtui.engine.evidence import JournalEvidence
from ddtui.engine.installation import Installation
from ddtui.host.service import ServerProcess
from ddtui.host.unit.read import UnitReading
from ddtui.sanitize import sanitize
from ddtui.tuning import said
from ddtui.tuning.model import Layer
from ddtui.tuning.survey import Survey

Facts = Iterator[tuple[str, object]]
WIDEST = 18  # cells that a label takes


@dataclass(frozen=True, slots=True)
class LayerWords:
    """One layer: how old its reading is, why there is none, or what it said."""

    layer: Layer
    read_at: float | None = None  # unix time on this machine
    problem: str | None = None
    facts: tuple[tuple[str, str], ...] = ()  # label, text; a label may come again

    def lines(self) -> list[str]:
        """The facts as lines, their labels in a column, each label once."""
        shown: list[str] = []
        before = ""
        for label, text in self.facts:
            shown.append(f"{label if label != before else '':<{WIDEST}} {text}")
            before = label
        return shown


def layers(survey: Survey) -> tuple[LayerWords, ...]:
    """Every layer in its order, from the disk to what was measured."""
    service = survey.service
    pending = [text for text in (survey.reload_pending, survey.restart_pending) if text]
    tellers: dict[Layer, Callable[[Any], Iterable[tuple[str, object]]]] = {
        Layer.DRAFTER: _drafter,
        Layer.ENGINE: _engine,
        Layer.UNIT: lambda unit: _unit(unit, survey.reload_pending, service.problems if service else {}),
        Layer.PROCESS: lambda process: _process(process, survey, pending),
        Layer.SERVER: _server,
        Layer.JOURNAL: _journal,
        Layer.MEASURED: lambda measured: [("bursts", text) for text in measured.text],
    }
    found = []
    for reading in survey.readings:
        value = reading.value
        facts = _clean(tellers[reading.layer](value)) if value is not None else ()
        problem = sanitize(reading.problem) if reading.problem else None
        found.append(LayerWords(reading.layer, reading.read_at, problem, facts))
    return tuple(found)


def _clean(facts: Iterable[tuple[str, object]]) -> tuple[tuple[str, str], ...]:
    """What is there, as text that can be shown."""
    return tuple((label, sanitize(_text(value))) for label, value in facts if value not in (None, "", (), []))


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _drafter(config: DrafterConfig) -> Facts:
    kind = ", ".join([config.family.value, *([config.model_type] if config.model_type else [])])
    yield "config", config.path
    yield "kind", f"{kind} ({', '.join(config.architectures) or 'no architecture given'})"
    yield "layers", f"{config.num_hidden_layers}: {config.sliding_layers} sliding, {config.full_layers} full"
    yield "by this", config.why
    for name in ("sliding_window", "use_sliding_window", "max_window_layers"):
        yield name, getattr(config, name)
    yield "block size", config.block_size
    yield "target layers", config.target_layer_ids
    yield "mask token", config.mask_token_id
    yield "max position", config.max_position_embeddings
    yield "rope", _rope(config.rope)
    kv = config.kv_bytes_per_token()
    yield "draft KV", f"{kv} bytes a token on one GPU at 16 bit" if kv else None
    for warning in config.warnings:
        yield "warning", warning


def _rope(rope: Rope) -> str:
    parts = [f"theta {rope.theta:g}"] if rope.theta is not None else []
    if rope.factor:
        on = f" on {rope.original_max_position}" if rope.original_max_position else ""
        parts.append(f"{rope.kind} ×{rope.factor:g}{on}")
    return ", ".join(parts) + (f" ({rope.spelling})" if rope.spelling else "")


def _engine(engine: Installation) -> Facts:
    yield (
        "version",
        (engine.version or "not said") + (f", commit {engine.commit[:12]}" if engine.commit else ""),
    )
    yield "package", engine.location + (" (editable)" if engine.editable else "")
    yield "python", f"{engine.python} ({engine.python_version})"
    yield "flags", f"{len(engine.flags.flags)}, read from its source"
    yield "window flag", engine.window_flag or "none"
    if engine.has_dflash:
        yield "reads", f"layer_types: {_text(engine.reads_layer_types)}"
        yield "reads", f"sliding_window: {_text(engine.reads_sliding_window)}"
        yield "compact cache", engine.has_compact_cache
    else:
        yield "DFLASH", "this SGLang has none"
    tree = engine.ddtree
    yield "DDTree", tree.flavour.value + (f": {', '.join(tree.flags)}" if tree.flags else "")
    for problem in engine.problems:
        yield "problem", problem


def _unit(unit: UnitReading, reload: str | None, problems: Any) -> Facts:
    yield "unit", unit.fragment
    yield "drop-ins", unit.drop_ins
    yield "command", said.where_of(unit)
    yield "through", unit.wrappers
    inside = unit.inside
    if inside:
        yield "container", f"{inside['runtime']}: {inside['image']}, {inside['name'] or 'no name given'}"
    yield "runs as", unit.user
    yield "environment", tuple(sorted(unit.environment))
    yield "log", unit.log
    if unit.unit is not None:
        yield "systemd", reload or "has loaded what is on disk"
    for text in (*unit.problems, *([unit.stale] if unit.stale else ()), problems.get("files")):
        yield "problem", text
    for text in unit.warnings:
        yield "warning", text


def _process(process: ServerProcess, survey: Survey, pending: list[str]) -> Facts:
    yield "pid", process.pid
    if process.started_at is not None and survey.status is not None:
        yield "started", _host_time(process.started_at)
    yield "executable", process.executable
    yield "directory", process.cwd
    container = survey.service.container if survey.service else None
    yield "container", container.name if container else None
    yield "arguments", shlex.join(redact.argv(process.argv))
    yield "against unit", pending[0] if pending else "as the files now say"


def _host_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC, by the host's clock")


def _server(info: ServerInfo) -> Facts:
    arguments = info.arguments
    yield "version", info.version
    ngram = str(arguments.get("speculative_algorithm")).upper() == "NGRAM"
    for name, value in arguments.items():
        if "speculative" in name and value not in (None, False, "") and (ngram or "_ngram_" not in name):
            yield "resolved", f"{name} = {said.safe(name, value)}"
    yield "draft tokens", arguments.get("speculative_num_draft_tokens")
    accept = info.accept_length
    yield "accept length", f"{accept:.2f} since the last flush, all clients" if accept is not None else None
    sizes = (("weights", info.weight_gb), ("KV cache", info.kv_gb), ("graphs", info.graph_gb))
    parts = [f"{name} {size:g} GB" for name, size in sizes if size is not None]
    yield "memory", ", ".join(parts) + " on each GPU" if parts else None
    yield "token capacity", info.token_capacity
    yield "max running", info.max_running_requests


def _journal(found: JournalEvidence) -> Facts:
    """The lines themselves: they are the proof."""
    yield "draft runner", found.draft_runner.line if found.draft_runner else "no such line in this start"
    yield "DDTree worker", found.ddtree.line if found.ddtree else None
    for name, quoted in (
        ("overridden", found.overrides),
        ("backends", found.backends),
        ("KV pools", found.kv_pools),
    ):
        for one in quoted:
            yield name, one.line
    yield "limits", found.limits.line if found.limits else None
    yield "server_args", "there" if found.server_args is not None else "no such line in this start"
    yield "ready", found.ready.line if found.ready else "not ready yet, by this start's lines"
