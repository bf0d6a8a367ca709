"""The one place that turns argv lists into the string that sshd hands to a login shell, and back.

The string is right in bash, dash, zsh, fish and tcsh, whose quoting rules differ: the real command travels as
base64 inside a form that all five read alike. A random marker on stdout and stderr comes first, so that what
a noisy start-up file prints is told apart from what the command prints.

`encode` and `decode` are inverses; `encode_on_terminal` is the form for a sudo that insists on a terminal.
"""

from __future__ import annotations

import base64
import re
import secrets
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# one argument of a Linux command line holds 128 KiB, and the login shell gets all of this as one
LIMIT = 100 * 1024

_WRAP = "/bin/sh -c 'eval \"$(echo $1 | base64 -d)\"' ddtui "
_HEAD = "LC_ALL=C; export LC_ALL; m={marker}; printf '%s\\n' $m; printf '%s\\n' $m >&2\n"
# A sudo that is refused ends the batch, since what comes after may rest on it; $e is to see its words.
_STEP = r"""exec 3>&1
r() {
e=
if [ "$1" = sudo ]; then
e=$("$@" 2>&1 >&3 3>&- </dev/null); c=$?
[ -z "$e" ] || printf '%s\n' "$e" >&2
else
"$@" 3>&- </dev/null; c=$?
fi
printf '\n%s %s\n' $m $c; printf '\n%s\n' $m >&2
case $c$e in 1*'a password is required'*|1*'authentication is required'*|1*'have a tty'*) exit;; esac
}
"""
_TERMINAL = r"""stty raw -echo
LC_ALL=C; export LC_ALL; m={marker}; exec 3>&1; printf '%s\n' $m
p=$(head -c {size})
e=$(printf %s "$p" | base64 -d | {command} 2>&1 >&3 3>&-); c=$?
printf '\n%s %s\n%s' $m $c "$e"; exit $c
"""
_WRAPPED = re.compile(r"\A" + re.escape(_WRAP) + r"([A-Za-z0-9+/=]+)\Z")
_HEADED = re.compile(r"\A" + re.escape(_HEAD).replace(r"\{marker\}", "([0-9a-f]{32})"))


class UnfitArgument(ValueError):
    """A command that no command line can carry: it holds a NUL byte, is no text, is empty or too long."""


@dataclass(frozen=True, slots=True)
class Script:
    """What travels to the host: one command that owns stdin (`single`), or several in a row without stdin."""

    marker: str
    commands: tuple[tuple[str, ...], ...]
    single: bool


def new_marker() -> str:
    return secrets.token_hex(16)


def join(argv: Sequence[str]) -> str:
    """argv as one POSIX shell command. Raises UnfitArgument for what cannot travel."""
    if not argv or not argv[0] or argv[0].startswith("-"):
        raise UnfitArgument(f"{' '.join(argv)!r} names no program")
    for word in argv:
        if "\0" in word:
            raise UnfitArgument(
                f"an argument of {argv[0]!r} holds a NUL byte, which no command line can carry"
            )
        try:
            word.encode()
        except UnicodeEncodeError:
            raise UnfitArgument(f"an argument of {argv[0]!r} is not valid text: {word!r}") from None
    return shlex.join(argv)


def encode(script: Script) -> str:
    """The string for sshd. Raises UnfitArgument, also when it would be longer than `LIMIT`."""
    head = _HEAD.format(marker=script.marker)
    if script.single:
        (argv,) = script.commands
        return _wrap(head + "exec " + join(argv) + "\n")
    return _wrap(head + _STEP + "".join(f"r {join(argv)}\n" for argv in script.commands))


def portions(commands: Sequence[Sequence[str]]) -> Iterator[Script]:
    """The commands as scripts of several, as few as fit the limit. Raises UnfitArgument."""
    room = LIMIT * 3 // 4 - len(_WRAP) - len(_HEAD) - len(_STEP) - 64
    taken: list[tuple[str, ...]] = []
    size = 0
    for argv in commands:
        length = len(join(argv).encode()) + 3
        if taken and size + length > room:
            yield Script(new_marker(), tuple(taken), single=False)
            taken, size = [], 0
        taken.append(tuple(argv))
        size += length
    if taken:
        yield Script(new_marker(), tuple(taken), single=False)


def encode_on_terminal(marker: str, argv: Sequence[str], size: int) -> str:
    """The string for one command on a pseudo-terminal that carries bytes unchanged both ways.

    The command's stdin is what comes in as base64, `size` characters of it, after the marker was seen; what
    it asks of its terminal comes and is answered there too. `split_terminal` reads what it prints.
    """
    return _wrap(_TERMINAL.format(marker=marker, size=size, command=join(argv)))


def decode(command: str) -> Script:
    """The inverse of `encode`. Raises ValueError for anything that `encode` did not make."""
    wrapped = _WRAPPED.match(command)
    if not wrapped:
        raise ValueError("not a command of ddtui's")
    text = base64.b64decode(wrapped[1], validate=True).decode()
    headed = _HEADED.match(text)
    if not headed:
        raise ValueError("not a script of ddtui's")
    rest = text[headed.end() :]
    if rest.startswith(_STEP):
        commands = tuple(argv for argv in _split_steps(rest[len(_STEP) :]))
        return Script(headed[1], commands, single=False)
    if rest.startswith("exec "):
        return Script(headed[1], (tuple(shlex.split(rest[len("exec ") :])),), single=True)
    raise ValueError("not a script of ddtui's")


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


def split_terminal(marker: str, data: bytes) -> tuple[int, bytes, bytes] | None:
    """(exit code, stdout, stderr) of a command that ran on a terminal, or None if it did not end."""
    out = after_marker(marker, data)
    ended = re.search(rb"\n" + re.escape(marker.encode()) + rb" (\d+)\n", out) if out is not None else None
    if out is None or not ended:
        return None
    return int(ended[1]), out[: ended.start()], out[ended.end() :]


def _wrap(text: str) -> str:
    wrapped = _WRAP + base64.b64encode(text.encode()).decode()
    if len(wrapped) > LIMIT:
        raise UnfitArgument(
            f"a command of {len(text) // 1024} KiB is too long for a command line: send the data on stdin"
        )
    return wrapped


def _split_steps(text: str) -> Iterator[tuple[str, ...]]:
    """Lines of `r argv…`; an argument may itself hold newlines, inside quotes."""
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
        yield tuple(words[1:])
        pending = ""
    if pending:
        raise ValueError("unbalanced quotes")
