"""`docker run`, `podman run`: their options, and where the container's own command begins."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ddtui.host.unit.environment import Environment, Variable
from ddtui.host.unit.syntax import decode, line_of
from ddtui.host.unit.text import Text, Word
from ddtui.host.unit.tree import Tree

RUNTIMES = ("docker", "podman", "nerdctl")
# `docker run` and `podman run`: options that take no value; every other one does
_SWITCHES = frozenset(
    [
        "-d",
        "--detach",
        "--rm",
        "-i",
        "--interactive",
        "-t",
        "--tty",
        "--privileged",
        "--init",
        "--read-only",
        "-P",
        "--publish-all",
        "--no-healthcheck",
        "--oom-kill-disable",
        "--sig-proxy",
        "--disable-content-trust",
        "--help",
        "-q",
        "--quiet",
        "--use-api-socket",
        "--replace",
        "--env-host",
        "--http-proxy",
        "--rmi",
        "--no-hosts",
        "--no-hostname",
        "--passwd",
        "--rootfs",
        "--tls-verify",
        "--read-only-tmpfs",
        "--unsetenv-all",
        "-it",
        "-ti",
        "-itd",
        "-dit",
        "-tid",
        "-dti",
        "-di",
        "-id",
        "-dt",
        "-td",
    ]
)
_GLOBAL_VALUED = frozenset(
    ["-H", "--host", "--context", "-c", "--config", "-l", "--log-level", "--connection", "--url", "--root"]
)


@dataclass(frozen=True, slots=True)
class Container:
    """A container as it is started."""

    runtime: str
    image: str
    name: str | None = None
    environment: Environment = field(default_factory=dict)
    from_outside: frozenset[str] = frozenset()  # variables handed on from the unit's environment
    mounts: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    cwd: str = "/"
    detached: bool = False

    def report(self) -> dict[str, Any]:
        """The `container` of a reading."""
        env = {
            n: "(from the unit)" if n in self.from_outside else v.text for n, v in self.environment.items()
        }
        return {
            "runtime": self.runtime,
            "name": self.name,
            "image": self.image,
            "env": env,
            "mounts": list(self.mounts),
            "ports": list(self.ports),
        }

    def on_host(self, path: str) -> str | None:
        """A path in the container as a path on the host, where a folder of the host is mounted there."""
        return on_host(self.mounts, path)


def on_host(mounts: Iterable[str], path: str) -> str | None:
    """A path in a container with these mounts (SOURCE:TARGET…) as a path on the host. None: it has none."""
    best: tuple[int, str] | None = None
    for mount in mounts:
        source, _, rest = mount.partition(":")
        target = rest.partition(":")[0]
        inside = path == target or path.startswith(target.rstrip("/") + "/")
        if source.startswith("/") and target and inside and (best is None or len(target) > best[0]):
            best = (len(target), source.rstrip("/") + path[len(target.rstrip("/")) :])
    return best[1] if best else None


@dataclass(frozen=True, slots=True)
class Run:
    """A `run` command: the container, and its own command line."""

    container: Container
    words: tuple[Word, ...]


def parse_run(
    words: Sequence[Word], environment: Environment, read: Callable[[str], bytes | None]
) -> Run | str | None:
    """A container that the command starts.

    None: it starts none; a sentence: it starts one whose command is not in reach. `read` gives an --env-file.
    """
    values = [word.value for word in words]
    runtime, at = posixpath.basename(values[0]), 1
    while at < len(values) and values[at].startswith("-"):
        at += 2 if values[at] in _GLOBAL_VALUED else 1
    if values[at : at + 1] == ["container"]:
        at += 1
    verb = values[at] if at < len(values) else ""
    if verb in ("start", "exec", "restart"):
        names = [v for v in values[at + 1 :] if not v.startswith("-")]
        shown = names[0] if names else "a container"
        return f"{runtime} {verb} {shown}: its command was given when it was made, and is not in the unit"
    if verb not in ("run", "create"):
        return None
    return _run(runtime, words[at + 1 :], environment, read)


def _run(
    runtime: str, words: Sequence[Word], environment: Environment, read: Callable[[str], bytes | None]
) -> Run | None:
    options: list[tuple[str, Word]] = []
    switches: set[str] = set()
    at = 0
    while at < len(words):
        value = words[at].value
        if value == "--":
            at += 1
            break
        if not value.startswith("-") or value == "-":
            break
        name, equals, _ = value.partition("=")
        if name in _SWITCHES:
            switches.add(name)
            at += 1
        elif value.startswith("--"):
            if equals:
                options.append((name, _tail(words[at], len(name) + 1)))
                at += 1
            elif at + 1 < len(words):
                options.append((name, words[at + 1]))
                at += 2
            else:
                return None
        elif len(value) > 2:  # -p8080:80, -eNAME=VALUE
            options.append((value[:2], _tail(words[at], 2)))
            at += 1
        elif at + 1 < len(words):
            options.append((value, words[at + 1]))
            at += 2
        else:
            return None
    if at >= len(words):
        return None
    image, command = words[at].value, list(words[at + 1 :])
    container, entrypoint = _container(runtime, image, options, switches, environment, read)
    if entrypoint is not None and entrypoint.value:
        command = [entrypoint, *command]
    return Run(container, tuple(command))


def _tail(word: Word, at: int) -> Word:
    return Word(word.text[at:], word.raw, word.bare, word.style)


def _container(
    runtime: str,
    image: str,
    options: list[tuple[str, Word]],
    switches: set[str],
    outside: Environment,
    read: Callable[[str], bytes | None],
) -> tuple[Container, Word | None]:
    inside: Environment = {}
    handed_on: set[str] = set()
    mounts: list[str] = []
    ports: list[str] = []
    name, entrypoint, cwd = None, None, "/"
    for option, word in options:
        if option in ("-e", "--env"):
            key, equals, value = word.value.partition("=")
            if equals:
                inside[key] = Variable(
                    key, word.text[len(word.text) - len(value) :], kind="wrapper", word=word
                )
                handed_on.discard(key)
            elif key in outside:
                inside[key] = outside[key]
                handed_on.add(key)
        elif option == "--env-file":
            data = read(word.value)
            if data is not None:
                inside |= {v.name: v for v in of_docker_env_file(word.value, data)}
        elif option in ("-v", "--volume"):
            mounts.append(word.value)
        elif option == "--mount":
            parts = dict(p.partition("=")[::2] for p in word.value.split(","))
            source = parts.get("source") or parts.get("src")
            target = parts.get("target") or parts.get("dst") or parts.get("destination")
            if source and target:
                mounts.append(f"{source}:{target}")
        elif option in ("-p", "--publish"):
            ports.append(word.value)
        elif option == "--name":
            name = word.value
        elif option in ("-w", "--workdir"):
            cwd = word.value
        elif option == "--entrypoint":
            entrypoint = word
    detached = any("d" in s.lstrip("-") for s in switches if not s.startswith("--")) or "--detach" in switches
    container = Container(
        runtime, image, name, inside, frozenset(handed_on), tuple(mounts), tuple(ports), cwd, detached
    )
    return container, entrypoint


def of_docker_env_file(path: str, data: bytes) -> list[Variable]:
    """docker's --env-file: NAME=VALUE to the end of the line, nothing quoted, `#` comments."""
    content = decode(data)
    found: list[Variable] = []
    at = 0
    for line in content.split("\n"):
        start, at = at, at + len(line) + 1
        body = line.strip("\r\ufeff")
        name, equals, value = body.lstrip().partition("=")
        if body.lstrip().startswith("#") or not equals:
            continue
        begin = start + line.index("=") + 1
        text = Text.of_file(path, content, begin, begin + len(value))
        found.append(
            Variable(name.strip(), text, path, line_of(content, start), "environment-file", raw=text)
        )
    return found


def read_through(tree: Tree, cwd: str) -> Callable[[str], bytes | None]:
    """Reads files of the host, relative to a folder."""
    return lambda path: tree.read(posixpath.join(cwd, path))
