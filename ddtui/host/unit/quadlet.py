"""podman's quadlets: a `.container` file from which a service is generated.

After podman-systemd.unit(5): `Exec=` is split as systemd splits, and systemd's specifiers and variables act
on it again in the generated unit.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from ddtui.host.unit import environment, specifiers, syntax, words
from ddtui.host.unit.container import Container
from ddtui.host.unit.environment import Environment
from ddtui.host.unit.facts import HostFacts
from ddtui.host.unit.specifiers import UnitName
from ddtui.host.unit.syntax import Assignment, UnitFile
from ddtui.host.unit.text import Text, Word
from ddtui.host.unit.tree import Tree

_SYSTEM = ("/run/containers/systemd", "/etc/containers/systemd", "/usr/share/containers/systemd")


@dataclass(frozen=True, slots=True)
class Quadlet:
    """A `.container` file with its drop-ins."""

    file: UnitFile
    drop_ins: tuple[UnitFile, ...]

    def settings(self, key: str, section: str = "Container") -> list[Assignment]:
        counted: list[Assignment] = []
        for file in (self.file, *self.drop_ins):
            for setting in file.of(section, key):
                counted = [*counted, setting] if setting.value else []
        return counted

    def last(self, key: str, section: str = "Container") -> Assignment | None:
        found = self.settings(key, section)
        return found[-1] if found else None


def folders(scope: str, facts: HostFacts) -> tuple[str, ...]:
    if scope == "system":
        return _SYSTEM
    own = (f"{facts.home}/.config/containers/systemd",) if facts.home else ()
    each = (f"/etc/containers/systemd/users/{facts.uid}",) if facts.uid is not None else ()
    return (*own, *each, "/etc/containers/systemd/users")


def find(tree: Tree, unit: str, scope: str, facts: HostFacts) -> Quadlet | None:
    """The quadlet that a service is generated from; None: there is none."""
    name = UnitName(unit)
    names = [f"{name.stem}.container", *([f"{name.prefix}@.container"] if name.instance else [])]
    paths = [f"{folder}/{one}" for one in names for folder in folders(scope, facts)]
    if facts.source_path and facts.source_path.endswith(".container"):
        paths = [facts.source_path]
    for path in paths:
        data = tree.read(path)
        if data is None:
            continue
        chosen: dict[str, str] = {}
        for folder in dict.fromkeys((posixpath.dirname(path), *folders(scope, facts))):
            for one in tree.list(f"{folder}/{posixpath.basename(path)}.d"):
                if one.endswith(".conf"):
                    chosen.setdefault(one, f"{folder}/{posixpath.basename(path)}.d/{one}")
        found = [(p, tree.read(p)) for _, p in sorted(chosen.items())]
        drop_ins = tuple(syntax.parse(p, content) for p, content in found if content is not None)
        return Quadlet(syntax.parse(path, data), drop_ins)
    return None


def container(
    tree: Tree, quadlet: Quadlet, unit: str, table: Mapping[str, str | None], outside: Environment
) -> tuple[Container, tuple[Word, ...], list[str]]:
    """The container, its command line with systemd's variables replaced, and warnings."""
    warnings: list[str] = []

    def many(key: str) -> list[str]:
        found: list[str] = []
        for setting in quadlet.settings(key):
            try:
                found.append(specifiers.expand(setting.value, table)[0].value)
            except specifiers.SpecifierError as error:
                warnings.append(f"{setting.file}:{setting.line}: {error}")
        return found

    def one(key: str) -> str | None:
        return next(reversed(many(key)), None)

    inside: Environment = {}
    for path in many("EnvironmentFile"):
        data = tree.read(posixpath.join(posixpath.dirname(quadlet.file.path), path))
        if data is not None:
            inside |= {v.name: v for v in environment.of_file(path, data)[0]}
    for setting in quadlet.settings("Environment"):
        variables, more = environment.of_assignment(setting, table)
        warnings += more
        inside |= {v.name: v for v in variables}
    made = Container(
        "podman",
        one("Image") or "",
        one("ContainerName") or f"systemd-{UnitName(unit).stem}",
        inside,
        mounts=tuple(_mount(v, quadlet.file.path) for v in many("Volume")),
        ports=tuple(many("PublishPort")),
        cwd=one("WorkingDir") or "/",
        detached=False,
    )
    argv: list[Word] = []
    layers = ("variables", "specifiers")
    entrypoint, command = quadlet.last("Entrypoint"), quadlet.last("Exec")
    if entrypoint is not None:
        argv.append(Word(entrypoint.value.within(*layers), entrypoint.value, layers))
    try:
        if command is not None:
            split, escapes = words.split(command.value, layers=layers)
            warnings += [f"{command.file}:{command.line}: {one_}" for one_ in escapes]
            argv += split
        argv = [Word(specifiers.expand(w.text, table)[0], w.raw, w.bare) for w in argv]
    except words.WordError as error:
        assert command is not None
        at = command.value[error.at : error.at + 1]
        return made, (), [*warnings, f"{command.file}:{command.line_at(at)}: {error}"]
    except specifiers.SpecifierError as error:
        return made, (), [*warnings, f"{quadlet.file.path}: {error}"]
    expanded, surprises = environment.expand_argv(argv, outside)
    return made, tuple(expanded), warnings + [f"{quadlet.file.path}: {s.what}" for s in surprises]


def _mount(value: str, file: str) -> str:
    source, colon, rest = value.partition(":")
    if source.startswith("."):
        source = posixpath.normpath(posixpath.join(posixpath.dirname(file), source))
    return source + colon + rest


def ignored(quadlet: Quadlet) -> list[Text]:
    """Lines of the files that are ignored as a whole."""
    return [f.text for file in (quadlet.file, *quadlet.drop_ins) for f in file.faults]
