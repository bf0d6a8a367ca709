"""The flags that one installed SGLang accepts, and how its parser reads a command line.

A `FlagTable` is made from what the probe read in the source on the host; nothing about flags is assumed from a
version number. `resolve` and `validate` follow argparse: unique prefixes, `--flag=value`, repeated flags (the
last wins), aliases, deprecated names, switches, flags with several values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Value = str | bool | tuple[str, ...]  # as written: text, a switch, or several values


@dataclass(frozen=True, slots=True)
class Flag:
    """One argument of SGLang's parser."""

    names: tuple[str, ...]  # every spelling, the canonical one first
    dest: str  # the field in ServerArgs and in /server_info
    type: str = (
        "str"  # str, int, float, json, json_list, human_int, nullable_str, bool, or the parser's own name
    )
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
    occurrences: tuple[Occurrence, ...]
    problems: tuple[str, ...] = ()  # what the parser would refuse, each in a sentence

    def get(self, flag: str) -> Value | None:
        """The value of a flag by its canonical name; None: not given."""
        return self.values.get(flag)

    def text(self, flag: str) -> str | None:
        """The value as text for display; None: not given."""
        raise NotImplementedError

    def integer(self, flag: str) -> int | None:
        """The value as a whole number; None: not given, or not one."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class FlagTable:
    """All flags of one installed SGLang. Empty: the installation could not be read; then nothing is refused."""

    flags: tuple[Flag, ...] = ()
    program: str = "sglang serve"
    _by_name: Mapping[str, Flag] = field(init=False, repr=False, compare=False, default_factory=dict)

    def find(self, name: str) -> Flag | None:
        """The flag that SGLang takes `name` for: exact, or a unique prefix. None: unknown or ambiguous."""
        raise NotImplementedError

    def has(self, name: str) -> bool:
        """Whether that exact spelling is accepted."""
        raise NotImplementedError

    def canonical(self, name: str) -> str:
        """The canonical name of a spelling (aliases, deprecated names, prefixes); itself when unknown."""
        raise NotImplementedError

    def equivalent(self, a: str, b: str) -> bool:
        """Whether two spellings set the same thing in this SGLang."""
        raise NotImplementedError

    @property
    def window_flag(self) -> str | None:
        """The name to write for the draft window: it changed at 0.5.12. None: this SGLang has none."""
        raise NotImplementedError

    def resolve(self, argv: Sequence[str]) -> ResolvedFlags:
        """Read a command line. `argv` may begin with the program (`python -m sglang.launch_server …`)."""
        raise NotImplementedError

    def validate(self, argv: Sequence[str]) -> list[str]:
        """What SGLang's parser would refuse, in its own words; empty: it would accept."""
        raise NotImplementedError


def engine_arguments(argv: Sequence[str]) -> tuple[int, ...]:
    """Where SGLang's own arguments begin in a whole command line."""
    raise NotImplementedError
