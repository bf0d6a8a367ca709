"""What a unit says: its command line, the launch command in it, and where each flag lives."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ddtui.host.unit import flags, secret_names, stale, wrappers
from ddtui.host.unit.analysis import Analysis, UnitError, analyse
from ddtui.host.unit.facts import HostFacts
from ddtui.host.unit.flags import Occurrence, Value
from ddtui.host.unit.syntax import decode, line_of
from ddtui.host.unit.text import Mark
from ddtui.host.unit.tree import Tree
from ddtui.host.unit.words import WordError, split

__all__ = ["Source", "UnitError", "UnitReading", "Value", "read_unit", "reading_of"]

# The flags that `lives`, `file` and `line` speak of when the caller names none
KNOBS = (
    "--speculative-ddtree-budget",
    "--speculative-num-draft-tokens",
    "--speculative-dflash-block-size",
    "--speculative-draft-window-size",
    "--speculative-dflash-draft-window-size",
    "--speculative-num-steps",
)


@dataclass(frozen=True, slots=True)
class Source:
    """A place in a file of the host."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class UnitReading:
    """A unit as it stands on disk now (not as systemd loaded it). Values are in clear: redact before
    showing them.
    """

    unit: str | None  # None: a compose service without a unit
    scope: str  # "system" or "user"
    engine: str | None  # "sglang", "vllm", "llama.cpp", …; None: no launch command was found
    # unit, drop-in, environment, environment-file, shell-wrapper, script, config-file, docker-run, compose,
    # or quadlet
    lives: str | None
    file: str | None  # where the knob's token stands
    line: int | None  # None: not in force anywhere
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
    unit_environment: Mapping[str, str] = field(default_factory=dict)  # of Environment= lines alone
    launch_env: Mapping[str, str] = field(default_factory=dict)  # set further in, by a script or a wrapper
    drop_ins: tuple[str, ...] = ()  # those that count, in the order they are applied
    secrets: tuple[str, ...] = ()  # "argv: --api-key", "env: HF_TOKEN"
    log: str = "journal"  # or "file:PATH", or in words where the lines go
    container: Mapping[str, Any] | None = None  # runtime, name, image, env, mounts, ports
    compose: Mapping[str, Any] | None = None  # files, service
    inside: Mapping[str, Any] | None = None  # as `container`, of a compose service too
    flag_sources: Mapping[str, Source] = field(
        default_factory=dict
    )  # flag as written -> where its value stands
    fragment: str | None = None  # the unit's main file, or the quadlet
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
    asked: str = ""  # the name that was asked for
    facts: HostFacts = field(default_factory=HostFacts)
    knobs: tuple[str, ...] = ()


def read_unit(
    tree: Tree,
    unit: str,
    scope: str | None = None,
    facts: HostFacts | None = None,
    knobs: Sequence[str] = (),
) -> UnitReading:
    """Read a unit (or a quadlet's, or a compose service) from a tree.

    `scope` None: the system's unit of that name, else a user's. `knobs`: the flags that `lives`, `file` and
    `line` speak of, the first that is there. While the tree wants files (`tree.wanted`), the reading is not
    yet the truth. Raises UnitError.
    """
    return reading_of(tree, analyse(tree, unit, scope, facts), unit, tuple(knobs))


def reading_of(tree: Tree, found: Analysis, asked: str, knobs: tuple[str, ...] = ()) -> UnitReading:
    """The reading of a unit that was taken apart."""
    launch = found.launch
    own, loose = flags.read(launch.words, launch.start) if launch else ([], [])
    place = _Places(tree, found)
    effective = flags.values(found.occurrences) if found.config else None
    ignored = _not_in_force(found, effective if effective is not None else flags.values(own))
    state = launch.state if launch else None
    inside = {n: v.text for n, v in state.environment.items() if v.value.known} if state else {}
    set_within = {n: v.text for n, v in state.own.items() if n != "PATH" and v.value.known} if state else {}
    env = {n: v.text for n, v in found.variables.items()}
    lives, file, line = place.of_knob(knobs or KNOBS, ignored)
    merged = found.merged
    setting = merged.last("Type")
    return UnitReading(
        unit=found.unit,
        scope=found.scope,
        engine=launch.engine if launch else None,
        lives=lives,
        file=file,
        line=line,
        wrappers=state.wrappers if state else (),
        exec_start=found.exec_start,
        argv=_argv(found),
        launch_argv=launch.argv if launch else None,
        flags=flags.values(own),
        positional=tuple(launch.words[i].value for i in loose) if launch else (),
        repeats=flags.repeats(found.occurrences if found.config is None else own),
        effective_flags=effective,
        not_in_force=ignored,
        env=env,
        unit_environment={n: v.text for n, v in found.assigned.items()},
        launch_env=set_within,
        drop_ins=tuple(f.path for f in merged.drop_ins),
        secrets=secret_names.find(
            flags.values(found.occurrences), {**env, **set_within, **_container_env(found)}
        ),
        log=_log(found),
        container=_container(found),
        inside=state.container.report() if state and state.container else None,
        compose=state.compose if state else None,
        flag_sources=place.sources(),
        fragment=found.quadlet.file.path
        if found.quadlet
        else merged.fragment.path
        if merged.fragment
        else None,
        service_type=setting.value.value if setting else "simple",
        user=found.user,
        working_directory=state.cwd if state and not state.container else found.working_directory,
        environment=inside,
        python=launch.python if launch else None,
        stale=stale.judge(found),
        warnings=found.warnings,
        problems=found.problems,
        files=tuple(p for p, data in tree.known_files().items() if data is not None and p != "/etc/passwd"),
        asked=asked,
        facts=found.facts,
        knobs=knobs,
    )


class _Places:
    """Where flags stand."""

    def __init__(self, tree: Tree, found: Analysis) -> None:
        self.tree, self.found = tree, found

    def mark(self, one: Occurrence) -> Mark | None:
        """The first character of a flag's value, or of the flag where it has none."""
        words = self.found.words[one.start : one.end]
        texts = [*one.values, *(w.raw for w in words[1:]), words[0].text, words[0].raw]
        return next((m for text in texts for m in text.marks if m is not None and m.file), None)

    def source(self, mark: Mark) -> Source:
        content = decode(self.tree.read(mark.file) or b"")
        return Source(mark.file, line_of(content, mark.start))

    def sources(self) -> dict[str, Source]:
        found = {one.name: self.mark(one) for one in self.found.occurrences}
        return {name: self.source(mark) for name, mark in found.items() if mark is not None}

    def of_knob(
        self, knobs: Sequence[str], ignored: Mapping[str, Value]
    ) -> tuple[str | None, str | None, int | None]:
        """What kind of place the knob's token stands in, its file and line."""
        given = {one.name: one for one in self.found.occurrences}
        speculative = [name for name in given if name.startswith("--speculative")]
        named = [name for name in (*knobs, *speculative, *given) if name in given]
        lost = any(name in knobs or name.startswith("--speculative") for name in ignored)
        mark = self.mark(given[named[0]]) if named else None
        if mark is None and self.found.launch is not None:
            texts = [t for w in self.found.launch.words for t in (w.text, w.raw)]
            mark = next((m for text in texts for m in text.marks if m is not None and m.file), None)
        if mark is None:
            return None, None, None
        source = self.source(mark)
        in_force = bool(named) and (not lost or named[0] in knobs)
        return self.found.lives(mark), source.file, source.line if in_force or not lost else None


def _argv(found: Analysis) -> tuple[str, ...] | None:
    """What systemd executes; `env` gives way to its command at once. None: a shell, or not known."""
    values = [word.value for word in found.argv]
    while values and posixpath.basename(values[0]) == "env":
        unwrapped = wrappers.unwrap(values)
        if unwrapped is None:
            break
        values = values[unwrapped.command :]
    inner = [w for w in (found.launch.state.wrappers if found.launch else ()) if w != "env"]
    shell = bool(values) and posixpath.basename(values[0]) in ("sh", "bash", "dash", "zsh", "ksh", "ash")
    return tuple(values) if values and not shell and inner[:1] != ["script"] else None


def _not_in_force(found: Analysis, given: Mapping[str, Value]) -> dict[str, Value]:
    """Flags in lines that systemd ignores: those after a blank line within a command, for one."""
    lost: dict[str, Value] = {}
    quadlet_files = (found.quadlet.file, *found.quadlet.drop_ins) if found.quadlet else ()
    for file in (*found.merged.files, *quadlet_files):
        for fault in file.faults:
            try:
                words, _ = split(fault.text)
            except WordError:
                continue
            occurrences, _ = flags.read(words, 0)
            for one in occurrences:
                if one.name.startswith("--") and one.name not in given:
                    lost[one.name] = one.value
    return lost


def _container(found: Analysis) -> dict[str, Any] | None:
    state = found.launch.state if found.launch else None
    return state.container.report() if state and state.container and not state.compose else None


def _container_env(found: Analysis) -> dict[str, str]:
    state = found.launch.state if found.launch else None
    made = state.container if state else None
    return {n: v.text for n, v in made.environment.items()} if made else {}


def _log(found: Analysis) -> str:
    """Where the server's lines go: SGLang writes to stderr, which follows stdout unless it is set."""
    if found.launch is not None and found.launch.state.log:
        return found.launch.state.log
    out, err = found.merged.last("StandardOutput"), found.merged.last("StandardError")
    chosen = err if err and err.value.value != "inherit" else out
    value = chosen.value.value if chosen else "journal"
    kind, colon, path = value.partition(":")
    if colon and kind in ("append", "file", "truncate"):
        return f"file:{path}"
    return "journal" if value in ("journal", "inherit", "syslog", "journal+console", "kmsg") else value
