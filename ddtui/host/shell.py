"""The one place that turns argv lists into the string that sshd hands to a login shell, and back.

The string is right in bash, dash, zsh, fish and tcsh, whose quoting rules differ: the real command travels as
base64 inside a form that all five read alike. A random marker on stdout and stderr comes first, so that what a
noisy start-up file prints is told apart from what the command prints.
"""

from __future__ import annotations

import base64
import re
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

_WRAP = "/bin/sh -c 'eval \"$(echo $1 | base64 -d)\"' ddtui "
_HEAD = "LC_ALL=C; export LC_ALL; m={marker}; printf '%s\\n' $m; printf '%s\\n' $m >&2\n"
_STEP = "r() {{ \"$@\" </dev/null; c=$?; printf '\\n%s %s\\n' $m $c; printf '\\n%s\\n' $m >&2; }}\n"
_WRAPPED = re.compile(r"\A" + re.escape(_WRAP) + r"([A-Za-z0-9+/=]+)\Z")
_HEADED = re.compile(r"\A" + re.escape(_HEAD).replace(r"\{marker\}", "([0-9a-f]{32})"))


class UnfitArgument(ValueError):
    """An argument that no command line can carry: it holds a NUL byte, or is not text."""


@dataclass(frozen=True, slots=True)
class Script:
    """What travels to the host: one command that owns stdin (`single`), or several run in order."""

    marker: str
    commands: tuple[tuple[str, ...], ...]
    single: bool


def new_marker() -> str:
    return secrets.token_hex(16)


def join(argv: Sequence[str]) -> str:
    """argv as one POSIX shell command. Raises UnfitArgument for NUL or lone surrogates."""
    for word in argv:
        if "\0" in word:
            raise UnfitArgument(f"an argument of {argv[0]!r} holds a NUL byte, which no command line can carry")
        try:
            word.encode()
        except UnicodeEncodeError:
            raise UnfitArgument(f"an argument of {argv[0]!r} is not valid text: {word!r}") from None
    return shlex.join(argv)


def encode(script: Script) -> str:
    """The string for sshd."""
    head = _HEAD.format(marker=script.marker)
    if script.single:
        (argv,) = script.commands
        text = head + "exec " + join(argv) + "\n"
    else:
        text = head + _STEP.format() + "".join(f"r {join(argv)}\n" for argv in script.commands)
    return _WRAP + base64.b64encode(text.encode()).decode()


def decode(command: str) -> Script:
    """The inverse of `encode`. Raises ValueError for anything that `encode` did not make."""
    wrapped = _WRAPPED.match(command)
    if not wrapped:
        raise ValueError("not a command of ddtui's")
    text = base64.b64decode(wrapped[1]).decode()
    headed = _HEADED.match(text)
    if not headed:
        raise ValueError("not a script of ddtui's")
    rest = text[headed.end() :]
    step = _STEP.format()
    if rest.startswith(step):
        words = shlex.split(rest[len(step) :])
        return Script(headed[1], tuple(_split_steps(rest[len(step) :])) if words else (), single=False)
    if rest.startswith("exec "):
        return Script(headed[1], (tuple(shlex.split(rest[len("exec ") :])),), single=True)
    raise ValueError("not a script of ddtui's")


def _split_steps(text: str) -> list[tuple[str, ...]]:
    """Lines of `r argv…`; an argument may itself hold newlines, inside quotes."""
    steps: list[tuple[str, ...]] = []
    pending = ""
    for line in text.split("\n"):
        pending += line + "\n"
        if pending == "\n":
            pending = ""
            continue
        try:
            words = shlex.split(pending)
        except ValueError:  # an open quote: the argument goes on in the next line
            continue
        steps.append(tuple(words[1:]))
        pending = ""
    if pending:
        raise ValueError("unbalanced quotes")
    return steps


def after_marker(marker: str, data: bytes) -> bytes | None:
    """What follows the marker line, or None if it has not come yet."""
    found = data.find(marker.encode() + b"\n")
    return None if found < 0 else data[found + len(marker) + 1 :]


def split_outputs(marker: str, stdout: bytes, stderr: bytes) -> list[tuple[int, bytes, bytes]]:
    """(exit code, stdout, stderr) of every command of a batch that ran to its end."""
    out, err = after_marker(marker, stdout), after_marker(marker, stderr)
    if out is None or err is None:
        return []
    tag = re.escape(marker.encode())
    outs = re.split(rb"\n" + tag + rb" (\d+)\n", out)
    errs = re.split(rb"\n" + tag + rb"\n", err)
    return [(int(code), o, e) for o, code, e in zip(outs[0::2], outs[1::2], errs, strict=False)]
