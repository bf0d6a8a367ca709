"""How the demo host's systemd reads a unit with its drop-ins: by systemd's own rules.

This is a reader apart from ddtui's, since a host must not share ddtui's misreadings. It covers what a service
needs; the rules are those of systemd.unit(5), systemd.service(5), systemd.syntax(7), as seen on systemd 252.
"""

from __future__ import annotations

import fnmatch
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ddtui.demo.filesystem import Filesystem
from ddtui.demo.unitwords import Unbalanced, environment_file, split_words

FOLDERS = (
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
)

KNOWN = {
    "Unit": """
        After Before Requires Wants Conflicts Description Documentation StartLimitIntervalSec StartLimitBurst
        StartLimitAction OnFailure PartOf BindsTo RequiresMountsFor ConditionPathExists AssertPathExists
        DefaultDependencies Requisite""",
    "Service": """
        Type ExecStart ExecStartPre ExecStartPost ExecStop ExecStopPost ExecReload Restart RestartSec
        TimeoutSec TimeoutStartSec TimeoutStopSec User Group SupplementaryGroups WorkingDirectory
        Environment EnvironmentFile UnsetEnvironment PassEnvironment KillMode KillSignal SendSIGKILL
        StandardOutput StandardError StandardInput SyslogIdentifier LimitNOFILE LimitMEMLOCK LimitCORE
        LimitSTACK Nice OOMScoreAdjust SuccessExitStatus RemainAfterExit PIDFile UMask PrivateTmp
        ProtectSystem ProtectHome NoNewPrivileges AmbientCapabilities CapabilityBoundingSet TasksMax
        MemoryMax CPUAffinity NUMAPolicy NUMAMask Slice Delegate RuntimeDirectory StateDirectory
        CacheDirectory LogsDirectory NotifyAccess WatchdogSec IOSchedulingClass OOMPolicy
        LogRateLimitIntervalSec LogRateLimitBurst FinalKillSignal RestartPreventExitStatus""",
    "Install": "WantedBy RequiredBy Alias Also DefaultInstance",
}
_KNOWN = {section: frozenset(keys.split()) for section, keys in KNOWN.items()}


@dataclass(frozen=True, slots=True)
class Problem:
    """What systemd says about a line (or, without a path, about the whole unit)."""

    text: str
    path: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}" if self.path else self.text


@dataclass(frozen=True, slots=True)
class Command:
    """One ExecStart=: the program, its words before `$` expansion, and the prefixes."""

    path: str
    argv: tuple[str, ...]
    ignore_failure: bool = False
    expand: bool = True


@dataclass(frozen=True, slots=True)
class Definition:
    """A unit as it is loaded. Times in seconds."""

    name: str
    load_state: str = "not-found"
    description: str = ""
    fragment: str = ""
    drop_ins: tuple[str, ...] = ()
    stamp: tuple[tuple[str, int, int], ...] = ()  # of the files, for NeedDaemonReload
    problems: tuple[Problem, ...] = ()
    settings: Mapping[str, Sequence[str]] = field(
        default_factory=dict
    )  # "Service.Restart" -> values in force
    commands: tuple[Command, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    environment_files: tuple[str, ...] = ()

    def get(self, key: str, default: str = "") -> str:
        values = self.settings.get(key, ())
        return values[-1] if values else default

    def seconds(self, key: str, default: float) -> float:
        value = parse_seconds(self.get(key)) if self.get(key) else None
        return default if value is None else value

    @property
    def loaded(self) -> bool:
        return self.load_state == "loaded"

    @property
    def kill_signal(self) -> int:
        name = self.get("Service.KillSignal", "SIGTERM")
        try:
            return int(name) if name.isdigit() else signal.Signals["SIG" + name.removeprefix("SIG")].value
        except KeyError:
            return signal.SIGTERM


def parse_seconds(text: str) -> float | None:
    """A time span: `5`, `1min 30s`, `infinity`; None if it is none."""
    units = {
        **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
        **dict.fromkeys(("ms", "msec"), 1e-3),
        **dict.fromkeys(("us", "usec", "µs"), 1e-6),
        **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
        **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
        **dict.fromkeys(("d", "day", "days"), 86400.0),
    }
    if text.strip() == "infinity":
        return float("inf")
    total, end = 0.0, 0
    for found in re.finditer(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([a-zµ]*)", text):
        if found.start() != end or found[2] not in units:
            return None
        total += float(found[1]) * units[found[2]]
        end = found.end()
    return total if end == len(text.rstrip()) and end else None


# -- finding the files --------------------------------------------------------------------------------------


def find(files: Filesystem, unit: str) -> tuple[str, tuple[str, ...]]:
    """The fragment ("" if there is none) and the drop-ins in the order in which they apply."""
    stem, _, suffix = unit.rpartition(".")
    template = re.sub(r"@[^.]*$", "@", stem) + "." + suffix if "@" in stem else ""
    fragment = ""
    for name in (unit, template):
        for folder in FOLDERS:
            if name and not fragment and files.exists(f"{folder}/{name}"):
                fragment = f"{folder}/{name}"
    names = [unit, *([template] if template else [])]
    dashes = stem.split("@")[0]
    while "-" in dashes.rstrip("-"):
        dashes = dashes.rstrip("-").rpartition("-")[0] + "-"
        names.append(f"{dashes}.{suffix}")
    names.append(suffix)
    chosen: dict[str, str] = {}
    for (
        folder
    ) in FOLDERS:  # of one file name only one counts: the folder decides first, then how specific it is
        for name in names:
            where = f"{folder}/{name}.d"
            try:
                listed = files.list(where)
            except OSError:
                continue
            for file in listed:
                if file.endswith(".conf") and not file.startswith("."):
                    chosen.setdefault(file, f"{where}/{file}")
    masked = {file for file, path in chosen.items() if is_masked(files, path)}
    return fragment, tuple(chosen[file] for file in sorted(chosen) if file not in masked)


def is_masked(files: Filesystem, path: str) -> bool:
    try:
        node = files.lookup(path, follow=False)
        return node.is_link and files.resolve(path) == "/dev/null"
    except OSError:
        return False


def stamp(files: Filesystem, paths: Sequence[str]) -> tuple[tuple[str, int, int], ...]:
    """What changes when one of the files does."""
    out = []
    for path in paths:
        try:
            node = files.lookup(path)
            out.append((path, node.mtime_ns, node.inode))
        except OSError:
            out.append((path, 0, 0))
    return tuple(out)


# -- reading ------------------------------------------------------------------------------------------------


def load(files: Filesystem, unit: str, hostname: str = "demo") -> Definition:
    """The unit as systemd loads it from disk now."""
    fragment, drop_ins = find(files, unit)
    if not fragment:
        return Definition(unit, drop_ins=())
    paths = (fragment, *drop_ins)
    marks = stamp(files, paths)
    if is_masked(files, fragment):
        return Definition(unit, "masked", unit, fragment, (), marks)
    reader = _Reader(unit, hostname)
    for path in paths:
        try:
            reader.file(path, files.read(path))
        except OSError as error:
            reader.problems.append(Problem(f"Failed to open {path}: {error.strerror}"))
    return reader.done(fragment, drop_ins, marks)


class _Reader:
    """Takes one file after another: lists add up until an empty assignment, of the others the last counts."""

    def __init__(self, unit: str, hostname: str) -> None:
        self.unit = unit
        self.hostname = hostname
        self.problems: list[Problem] = []
        self.settings: dict[str, list[str]] = {}
        self.commands: list[Command] = []
        self.environment: dict[str, str] = {}
        self.files: list[str] = []

    def file(self, path: str, data: bytes) -> None:
        section = ""
        for number, raw in logical_lines(data):
            try:
                line = raw.decode()
            except UnicodeDecodeError:
                self.problems.append(Problem("Invalid UTF-8 in assignment, ignoring.", path, number))
                continue
            line = line.strip()
            if line.startswith("["):
                if not line.endswith("]"):
                    self.problems.append(Problem(f"Invalid section header '{line}'", path, number))
                    section = "?"
                    continue
                section = line[1:-1]
                if section not in _KNOWN and not section.startswith("X-"):
                    self.problems.append(Problem(f"Unknown section '{section}'. Ignoring.", path, number))
                continue
            key, equals, value = line.partition("=")
            if not equals:
                self.problems.append(Problem("Missing '=', ignoring line.", path, number))
                continue
            key, value = key.strip(), value.strip()
            if section not in _KNOWN:
                if not section:
                    self.problems.append(Problem("Assignment outside of section. Ignoring.", path, number))
                continue
            if key not in _KNOWN[section]:
                if not key.startswith("X-"):
                    text = f"Unknown key '{key}' in section [{section}], ignoring."
                    self.problems.append(Problem(text, path, number))
                continue
            self.assign(section, key, value, path, number)

    def assign(self, section: str, key: str, value: str, path: str, number: int) -> None:
        name = f"{section}.{key}"
        if key == "ExecStart":
            self.exec_start(value, path, number)
        elif key == "Environment":
            if not value:
                self.environment.clear()
            try:
                for word in split_words(self.specifiers(value)):
                    variable, equals, content = word.partition("=")
                    if equals and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
                        self.environment[variable] = content
                    else:
                        text = f"Invalid environment assignment, ignoring: {word}"
                        self.problems.append(Problem(text, path, number))
            except Unbalanced:
                self.problems.append(Problem(f'Unbalanced quoting, ignoring: "{value}"', path, number))
        elif key == "EnvironmentFile":
            self.files = [*self.files, self.specifiers(value)] if value else []
        elif key in (
            "RestartSec",
            "TimeoutSec",
            "TimeoutStopSec",
            "TimeoutStartSec",
            "StartLimitIntervalSec",
        ):
            if value and parse_seconds(value) is None:
                what = f"{key}= parameter" if key.startswith("Timeout") else "sec value"
                text = f"Failed to parse {what}, ignoring: {value}"
                self.problems.append(Problem(text, path, number))
                return
            for each in ("TimeoutStopSec", "TimeoutStartSec") if key == "TimeoutSec" else (key,):
                self.settings[f"{section}.{each}"] = [value] if value else []
        elif not value:
            self.settings.pop(name, None)
        elif key in ("After", "Before", "Requires", "Wants", "WantedBy", "Documentation", "Conflicts"):
            self.settings.setdefault(name, []).extend(value.split())
        else:
            self.settings[name] = [self.specifiers(value)]

    def exec_start(self, value: str, path: str, number: int) -> None:
        if not value:
            self.commands.clear()
            return
        try:
            words = list(split_words(value))
        except Unbalanced:
            self.problems.append(Problem(f'Unbalanced quoting, ignoring: "{value}"', path, number))
            return
        first = words[0]
        ignore = at = False
        expand = True
        while first and first[0] in "-@:+!|":
            ignore, at, expand = ignore or first[0] == "-", at or first[0] == "@", expand and first[0] != ":"
            first = first[1:]
        program = self.specifiers(first)
        if not program or ("/" in program and not program.startswith("/")):
            text = f"Neither a valid executable name nor an absolute path: {program or value}"
            self.problems.append(Problem(text, path, number))
            return
        rest = [self.specifiers(word) for word in words[1:]]
        argv = tuple(rest) if at and rest else (program, *rest)
        self.commands.append(Command(program, argv, ignore, expand))

    def specifiers(self, text: str) -> str:
        stem = self.unit.rpartition(".")[0]
        prefix, _, instance = stem.partition("@")
        values = {
            "n": self.unit, "N": stem, "p": prefix, "P": unescape_name(prefix), "i": instance,
            "I": unescape_name(instance), "j": prefix.rpartition("-")[2], "H": self.hostname,
            "u": "root", "U": "0", "h": "/root", "t": "/run", "S": "/var/lib", "C": "/var/cache",
            "L": "/var/log", "E": "/etc", "T": "/tmp", "V": "/var/tmp", "%": "%",
        }  # fmt: skip
        return re.sub(r"%(.)", lambda found: values.get(found[1], found[0]), text)

    def done(
        self, fragment: str, drop_ins: tuple[str, ...], marks: tuple[tuple[str, int, int], ...]
    ) -> Definition:
        state = "loaded"
        kind = self.settings.get("Service.Type", ["simple"])[-1]
        if not self.commands and "Service.ExecStop" not in self.settings:
            text = f"{self.unit}: Service has no ExecStart=, ExecStop=, or SuccessAction=. Refusing."
            self.problems.append(Problem(text))
            state = "bad-setting"
        elif len(self.commands) > 1 and kind != "oneshot":
            text = (
                f"{self.unit}: Service has more than one ExecStart= setting, which is only allowed for "
                "Type=oneshot services. Refusing."
            )
            self.problems.append(Problem(text))
            state = "bad-setting"
        return Definition(
            name=self.unit,
            load_state=state,
            description=self.settings.get("Unit.Description", [self.unit])[-1],
            fragment=fragment,
            drop_ins=drop_ins,
            stamp=marks,
            problems=tuple(self.problems),
            settings=self.settings,
            commands=tuple(self.commands),
            environment=tuple(self.environment.items()),
            environment_files=tuple(self.files),
        )


def unescape_name(text: str) -> str:
    """`a-b` → `a/b`, `\\x2d` → `-`: systemd's unit name escaping."""
    return re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), text.replace("-", "/"))


def escape_name(text: str) -> str:
    """A unit name as a D-Bus object path's last part: `sglang_2dk26_2eservice`."""
    return "".join(
        c if c.isascii() and c.isalnum() and not (i == 0 and c.isdigit()) else f"_{ord(c):02x}"
        for i, c in enumerate(text)
    )


def logical_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(line number, text) of every assignment and section header, continuation lines joined.

    Comment lines are dropped, also between continued lines; a blank line ends a continued value.
    """
    pending: bytes | None = None
    start = 0
    for number, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        line = raw.rstrip(b"\r")
        if line.lstrip().startswith((b"#", b";")):
            continue
        if pending is None and not line.strip():
            continue
        if pending is None:
            start = number
        text = line if pending is None else pending + line
        if line.endswith(b"\\") and not _escaped_end(line):
            pending = text[:-1] + b" "
            continue
        pending = None
        yield start, text
    if pending is not None:
        yield start, pending


def _escaped_end(line: bytes) -> bool:
    """Whether the line's last backslash is itself escaped."""
    return (len(line) - len(line.rstrip(b"\\"))) % 2 == 0


# -- at start -----------------------------------------------------------------------------------------------


def environment_of(definition: Definition, files: Filesystem) -> dict[str, str]:
    """What the process gets from Environment=, then EnvironmentFile=, less UnsetEnvironment=.

    Raises FileNotFoundError for an environment file that is not there and not marked optional by `-`.
    """
    out = dict(definition.environment)
    for entry in definition.environment_files:
        optional, path = entry.startswith("-"), entry.removeprefix("-")
        try:
            names = (
                sorted(files.list(path.rpartition("/")[0] or "/")) if any(c in path for c in "*?[") else []
            )
            matching = [
                f"{path.rpartition('/')[0]}/{n}" for n in names if fnmatch.fnmatch(n, path.rpartition("/")[2])
            ]
            for each in matching or [path]:
                out.update(environment_file(files.read(each)))
        except OSError:
            if not optional:
                raise
    for word in definition.get("Service.UnsetEnvironment").split():
        name, equals, value = word.partition("=")
        if not equals or out.get(name) == value:
            out.pop(name, None)
    return out
