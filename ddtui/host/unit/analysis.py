"""A unit taken apart: its files, its command, the way to the server, and the place of every flag."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ddtui.host.unit import (
    compose,
    environment,
    exec_line,
    flags,
    merge,
    quadlet,
    sglang_config,
    specifiers,
    yaml_text,
)
from ddtui.host.unit.environment import Environment
from ddtui.host.unit.exec_line import Command
from ddtui.host.unit.facts import HostFacts
from ddtui.host.unit.flags import FlagTable, Occurrence
from ddtui.host.unit.launch import Finder, Launch, State
from ddtui.host.unit.merge import MergedUnit
from ddtui.host.unit.quadlet import Quadlet
from ddtui.host.unit.sglang_config import Config
from ddtui.host.unit.specifiers import UnitName
from ddtui.host.unit.syntax import Assignment, UnitFile
from ddtui.host.unit.text import Mark, Text, Word
from ddtui.host.unit.tree import Tree


class UnitError(Exception):
    """A unit that cannot be read. `str()` is one sentence: what, where (file and line), what to do."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything that is known of a unit from its files. `words` are those that the engine takes."""

    unit: str | None
    scope: str
    facts: HostFacts
    merged: MergedUnit
    quadlet: Quadlet | None
    commands: tuple[Command, ...]  # of ExecStart, in order
    command: Command | None  # the one that leads to the server
    argv: tuple[Word, ...]  # its words with variables replaced
    variables: Environment  # from the unit's settings and files
    launch: Launch | None
    config: Config | None
    words: tuple[Word, ...]  # those of --config first, then the command line's own
    start: int  # where the engine's arguments begin in `words`
    occurrences: tuple[Occurrence, ...]  # in `words`
    loose: tuple[int, ...]  # words that belong to no flag
    user: str | None
    home: str | None
    working_directory: str
    compose_files: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    environment_files: frozenset[str] = field(default_factory=frozenset)
    assigned: Environment = field(default_factory=dict)  # what Environment= lines set, files or not

    @property
    def exec_start(self) -> tuple[tuple[str, ...], ...] | None:
        """The command lines as systemd holds them. None: there is no unit, or it is made from a quadlet."""
        written = not self.quadlet and (self.commands or self.merged.fragment)
        return tuple(command.values for command in self.commands) if written else None

    def setting_at(self, mark: Mark) -> Assignment | None:
        """The assignment of a unit file in which a character stands."""
        for file in self.merged.files:
            if file.path != mark.file:
                continue
            for setting in file.assignments:
                first = setting.value.marks[0] if setting.value.marks else None
                last = setting.value.marks[-1] if setting.value.marks else None
                if first and last and first.start <= mark.start < last.end:
                    return setting
        return None

    def lives(self, mark: Mark) -> str:
        """What kind of place a character stands in."""
        wrappers = self.launch.state.wrappers if self.launch else ()
        if self.quadlet and mark.file in {f.path for f in (self.quadlet.file, *self.quadlet.drop_ins)}:
            return "quadlet"
        if self.config and mark.file == self.config.path:
            return "config-file"
        setting = self.setting_at(mark)
        if setting is not None:
            if setting.key == "Environment":
                return "environment"
            if any(w.endswith(" run") and w.split()[0] in ("docker", "podman", "nerdctl") for w in wrappers):
                return "docker-run"
            if any(" -" in w or w in ("tmux", "screen") for w in wrappers):
                return "shell-wrapper"
            fragment = self.merged.fragment
            return "unit" if fragment is not None and mark.file == fragment.path else "drop-in"
        if mark.file in self.environment_files:
            return "environment-file"
        return "compose" if "docker compose" in wrappers and "script" not in wrappers else "script"


def analyse(
    tree: Tree,
    name: str,
    scope: str | None = None,
    facts: HostFacts | None = None,
    table: FlagTable | None = None,
) -> Analysis:
    """Take a unit apart. Raises UnitError where there is nothing to take apart."""
    facts = facts or HostFacts()
    unit = name if "." in posixpath.basename(name) else f"{name}.service"
    if unit.endswith(".service") and "/" not in unit:
        for where, known in _scopes(tree, unit, scope, facts):
            merged = merge.load(tree, unit, where, known)
            found = quadlet.find(tree, unit, where, known) if _may_be_generated(merged, known) else None
            if merged.fragment is not None or found is not None:
                return _Analyst(tree, merged, found, known, table).unit()
    composed = _composed(tree, name, facts, table)
    if composed is not None:
        return composed
    if tree.wanted:
        return _nothing(unit, scope or "system", facts)
    raise UnitError(f"there is no unit {unit}, and no compose service of that name: check the name")


def _may_be_generated(merged: MergedUnit, facts: HostFacts) -> bool:
    generated = merged.fragment is None or "/generator" in merged.fragment.path
    return generated or bool(facts.source_path)


def _scopes(tree: Tree, unit: str, scope: str | None, facts: HostFacts) -> list[tuple[str, HostFacts]]:
    """Where to look: the system's units, then every user's."""
    found = [("system", facts)] if scope in (None, "system") else []
    if scope in (None, "user"):
        if facts.home is not None:
            found.append(("user", facts))
        elif tree.partial:
            homes = [f"/home/{one}" for one in tree.list("/home")] + ["/root"]
            found += [("user", _of_home(tree, home, facts)) for home in homes]
            found.append(("user", facts))
    return found


def _of_home(tree: Tree, home: str, facts: HostFacts) -> HostFacts:
    user = posixpath.basename(home)
    entry = account(tree, user)
    uid = facts.uid if facts.uid is not None else entry[0] if entry else None
    return replace(facts, home=home, user=facts.user or user, group=facts.group or user, uid=uid)


def account(tree: Tree, user: str) -> tuple[int, str] | None:
    """(uid, home) of an account, from /etc/passwd."""
    for line in (tree.read("/etc/passwd") or b"").decode("utf-8", "replace").splitlines():
        parts = line.split(":")
        if len(parts) >= 6 and user in (parts[0], parts[2]) and parts[2].isdigit():
            return int(parts[2]), parts[5]
    return None


def _nothing(unit: str, scope: str, facts: HostFacts) -> Analysis:
    merged = MergedUnit(unit, scope, None, ())
    return Analysis(
        unit, scope, facts, merged, None, (), None, (), {}, None, None, (), 0, (), (), None, None, "/"
    )


class _Analyst:
    """Collects what is found on the way."""

    def __init__(
        self,
        tree: Tree,
        merged: MergedUnit,
        found: Quadlet | None,
        facts: HostFacts,
        table: FlagTable | None,
        service: str | None = None,
    ) -> None:
        self.tree, self.merged, self.quadlet, self.facts, self.table = tree, merged, found, facts, table
        fragment = merged.fragment.path if merged.fragment else None
        self.specifiers = specifiers.table(merged.unit, merged.scope, facts, fragment)
        self.finder = Finder(tree, service)
        self.warnings: list[str] = []
        self.problems: list[str] = []
        self.assigned: Environment = {}

    def value(self, key: str) -> str | None:
        setting = self.merged.last(key)
        return self.expanded_value(setting) if setting else None

    def expanded_value(self, setting: Assignment) -> str | None:
        """A plain value; None where systemd ignores it for a specifier that it does not know."""
        try:
            return specifiers.expand(setting.value, self.specifiers)[0].value
        except specifiers.SpecifierError as error:
            self.warnings.append(f"{setting.file}:{setting.line}: {error}; systemd ignores the line")
            return None

    def unit(self) -> Analysis:
        for file in self.merged.files:
            self.file(file)
        commands = self.commands()
        user, home = self.account()
        folder = self.folder(home)
        variables, files = self.variables()
        base = environment.base(
            self.merged.scope,
            user or (self.facts.user if self.merged.scope == "user" else None),
            home,
            self.facts.uid,
            self.folders(),
        )
        if user and home is None and user != "root":
            base["HOME"] = environment.Variable("HOME", Text.unknown("$HOME"))
        given = {**base, **variables}
        command, argv, launch = self.find(commands, given, folder)
        return self.finish(commands, command, argv, variables, launch, user, home, folder, files)

    def file(self, file: UnitFile) -> None:
        for fault in file.faults:
            fragment = self.merged.fragment
            (self.problems if fault.fatal and file is fragment else self.warnings).append(str(fault))

    def commands(self) -> list[Command]:
        commands: list[Command] = []
        for setting in self.merged.settings("ExecStart"):
            found, warnings, problems = exec_line.parse(setting, self.specifiers)
            commands += found
            self.warnings += warnings
            self.problems += problems
        oneshot = self.value("Type") == "oneshot"
        if self.merged.masked:
            self.problems.append(f"{self.merged.unit} is masked: it cannot be started")
        elif self.merged.fragment and not commands and not self.problems and not self.may_lack(oneshot):
            self.problems.append(f"{self.merged.fragment.path} has no ExecStart=, so systemd refuses it")
        elif len(commands) > 1 and not oneshot:
            second = commands[1].assignment
            self.problems.append(
                f"{second.file}:{second.line}: a second ExecStart= without a reset (an empty one) before "
                "it; systemd refuses the unit"
            )
        return commands

    def may_lack(self, oneshot: bool) -> bool:
        """Whether systemd takes the unit without any ExecStart=."""
        if self.merged.last("SuccessAction", "Unit") is not None:
            return True
        stays = (self.value("RemainAfterExit") or "no").lower() in ("yes", "true", "on", "1", "y", "t")
        return oneshot and stays and bool(self.merged.settings("ExecStop"))

    def account(self) -> tuple[str | None, str | None]:
        """The user that the server runs as, and its home folder."""
        user = self.value("User")
        if user is None:
            return None, self.facts.home if self.merged.scope == "user" else None
        entry = account(self.tree, user)
        return user, entry[1] if entry else "/root" if user == "root" else None

    def folder(self, home: str | None) -> str:
        folder = (self.value("WorkingDirectory") or "").removeprefix("-")
        if folder == "~":
            folder = home or "~"
        default = (home or "/") if self.merged.scope == "user" else "/"
        return posixpath.normpath(folder) if folder else default

    def folders(self) -> dict[str, str]:
        """RUNTIME_DIRECTORY and the like."""
        found: dict[str, str] = {}
        for key, letter in (
            ("Runtime", "t"),
            ("State", "S"),
            ("Cache", "C"),
            ("Logs", "L"),
            ("Configuration", "E"),
        ):
            names = (self.value(f"{key}Directory") or "").split()
            root = self.specifiers[letter]
            if names and root:
                paths = [f"{root}/{name.partition(':')[0]}" for name in names]
                found[f"{key.upper()}_DIRECTORY"] = ":".join(paths)
        return found

    def variables(self) -> tuple[Environment, frozenset[str]]:
        """What Environment=, EnvironmentFile= and UnsetEnvironment= make, and the files that count."""
        found: Environment = {}
        for setting in self.merged.settings("Environment"):
            variables, warnings = environment.of_assignment(setting, self.specifiers)
            self.warnings += warnings
            found |= {v.name: v for v in variables}
        paths = [(s, self.expanded_value(s)) for s in self.merged.settings("EnvironmentFile")]
        settings = [(s, path) for s, path in paths if path is not None]
        modern = self.facts.systemd is None or self.facts.systemd >= 254
        from_files, warnings, problems = environment.read_files(
            self.tree, settings, modern=modern, specific=self.specific
        )
        self.warnings += warnings
        self.problems += [] if self.tree.wanted else problems
        self.assigned = dict(found)
        found |= from_files
        for setting in self.merged.settings("UnsetEnvironment"):
            environment.unset(found, setting, self.specifiers)
        return found, frozenset(v.file for v in from_files.values())

    def specific(self, setting: Assignment) -> bool:
        """Whether a path in a setting leads to a file of this instance's own."""
        if not UnitName(self.merged.unit).instance:
            return True
        own_drop_in = f"/{self.merged.unit}.d/" in setting.file
        return own_drop_in or any(f"%{c}" in setting.value.value for c in "iInNf")

    def find(
        self, commands: Sequence[Command], given: Environment, folder: str
    ) -> tuple[Command | None, tuple[Word, ...], Launch | None]:
        """The command that leads to the server, or else the first."""
        if self.quadlet is not None:
            return self.in_quadlet(given, folder)
        looked: list[tuple[Command, tuple[Word, ...]]] = []
        for command in commands:
            argv, surprises = self.expanded(command, given)
            looked.append((command, tuple(argv)))
            first = posixpath.basename(command.path)
            shell = first in ("sh", "bash", "dash", "zsh")
            for one in surprises:
                if one.vanishes or not shell:
                    at = command.assignment.line_at(one.word.raw)
                    self.warnings.append(f"{command.assignment.file}:{at}: {one.what}")
            last = command.argv[-1]
            tail = Word(Text(), last.raw, (*command.layers, "sd:bare"))
            state = State(given, folder, tail)
            if "@" in command.prefixes and argv:  # argv[0] is a name of its own: look at the program
                program = Word(Text(command.path), argv[0].raw, argv[0].bare)
                launch = self.finder.reach([program, *argv[1:]], state)
                if launch is not None and launch.words[0] is program:
                    launch = replace(launch, words=(argv[0], *launch.words[1:]))
            else:
                launch = self.finder.reach(argv, state)
            if launch is not None:
                return command, tuple(argv), launch
        return (*looked[0], None) if looked else (None, (), None)

    def expanded(self, command: Command, given: Environment) -> tuple[list[Word], list[environment.Surprise]]:
        if not command.expands:
            return list(command.argv), []
        return environment.expand_argv(command.argv, given)

    def in_quadlet(
        self, given: Environment, folder: str
    ) -> tuple[Command | None, tuple[Word, ...], Launch | None]:
        assert self.quadlet is not None
        for file in (self.quadlet.file, *self.quadlet.drop_ins):
            self.warnings += [str(fault) for fault in file.faults]
        made, words, warnings = quadlet.container(
            self.tree, self.quadlet, self.merged.unit, self.specifiers, given
        )
        self.warnings += warnings
        state = State(given, folder, words[-1] if words else Word(Text(), Text(), ()))
        launch = self.finder.contained(made, words, state, "podman run")
        return None, (), launch

    def finish(
        self,
        commands: Sequence[Command],
        command: Command | None,
        argv: tuple[Word, ...],
        variables: Environment,
        launch: Launch | None,
        user: str | None,
        home: str | None,
        folder: str,
        files: frozenset[str],
    ) -> Analysis:
        config = self.config(launch) if launch else None
        words, start = (launch.words, launch.start) if launch else ((), 0)
        if config is not None and launch is not None:
            kept = (*launch.words[start : config.at], *launch.words[config.at + 2 :])
            words = (*launch.words[:start], *config.words, *kept)
        occurrences, loose = flags.read(words, start, self.table)
        self.warnings += self.finder.warnings
        self.problems += self.finder.problems
        if launch is not None and launch.engine == "sglang" and loose:
            shown = " ".join(words[i].value for i in loose)
            self.warnings.append(f"{self.finder.where(_mark(words[loose[0]]))}: {shown!r} belongs to no flag")
        if launch is None and not self.tree.wanted and not self.problems:
            self.warnings.append(f"no command that starts a server was found in {self.merged.unit}")
        in_compose = launch.state.compose if launch and launch.state.compose else None
        return Analysis(
            self.merged.unit,
            self.merged.scope,
            self.facts,
            self.merged,
            self.quadlet,
            tuple(commands),
            command,
            argv,
            variables,
            launch,
            config,
            words,
            start,
            tuple(occurrences),
            tuple(loose),
            user,
            home,
            folder,
            tuple(in_compose["files"]) if in_compose else (),
            tuple(dict.fromkeys(self.warnings)),
            tuple(dict.fromkeys(self.problems)),
            files,
            self.assigned,
        )

    def config(self, launch: Launch) -> Config | None:
        if launch.engine != "sglang":
            return None

        def fetch(path: str) -> tuple[str, bytes] | None:
            on_host = launch.state.on_host(posixpath.normpath(posixpath.join(launch.state.cwd, path)))
            data = self.tree.read(on_host) if on_host else None
            return (on_host, data) if on_host and data is not None else None

        try:
            found = sglang_config.read(launch.words, launch.start, fetch)
        except yaml_text.YamlError as error:
            self.problems.append(f"SGLang's --config file cannot be read: {error}")
            return None
        if isinstance(found, str):
            if not self.tree.wanted:
                self.warnings.append(found)
            return None
        if found is not None:
            self.warnings += found.warnings
        return found


def _mark(word: Word) -> Mark | None:
    return next((m for m in (*word.text.marks, *word.raw.marks) if m is not None), None)


def _composed(tree: Tree, name: str, facts: HostFacts, table: FlagTable | None) -> Analysis | None:
    """A compose service without a unit: NAME is FILE, FILE:SERVICE, a folder, or a service's or container's
    name.
    """
    path, _, service = name.partition(":")
    candidates: list[tuple[tuple[str, ...], str | None]] = []
    if path.endswith((".yml", ".yaml")):
        full = [path] if path.startswith("/") else [p for p in tree.find((path,)) if p.endswith("/" + path)]
        candidates = [((one,), service or None) for one in full]
    elif path.startswith("/"):
        candidates = [((f"{path.rstrip('/')}/{one}",), service or None) for one in compose.FILES]
    else:
        candidates = [((one,), name) for one in tree.find(compose.FILES)]
    named_file = path.endswith((".yml", ".yaml")) or path.startswith("/")
    for files, wanted in candidates:
        if tree.read(files[0]) is None:
            continue
        folder = posixpath.dirname(files[0])
        usual = compose.find_files(tree, folder, compose.Request((), (), None, (), "up"), {})
        if usual and usual[0] == files[0]:  # with its override file
            files = usual
        wanted = _service_name(tree, files, folder, wanted) if wanted else None
        if wanted is None and not named_file:
            continue
        analyst = _Analyst(tree, MergedUnit(name, "system", None, ()), None, facts, table, wanted)
        state = State({}, folder, Word(Text(), Text(), ()))
        launch = analyst.finder.composed(compose.Request(files, (), None, (), "up"), state)
        made = analyst.finish((), None, (), {}, launch, None, None, folder, frozenset())
        return replace(made, unit=None, compose_files=files)
    return None


def _service_name(tree: Tree, files: tuple[str, ...], folder: str, wanted: str) -> str | None:
    try:
        project = compose.read_project(tree, files, folder, compose.Request(files, (), None, (), "up"), {})
    except yaml_text.YamlError:
        return None
    for service in project.services.values():
        if wanted in (service.name, service.container.name):
            return service.name
    return None
