"""Finding the server's launch command: through wrappers, shells, scripts and containers."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ddtui.host.unit import compose, container, engines, wrappers, yaml_text
from ddtui.host.unit.container import Container
from ddtui.host.unit.environment import Environment, Variable
from ddtui.host.unit.shell import Shell
from ddtui.host.unit.shell_syntax import ShellSyntaxError
from ddtui.host.unit.syntax import decode, line_of
from ddtui.host.unit.text import Mark, Text, Word
from ddtui.host.unit.tree import PROGRAM_LIMIT, Tree

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
_DEPTH = 12


@dataclass(frozen=True, slots=True)
class State:
    """What holds where a command line is looked at."""

    environment: Environment
    cwd: str
    tail: Word  # the last word of the command in its own source
    wrappers: tuple[str, ...] = ()
    own: Environment = field(default_factory=dict)  # set on the way, by scripts and wrappers
    log: str | None = None
    container: Container | None = None
    compose: dict[str, Any] | None = None
    conda: str | None = None
    uv_project: str | None = None
    replaced: bool = True  # every program so far has replaced itself at once (env)
    depth: int = 0

    def on_host(self, path: str) -> str | None:
        """A path as the program sees it, on the host; None: out of reach."""
        return self.container.on_host(path) if self.container else path


@dataclass(frozen=True, slots=True)
class Launch:
    """The command that starts the server."""

    words: tuple[Word, ...]
    start: int  # words from here on are the engine's own arguments
    engine: str
    state: State
    python: str | None

    @property
    def argv(self) -> tuple[str, ...]:
        return tuple(word.value for word in self.words)


class Finder:
    """Looks for the launch command. `warnings` collects what the operator should know about the way."""

    def __init__(self, tree: Tree, service: str | None = None) -> None:
        self.tree = tree
        self.service = service  # the compose service that is meant
        self.warnings: list[str] = []
        self.problems: list[str] = []

    def where(self, mark: Mark | None) -> str:
        """`file:line` of a character."""
        if mark is None or not mark.file:
            return "somewhere"
        data = self.tree.read(mark.file)
        return f"{mark.file}:{line_of(decode(data or b''), mark.start)}"

    def reach(self, words: Sequence[Word], state: State) -> Launch | None:
        """The launch that a command line leads to; None: it leads to none."""
        if not words or state.depth > _DEPTH:
            return None
        state = replace(state, depth=state.depth + 1)
        values = [word.value for word in words]
        engine = engines.recognise(values)
        if engine is not None:
            return self._launch(words, engine, state)
        program = posixpath.basename(values[0])
        if program in _SHELLS:
            return self._shell(program, words, state)
        if program in container.RUNTIMES or program == "docker-compose":
            return self._container(program, words, state)
        if program in ("tmux", "screen"):
            return self._terminal(program, words, state)
        if program in ("su", "runuser", "flock", "script") and "-c" in values:
            return self._command_string(program, words, values.index("-c") + 1, state)
        unwrapped = wrappers.unwrap(values)
        if unwrapped is not None:
            return self._wrapped(words, values, unwrapped, state)
        return self._script(words, values, state)

    # -- the engine ---------------------------------------------------------------------------------------
    def _launch(self, words: Sequence[Word], engine: engines.Engine, state: State) -> Launch:
        if engine.guessed:
            self.warnings.append(
                f"{words[0].value}: a launcher that is not known, with SGLang's arguments; taken for SGLang"
            )
        for word in words:
            if not word.text.known:
                mark = next((m for m in word.text.marks if m is not None and m.unknown), None)
                place = self.where(
                    mark if mark and mark.file else word.raw.marks[0] if word.raw.marks else None
                )
                self.warnings.append(
                    f"{place}: {word.value} is known only when it runs; it is shown as written"
                )
        return Launch(tuple(words), engine.start, engine.name, state, self._python(words, state))

    def _python(self, words: Sequence[Word], state: State) -> str | None:
        """The interpreter on the host, as far as the command line tells."""
        if state.container is not None:
            return None
        program = words[0].value
        name = posixpath.basename(program)
        is_python = re.match(r"python[\d.]*\Z", name) is not None
        if "/" in program:
            absolute = posixpath.normpath(posixpath.join(state.cwd, program))
            return absolute if is_python else posixpath.join(posixpath.dirname(absolute), "python")
        name = name if is_python else "python"
        if state.uv_project is not None:
            folder = _text(state.environment, "UV_PROJECT_ENVIRONMENT") or ".venv"
            return posixpath.join(state.uv_project, folder, "bin", name)
        if state.conda is not None:
            return posixpath.join(state.conda, "bin", name)
        virtual = _text(state.environment, "VIRTUAL_ENV")
        if virtual:
            return posixpath.join(virtual, "bin", name)
        for folder in (_text(state.environment, "PATH") or "").split(":"):
            if folder.startswith("/") and re.search(r"env|conda|/opt/|/srv/|/home/", folder):
                return posixpath.join(folder, name)
        return f"/usr/bin/{name}" if is_python else None

    # -- wrappers -----------------------------------------------------------------------------------------
    def _wrapped(
        self, words: Sequence[Word], values: list[str], found: wrappers.Unwrapped, state: State
    ) -> Launch | None:
        name = found.wrapper.name
        set_here: Environment = {}
        for at in found.assigns:
            key, _, value = values[at].partition("=")
            text = words[at].text
            set_here[key] = Variable(key, text[len(text) - len(value) :], kind="wrapper", word=words[at])
        environment = {**state.environment, **set_here}
        if name == "env":
            for option, place in found.options:
                gone = option.partition("=")[2] if option.startswith("--unset=") else None
                if option in ("-u", "--unset") and place is not None:
                    gone = values[place]
                if gone:
                    environment.pop(gone, None)
                if option in ("-i", "--ignore-environment"):
                    environment = dict(set_here)
        cwd = (
            found.value(values, "-C", "--chdir", "--directory", "--cwd", "--working-directory", "-D")
            or state.cwd
        )
        inner = replace(
            state,
            environment=environment,
            own={**state.own, **set_here},
            wrappers=(*state.wrappers, name),
            cwd=posixpath.normpath(posixpath.join(state.cwd, cwd)),
            replaced=state.replaced and name == "env",
        )
        if name in ("uv run", "uv tool run", "uvx"):
            inner = self._uv(values, found, inner)
            if any(option in ("-m", "--module") for option, _ in found.options):
                python = Word(Text("python"), Text(), ())
                return self.reach([python, Word(Text("-m"), Text(), ()), *words[found.command :]], inner)
        if name.endswith(" run") and name.split()[0] in ("conda", "mamba", "micromamba"):
            inner = replace(inner, conda=_conda_prefix(values, found))
        if name.startswith("apptainer"):
            image = values[found.command - 1]
            inner = replace(inner, container=Container("apptainer", image, cwd=state.cwd))
        launch = self.reach(words[found.command :], inner)
        if launch is not None and name == "conda run" and not _streams(found):
            self.warnings.append(
                "conda run without --no-capture-output holds the server's lines back until it ends"
            )
        return launch

    def _uv(self, values: list[str], found: wrappers.Unwrapped, state: State) -> State:
        project = found.value(values, "--project") or state.cwd
        own: Environment = dict(state.own)
        for option, place in found.options:
            name, equals, attached = option.partition("=")
            if name == "--env-file":
                path = attached if equals else values[place] if place is not None else ""
                data = self.tree.read(posixpath.join(state.cwd, path))
                own |= {v.name: v for v in compose.of_dotenv(path, data)} if data is not None else {}
        environment = {**own, **state.environment}  # uv does not override what is set
        return replace(
            state,
            own=own,
            environment=environment,
            uv_project=posixpath.normpath(posixpath.join(state.cwd, project)),
        )

    # -- shells and scripts -------------------------------------------------------------------------------
    def _shell(self, program: str, words: Sequence[Word], state: State) -> Launch | None:
        """`bash [options] -c STRING …` or `bash [options] FILE …`."""
        at, command = 1, ""
        while at < len(words):
            value = words[at].value
            if not value.startswith(("-", "+")) or value in ("-", "--"):
                at += value in ("-", "--")
                break
            if not value.startswith("--") and "c" in value[1:] and value[0] == "-":
                command = value
            takes = value in ("--rcfile", "--init-file") or (
                not value.startswith("--") and value.endswith(("o", "O"))
            )
            at += 2 if takes else 1
        if at >= len(words):
            return None
        if command:
            arguments = list(words[at + 1 :])
            shown = f"{program} {command}"
            return self._run(words[at].text, shown, program, arguments[:1], arguments[1:], state)
        return self._file(words[at], list(words[at + 1 :]), state)

    def _command_string(self, program: str, words: Sequence[Word], at: int, state: State) -> Launch | None:
        if at >= len(words):
            return None
        return self._run(words[at].text, f"{program} -c", "sh", [], [], state)

    def _run(
        self, script: Text, wrapper: str, name: str, zeroth: list[Word], arguments: list[Word], state: State
    ) -> Launch | None:
        shell = self._new_shell(zeroth[0].value if zeroth else name, arguments, state, wrapper)
        try:
            found = shell.run(script)
        except ShellSyntaxError as error:
            self.problems.append(f"{self.where(error.mark)}: {error}")
            return None
        assert found is None or isinstance(found, Launch)
        self.warnings += shell.warnings
        return found

    def _new_shell(self, name: str, arguments: list[Word], state: State, wrapper: str) -> Shell:
        def reach(words: list[Word], shell: Shell) -> Launch | None:
            made = shell.environment()
            changed = {n for n in made if n in shell.own or n in shell.temporary}
            inner = replace(
                state,
                environment={n: _origin(state.environment.get(n), v) for n, v in made.items()},
                own={**state.own, **{n: made[n] for n in changed}},
                cwd=shell.cwd,
                tail=shell.tail or state.tail,
                wrappers=(*state.wrappers, wrapper),
                log=shell.log or state.log,
                conda=_conda_of(shell) or state.conda,
                replaced=False,
            )
            return self.reach(words, inner)

        shell = Shell(self.tree, reach, self.where, state.on_host, state.cwd, name, arguments)
        shell.start_with(state.environment)
        return shell

    def _file(self, word: Word, arguments: list[Word], state: State) -> Launch | None:
        """A script that a shell is given."""
        inside = posixpath.normpath(posixpath.join(state.cwd, word.value))
        path = state.on_host(inside)
        data = self.tree.read(path) if path else None
        if path is None or data is None:
            if not self.tree.wanted:
                out = "is inside the container, out of reach" if path is None else "is not there"
                self.warnings.append(f"the script {inside} {out}")
            return None
        return self._script_text(path, inside, data, arguments, state)

    def _script_text(
        self, path: str, name: str, data: bytes, arguments: list[Word], state: State
    ) -> Launch | None:
        if len(data) >= PROGRAM_LIMIT or b"\0" in data[:1024]:
            return None
        content = decode(data)
        return self._run(Text.of_file(path, content), "script", name, [], arguments, state)

    def _script(self, words: Sequence[Word], values: list[str], state: State) -> Launch | None:
        """A program that is not known: followed if it is a shell script."""
        if "/" not in values[0]:
            return self._by_arguments(words, values, state)
        inside = posixpath.normpath(posixpath.join(state.cwd, values[0]))
        path = state.on_host(inside)
        data = self.tree.program(path) if path else None
        first = data.split(b"\n", 1)[0] if data else b""
        if path and data and first.startswith(b"#!") and re.search(rb"\b(ba|da|a|z|k)?sh\b", first):
            return self._script_text(path, inside, data, list(words[1:]), state)
        return self._by_arguments(words, values, state)

    def _by_arguments(self, words: Sequence[Word], values: list[str], state: State) -> Launch | None:
        engine = engines.recognise_arguments(1, values)
        if engine is None and values[0].startswith("-") and state.container is not None:
            image = state.container.image  # the image's own entrypoint starts the server
            name = next((n for n in ("sglang", "vllm", "llama.cpp") if n in image), None)
            engine = engines.Engine(name, 0) if name else None
        return self._launch(words, engine, state) if engine else None

    def _terminal(self, program: str, words: Sequence[Word], state: State) -> Launch | None:
        """`tmux new-session -d … COMMAND`, `screen -dmS NAME COMMAND`."""
        valued = {"-s", "-n", "-c", "-t", "-x", "-y", "-e", "-F", "-L", "-S", "-f", "-h", "-T"}
        at = 1
        while at < len(words):
            value = words[at].value
            if value in ("new-session", "new", "new-window", "neww", "respawn-pane"):
                at += 1
            elif value.startswith("-"):
                at += 2 if value in valued or (program == "screen" and value.endswith("S")) else 1
            else:
                break
        rest = words[at:]
        inner = replace(state, wrappers=(*state.wrappers, program), log=f"inside {program}", replaced=False)
        if len(rest) == 1:
            return self._run(rest[0].text, program, "sh", [], [], replace(inner, wrappers=state.wrappers))
        return self.reach(rest, inner) if rest else None

    # -- containers ---------------------------------------------------------------------------------------
    def _container(self, program: str, words: Sequence[Word], state: State) -> Launch | None:
        values = [word.value for word in words]
        verb = next((i for i, v in enumerate(values[1:], 1) if not v.startswith("-")), len(values))
        if program == "docker-compose" or values[verb : verb + 1] == ["compose"]:
            request = compose.parse_request(values[1 if program == "docker-compose" else verb + 1 :])
            return self.composed(request, state) if request else None
        found = container.parse_run(words, state.environment, container.read_through(self.tree, state.cwd))
        if isinstance(found, str):
            self.warnings.append(found)
            return None
        if found is None:
            return None
        return self.contained(found.container, found.words, state, f"{program} run")

    def contained(self, made: Container, words: Sequence[Word], state: State, wrapper: str) -> Launch | None:
        """The launch inside a container."""
        log = f"{made.runtime} logs {made.name or ''}".strip() if made.detached else None
        inner = replace(
            state,
            environment=dict(made.environment),
            own={},
            cwd=made.cwd,
            tail=words[-1] if words else state.tail,
            wrappers=(*state.wrappers, wrapper),
            container=made,
            log=log or state.log,
            replaced=False,
        )
        if not words:
            self.warnings.append(f"the image {made.image} brings its own command, which is not in reach")
            return None
        return self.reach(words, inner)

    def composed(self, request: compose.Request, state: State) -> Launch | None:
        """The launch of a compose project's service."""
        files = compose.find_files(self.tree, state.cwd, request, state.environment)
        if not files:
            if not self.tree.wanted:
                self.warnings.append(f"there is no compose file in {state.cwd} or above it")
            return None
        try:
            project = compose.read_project(self.tree, files, state.cwd, request, state.environment)
        except yaml_text.YamlError as error:
            self.problems.append(str(error))
            return None
        self.warnings += project.warnings
        wanted = (self.service,) if self.service else request.services
        launches: list[tuple[str, Launch]] = []
        for name, service in project.services.items():
            if wanted and name not in wanted:
                continue
            inner = replace(state, compose={"files": list(files), "service": name})
            launch = self.contained(
                replace(service.container, detached=False), service.words, inner, "docker compose"
            )
            if launch is not None:
                launches.append((name, launch))
        servers = [one for one in launches if one[1].engine == "sglang"] or launches
        if len(servers) > 1:
            servers.sort(key=lambda one: not any("--speculative" in w for w in one[1].argv))
            names = ", ".join(name for name, _ in servers)
            self.warnings.append(
                f"several services start a server ({names}); {servers[0][0]} was read: "
                "name the one that is meant"
            )
        return servers[0][1] if servers else None


def _origin(before: Variable | None, now: Variable) -> Variable:
    """A variable that a script hands on unchanged keeps its origin."""
    return before if before is not None and before.value is now.value else now


def _text(environment: Environment, name: str) -> str | None:
    return environment[name].text if name in environment and environment[name].value.known else None


def _streams(found: wrappers.Unwrapped) -> bool:
    return any(option in ("--no-capture-output", "--live-stream", "-s") for option, _ in found.options)


def _conda_prefix(values: list[str], found: wrappers.Unwrapped) -> str | None:
    prefix = found.value(values, "-p", "--prefix")
    name = found.value(values, "-n", "--name")
    root = posixpath.dirname(posixpath.dirname(values[0])) if "/" in values[0] else None
    if prefix or not name or root is None:
        return prefix
    return root if name == "base" else f"{root}/envs/{name}"


def _conda_of(shell: Shell) -> str | None:
    if shell.conda is None:
        return None
    if shell.conda.startswith("/"):
        return shell.conda
    if shell.conda_root is None:
        return None
    return shell.conda_root if shell.conda == "base" else f"{shell.conda_root}/envs/{shell.conda}"
