"""The profile model: how to reach the host, which service, which drafter, what the knobs map to, the bursts.

A profile is YAML. `load` finds it, validates it and explains what is wrong and where.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from ddtui import locations

Port = Annotated[int, Field(ge=1, le=65535)]


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Connection(Model):
    """How to reach the host. `host: local` runs commands on this machine, without SSH."""

    host: str = Field(min_length=1)
    port: Port | None = None
    user: str | None = None
    identity_file: Path | None = None
    config: Path | None = None  # an ssh_config to read instead of ~/.ssh/config
    known_hosts: Path | None = None
    connect_timeout: float = Field(default=10.0, gt=0)  # seconds for TCP
    keepalive: float = Field(default=5.0, gt=0)  # seconds between keepalives

    @field_validator("identity_file", "config", "known_hosts")
    @classmethod
    def _home(cls, path: Path | None) -> Path | None:
        return path.expanduser() if path else None


class Scope(StrEnum):
    SYSTEM = "system"
    USER = "user"


def _as_words(value: object) -> object:
    """A command as a list of words; a text is split as a shell would, and no shell ever runs it."""
    try:
        words = shlex.split(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError(f"its quotes do not match: {error}") from None
    if not words:
        raise ValueError("the command is empty")
    return words


Words = Annotated[tuple[str, ...], BeforeValidator(_as_words)]
HostPath = Annotated[str, Field(pattern=r"^/[^\x00\n]+$")]


class Compose(Model):
    """A service of docker compose in place of a systemd unit."""

    file: HostPath  # the compose file on the host
    service: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    sudo: bool = False  # only root may speak to docker


class Commands(Model):
    """Commands of the operator's own in place of a supervisor (supervisord, tmux, a script, …)."""

    start: Words  # returns once the server is on its way
    stop: Words  # tells it to end; need not wait for it
    launch: Words | None = None  # what starts the server in the end, where `start` only asks for it
    kill: Words | None = None  # None: SIGKILL to the process that `pid` names
    pid: Words  # prints the process id of the server or of its parent; nothing when none runs
    log: HostPath | Words | None = None  # the file that the server writes, or a command that prints it
    follow: Words | None = None  # prints that log and goes on; with a command as `log`
    sudo: bool = False  # start, stop and kill take root's rights

    @field_validator("log", mode="before")
    @classmethod
    def _log(cls, value: object) -> object:
        if isinstance(value, str) and not value.startswith("/"):
            raise ValueError("must be the whole path of a file on the host, or a command as a list of words")
        return value

    @model_validator(mode="after")
    def _follows(self) -> Commands:
        if isinstance(self.log, tuple) and self.follow is None:
            raise ValueError("with a command as `log`, `follow` must say how to go on reading it")
        return self


class Service(Model):
    """The service that runs SGLang: a systemd unit, unless `compose` or `commands` says otherwise."""

    compose: Compose | None = None
    commands: Commands | None = None
    # with either of these only a name, under which ddtui keeps its records
    unit: str = Field(min_length=1, pattern=r"^[A-Za-z0-9:_.\\@-]+$")
    scope: Scope = Scope.SYSTEM
    # where the server listens as seen from the host; None: from the unit's --host and --port
    host: str | None = None
    port: Port | None = None
    api_key_env: str | None = None  # name of a local environment variable that holds the API key
    start_timeout: float = Field(default=1800.0, gt=0)  # seconds until a start counts as failed
    stop_timeout: float = Field(default=120.0, gt=0)  # seconds to drain before asking to kill
    kill_when_stuck: bool = False  # kill a server that does not stop in that time, without asking

    @field_validator("unit")
    @classmethod
    def _full_name(cls, unit: str, info: ValidationInfo) -> str:
        if not unit.endswith(".service") and not (info.data.get("compose") or info.data.get("commands")):
            raise ValueError("must be a full unit name that ends in .service")
        return unit

    @model_validator(mode="after")
    def _one_supervisor(self) -> Service:
        if self.compose and self.commands:
            raise ValueError("`compose` and `commands` exclude each other")
        return self


class KnobKind(StrEnum):
    INT = "int"
    FLOAT = "float"
    TEXT = "text"
    SWITCH = "switch"


class Knob(Model):
    """A value that the operator turns, and the flag (or environment variable) behind it."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    flag: str | None = Field(default=None, pattern=r"^--[a-z0-9][a-z0-9-]*$")
    env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    kind: KnobKind = KnobKind.INT
    key: str | None = Field(default=None, min_length=1, max_length=1)  # the key that edits it in the console
    min: float | None = None
    max: float | None = None
    presets: tuple[int | float | str, ...] = ()
    meaning: str = ""

    @model_validator(mode="after")
    def _has_one_target(self) -> Knob:
        if (self.flag is None) == (self.env is None):
            raise ValueError("a knob needs a `flag` or an `env` behind it, and not both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min:g} is above max {self.max:g}")
        return self


class Bench(Model):
    """The bursts that this profile runs, and the limits on them."""

    concurrency: tuple[Annotated[int, Field(ge=1, le=4096)], ...] = (1, 8)
    context: tuple[Annotated[int, Field(ge=16)], ...] = (512, 8192)  # prompt tokens
    output: Annotated[int, Field(ge=2, le=65536)] = 256  # output tokens per request
    workload: str = "code"
    at: Literal["host", "here"] = "here"
    max_concurrency: Annotated[int, Field(ge=1)] = 64
    max_seconds: Annotated[float, Field(gt=0)] = 120.0  # per cell
    precision: Annotated[float, Field(gt=0, lt=1)] = 0.03  # a cell ends when its interval is that tight
    temperature: Annotated[float, Field(ge=0)] = 0.0


class Profile(Model):
    """One host and service to tune."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    about: str = ""
    connection: Connection
    service: Service
    drafter: str | None = None  # path or HF repo id; None: what the unit's flags name
    knobs: tuple[Knob, ...]
    bench: Bench = Bench()
    production: bool = False
    read_only: bool = False
    simulated: bool = False

    @field_validator("knobs")
    @classmethod
    def _knobs_differ(cls, knobs: tuple[Knob, ...]) -> tuple[Knob, ...]:
        for what in ("name", "key"):
            values = [getattr(knob, what) for knob in knobs if getattr(knob, what)]
            twice = sorted({value for value in values if values.count(value) > 1})
            if twice:
                raise ValueError(f"two knobs have the {what} {twice[0]!r}")
        return knobs

    def knob(self, name: str) -> Knob:
        """The knob of that name. Raises KeyError."""
        for knob in self.knobs:
            if knob.name == name:
                return knob
        raise KeyError(name)


class ProfileError(Exception):
    """A profile that cannot be used: file, line where known, key, what is wrong, an example."""


def folders() -> tuple[Path, ...]:
    """Where profiles are looked for: the user's folder, then the shipped ones."""
    here = Path(__file__).parent
    installed = here / "shipped_profiles"
    return locations.config_dir() / "profiles", installed if installed.is_dir() else here.parent / "profiles"


def find(name_or_path: str) -> Path:
    """The file of a profile: a path if it looks like one, else a name in the profile folders.

    Raises ProfileError if there is none.
    """
    if "/" in name_or_path or name_or_path.endswith((".yaml", ".yml")):
        path = Path(name_or_path).expanduser()
        if path.is_file():
            return path
        raise ProfileError(f"{path}: there is no such file; `ddtui profiles` lists the profiles by name")
    for folder in folders():
        path = folder / f"{name_or_path}.yaml"
        if path.is_file():
            return path
    known = ", ".join(names())
    raise ProfileError(
        f"there is no profile named {name_or_path!r} in {folders()[0]} or among the shipped ones ({known}); "
        "`ddtui profiles new` makes one"
    )


def names() -> list[str]:
    """Names of all profiles that can be found, the user's first; a name that the user shadows comes once."""
    found: dict[str, None] = {}
    for folder in folders():
        for path in sorted(folder.glob("*.yaml")):
            found[path.stem] = None
    return list(found)


def load(name_or_path: str) -> Profile:
    """The profile of that name (the user's folder first, then the shipped ones) or at that path.

    Raises ProfileError with every fault found, a line each: file, line where known, key, what, an example.
    """
    path = find(name_or_path)
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ProfileError(f"{path}: is not UTF-8 text (byte {error.start} is invalid)") from None
    return parse(text, path)


def new_path(name: str) -> Path:
    """Where a new profile of the user's goes. Raises ProfileError for an unfit name or one that is taken."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ProfileError(
            f"{name!r} is no name of a profile: letters, digits, `.`, `_` and `-`, as in my-host"
        )
    path = folders()[0] / f"{name}.yaml"
    if path.exists():
        raise ProfileError(f"{path} exists already; edit it, or take another name")
    return path


def save_new(name: str, text: str) -> Path:
    """Write a new profile into the user's folder, for this user's eyes; never over one that is there.

    Raises ProfileError, also for text that is no profile.
    """
    path = new_path(name)
    parse(text, path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ProfileError(f"{path} exists already; edit it, or take another name") from None
    except OSError as error:
        raise ProfileError(f"{path}: cannot be written: {error.strerror}") from None
    return path


def name_for(host: str) -> str:
    """A free name for a profile of this host."""
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", host).strip("-._") or "host"
    taken, number, name = set(names()), 2, base
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    return name


def connection_from(
    text: str,
    *,
    identity_file: Path | None = None,
    known_hosts: Path | None = None,
    config: Path | None = None,
) -> Connection:
    """The connection that `[user@]host[:port]` means; `[::1]:22` for an address of version 6.

    Raises ProfileError.
    """
    six = r"[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*"
    found = re.fullmatch(
        r"(?:(?P<user>[^@\s]+)@)?"
        rf"(?:\[(?P<six>{six})\]|(?P<bare>{six})|(?P<host>[^@\s:\[\]]+))(?::(?P<port>\d+))?",
        text.strip(),
    )
    port = int(found["port"]) if found and found["port"] else None
    if found is None or (port is not None and not 1 <= port <= 65535):
        raise ProfileError(
            f"{text.strip()!r} is no host; write gpu-1, tuner@gpu-1, tuner@gpu-1:2222 or local"
        )
    return Connection(
        host=found["six"] or found["bare"] or found["host"],
        user=found["user"],
        port=port,
        identity_file=identity_file,
        known_hosts=known_hosts,
        config=config,
    )


def parse(text: str, path: Path) -> Profile:
    """A profile from YAML text; `path` names it in errors, and names the profile if it has no `name`."""
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise ProfileError(f"{path}{line}: is not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ProfileError(f"{path}: is not valid YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(data, dict):
        raise ProfileError(
            f"{path}: is empty or not a mapping; it should begin with a line like `name: my-host`"
        )
    data.setdefault("name", path.stem)
    twice = next(_repeated_keys(tree), None)
    if twice is not None:
        raise ProfileError(
            f"{path}:{twice.start_mark.line + 1}: {twice.value}: stands twice; keep one of them"
        )
    try:
        return Profile.model_validate(data)
    except ValidationError as error:
        faults = [_explain(path, tree, fault) for fault in error.errors()]
        raise ProfileError("\n".join(faults)) from None


def _repeated_keys(node: yaml.Node | None) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    yield key
                seen.add(key.value)
            yield from _repeated_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated_keys(item)


_EXAMPLES: dict[str, str] = {
    "name": "name: my-host",
    "connection": "connection: {host: gpu1.example.com, user: tuner}",
    "connection.host": "host: gpu1.example.com   # or: local",
    "connection.port": "port: 22",
    "connection.user": "user: tuner",
    "connection.identity_file": "identity_file: ~/.ssh/id_ed25519",
    "service": "service: {unit: sglang.service}",
    "service.unit": "unit: sglang-k26-ddtree.service",
    "service.compose": "compose: {file: /srv/sglang/compose.yaml, service: sglang}",
    "service.commands": "commands: {start: /opt/s/start, stop: /opt/s/stop, pid: cat /run/s.pid}",
    "service.commands.log": "log: /var/log/sglang.log",
    "service.scope": "scope: system   # or: user",
    "service.port": "port: 30000",
    "knobs": "knobs: [{name: budget, flag: --speculative-ddtree-budget}]",
    "knobs.name": "name: budget",
    "knobs.flag": "flag: --speculative-ddtree-budget",
    "knobs.env": "env: SGLANG_DDTREE_MAX_TOPK",
    "knobs.kind": "kind: int   # or: float, text, switch",
    "knobs.key": "key: b",
    "knobs.presets": "presets: [4, 8, 16]",
    "bench.concurrency": "concurrency: [1, 8, 32]",
    "bench.context": "context: [512, 8192]",
    "bench.output": "output: 256",
    "bench.workload": "workload: code",
    "bench.at": "at: host   # or: here",
    "production": "production: true",
    "read_only": "read_only: true",
}


_SHAPES: dict[str, str] = {
    "name": "must begin with a letter or digit and hold only letters, digits, dot, dash and underscore",
    "service.unit": "must be a full unit name that ends in .service",
    "knobs.name": "must be lower-case letters, digits and underscores, beginning with a letter",
    "knobs.flag": "must be a long flag: two dashes, then lower-case letters, digits and dashes",
    "knobs.env": "must be the name of an environment variable",
}


def _explain(path: Path, tree: yaml.Node | None, fault: Any) -> str:
    """One fault as `file:line: key: what is wrong; example: …`."""
    place = [part for part in fault["loc"] if not (isinstance(part, str) and part.startswith("function-"))]
    key = ".".join(str(part) for part in place)
    general = ".".join(str(part) for part in place if isinstance(part, str))
    node, missing = _descend(tree, place)
    line = node.start_mark.line + 1 if node is not None else 1
    kind = fault["type"]
    if kind == "missing":
        what = "is missing"
    elif kind == "extra_forbidden":
        what = "is not a key of a profile here" + _nearest(general)
    elif kind == "string_pattern_mismatch" and general in _SHAPES:
        what = f"{_SHAPES[general]}, but it is {fault['input']!r}"
    else:
        what = fault["msg"].removeprefix("Value error, ")
        what = f"{what[:1].lower()}{what[1:]}"
        if not missing and not isinstance(fault["input"], dict | list):
            what += f", but it is {fault['input']!r}"
    example = _EXAMPLES.get(general)
    return f"{path}:{line}: {key}: {what}" + (f"; example: `{example}`" if example else "")


def _descend(tree: yaml.Node | None, place: list[str | int]) -> tuple[yaml.Node | None, bool]:
    """The deepest node on the way to `place`, and whether the way ended before it."""
    node = tree
    for part in place:
        below: yaml.Node | None = None
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == part:
                    # for a scalar the value's line is the key's line; for an unknown key show the key
                    below = value if not isinstance(value, yaml.ScalarNode) else key
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            below = node.value[part]
        if below is None:
            return node, True
        node = below
    return node, False


def _nearest(general: str) -> str:
    """`; did you mean …?` for a mistyped key."""
    import difflib

    parent, _, key = general.rpartition(".")
    models: dict[str, type[Model]] = {
        "": Profile,
        "connection": Connection,
        "service": Service,
        "service.compose": Compose,
        "service.commands": Commands,
        "knobs": Knob,
        "bench": Bench,
    }
    model = models.get(parent)
    close = difflib.get_close_matches(key, list(model.model_fields), 1, 0.6) if model else []
    return f"; did you mean `{close[0]}`?" if close else ""
