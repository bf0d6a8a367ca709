"""The unit layer offline: what `ddtui inspect unit NAME --root DIR` reports."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ddtui import redact
from ddtui.host.unit.change import Turn, UnitChange, change_unit
from ddtui.host.unit.read import UnitError, UnitReading, Value, read_unit
from ddtui.host.unit.tree import Tree

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*\Z")


def inspect(root: Path, name: str, sets: Sequence[str], unsets: Sequence[str]) -> dict[str, Any]:
    """Read a unit under a folder that is shaped like a host's root; with turns, also what they would change.

    Secrets are masked, but for `files`: the new contents are the operator's own files, byte for byte.
    Raises UnitError.
    """
    tree = Tree.from_root(root)
    turns = [_set(one) for one in sets] + [(_name(one), "unset", None) for one in unsets]
    reading = read_unit(tree, name, knobs=tuple(flag for flag, _, _ in turns))
    report = of_reading(reading)
    if turns:
        report |= of_change(change_unit(tree, reading, turns))
    return report


def _set(text: str) -> Turn:
    name, equals, value = text.partition("=")
    return _name(name), "set", value if equals else None


def _name(text: str) -> str:
    """A flag, with its dashes also where they were left away; capitals are an environment variable."""
    if text.startswith("-") or _VARIABLE.match(text):
        return text
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", text):
        raise UnitError(f"{text!r} is no flag: give it as --set=--flag=value or --set flag=value")
    return "--" + text.replace("_", "-")


def of_reading(reading: UnitReading) -> dict[str, Any]:
    """A reading as it may be shown, with the names of the corpus."""
    argv = reading.argv
    report: dict[str, Any] = {
        "unit": reading.unit,
        "scope": reading.scope,
        "engine": reading.engine,
        "lives": reading.lives,
        "file": reading.file,
        "line": reading.line,
        "wrappers": list(reading.wrappers),
        "exec_start": None
        if reading.exec_start is None
        else [list(redact.argv(one)) for one in reading.exec_start],
        "argv": None if argv is None else list(redact.argv(argv)),
        "launch_argv": None if reading.launch_argv is None else list(redact.argv(reading.launch_argv)),
        "flags": _masked(reading.flags),
        "env": redact.environment(reading.env),
        "drop_ins": list(reading.drop_ins),
        "secrets": list(reading.secrets),
        "log": reading.log,
        "warnings": [redact.redact(one) for one in reading.warnings],
    }
    more: dict[str, Any] = {
        "positional": list(redact.argv(reading.positional)),
        "repeats": {name: [redact.value(name, v) for v in given] for name, given in reading.repeats.items()},
        "effective_flags": _masked(reading.effective_flags or {}),
        "not_in_force": _masked(reading.not_in_force),
        "launch_env": redact.environment(reading.launch_env),
        "container": reading.container and _container(reading.container),
        "compose": reading.compose and dict(reading.compose),
        "stale": reading.stale,
        "problems": [redact.redact(one) for one in reading.problems],
        "sources": {name: str(source) for name, source in reading.flag_sources.items()},
    }
    return report | {key: value for key, value in more.items() if value}


def of_change(change: UnitChange) -> dict[str, Any]:
    """A change as it may be shown."""
    after = change.launch_argv_after
    report: dict[str, Any] = {
        "files": {
            edit.path: None if edit.after is None else edit.after.decode("utf-8", "replace")
            for edit in change.edits
        },
        "launch_argv_after": None if after is None else list(redact.argv(after)),
        "exec_start_after": None
        if change.exec_start_after is None
        else [list(redact.argv(one)) for one in change.exec_start_after],
        "mechanism": change.mechanism,
        "notes": [redact.redact(one) for one in change.notes],
    }
    if change.effective_flags_after is not None:
        report["effective_flags_after"] = _masked(change.effective_flags_after)
    if change.problems:
        report["problems"] = [redact.redact(one) for one in change.problems]
    return report


def _masked(flags: Mapping[str, Value]) -> dict[str, Value]:
    def one(name: str, value: Value) -> Value:
        if isinstance(value, list):
            return [redact.value(name, v) for v in value]
        return redact.value(name, value) if isinstance(value, str) else value

    return {name: one(name, value) for name, value in flags.items()}


def _container(made: Mapping[str, Any]) -> dict[str, Any]:
    return {**made, "env": redact.environment(made["env"])}


def lines(report: Mapping[str, Any]) -> list[str]:
    """The report as text for people."""
    where = f"{report['file']}:{report['line']}" if report["line"] else report["file"] or "nowhere"
    shown = [
        f"{report['unit'] or 'compose service'} ({report['scope']})",
        f"  engine    {report['engine'] or 'none found'}",
        f"  flags in  {report['lives'] or '-'}: {where}",
        f"  through   {' > '.join(report['wrappers']) or 'nothing'}",
        f"  lines to  {report['log']}",
    ]
    shown += [f"  drop-in   {path}" for path in report["drop_ins"]]
    flags = {**report["flags"], **report.get("effective_flags", {})}
    sources = report.get("sources", {})
    width = max((len(name) for name in flags), default=0)
    for name, value in flags.items():
        text = "" if value is True else " ".join(value) if isinstance(value, list) else str(value)
        shown.append(f"  {name:<{width}}  {text}  {sources.get(name, '')}".rstrip())
    shown += [f"  env {name}={value}" for name, value in report["env"].items()]
    shown += [f"! {text}" for text in (*report.get("problems", ()), *report["warnings"])]
    if report.get("stale"):
        shown.append(f"! {report['stale']}")
    for path, content in report.get("files", {}).items():
        shown += ["", f"--- {path}" + (" (removed)" if content is None else "")]
        shown += redact.redact(content or "").splitlines()
    shown += [f"# {note}" for note in report.get("notes", ())]
    return shown
