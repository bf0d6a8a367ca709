"""The parts of a shell script, each with where it stands."""

from __future__ import annotations

from dataclasses import dataclass, field

from ddtui.host.unit.text import Text


@dataclass(frozen=True, slots=True)
class Literal:
    text: Text
    quoted: bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$NAME` and every `${…}`."""

    raw: Text
    name: str
    quoted: bool
    operator: str = ""  # "-", ":-", "=", "+", "?", "#", "##", "%", "%%", "/", "//", ":", "^^", ",,", "@", …
    argument: ShellWord | None = None
    index: str | None = None  # "@", "*", "0", …
    length: bool = False
    indirect: bool = False


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(…)` and backquotes."""

    raw: Text
    body: tuple[AndOr, ...]
    quoted: bool


@dataclass(frozen=True, slots=True)
class Arithmetic:
    raw: Text
    expression: Text
    quoted: bool


@dataclass(frozen=True, slots=True)
class Opaque:
    """What only running it could tell: `<(…)`, `>(…)`."""

    raw: Text


Part = Literal | Parameter | Substitution | Arithmetic | Opaque


@dataclass(frozen=True, slots=True)
class ShellWord:
    parts: tuple[Part, ...]
    raw: Text

    @property
    def literal(self) -> str | None:
        """The word if it is plain and unquoted: what can be a keyword."""
        plain = all(isinstance(p, Literal) and not p.quoted for p in self.parts)
        return self.raw.value if plain else None


@dataclass(frozen=True, slots=True)
class Assign:
    name: str
    index: str | None
    append: bool
    value: ShellWord | None
    array: tuple[ShellWord, ...] | None


@dataclass(frozen=True, slots=True)
class Redirect:
    descriptor: str
    operator: str
    target: ShellWord | None  # None: a here-document


@dataclass(frozen=True, slots=True)
class Simple:
    assigns: tuple[Assign, ...]
    words: tuple[ShellWord, ...]
    redirects: tuple[Redirect, ...]
    declares: tuple[Assign, ...] = ()  # the NAME=VALUE words of export, local, declare


@dataclass(frozen=True, slots=True)
class Group:
    body: tuple[AndOr, ...]
    subshell: bool


@dataclass(frozen=True, slots=True)
class If:
    branches: tuple[tuple[tuple[AndOr, ...], tuple[AndOr, ...]], ...]
    otherwise: tuple[AndOr, ...]
    raw: Text


@dataclass(frozen=True, slots=True)
class Loop:
    condition: tuple[AndOr, ...] | None  # None: for ((…)), which is entered once
    until: bool
    body: tuple[AndOr, ...]


@dataclass(frozen=True, slots=True)
class For:
    name: str
    words: tuple[ShellWord, ...] | None  # None: "$@"
    body: tuple[AndOr, ...]


@dataclass(frozen=True, slots=True)
class Case:
    word: ShellWord
    items: tuple[tuple[tuple[ShellWord, ...], tuple[AndOr, ...], str], ...]


@dataclass(frozen=True, slots=True)
class Test:
    """`[[ … ]]`: its words, operators among them."""

    words: tuple[ShellWord, ...]
    raw: Text


@dataclass(frozen=True, slots=True)
class ArithmeticCommand:
    expression: Text


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    body: Command


Command = Simple | Group | If | Loop | For | Case | Test | ArithmeticCommand | Function


@dataclass(frozen=True, slots=True)
class Pipeline:
    commands: tuple[Command, ...]
    negated: bool
    redirects: tuple[Redirect, ...] = ()  # of a compound command


@dataclass(frozen=True, slots=True)
class AndOr:
    first: Pipeline
    rest: tuple[tuple[str, Pipeline], ...] = field(default=())
    background: bool = False
