"""Setting or unsetting flags where they live, as file edits; every edit is read back before it is offered.

What stands in the unit or another's drop-in is changed by ddtui's own drop-in, which repeats it with one
token replaced; environment files, scripts, compose files, quadlets and SGLang's config file are edited in
place. For each turn several ways are tried, the least invasive first; the first whose result reads back
exactly as wanted is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ddtui.host.unit import drop_in, flags, stale
from ddtui.host.unit.analysis import Analysis, UnitError, analyse
from ddtui.host.unit.environment import NAME
from ddtui.host.unit.flags import FlagTable
from ddtui.host.unit.read import UnitReading
from ddtui.host.unit.specifiers import UnitName
from ddtui.host.unit.tree import Tree
from ddtui.host.unit.turning import Cannot
from ddtui.host.unit.turning_flag import FlagTurner
from ddtui.host.unit.turning_variable import VariableTurner

__all__ = ["FileEdit", "FlagTable", "UnitChange", "change_unit", "rebase"]

Turn = tuple[str, str, str | None]  # flag or variable, "set" or "unset", value


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One file before and after. `before` None: it does not exist yet; `after` None: it is removed."""

    path: str
    before: bytes | None
    after: bytes | None
    ours: bool  # ddtui's own drop-in (no backup) or the operator's file (backup beside it)
    like: str | None = None  # a new file gets the owner and mode of this one: what it repeats may be secret


@dataclass(frozen=True, slots=True)
class UnitChange:
    """What a change of flags does to the host's files."""

    edits: tuple[FileEdit, ...]
    launch_argv_after: tuple[str, ...] | None
    exec_start_after: tuple[tuple[str, ...], ...] | None
    mechanism: str  # "drop-in", "edit", "both", "none"
    notes: tuple[str, ...] = ()  # what to know: how it takes effect, who else reads the file
    problems: tuple[str, ...] = ()  # why it cannot be done: each a sentence; then there are no edits
    reload: bool = False  # systemd must daemon-reload for it
    effective_flags_after: Mapping[str, flags.Value] | None = None  # with those of SGLang's --config file


def change_unit(
    tree: Tree,
    reading: UnitReading,
    turns: Sequence[Turn],
    flag_table: FlagTable | None = None,
) -> UnitChange:
    """Set or unset flags: turns are (flag, "set" | "unset", value | None).

    A flag may also be the name of an environment variable (no leading dash). Several values are given in
    one text, apart by blanks. Changes nothing itself. Like `read_unit`, the answer counts only once the
    tree wants nothing.
    """
    changed = tree
    try:
        for flag, op, value in turns:
            changed = _turn(changed, reading, flag, op, value, flag_table)
    except (Cannot, UnitError) as error:
        return UnitChange((), reading.launch_argv, reading.exec_start, "none", problems=(str(error),))
    return _result(tree, changed, reading, flag_table)


def rebase(tree: Tree, reading: UnitReading, flag_table: FlagTable | None = None) -> UnitChange:
    """Make ddtui's drop-in anew from what now stands below it, with the same turns in it."""
    found = analyse(tree, reading.asked, reading.scope, reading.facts, flag_table)
    file = drop_in.find(found.merged)
    if file is None:
        return _result(tree, tree, reading, flag_table)
    ours = drop_in.parse(file)
    changed = tree.with_files({file.path: None})
    try:
        for name in ours.turned:
            flag = name.removeprefix("!")
            op = "unset" if name.startswith("!") else "set"
            value: str | list[str] | None = None
            if op == "set" and not flag.startswith("-"):
                value = found.variables[flag].text if flag in found.variables else None
            elif op == "set":
                same = [o for o in found.occurrences if flags.same(o.name, flag, flag_table)]
                given = same[-1].value if same else None
                value = (
                    None
                    if given is True or given is None
                    else given
                    if isinstance(given, list)
                    else str(given)
                )
                op = "set" if same else "unset"
            changed = _turn(changed, reading, flag, op, value, flag_table)
    except (Cannot, UnitError) as error:
        return UnitChange((), reading.launch_argv, reading.exec_start, "none", problems=(str(error),))
    return _result(tree, changed, reading, flag_table)


def _result(before: Tree, after: Tree, reading: UnitReading, table: FlagTable | None) -> UnitChange:
    found = analyse(after, reading.asked, reading.scope, reading.facts, table)
    known = after.known_files()
    edits: list[FileEdit] = []
    for path in sorted(known):
        old, new = before.read(path), known[path]
        if old != new:
            ours = drop_in.is_ours(path) and f"{found.merged.unit}.d/" in path
            edits.append(FileEdit(path, old, new, ours, _like(found) if old is None else None))
    kinds = {"drop-in" if one.ours else "edit" for one in edits}
    mechanism = "both" if len(kinds) == 2 else next(iter(kinds), "none")
    unit_files = {f.path for f in found.merged.files}
    quadlets = {f.path for f in (found.quadlet.file, *found.quadlet.drop_ins)} if found.quadlet else set()
    reload = any(one.ours or one.path in unit_files | quadlets for one in edits)
    return UnitChange(
        tuple(edits),
        found.launch.argv if found.launch else None,
        found.exec_start,
        mechanism,
        _notes(found, edits),
        reload=reload,
        effective_flags_after=flags.values(found.occurrences) if found.config else None,
    )


def drop_in_place(tree: Tree, reading: UnitReading) -> tuple[str, str | None]:
    """Where ddtui's drop-in of a unit is or would be, and the file whose rights it has."""
    found = analyse(tree, reading.asked, reading.scope, reading.facts)
    there = drop_in.find(found.merged)
    path = there.path if there else drop_in.choose_path(found.merged, found.facts)
    return path, path if there else _like(found)


def _like(found: Analysis) -> str | None:
    """The file that ddtui's drop-in repeats: the last that has a command, else the unit's own."""
    files = [f for f in found.merged.files if not drop_in.is_ours(f.path)]
    commands = [f.path for f in files if f.of("Service", "ExecStart")]
    return commands[-1] if commands else files[0].path if files else None


def _notes(found: Analysis, edits: Sequence[FileEdit]) -> tuple[str, ...]:
    notes: list[str] = []
    wrappers = found.launch.state.wrappers if found.launch else ()
    for one in edits:
        if one.ours:
            continue
        if one.path in found.environment_files:
            notes.append(f"{one.path} is read at each start: no daemon-reload is needed, only a restart")
        elif one.path.endswith(".container"):
            notes.append(f"the unit is generated anew from {one.path} by daemon-reload")
        elif "docker compose" in wrappers:
            service = (
                found.launch.state.compose["service"] if found.launch and found.launch.state.compose else ""
            )
            notes.append(
                f"a container keeps its command through a restart: `docker compose up -d {service}` "
                "makes it anew"
            )
        elif UnitName(found.merged.unit).instance and found.unit:
            notes.append(f"{one.path} is also read by the other instances of {UnitName(found.unit).template}")
    if found.merged.fragment is not None and (sentence := stale.judge(found)) is not None:
        notes.append(sentence)
    return tuple(dict.fromkeys(notes))


# -- one turn --------------------------------------------------------------------------------------------
def _turn(
    tree: Tree,
    reading: UnitReading,
    flag: str,
    op: str,
    value: str | list[str] | None,
    table: FlagTable | None,
) -> Tree:
    found = analyse(tree, reading.asked, reading.scope, reading.facts, table)
    if found.problems:
        raise Cannot(f"the unit cannot be changed as it stands: {found.problems[0]}")
    if found.launch is None:
        raise Cannot(
            f"no command that starts a server was found for {reading.asked}, so no flag can be changed"
        )
    if found.launch.engine != "sglang":
        raise Cannot(f"this unit runs {found.launch.engine}, not SGLang: ddtui does not change it")
    if op not in ("set", "unset"):
        raise Cannot(f"{op!r} is neither set nor unset")
    if flag.startswith("-"):
        return FlagTurner(tree, found, flag, table, reading).turn(op, value)
    if not NAME.match(flag):
        raise Cannot(f"{flag!r} is neither a flag nor the name of an environment variable")
    return VariableTurner(tree, found, flag, table, reading).turn(op, value)
