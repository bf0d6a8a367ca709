"""What a program of the demo host is: a coroutine that takes a `Call` and returns an exit code."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from getopt import GetoptError, getopt, gnu_getopt
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ddtui.demo.accounts import User

if TYPE_CHECKING:
    from ddtui.demo.machine import Machine


class Streams(Protocol):
    """stdin, stdout and stderr of a program."""

    async def read(self) -> bytes:
        """Some bytes of stdin; b"" at its end."""
        ...

    def out(self, data: bytes) -> None: ...

    def err(self, data: bytes) -> None: ...

    async def drain(self) -> None:
        """Wait until the other side has taken enough of what was written."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """A program being run."""

    machine: Machine
    user: User
    argv: tuple[str, ...]
    streams: Streams
    cwd: str
    place: str = "1"  # how the shell names the line, in its complaints

    @property
    def name(self) -> str:
        return self.argv[0].rpartition("/")[2]

    def out(self, text: str | bytes) -> None:
        self.streams.out(text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text)

    def err(self, text: str) -> None:
        """A line on stderr."""
        self.streams.err((text + "\n").encode("utf-8", "surrogateescape"))

    def complain(self, text: str) -> int:
        """`name: text` on stderr; returns 1."""
        self.err(f"{self.name}: {text}")
        return 1

    async def all_input(self) -> bytes:
        pieces = []
        while piece := await self.streams.read():
            pieces.append(piece)
        return b"".join(pieces)

    def by(self, user: User, argv: Sequence[str]) -> Call:
        return replace(self, user=user, argv=tuple(argv))


Program: TypeAlias = Callable[[Call], Awaitable[int]]


class Usage(Exception):
    """A command line that the program does not take. `text` goes to stderr as it is."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class Options:
    """Parsed options, by their name without dashes, and operands."""

    given: tuple[tuple[str, str], ...]
    operands: tuple[str, ...]

    def __contains__(self, names: str) -> bool:
        """Whether one of the names (separated by blanks) was given."""
        wanted = names.split()
        return any(name in wanted for name, _ in self.given)

    def get(self, names: str, default: str = "") -> str:
        """The last value given under one of the names."""
        wanted = names.split()
        values = [value for name, value in self.given if name in wanted]
        return values[-1] if values else default

    def all(self, names: str) -> list[str]:
        wanted = names.split()
        return [value for name, value in self.given if name in wanted]


def options(
    call: Call,
    short: str = "",
    long: Sequence[str] = (),
    *,
    permute: bool = True,
    code: int = 1,
    hint: bool = True,
) -> Options:
    """Options as GNU getopt_long takes them. Raises Usage with its words."""
    try:
        given, operands = (gnu_getopt if permute else getopt)(list(call.argv[1:]), short, list(long))
    except GetoptError as error:
        name = call.name
        text = str(error)
        if "requires argument" in text:
            what = (
                f"option requires an argument -- '{error.opt}'"
                if len(error.opt) == 1
                else (f"option '--{error.opt}' requires an argument")
            )
        elif "must not have an argument" in text:
            what = f"option '--{error.opt}' doesn't allow an argument"
        elif "not a unique prefix" in text:
            what = f"option '--{error.opt}' is ambiguous"
        elif len(error.opt) == 1:
            what = f"invalid option -- '{error.opt}'"
        else:
            what = f"unrecognized option '--{error.opt}'"
        more = f"\nTry '{name} --help' for more information." if hint else ""
        raise Usage(f"{name}: {what}{more}", code) from None
    return Options(tuple((name.lstrip("-"), value) for name, value in given), tuple(operands))


def missing_operand(call: Call, what: str = "missing operand") -> Usage:
    return Usage(f"{call.name}: {what}\nTry '{call.name} --help' for more information.")


# -- names in messages, as gnulib quotes them in the C locale -----------------------------------------------

_SAFE = re.compile(r"[A-Za-z0-9%+,\-./:=@_\]{}]+\Z")


def quoted(text: str) -> str:
    """quoteaf: always in quotes that a shell takes."""
    return _shell_quoted(text) if text and _needs_shell(text) else f"'{text}'"


def plain(text: str) -> str:
    """quotef: in quotes only if a shell would need them."""
    return text if text and _SAFE.match(text) else quoted(text)


def _needs_shell(text: str) -> bool:
    return "'" in text or any(not c.isprintable() or not c.isascii() for c in text)


def _shell_quoted(text: str) -> str:
    if "'" in text and '"' not in text and all(c.isprintable() and c.isascii() for c in text):
        return f'"{text}"' if not any(c in text for c in "$`\\!") else "'" + text.replace("'", "'\\''") + "'"
    out, escaping = "'", False
    names = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b", "\v": "\\v", "\f": "\\f"}
    for c in text:
        codes = names.get(c) if c in names else None
        if codes is None and not (c.isascii() and c.isprintable()):
            codes = "".join(f"\\{byte:03o}" for byte in c.encode("utf-8", "surrogateescape"))
        if codes is not None:
            out += codes if escaping else "'$'" + codes
            escaping = True
            continue
        if escaping:
            out += "''"
            escaping = False
        out += "'\\''" if c == "'" else c
    return out + "'"
