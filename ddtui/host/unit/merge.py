"""Which files make a unit: the unit path, templates, aliases, masks, drop-ins and their order.

After unit-file.c and conf-files.c; checked on systemd 252 and 257.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field

from ddtui.host.unit import syntax
from ddtui.host.unit.facts import HostFacts
from ddtui.host.unit.specifiers import UnitName
from ddtui.host.unit.syntax import Assignment, UnitFile
from ddtui.host.unit.tree import Tree

_SYSTEM = (
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/transient",
    "/run/systemd/generator.early",
    "/etc/systemd/system",
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.attached",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
)
_USER = (
    "{home}/.config/systemd/user.control",
    "{run}/systemd/user.control",
    "{run}/systemd/transient",
    "{run}/systemd/generator.early",
    "{home}/.config/systemd/user",
    "/etc/xdg/systemd/user",
    "/etc/systemd/user",
    "{run}/systemd/user",
    "/run/systemd/user",
    "{run}/systemd/generator",
    "{home}/.local/share/systemd/user",
    "/usr/local/share/systemd/user",
    "/usr/share/systemd/user",
    "/usr/local/lib/systemd/user",
    "/usr/lib/systemd/user",
    "{run}/systemd/generator.late",
)


def unit_path(scope: str, facts: HostFacts) -> tuple[str, ...]:
    """The folders in which units are looked for, the strongest first."""
    if scope == "system":
        return _SYSTEM
    run = None if facts.uid is None else f"/run/user/{facts.uid}"
    return tuple(
        p.format(home=facts.home, run=run)
        for p in _USER
        if ("{home}" not in p or facts.home) and ("{run}" not in p or run)
    )


def own_folder(scope: str, facts: HostFacts) -> str:
    """Where the operator's, and ddtui's, files belong."""
    return "/etc/systemd/system" if scope == "system" else f"{facts.home or '~'}/.config/systemd/user"


@dataclass(frozen=True, slots=True)
class MergedUnit:
    """A unit's files, in the order in which they are applied."""

    unit: str
    scope: str
    fragment: UnitFile | None
    drop_ins: tuple[UnitFile, ...]
    names: tuple[str, ...] = ()  # the unit and its aliases
    hidden: tuple[str, ...] = ()  # drop-ins that another of the same name hides
    faults: tuple[str, ...] = field(default=())

    @property
    def masked(self) -> bool:
        return self.fragment is not None and self.fragment.masked

    @property
    def files(self) -> tuple[UnitFile, ...]:
        return (*((self.fragment,) if self.fragment else ()), *self.drop_ins)

    def settings(self, key: str, section: str = "Service") -> list[Assignment]:
        """Every assignment that counts for a list: an empty one resets what stands before it."""
        counted: list[Assignment] = []
        for file in self.files:
            for setting in file.of(section, key):
                counted = [*counted, setting] if setting.value else []
        return counted

    def last(self, key: str, section: str = "Service") -> Assignment | None:
        """The assignment that counts for a single value; None: unset, or set back to its default."""
        found = [s for file in self.files for s in file.of(section, key)]
        return found[-1] if found and found[-1].value else None


def load(tree: Tree, unit: str, scope: str, facts: HostFacts) -> MergedUnit:
    """Find and read a unit's files. A unit without any has fragment None."""
    folders = unit_path(scope, facts)
    name, names, fragment = _fragment(tree, unit, folders)
    names = tuple(dict.fromkeys((name, *names, *facts.names)))
    drop_ins, hidden = _drop_ins(tree, names, folders)
    return MergedUnit(name, scope, fragment, drop_ins, names, hidden)


def _fragment(
    tree: Tree, unit: str, folders: tuple[str, ...]
) -> tuple[str, tuple[str, ...], UnitFile | None]:
    """The unit's real name, its further names, and its main file: the exact name first, then its template."""
    template = UnitName(unit).template
    for candidate in (unit, *([template] if template else [])):
        for folder in folders:
            path = f"{folder}/{candidate}"
            data = tree.read(path)
            if data is None:
                continue
            target = tree.link(path) if data else None
            real = posixpath.basename(target) if target else candidate
            if target and real != candidate and posixpath.dirname(target) in folders:  # an alias
                if real == template:
                    return unit, (), syntax.parse(target, data)
                again = _fragment(tree, real, folders)
                return again[0], (*again[1], unit), again[2]
            return unit, (), syntax.parse(path, data)
    return unit, (), None


def drop_in_folders(names: tuple[str, ...], folders: tuple[str, ...]) -> list[str]:
    """Every folder whose drop-ins count for a unit of these names, the strongest first."""
    found: list[str] = []
    for name in names:
        for folder in folders:
            found += [f"{folder}/{one}.d" for one in _prefix_names(name)]
    suffix = UnitName(names[0]).suffix
    return list(dict.fromkeys([*found, *(f"{folder}/{suffix}.d" for folder in folders)]))


def _prefix_names(name: str) -> list[str]:
    """`a-b@i.service` → itself, `a-b@.service`, `a-.service`, `a-@i.service`, `a-@.service`.

    The way down that unit_file_process_dir() takes; a template's own prefix has no `@` (seen on 252)."""
    parts = UnitName(name)
    found = [name]
    if parts.template:
        found += _prefix_names(parts.template)
    before, dash, _ = parts.prefix.rstrip("-").rpartition("-")
    if dash and before:
        instance = f"@{parts.instance}" if parts.instance else ""
        found += _prefix_names(f"{before}-{instance}.{parts.suffix}")
    return found


def _drop_ins(
    tree: Tree, names: tuple[str, ...], folders: tuple[str, ...]
) -> tuple[tuple[UnitFile, ...], tuple[str, ...]]:
    chosen: dict[str, str] = {}
    hidden: list[str] = []
    for folder in drop_in_folders(names, folders):
        for name in tree.list(folder):
            path = f"{folder}/{name}"
            if not name.endswith(".conf") or name.startswith("."):
                continue
            if name in chosen:
                hidden.append(path)
            else:
                chosen[name] = path
    files: list[UnitFile] = []
    for _, path in sorted(chosen.items(), key=lambda item: item[0].encode("utf-8", "surrogateescape")):
        data = tree.read(path)
        if data is not None:
            files.append(syntax.parse(path, data))
    return tuple(files), tuple(hidden)
