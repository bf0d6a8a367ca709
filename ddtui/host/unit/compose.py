"""docker compose: which files make a project, how their variables are replaced, and what a service starts.

After the compose specification and docker compose v2: values from the shell's environment, then .env, then
the `:-default`; `$$` is `$`; a later file replaces `command` and `entrypoint` whole and merges maps by key.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ddtui.host.unit import words as sd_words
from ddtui.host.unit import yaml_text
from ddtui.host.unit.container import Container
from ddtui.host.unit.environment import Environment, Variable
from ddtui.host.unit.syntax import decode, line_of
from ddtui.host.unit.text import Text, Word
from ddtui.host.unit.tree import Tree
from ddtui.host.unit.yaml_text import Map, Node, Scalar

FILES = ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml")
_OVERRIDES = {
    "compose.yaml": ("compose.override.yaml", "compose.override.yml"),
    "compose.yml": ("compose.override.yml", "compose.override.yaml"),
    "docker-compose.yml": ("docker-compose.override.yml", "docker-compose.override.yaml"),
    "docker-compose.yaml": ("docker-compose.override.yaml", "docker-compose.override.yml"),
}
_GLOBAL_VALUED = frozenset(
    [
        "-f",
        "--file",
        "-p",
        "--project-name",
        "--env-file",
        "--project-directory",
        "--profile",
        "--ansi",
        "--progress",
        "--parallel",
        "-H",
        "--host",
        "-c",
        "--context",
        "-l",
        "--log-level",
    ]
)
_UP_VALUED = frozenset(
    [
        "-t",
        "--timeout",
        "--scale",
        "--wait-timeout",
        "--pull",
        "--exit-code-from",
        "--attach",
        "--no-attach",
        "-e",
        "--env",
    ]
)
_STARTING = frozenset({"up", "start", "run", "restart", "create"})


@dataclass(frozen=True, slots=True)
class Service:
    """What one service starts, its variables replaced."""

    name: str
    words: tuple[Word, ...]  # entrypoint and command
    container: Container
    file: str  # where its command stands


@dataclass(frozen=True, slots=True)
class Project:
    files: tuple[str, ...]
    services: dict[str, Service]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """What a `docker compose … up` asks for."""

    files: tuple[str, ...]  # as given with -f
    env_files: tuple[str, ...]
    folder: str | None  # --project-directory
    services: tuple[str, ...]
    command: str


def parse_request(values: Sequence[str]) -> Request | None:
    """The command line after `docker compose` or `docker-compose`; None: it starts nothing."""
    files: list[str] = []
    env_files: list[str] = []
    folder = None
    at = 0
    while at < len(values) and values[at].startswith("-"):
        name, equals, value = values[at].partition("=")
        if not equals and name in _GLOBAL_VALUED:
            value = values[at + 1] if at + 1 < len(values) else ""
            at += 1
        if name in ("-f", "--file"):
            files.append(value)
        elif name == "--env-file":
            env_files.append(value)
        elif name == "--project-directory":
            folder = value
        at += 1
    if at >= len(values) or values[at] not in _STARTING:
        return None
    command = values[at]
    services: list[str] = []
    at += 1
    while at < len(values):
        if values[at].startswith("-"):
            at += 2 if values[at] in _UP_VALUED else 1
            continue
        services.append(values[at])
        at += 1
    if command == "run":
        services = services[:1]
    return Request(tuple(files), tuple(env_files), folder, tuple(services), command)


def find_files(tree: Tree, cwd: str, request: Request, environment: Environment) -> tuple[str, ...]:
    """The compose files of a request, absolute, in the order in which they are merged."""
    given = list(request.files)
    if not given and "COMPOSE_FILE" in environment:
        separator = (
            environment["COMPOSE_PATH_SEPARATOR"].text if "COMPOSE_PATH_SEPARATOR" in environment else ":"
        )
        given = environment["COMPOSE_FILE"].text.split(separator)
    if given:
        return tuple(posixpath.normpath(posixpath.join(cwd, path)) for path in given)
    folder = cwd
    while True:
        for name in FILES:
            path = posixpath.join(folder, name)
            if tree.read(path) is not None:
                extra = (posixpath.join(folder, one) for one in _OVERRIDES[name])
                return (path, *[one for one in extra if tree.read(one) is not None][:1])
        if folder in ("/", ""):
            return ()
        folder = posixpath.dirname(folder)


def read_project(
    tree: Tree, files: Sequence[str], cwd: str, request: Request, outside: Environment
) -> Project:
    """Read and merge compose files. Raises yaml_text.YamlError."""
    folder = request.folder or (posixpath.dirname(files[0]) if files else cwd)
    folder = posixpath.normpath(posixpath.join(cwd, folder))
    variables: Environment = {}
    for path in [posixpath.join(cwd, p) for p in request.env_files] or [posixpath.join(folder, ".env")]:
        data = tree.read(path)
        if data is not None:
            variables |= {v.name: v for v in of_dotenv(path, data)}
    variables |= outside
    merged: dict[str, dict[str, Node]] = {}
    warnings: list[str] = []
    for path in files:
        data = tree.read(path)
        if data is None:
            warnings.append(f"the compose file {path} is not there")
            continue
        document = yaml_text.load(path, decode(data))
        services = document.get("services") if isinstance(document, Map) else None
        if isinstance(document, Map) and document.get("include") is not None:
            warnings.append(f"{path}: files taken in by include: are not read")
        for entry in services.entries if isinstance(services, Map) else ():
            if isinstance(entry.value, Map):
                _merge(merged.setdefault(entry.key.text.value, {}), entry.value)
    for service in merged.values():
        _extend(service, merged, warnings, ())
    made = {n: _service(tree, folder, n, parts, variables) for n, parts in merged.items()}
    return Project(tuple(files), made, tuple(warnings))


def _merge(service: dict[str, Node], more: Map) -> None:
    for entry in more.entries:
        key, value = entry.key.text.value, entry.value
        before = service.get(key)
        if isinstance(before, Map) and isinstance(value, Map):
            value = Map((*before.entries, *value.entries))
        elif key in ("command", "entrypoint"):
            pass  # replaced whole
        elif isinstance(before, yaml_text.Sequence) and isinstance(value, yaml_text.Sequence):
            value = yaml_text.Sequence((*before.items, *value.items), value.flow)
        service[key] = value


def _extend(
    service: dict[str, Node], services: dict[str, dict[str, Node]], warnings: list[str], seen: tuple[str, ...]
) -> None:
    extends = service.pop("extends", None)
    if extends is None:
        return
    name = extends.text.value if isinstance(extends, Scalar) else None
    if isinstance(extends, Map):
        inner = extends.get("service")
        name = inner.text.value if isinstance(inner, Scalar) and extends.get("file") is None else None
    if name is None or name not in services or name in seen:
        warnings.append("a service is taken over from another file by extends:, which is not read")
        return
    parent = dict(services[name])
    _extend(parent, services, warnings, (*seen, name))
    for key, value in parent.items():
        service.setdefault(key, value)


def _service(tree: Tree, folder: str, name: str, parts: dict[str, Node], variables: Environment) -> Service:
    entrypoint = _command(parts.get("entrypoint"), variables)
    command = _command(parts.get("command"), variables)
    source = parts.get("command") or parts.get("entrypoint")
    inside: Environment = {}
    for path in _texts(parts.get("env_file"), variables, "path"):
        data = tree.read(posixpath.join(folder, path))
        if data is not None:
            inside |= {v.name: v for v in of_dotenv(posixpath.join(folder, path), data)}
    inside |= _environment(parts.get("environment"), variables)
    container = Container(
        "docker",
        next(iter(_texts(parts.get("image"), variables)), ""),
        next(iter(_texts(parts.get("container_name"), variables)), None),
        inside,
        mounts=tuple(_mounts(parts.get("volumes"), variables, folder)),
        ports=tuple(_texts(parts.get("ports"), variables, "published")),
        cwd=next(iter(_texts(parts.get("working_dir"), variables)), "/"),
        detached=True,
    )
    return Service(name, (*entrypoint, *command), container, _file(source))


def _file(node: Node | None) -> str:
    if isinstance(node, Scalar):
        return next((m.file for m in node.raw.marks if m), "")
    if isinstance(node, yaml_text.Sequence):
        return next((found for item in node.items if (found := _file(item))), "")
    return ""


def _command(node: Node | None, variables: Environment) -> list[Word]:
    if isinstance(node, Scalar):
        return [] if node.tag == "null" else split_command(interpolate(node.text, variables))
    if isinstance(node, yaml_text.Sequence):
        scalars = [item for item in node.items if isinstance(item, Scalar)]
        return [s.word(interpolate(s.text, variables), bare=("compose", "yaml:item")) for s in scalars]
    return []


def _texts(node: Node | None, variables: Environment, key: str = "") -> list[str]:
    if isinstance(node, Scalar):
        return [interpolate(node.text, variables).value] if node.tag != "null" else []
    if isinstance(node, yaml_text.Sequence):
        return [text for item in node.items for text in _texts(item, variables, key)]
    if isinstance(node, Map) and key:
        return _texts(node.get(key), variables)
    return []


def _mounts(node: Node | None, variables: Environment, folder: str) -> list[str]:
    found: list[str] = []
    for item in node.items if isinstance(node, yaml_text.Sequence) else ():
        if isinstance(item, Map):
            source, target = (next(iter(_texts(item.get(k), variables)), "") for k in ("source", "target"))
            text = f"{source}:{target}" if source and target else ""
        else:
            text = next(iter(_texts(item, variables)), "")
        if text.startswith("."):
            source, colon, rest = text.partition(":")
            text = posixpath.normpath(posixpath.join(folder, source)) + colon + rest
        if text:
            found.append(text)
    return found


def _environment(node: Node | None, variables: Environment) -> Environment:
    found: Environment = {}
    if isinstance(node, Map):
        for entry in node.entries:
            name = entry.key.text.value
            if isinstance(entry.value, Scalar):
                if entry.value.tag == "null":
                    if name in variables:
                        found[name] = variables[name]
                    continue
                value = interpolate(entry.value.text, variables)
                found[name] = Variable(name, value, kind="compose", raw=entry.value.raw)
    elif isinstance(node, yaml_text.Sequence):
        for item in node.items:
            if isinstance(item, Scalar):
                text = interpolate(item.text, variables)
                name, equals, _ = text.value.partition("=")
                if equals:
                    found[name] = Variable(name, text[len(name) + 1 :], kind="compose", raw=item.raw)
                elif name in variables:
                    found[name] = variables[name]
    return found


_VARIABLE = re.compile(r"\$(?:\$|(?P<bare>[A-Za-z_]\w*)|\{(?P<name>[A-Za-z_]\w*)(?P<op>:?[-?+])?)", re.ASCII)


def interpolate(text: Text, variables: Environment, layers: tuple[str, ...] = ("compose",)) -> Text:
    """The text with its variables replaced, as compose does before anything else looks at it."""
    if "$" not in text.value:
        return text.within(*layers)
    pieces: list[Text] = []
    value, at = text.value, 0
    while at < len(value):
        found = _VARIABLE.match(value, at)
        if not found:
            pieces.append(text[at].within(*layers))
            at += 1
            continue
        if found[0] == "$$":
            pieces.append(text[at : at + 2].becomes("$").within(*layers))
            at += 2
            continue
        name = found["bare"] or found["name"]
        known = variables[name].value if name in variables else None
        if found["bare"]:
            pieces.append((known or Text()).through(text[at : found.end()], *layers))
            at = found.end()
            continue
        end = _closing(value, found.end())
        argument, operator = text[found.end() : end], found["op"] or ""
        reference = text[at : min(end + 1, len(value))]
        empty = not known if operator.startswith(":") else known is None
        made = known or Text()
        if (operator.endswith("-") and empty) or (operator.endswith("+") and not empty):
            made = interpolate(argument, variables, layers).within("compose:brace")
        elif operator.endswith("+"):
            made = Text()
        pieces.append(made.through(reference, *layers))
        at = end + 1
    return Text.join(pieces)


def _closing(value: str, at: int) -> int:
    depth = 0
    while at < len(value):
        if value.startswith("${", at):
            depth += 1
        elif value[at] == "}":
            if depth == 0:
                return at
            depth -= 1
        at += 1
    return at


def split_command(text: Text) -> list[Word]:
    """A command given as one string: words with `'`, `"` and backslash as in a shell, nothing replaced."""
    found: list[Word] = []
    value, at = text.value, 0
    while at < len(value):
        if value[at] in " \t\n\r":
            at += 1
            continue
        start, quote = at, ""
        pieces: list[Text] = []
        while at < len(value) and (quote or value[at] not in " \t\n\r"):
            c = value[at]
            layer = {"": "shlex:bare", "'": "shlex:single", '"': "shlex:double"}[quote]
            if c == "\\" and quote != "'" and at + 1 < len(value):
                both = text[at : at + 2]
                keep = quote == '"' and value[at + 1] not in '"\\$`'
                pieces.append((both if keep else both.becomes(value[at + 1])).within(layer))
                at += 2
            elif c == quote:
                quote, at = "", at + 1
            elif not quote and c in "'\"":
                quote, at = c, at + 1
            else:
                pieces.append(text[at].within(layer))
                at += 1
        found.append(Word(Text.join(pieces), text[start:at], ("shlex:bare",)))
    return found


_DOTENV = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*[=:][ \t]*")


def of_dotenv(path: str, data: bytes) -> list[Variable]:
    """The variables of a .env file as docker compose v2 reads it."""
    content = decode(data).removeprefix("\ufeff")
    offset = len(decode(data)) - len(content)
    source = Text.of_file(path, decode(data))[offset:]
    found: list[Variable] = []
    at = 0
    while at < len(content):
        end = content.find("\n", at)
        end = len(content) if end < 0 else end
        match = _DOTENV.match(content, at, end)
        if not match:
            at = end + 1
            continue
        line = line_of(content, at)
        at = match.end()
        quote = content[at : at + 1]
        if quote and quote in "'\"" and (close := _quote_end(content, at + 1, quote)) > 0:
            raw, value = source[at : close + 1], _unquoted(source[at + 1 : close], quote)
            end = content.find("\n", close)
            end = len(content) if end < 0 else end
        else:
            body = content[at:end].rstrip("\r")
            comment = re.search(r"(?:^|[ \t])#", body)
            body = (body[: comment.start()] if comment else body).rstrip(" \t")
            raw = source[at : at + len(body)]
            value = interpolate(raw.within("dotenv:bare"), {v.name: v for v in found}, ())
        found.append(Variable(match[1], value, path, line, "compose", raw=raw))
        at = end + 1
    return found


def _quote_end(content: str, at: int, quote: str) -> int:
    while at < len(content):
        if content[at] == "\\":
            at += 1
        elif content[at] == quote:
            return at
        at += 1
    return -1


def _unquoted(text: Text, quote: str) -> Text:
    if quote == "'":
        return text.within("dotenv:single")
    pieces: list[Text] = []
    value, at = text.value, 0
    while at < len(value):
        if value[at] == "\\" and at + 1 < len(value):
            made, length = (
                sd_words.unescape(value, at + 1) if value[at + 1] in "nrt\\" else (value[at + 1], 1)
            )
            pieces.append(text[at : at + 1 + length].becomes(made or ""))
            at += 1 + length
        else:
            pieces.append(text[at])
            at += 1
    return Text.join(pieces).within("dotenv:double")
