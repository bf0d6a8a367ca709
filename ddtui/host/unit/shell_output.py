"""What the few commands print that need nothing run: `$(dirname "$0")`, `$(echo …)`, `$(cat FILE)`."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from ddtui.host.unit.shell_tree import AndOr, Simple
from ddtui.host.unit.syntax import decode
from ddtui.host.unit.text import Text, spaced

if TYPE_CHECKING:
    from ddtui.host.unit.shell import Shell


def substitute(shell: Shell, body: tuple[AndOr, ...]) -> Text | None:
    """What `$(…)` gives, for the few commands that need nothing run; None: not known."""
    cwd, output = shell.cwd, Text()
    try:
        for one in body:
            for line in (one.first, *(p for op, p in one.rest if op == "&&")):
                if len(line.commands) != 1 or not isinstance(line.commands[0], Simple):
                    return None
                made = _output(shell, line.commands[0])
                if made is None:
                    return None
                output = output + made
    finally:
        shell.cwd = cwd
    return output[: len(output.value.rstrip("\n"))]


def _output(shell: Shell, command: Simple) -> Text | None:
    if not command.words:
        paths = [r.target for r in command.redirects if r.operator == "<" and r.target]
        return _content(shell, shell.text(paths[0]).value) if len(paths) == 1 else None
    words = shell.words(command.words)
    if not all(w.text.known for w in words):
        return None
    name, arguments = words[0].value, words[1:]
    plain = [w for w in arguments if not w.value.startswith("-")]
    first = plain[0] if plain else None
    match name:
        case "echo":
            options = arguments[:1] if arguments and arguments[0].value in ("-n", "-e", "-ne") else []
            return spaced(arguments[len(options) :])
        case "printf" if arguments and arguments[0].value in ("%s", "%s\\n") and len(arguments) == 2:
            return arguments[1].text
        case "printf" if len(arguments) == 1 and not set(arguments[0].value) & set("%\\"):
            return arguments[0].text
        case "pwd":
            return Text(shell.cwd)
        case "cd":
            if first is not None:
                shell.cwd = posixpath.normpath(posixpath.join(shell.cwd, first.value))
            return Text()
        case "dirname" if first is not None:
            return Text(posixpath.dirname(first.value.rstrip("/")) or ".")
        case "basename" if first is not None:
            base = posixpath.basename(first.value.rstrip("/"))
            suffix = plain[1].value if len(plain) > 1 else ""
            return Text(base.removesuffix(suffix) if base != suffix else base)
        case "realpath" | "readlink" if first is not None:
            return Text(posixpath.normpath(posixpath.join(shell.cwd, first.value)))
        case "cat" if first is not None and len(plain) == 1:
            return _content(shell, first.value)
        case "true" | ":":
            return Text()
    return None


def _content(shell: Shell, path: str) -> Text | None:
    on_host = shell.seen_as(posixpath.join(shell.cwd, path))
    data = shell.tree.read(on_host) if on_host else None
    return Text.of_file(on_host, decode(data)).within("sh:file") if on_host and data is not None else None
