"""ddtui's own drop-in: its name, its content, and what it was made from.

It sorts after every other drop-in, repeats ExecStart= with the turned flags changed, and holds Environment=
lines. Its head is comments that say what was turned and, as hashes, what stood below when it was made.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ddtui.host.unit import merge, words
from ddtui.host.unit.environment import Environment
from ddtui.host.unit.facts import HostFacts
from ddtui.host.unit.merge import MergedUnit
from ddtui.host.unit.syntax import Assignment, UnitFile

_NAME = re.compile(r"(?:z{3,}-|.*_)ddtui\.conf\Z")
_NOTE = re.compile(
    r"# ddtui: (?P<what>\S+) from (?P<hash>sha256:[0-9a-f]{16,64}|nothing)(?: \((?P<where>.*)\))?\Z"
)
_TURNED = re.compile(r"# ddtui: turned (?P<what>.*)\Z")


@dataclass(frozen=True, slots=True)
class Origin:
    """What a part of the drop-in was made from."""

    digest: str  # "sha256:…", or "nothing"
    where: str = ""  # file:line, for people


@dataclass(frozen=True, slots=True)
class DropIn:
    """The parts of ddtui's drop-in. `environment` and `unset` are words as they stand in it."""

    path: str
    exec_start: tuple[str, ...] = ()  # values of ExecStart=, after a reset; (): none
    environment: Mapping[str, str] = field(default_factory=dict)  # name -> `NAME=value`, quoted
    unset: tuple[str, ...] = ()
    turned: tuple[str, ...] = ()  # flags and variables that were turned; "!--flag" where it was unset
    origins: Mapping[str, Origin] = field(default_factory=dict)  # "ExecStart" or a variable's name

    @property
    def empty(self) -> bool:
        return not self.exec_start and not self.environment and not self.unset

    def render(self) -> bytes:
        """The file's content."""
        lines = [
            "# Made by ddtui: the settings turned in it. To undo them: remove this file, then daemon-reload.",
            "# What it repeats from other files does not follow them; ddtui tells when they have changed.",
        ]
        if self.turned:
            lines.append("# ddtui: turned " + ", ".join(self.turned))
        for what, origin in self.origins.items():
            lines.append(
                f"# ddtui: {what} from {origin.digest}" + (f" ({origin.where})" if origin.where else "")
            )
        lines.append("[Service]")
        if self.exec_start:
            lines += ["ExecStart=", *(f"ExecStart={value}" for value in self.exec_start)]
        lines += [f"Environment={word}" for word in self.environment.values()]
        lines += [f"UnsetEnvironment={name}" for name in self.unset]
        return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")


def is_ours(path: str) -> bool:
    """Whether a drop-in is one that ddtui makes."""
    return _NAME.match(posixpath.basename(path)) is not None


def find(merged: MergedUnit) -> UnitFile | None:
    """ddtui's drop-in of a unit, if there is one."""
    return next((file for file in reversed(merged.drop_ins) if is_ours(file.path)), None)


def parse(file: UnitFile) -> DropIn:
    """Read a drop-in of ddtui's, also one that was edited by hand."""
    turned: tuple[str, ...] = ()
    origins: dict[str, Origin] = {}
    for line in file.content.splitlines():
        if note := _NOTE.match(line):
            origins[note["what"]] = Origin(note["hash"], note["where"] or "")
        elif what := _TURNED.match(line):
            turned = tuple(part.strip() for part in what["what"].split(",") if part.strip())
    exec_start: list[str] = []
    environment: dict[str, str] = {}
    for setting in file.of("Service", "ExecStart"):
        exec_start = [*exec_start, setting.value.value] if setting.value else []
    for setting in file.of("Service", "Environment"):
        for word in words.split(setting.value)[0]:
            environment[word.value.partition("=")[0]] = word.raw.value
    unset = tuple(
        word.value
        for setting in file.of("Service", "UnsetEnvironment")
        for word in words.split(setting.value)[0]
    )
    return DropIn(file.path, tuple(exec_start), environment, unset, turned, origins)


def choose_path(merged: MergedUnit, facts: HostFacts) -> str:
    """Where ddtui's drop-in goes: in the operator's own folder, after every other in byte order of names."""
    folder = f"{merge.own_folder(merged.scope, facts)}/{merged.unit}.d"
    others = [posixpath.basename(f.path) for f in merged.drop_ins if not is_ours(f.path)]
    others += [posixpath.basename(path) for path in merged.hidden if not is_ours(path)]
    last = max((_bytes(name) for name in others), default=b"")
    for count in range(3, 16):
        name = "z" * count + "-ddtui.conf"
        if _bytes(name) > last:
            return f"{folder}/{name}"
    stem = last.decode("utf-8", "surrogateescape").removesuffix(".conf")
    return f"{folder}/{stem}_ddtui.conf"


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def origin_of(settings: Sequence[Assignment]) -> Origin:
    """What ExecStart= is made from: the assignments that count below ddtui's drop-in."""
    where = f"{settings[-1].file}:{settings[-1].line}" if settings else ""
    return Origin(_digest("\n".join(s.value.value for s in settings)), where)


def origin_of_variable(below: Environment, name: str) -> Origin:
    """What a variable is made from, below ddtui's drop-in."""
    variable = below.get(name)
    if variable is None:
        return Origin("nothing")
    return Origin(_digest(variable.text), f"{variable.file}:{variable.line}" if variable.file else "")


def _digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]
