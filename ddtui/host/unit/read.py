"""What a unit says: its command line as systemd takes it, the server's launch command in it, and where each flag lives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ddtui.host.unit.facts import HostFacts
from ddtui.host.unit.tree import Tree

Value = str | bool | list[str]  # one value, a switch, or several values


class UnitError(Exception):
    """A unit that cannot be read. `str()` is one sentence: what, where (file and line), what to do."""


@dataclass(frozen=True, slots=True)
class Source:
    """A place in a file of the host."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class UnitReading:
    """A unit as it stands on disk now (not as systemd loaded it). Values are in clear: redact before display."""

    unit: str | None  # None: a compose service without a unit
    scope: str  # "system" or "user"
    engine: str | None  # "sglang", "vllm", "llama.cpp", …; None: no launch command was found
    lives: (
        str | None
    )  # unit, drop-in, environment, environment-file, shell-wrapper, script, config-file, docker-run, compose, quadlet
    file: str | None  # where the knob's token stands; None: not in force anywhere
    line: int | None
    wrappers: tuple[str, ...]  # "bash -lc", "script", "docker run", …, outermost first
    exec_start: tuple[tuple[str, ...], ...] | None  # as systemd holds it; None: generated elsewhere
    argv: tuple[str, ...] | None  # what systemd executes; None: a shell
    launch_argv: tuple[str, ...] | None  # argv of the server process
    flags: Mapping[str, Value]
    positional: tuple[str, ...] = ()
    repeats: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # every value of a repeated flag
    effective_flags: Mapping[str, Value] | None = None  # with those of SGLang's --config file
    not_in_force: Mapping[str, Value] = field(default_factory=dict)  # stands in a file, is ignored
    env: Mapping[str, str] = field(default_factory=dict)  # from the unit
    launch_env: Mapping[str, str] = field(default_factory=dict)  # set further in, by a script or a wrapper
    drop_ins: tuple[str, ...] = ()  # those that count, in the order they are applied
    secrets: tuple[str, ...] = ()  # "argv: --api-key", "env: HF_TOKEN"
    log: str = "journal"  # or "file:PATH", or in words where the lines go
    container: Mapping[str, Any] | None = None  # runtime, name, image, env, mounts, ports
    compose: Mapping[str, Any] | None = None  # files, service
    flag_sources: Mapping[str, Source] = field(
        default_factory=dict
    )  # flag as written -> where its value stands
    fragment: str | None = None  # the unit's main file
    service_type: str = "simple"
    user: str | None = None
    working_directory: str | None = None
    environment: Mapping[str, str] = field(
        default_factory=dict
    )  # of the server process, as far as it is known
    python: str | None = None  # the service's interpreter on the host; None: not known, or inside a container
    stale: str | None = None  # our own drop-in was made from something that has changed since: a sentence
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()  # why systemd refuses the unit
    files: tuple[str, ...] = ()  # every file that this reading rests on


def read_unit(
    tree: Tree,
    unit: str,
    scope: str | None = None,
    facts: HostFacts | None = None,
    knobs: Sequence[str] = (),
) -> UnitReading:
    """Read a unit (or a quadlet's, or a compose service) from a tree.

    `scope` None: the system's unit of that name, else a user's. `knobs`: the flags that `lives`, `file` and `line`
    speak of, the first that is there. While the tree wants files (`tree.wanted`), the reading is not yet the truth.
    Raises UnitError.
    """
    raise NotImplementedError
