"""The flags that one installed SGLang accepts, and how its parser reads a command line.

A `FlagTable` is made from what the probe read in the source on the host; nothing about flags is assumed from
a version number. `resolve` and `validate` follow argparse: unique prefixes, `--flag=value`, repeated flags
(the last wins), aliases, deprecated names, switches, flags with several values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

Value = str | bool | tuple[str, ...]  # as written: text, a switch, or several values

WINDOW = "--speculative-draft-window-size"
# Names that a flag has had in releases from 0.5.9 on, by their sources; the newest first.
RENAMED: tuple[tuple[str, ...], ...] = (
    (WINDOW, "--speculative-dflash-draft-window-size"),
    ("--speculative-draft-model-path", "--speculative-draft-model"),
    ("--cuda-graph-max-bs-decode", "--cuda-graph-max-bs"),
    ("--cuda-graph-bs-decode", "--cuda-graph-bs"),
    ("--incremental-streaming-output", "--stream-output"),
    ("--tensor-parallel-size", "--tp-size"),
    ("--data-parallel-size", "--dp-size"),
    ("--pipeline-parallel-size", "--pp-size"),
)


@dataclass(frozen=True, slots=True)
class Flag:
    """One argument of SGLang's parser."""

    names: tuple[str, ...]  # every spelling, the canonical one first
    dest: str  # the field in ServerArgs and in /server_info
    type: str = "str"  # str, int, float, json, json_list, human_int, or the parser's own name
    nargs: str | int | None = None  # None: exactly one value; 0: a switch; "?", "*", "+", or a number
    choices: tuple[str, ...] | None = None  # None: free, or not readable without running SGLang
    default: Any = None
    default_known: bool = False
    required: bool = False
    deprecated: bool = False
    replaced_by: str | None = None  # what SGLang says to use instead
    help: str = ""
    source: str = ""  # file:line of the declaration

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def switch(self) -> bool:
        return self.nargs == 0


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One flag as it stands on a command line."""

    flag: str  # canonical name; the spelling itself if the table does not know it
    spelling: str  # as written, without `=value`
    values: tuple[str, ...]
    start: int  # index of its first token in argv
    end: int  # index after its last token


@dataclass(frozen=True, slots=True)
class ResolvedFlags:
    """A command line as SGLang's parser would read it."""

    values: Mapping[str, Value]  # canonical name -> value; the last occurrence wins
    occurrences: tuple[Occurrence, ...] = ()
    problems: tuple[str, ...] = ()  # what the parser would refuse, in its own words

    def get(self, flag: str) -> Value | None:
        """The value of a flag by its canonical name, or by one it had in another release; None: not given."""
        for name in (flag, *other_names(flag)):
            if name in self.values:
                return self.values[name]
        return None

    def text(self, flag: str) -> str | None:
        """The value as text for display; None: not given."""
        value = self.get(flag)
        if value is None:
            return None
        if isinstance(value, bool):
            return "on" if value else "off"
        return value if isinstance(value, str) else " ".join(value)

    def integer(self, flag: str) -> int | None:
        """The value as a whole number; None: not given, or not one."""
        value = self.get(flag)
        try:
            return int(value) if isinstance(value, str) else None
        except ValueError:
            return None

    def on(self, flag: str) -> bool:
        """Whether a switch is set."""
        return self.get(flag) is True


@dataclass(frozen=True, slots=True)
class FlagTable:
    """All flags of one installed SGLang. Empty: it could not be read; then nothing is refused."""

    flags: tuple[Flag, ...] = ()
    complete: bool = True  # False: some declarations could not be read, so an unknown name is no error
    _spellings: Mapping[str, Flag] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        spellings = {name: flag for flag in self.flags for name in flag.names}
        if self.flags:
            for name in ("-h", "--help"):
                spellings.setdefault(name, _HELP)
        object.__setattr__(self, "_spellings", spellings)

    def __bool__(self) -> bool:
        return bool(self.flags)

    def __iter__(self) -> Iterator[Flag]:
        return iter(self.flags)

    def matches(self, name: str) -> tuple[str, ...]:
        """The spellings that `name` may stand for: itself if exact, else all that begin with it."""
        if name in self._spellings:
            return (name,)
        if not name.startswith("--") or name == "--":
            return ()
        return tuple(spelling for spelling in self._spellings if spelling.startswith(name))

    def find(self, name: str) -> Flag | None:
        """The flag that SGLang takes `name` for: exact, or a unique prefix. None: unknown or ambiguous."""
        matches = self.matches(name)
        return self._spellings[matches[0]] if len(matches) == 1 else None

    def has(self, name: str) -> bool:
        """Whether that exact spelling is accepted."""
        return name in self._spellings

    def canonical(self, name: str) -> str:
        """The canonical name of a spelling (aliases, deprecated names, prefixes); itself when unknown."""
        flag = self.find(name)
        return name if flag is None else self._canonical(flag)

    def _canonical(self, flag: Flag) -> str:
        if flag.deprecated:
            for other in self.flags:  # a deprecated name that hands its value on to the new one
                if other.dest == flag.dest and other.nargs == flag.nargs and not other.deprecated:
                    return other.name
        return flag.name

    def equivalent(self, a: str, b: str) -> bool:
        """Whether two spellings set the same thing in this SGLang."""
        return self.canonical(a) == self.canonical(b)

    def accepted(self, name: str) -> str | None:
        """How this SGLang spells a flag known by `name` here or in another release. None: it has none.

        The empty table accepts every name as it is.
        """
        if not self.flags:
            return name
        for spelling in (name, *other_names(name)):
            if self.has(spelling):
                return self.canonical(spelling)
        return None

    @property
    def window_flag(self) -> str | None:
        """The name to write for the draft window: it changed at 0.5.12. None: this SGLang has none."""
        return self.accepted(WINDOW) if self.flags else None

    def resolve(self, argv: Sequence[str]) -> ResolvedFlags:
        """Read a command line. `argv` may begin with the program (`python -m sglang.launch_server …`)."""
        return _Reader(self, argv).read()

    def validate(self, argv: Sequence[str]) -> list[str]:
        """What SGLang's parser would refuse, in its own words; empty: it would accept."""
        return list(self.resolve(argv).problems)


_HELP = Flag(names=("-h", "--help"), dest="help", nargs=0, help="show this help message and exit")


def other_names(flag: str) -> tuple[str, ...]:
    """What else a flag is or was called in releases from 0.5.9 on."""
    for names in RENAMED:
        if flag in names:
            return tuple(name for name in names if name != flag)
    return ()


def arguments_start(argv: Sequence[str]) -> int:
    """The index in a whole command line at which SGLang's own arguments begin; 0 if it is only arguments.

    Forms: `… -m sglang.launch_server ARGS`, `… /path/sglang/launch_server.py ARGS`, `… sglang serve ARGS`.
    """
    for index, token in enumerate(argv):
        if token == "sglang.launch_server" and index and argv[index - 1] == "-m":
            return index + 1
        if token.endswith("sglang/launch_server.py"):
            return index + 1
        if (
            token == "serve"
            and index
            and PurePosixPath(argv[index - 1]).name in ("sglang", "sglang.cli.main")
        ):
            return index + 1
    return 0


def settings(argv: Sequence[str]) -> dict[str, Value]:
    """Flags of a command line read without a table: `--flag`, `--flag value …`, `--flag=value`."""
    return dict(FlagTable().resolve(argv).values)


_NEGATIVE_NUMBER = re.compile(r"^-\d+$|^-\d*\.\d+$")
_ARGUMENTS = {None: "A", "?": "A?", "*": "A*", "+": "A+"}
_EXPECTED = {
    None: "expected one argument",
    "?": "expected at most one argument",
    "+": "expected at least one argument",
}


class _Reader:
    """Reads one command line as argparse.ArgumentParser.parse_args would."""

    def __init__(self, table: FlagTable, argv: Sequence[str]) -> None:
        self.table = table
        self.argv = list(argv)
        self.start = arguments_start(argv)
        self.serve = self.start > 0 and argv[self.start - 1] == "serve"
        self.values: dict[str, Value] = {}
        self.seen: list[Occurrence] = []
        self.given: set[str] = set()
        self.problems: list[str] = []
        self.unknown: list[str] = []

    def read(self) -> ResolvedFlags:
        pattern = self._pattern()
        index = self.start
        while index < len(self.argv):
            if pattern[index - self.start] != "O":
                if self.argv[index] != "--" or pattern[index - self.start] != "-":
                    self.unknown.append(self.argv[index])
                index += 1
                continue
            index = self._option(index, pattern)
        self._finish()
        return ResolvedFlags(self.values, tuple(self.seen), tuple(self.problems))

    def _pattern(self) -> str:
        """O for an option, A for an argument, - for the first `--`; as argparse sorts them."""
        kinds: list[str] = []
        for token in self.argv[self.start :]:
            if "-" in kinds:
                kinds.append("A")
            elif token == "--":
                kinds.append("-")
            else:
                kinds.append("O" if self._is_option(token) else "A")
        return "".join(kinds)

    def _is_option(self, token: str) -> bool:
        if not token.startswith("-") or token == "-":
            return False
        if not self.table:
            return token.startswith("--")
        if self.table.has(token) or ("=" in token and self.table.has(token.split("=", 1)[0])):
            return True
        if self.table.matches(token.split("=", 1)[0]):
            return True
        return not (_NEGATIVE_NUMBER.match(token) or " " in token)

    def _option(self, index: int, pattern: str) -> int:
        token = self.argv[index]
        spelling, equals, attached = token.partition("=")
        explicit: str | None = attached if equals else None
        following = re.match("A*", pattern[index + 1 - self.start :])
        available = following.end() if following else 0
        if self.serve and spelling == "--model-type":  # sglang serve's own, taken before ServerArgs sees it
            return index + 1 if explicit is not None else min(index + 2, len(self.argv))
        matches = self.table.matches(spelling)
        if len(matches) == 1:
            return self._known(index, matches[0], spelling, explicit, available)
        if not self.table:
            return self._guessed(index, spelling, explicit, available)
        if matches:
            self.problems.append(f"ambiguous option: {token} could match {', '.join(matches)}")
        else:
            self.unknown.append(token)
        return index + 1

    def _known(self, index: int, name: str, spelling: str, explicit: str | None, available: int) -> int:
        flag = self.table._spellings[name]
        shown = "/".join(flag.names)
        end = index + 1
        values: tuple[str, ...] = ()
        if explicit is not None:
            if flag.switch:
                self.problems.append(f"argument {shown}: ignored explicit argument {explicit!r}")
                return end
            if isinstance(flag.nargs, int) and flag.nargs != 1:
                self.problems.append(f"argument {shown}: expected {flag.nargs} arguments")
                return end
            values = (explicit,)
        else:
            taken = _taken(flag.nargs, available)
            if taken is None:
                self.problems.append(f"argument {shown}: {_expected(flag.nargs)}")
                return end
            end += taken
            values = tuple(self.argv[index + 1 : end])
        self.given.add(flag.name)
        self.problems.extend(f"argument {shown}: {refused}" for refused in _refusals(flag, values))
        if flag is _HELP:
            self.problems.append(f"{spelling} only prints the help and ends")
        canonical = self.table._canonical(flag)
        self.values[canonical] = _value(flag, name, values)
        self.seen.append(Occurrence(canonical, spelling, values, index, end))
        return end

    def _guessed(self, index: int, spelling: str, explicit: str | None, available: int) -> int:
        """Without a table: what follows a flag is taken for its values."""
        end = index + 1 + (0 if explicit is not None else available)
        values = (explicit,) if explicit is not None else tuple(self.argv[index + 1 : end])
        self.values[spelling] = values[0] if len(values) == 1 else (values or True)
        self.seen.append(Occurrence(spelling, spelling, values, index, end))
        return end

    def _finish(self) -> None:
        if not self.table:
            return
        if "--config" not in self.values:  # a config file may give them
            missing = [f for f in self.table if f.required and f.name not in self.given]
            if missing:
                names = ", ".join("/".join(flag.names) for flag in missing)
                self.problems.append(f"the following arguments are required: {names}")
        if self.unknown and (self.table.complete or not any(t.startswith("-") for t in self.unknown)):
            self.problems.append("unrecognized arguments: " + " ".join(self.unknown))


def _taken(nargs: str | int | None, available: int) -> int | None:
    """How many of the following arguments an option takes; None: too few."""
    wanted = "A" * nargs if isinstance(nargs, int) else _ARGUMENTS.get(nargs, "A*")
    matched = re.match(wanted, "A" * available)
    return matched.end() if matched else None


def _expected(nargs: str | int | None) -> str:
    if isinstance(nargs, int):
        return f"expected {nargs} argument{'' if nargs == 1 else 's'}"
    return _EXPECTED.get(nargs, "expected one argument")


def _value(flag: Flag, name: str, values: tuple[str, ...]) -> Value:
    if flag.switch:
        return not (name.startswith("--no-") and "--" + name.removeprefix("--no-") in flag.names)
    if flag.nargs in ("*", "+") or (isinstance(flag.nargs, int) and flag.nargs > 1):
        return values
    return values[0] if values else True


def _refusals(flag: Flag, values: tuple[str, ...]) -> list[str]:
    """What argparse says of values of the wrong type or not among the choices; it stops at the first."""
    for text in values:
        convert = _CONVERT.get(flag.type)
        try:
            converted = convert(text) if convert else text
        except _Refused as refused:
            return [str(refused)]
        except (ValueError, ArithmeticError):
            kind = "loads" if flag.type == "json" else flag.type
            return [f"invalid {kind} value: {text!r}"]
        if (
            flag.choices is not None
            and flag.type in ("str", "int", "float")
            and str(converted) not in flag.choices
        ):
            shown = ", ".join(repr(c) if flag.type == "str" else c for c in flag.choices)
            return [f"invalid choice: {converted!r} (choose from {shown})"]
    return []


class _Refused(ValueError):
    """argparse.ArgumentTypeError: its text is the message."""


_SI = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_IEC = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def human_int(text: str) -> int:
    """`1k`, `25.6k`, `1Ki`: sglang.srt.utils.human_readable_int of 0.5.11 and later."""
    text = text.strip()
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)", text)
    if match:
        number, suffix = match.groups()
        if suffix not in _IEC:
            return int(Decimal(number) * _SI[suffix])
        if "." in number:
            raise _Refused(
                f"Decimals are not allowed with IEC suffixes like '{suffix}'. Use an integer IEC value such "
                f"as '{int(Decimal(number))}{suffix}', or an SI value such as '{number}{suffix[0]}'."
            )
        return int(number) * _IEC[suffix]
    try:
        return int(text)
    except ValueError:
        raise _Refused(
            f"Invalid integer value: '{text}'. Use a plain integer, SI suffixes (1k, 1M), or IEC suffixes "
            "(1Ki, 1Mi). Suffixes are case-sensitive."
        ) from None


def _json_list(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise _Refused(f"Invalid JSON list: {text}. Please provide a valid JSON list.") from None


_CONVERT: Mapping[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "json": json.loads,
    "json_list": _json_list,
    "human_int": human_int,
}
