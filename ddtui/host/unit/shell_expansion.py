"""How a shell makes arguments of its words: parameters, substitutions, splitting, patterns."""

from __future__ import annotations

import ast
import fnmatch
import itertools
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ddtui.host.unit import shell_output
from ddtui.host.unit.shell_tree import (
    Arithmetic,
    Literal,
    Opaque,
    Parameter,
    Part,
    ShellWord,
    Substitution,
)
from ddtui.host.unit.text import Text, Word, spaced

if TYPE_CHECKING:
    from ddtui.host.unit.shell import Shell


@dataclass(frozen=True, slots=True)
class Fields:
    """Arguments that are not split any further: what `${NAME:-word "two words"}` gives."""

    words: tuple[Word, ...]


Value = Text | list[Word] | Fields
_BLANKS = " \t\n"
_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)\Z")
_MOST_WORDS = 1000  # that braces make of one word; what a script would get beyond is left out


@dataclass(slots=True)
class _Field:
    """One argument in the making."""

    pieces: list[Text] = field(default_factory=list)
    elements: list[Word | None] = field(default_factory=list)
    begun: bool = False

    def add(self, text: Text, element: Word | None = None) -> None:
        self.pieces.append(text)
        self.elements.append(element)
        self.begun = True


def fields(shell: Shell, word: ShellWord) -> list[Word]:
    """The arguments that a word gives: none, one or many."""
    return [made for one in _brace_words(word) for made in _fields(shell, one)]


def _fields(shell: Shell, word: ShellWord, *, blanks: bool = False) -> list[Word]:
    """`blanks`: the word may hold unquoted blanks, which part it: the word of `${NAME:-word}`."""
    result: list[Word] = []
    current = _Field()

    def flush() -> None:
        nonlocal current
        if current.begun:
            element = current.elements[0] if len(current.elements) == 1 else None
            result.append(element or Word(Text.join(current.pieces), word.raw, ("sh:bare",)))
        current = _Field()

    for number, part in enumerate(word.parts):
        if isinstance(part, Literal):
            if blanks and not part.quoted:
                _split(part.text, current, flush, lambda: current, None)
            elif part.quoted or part.text:
                current.add(_tilde(shell, part.text) if number == 0 and not part.quoted else part.text)
            continue
        value = _value(shell, part)
        quoted = getattr(part, "quoted", False)
        if quoted and isinstance(part, Parameter) and "*" in (part.name, part.index):
            value = _joined(value)
        if isinstance(value, Text):
            if quoted:
                current.add(value)
            else:
                _split(value, current, flush, lambda: current, None)
            continue
        whole = quoted or isinstance(value, Fields)
        for i, element in enumerate(value.words if isinstance(value, Fields) else value):
            if i:
                flush()
            if whole:
                current.add(element.text, element)
            else:
                _split(element.text, current, flush, lambda: current, element)
    flush()
    return result


def _split(
    value: Text,
    current: _Field,
    flush: Callable[[], None],
    now: Callable[[], _Field],
    element: Word | None,
) -> None:
    """Add an unquoted value, split at blanks."""
    if not value:
        return
    if not value.known:
        current.add(value, element)
        return
    pieces = value.split()
    if element is not None and len(pieces) == 1 and len(pieces[0]) == len(value):
        current.add(value, element)
        return
    if value.value[0] in _BLANKS:
        flush()
    for i, piece in enumerate(pieces):
        if i:
            flush()
        now().add(piece, Word(piece, piece, ("sh:fields",)))
    if value.value[-1] in _BLANKS:
        flush()


def text(shell: Shell, word: ShellWord) -> Text:
    """The word as one text, unsplit: what an assignment takes."""
    pieces: list[Text] = []
    for number, part in enumerate(word.parts):
        if isinstance(part, Literal):
            pieces.append(_tilde(shell, part.text) if number == 0 and not part.quoted else part.text)
            continue
        pieces.append(_joined(_value(shell, part)))
    return Text.join(pieces)


def _joined(value: Value) -> Text:
    """Several arguments as one text, with blanks between them."""
    if isinstance(value, Text):
        return value
    return spaced(value.words if isinstance(value, Fields) else value)


def _value(shell: Shell, part: Part) -> Value:
    match part:
        case Parameter():
            value = _parameter(shell, part)
            return value.through(part.raw) if isinstance(value, Text) else value
        case Substitution(raw=raw, body=body):
            output = shell_output.substitute(shell, body)
            return raw.as_unknown() if output is None else output
        case Arithmetic(raw=raw, expression=expression):
            number = arithmetic(shell, expression.value)
            return raw.as_unknown() if number is None else Text(str(number))
        case Opaque(raw=raw):
            return raw.as_unknown()
        case Literal(text=literal):
            return literal


# -- parameters ------------------------------------------------------------------------------------------
def _parameter(shell: Shell, part: Parameter) -> Value:
    name = part.name
    if part.indirect:
        held = shell.variables.get(name)
        if isinstance(held, Text) and held.value.isidentifier():
            return _parameter(shell, replace(part, name=held.value, indirect=False))
        return part.raw.as_unknown()
    value = lookup(shell, name, part.index)
    if part.length:
        if value is None:
            return Text("0")
        return Text(str(len(value)))
    kind = part.operator.removeprefix(":") if part.operator != ":" else ":"
    if kind in ("-", "=", "?", "+"):
        empty = not value if part.operator.startswith(":") else value is None
        if isinstance(value, Text) and not value.known:
            empty = False
        if kind == "+":
            return Text() if empty else _argument(shell, part)
        if not empty and value is not None:
            return value
        if kind == "?":
            return part.raw.as_unknown()
        default = _argument(shell, part)
        if value is None and name.isidentifier():
            default = _as_default(default, name)
        if kind == "=":
            shell.set(name, _joined(default))
            return _joined(default)
        return default
    if value is None:
        value = Text()
    if not part.operator:
        return value
    if isinstance(value, list):
        return [Word(_modified(shell, part, w.text), w.raw, w.bare) for w in value]
    return _modified(shell, part, value)


def _as_default(value: Value, name: str) -> Value:
    if isinstance(value, Text):
        return value.as_default_of(name)
    words = value.words if isinstance(value, Fields) else value
    made = tuple(Word(w.text.as_default_of(name), w.raw, w.bare) for w in words)
    return Fields(made)


def _argument(shell: Shell, part: Parameter) -> Value:
    if part.argument is None:
        return Text()
    if part.quoted:
        return text(shell, part.argument)
    return Fields(tuple(_fields(shell, part.argument, blanks=True)))


def lookup(shell: Shell, name: str, index: str | None = None) -> Text | list[Word] | None:
    """The value of a parameter; None: not set."""
    if name in ("@", "*"):
        return list(shell.positional)
    if name == "#":
        return Text(str(len(shell.positional)))
    if name == "?":
        return Text("0")
    if name == "-":
        return Text("")
    if name == "0":
        return Text(shell.name)
    if name in ("$", "!"):
        return Text.unknown("$" + name)
    if name.isdigit():
        at = int(name) - 1
        return shell.positional[at].text if at < len(shell.positional) else None
    if name == "BASH_SOURCE":
        return Text(shell.name)
    if name == "PWD" and name not in shell.own:
        return Text(shell.cwd)
    if name in _SET_BY_BASH and name not in shell.variables:
        return Text.unknown("$" + name)
    value = shell.variables.get(name)
    if isinstance(value, list):
        if index in ("@", "*"):
            return list(value)
        at = int(index) if index and re.fullmatch(r"-?\d+", index) else 0
        return value[at].text if -len(value) <= at < len(value) else None
    if value is not None and index in ("@", "*"):
        return [Word(value, value, ("sh:fields",))]
    return value


_SET_BY_BASH = frozenset(
    {"RANDOM", "SECONDS", "UID", "EUID", "PPID", "HOSTNAME", "BASHPID", "OLDPWD", "LINENO"}
)


def _modified(shell: Shell, part: Parameter, value: Text) -> Text:
    kind, argument = part.operator, part.argument or ShellWord((), Text())
    if not value.known:
        return value
    if kind in ("#", "##", "%", "%%"):
        return _trimmed(value, kind, pattern(shell, argument))
    if kind in ("/", "//"):
        return _replaced(shell, value, kind, argument)
    if kind == ":":
        return _slice(shell, value, argument) or part.raw.as_unknown()
    if kind in ("^^", ",,", "^", ","):
        changed = value.value.upper() if kind[0] == "^" else value.value.lower()
        if len(kind) == 1:
            changed = changed[:1] + value.value[1:]
        return Text(changed, value.marks) if len(changed) == len(value) else Text(changed)
    return part.raw.as_unknown()


def _trimmed(value: Text, kind: str, cut: re.Pattern[str]) -> Text:
    length = len(value)
    sizes = range(length + 1) if len(kind) == 1 else range(length, -1, -1)
    for size in sizes:
        if kind[0] == "#" and cut.fullmatch(value.value[:size]):
            return value[size:]
        if kind[0] == "%" and cut.fullmatch(value.value[length - size :]):
            return value[: length - size]
    return value


def _replaced(shell: Shell, value: Text, kind: str, argument: ShellWord) -> Text:
    whole = text(shell, argument)
    old, _, new = whole.value.partition("/")
    anchored = {"#": r"\A", "%": r"\Z"}.get(old[:1], "")
    wanted = fnmatch.translate(old[1:] if anchored else old)[4:-3] if old else "(?!)"
    found = re.compile(wanted + anchored if anchored == r"\Z" else anchored + wanted, re.DOTALL)
    pieces: list[Text] = []
    at = 0
    for match in found.finditer(value.value):
        if match.start() == match.end():
            continue
        pieces += [value[at : match.start()], whole[len(old) + 1 :] if new else Text()]
        at = match.end()
        if kind == "/":
            break
    return Text.join([*pieces, value[at:]])


def _slice(shell: Shell, value: Text, argument: ShellWord) -> Text | None:
    start_text, _, size_text = text(shell, argument).value.partition(":")
    start = arithmetic(shell, start_text or "0")
    size = arithmetic(shell, size_text) if size_text else len(value)
    if start is None or size is None:
        return None
    start = max(0, start + len(value)) if start < 0 else start
    return value[start : start + size if size >= 0 else size]


def _tilde(shell: Shell, literal: Text) -> Text:
    if literal.value == "~" or literal.value.startswith("~/"):
        home = shell.variables.get("HOME")
        return (home if isinstance(home, Text) else literal[:1].as_unknown()) + literal[1:]
    return literal


def _brace_words(word: ShellWord) -> list[ShellWord]:
    """`{a,b}` and `{1..3}` outside quotes make several words."""
    if "{" not in word.raw.value:
        return [word]
    items: list[Part] = []
    for part in word.parts:
        if isinstance(part, Literal) and not part.quoted:
            items += [Literal(c, False) for c in part.text]
        else:
            items.append(part)
    made = _braced(items)
    return [ShellWord(_together(one), word.raw) for one in made] if len(made) != 1 else [word]


def _braced(items: list[Part]) -> list[list[Part]]:
    for start, item in enumerate(items):
        if _char(item) != "{":
            continue
        depth, commas = 0, []
        for at in range(start, len(items)):
            depth += {"{": 1, "}": -1}.get(_char(items[at]), 0)
            if depth == 1 and _char(items[at]) == ",":
                commas.append(at)
            if depth == 0:
                choices = _choices(items[start + 1 : at], [c - start - 1 for c in commas])
                if choices:
                    rest = _braced(items[at + 1 :])
                    inner = (one for choice in choices for one in _braced(choice))
                    made = ([*items[:start], *one, *tail] for one in inner for tail in rest)
                    return list(itertools.islice(made, _MOST_WORDS))
                break
    return [items]


def _char(part: Part) -> str:
    return part.text.value if isinstance(part, Literal) and not part.quoted else ""


def _choices(inner: list[Part], commas: list[int]) -> list[list[Part]]:
    if commas:
        edges = [-1, *commas, len(inner)]
        return [inner[a + 1 : b] for a, b in itertools.pairwise(edges)]
    found = _RANGE.match("".join(map(_char, inner)))
    if not found:
        return []
    first, last = int(found[1]), int(found[2])
    step = 1 if last >= first else -1
    return [[Literal(Text(str(n)), False)] for n in range(first, last + step, step)[:_MOST_WORDS]]


def _together(items: list[Part]) -> tuple[Part, ...]:
    """Single characters put together again."""
    made: list[Part] = []
    for item in items:
        last = made[-1] if made else None
        if isinstance(item, Literal) and not item.quoted and isinstance(last, Literal) and not last.quoted:
            made[-1] = Literal(last.text + item.text, False)
        else:
            made.append(item)
    return tuple(made)


# -- patterns and numbers --------------------------------------------------------------------------------
def pattern(shell: Shell, word: ShellWord) -> re.Pattern[str]:
    """A word as a glob pattern: what was quoted in it is literal."""
    made = ""
    for part in word.parts:
        value = _value(shell, part)
        plain = _joined(value).value
        made += re.escape(plain) if getattr(part, "quoted", False) else fnmatch.translate(plain)[4:-3]
    return re.compile(made, re.DOTALL)


_OPERATORS: dict[type, Callable[[int, int], int | bool]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: lambda a, b: int(a / b),
    ast.Mod: lambda a, b: a - b * int(a / b),
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def arithmetic(shell: Shell, expression: str) -> int | None:
    """An arithmetic expression over known whole numbers; None: not known."""

    def name(found: re.Match[str]) -> str:
        value = lookup(shell, found[1] or found[2] or found[3])
        return value.value if isinstance(value, Text) and re.fullmatch(r"-?\d+", value.value) else "?"

    plain = re.sub(r"\$\{(\w+)\}|\$(\w+)|([A-Za-z_]\w*)", name, expression)
    plain = plain.replace("&&", " and ").replace("||", " or ").replace("/", "//")
    plain = re.sub(r"!(?!=)", " not ", plain)
    try:
        return _number(ast.parse(plain.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, RecursionError):
        return None


def _number(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return int(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return int(not _number(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return int(_OPERATORS[type(op)](_number(left), _number(right)))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
            return int(_OPERATORS[type(op)](_number(left), _number(right)))
        case ast.BoolOp(op=ast.And(), values=values):
            return int(all(_number(v) for v in values))
        case ast.BoolOp(values=values):
            return int(any(_number(v) for v in values))
        case ast.IfExp(test=test, body=body, orelse=otherwise):
            return _number(body if _number(test) else otherwise)
    raise ValueError("not a number")
