"""The environment that a unit gives its process, and the variables in a command line.

Environment=, EnvironmentFile=, UnsetEnvironment=, and `$NAME` / `${NAME}` as systemd replaces them: after
load-fragment.c, env-file.c and env-util.c (v252; what v254 changed about comments in files is marked).
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ddtui.host.unit import specifiers, words
from ddtui.host.unit.syntax import Assignment, decode, line_of
from ddtui.host.unit.text import Text, Word
from ddtui.host.unit.tree import Tree

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_BLANKS, _NEWLINES = " \t\n\r", "\n\r"


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable, and where its value was set."""

    name: str
    value: Text
    file: str = ""
    line: int = 0
    kind: str = "base"  # base (systemd's own), environment, environment-file, script, compose, wrapper
    word: Word | None = None  # the whole `NAME=value` of an Environment= line
    raw: Text = field(default_factory=Text)  # the value as it stands in its file
    specific: bool = True  # its file belongs to this instance of a template alone

    @property
    def text(self) -> str:
        value = self.value.value
        return (
            value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        )


Environment = dict[str, Variable]


def base(
    scope: str, user: str | None, home: str | None, uid: int | None, folders: Mapping[str, str]
) -> Environment:
    """What systemd sets by itself, as far as it is known."""
    known: dict[str, str | None] = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"}
    if user or scope == "user":
        known |= {"USER": user, "LOGNAME": user, "HOME": home}
    if scope == "user":
        known["XDG_RUNTIME_DIR"] = f"/run/user/{'{UID}' if uid is None else uid}"
    known |= folders
    return {name: Variable(name, Text(value)) for name, value in known.items() if value is not None}


def of_assignment(setting: Assignment, table: Mapping[str, str | None]) -> tuple[list[Variable], list[str]]:
    """The variables of one Environment= line, and what systemd ignores of it."""
    found: list[Variable] = []
    warnings: list[str] = []
    at = 0
    while True:
        try:
            word, at = words.first_word(setting.value, at, layers=("specifiers",))
        except words.WordError as error:
            warnings.append(f"{setting.file}:{setting.line}: {error}; systemd ignores the rest of this line")
            return found, warnings
        if word is None:
            return found, warnings
        where = f"{setting.file}:{setting.line_at(word.raw)}"
        try:
            text, unknown = specifiers.expand(word.text, table)
        except specifiers.SpecifierError as error:
            warnings.append(f"{where}: {error}; systemd ignores the variable")
            continue
        warnings += [f"{where}: what {one} stands for is not known here" for one in unknown]
        name, equals, _ = text.value.partition("=")
        if not equals or not NAME.match(name):
            warnings.append(f"{where}: {_short(name)} is no NAME=value; systemd ignores it")
            continue
        value = text[len(name) + 1 :]
        if any("\ud800" <= c <= "\udfff" for c in Word(value, value, ()).value):
            warnings.append(f"{where}: the value of {name} is not UTF-8; systemd ignores it")
            continue
        found.append(Variable(name, value, setting.file, setting.line_at(word.raw), "environment", word))


def _short(text: str) -> str:
    return repr(text if len(text) < 40 else text[:37] + "…")


def of_file(path: str, data: bytes, *, modern: bool = True) -> tuple[list[Variable], list[str]]:
    """The variables of an environment file, in order, and the names in it that systemd ignores.

    `modern`: since v254 a backslash at the end of a comment does not continue it. Raises ValueError for a
    file that is not UTF-8.
    """
    content = decode(data)
    if any("\udc80" <= c <= "\udcff" for c in content):
        raise ValueError(f"{path} is not UTF-8")
    text = Text.of_file(path, content)
    found: list[Variable] = []
    ignored: list[str] = []
    for key, value, raw in _entries(text, modern):
        first = key.marks[0] if key.marks else None
        line = line_of(content, first.start) if first else 0
        name = key.value.strip(_BLANKS)
        if not NAME.match(name):
            ignored.append(
                f"{path}:{line}: {_short(name)} is no name of a variable; systemd ignores the line"
            )
            continue
        found.append(Variable(name, value, path, line, "environment-file", None, raw))
    return found, ignored


def _entries(text: Text, modern: bool) -> Iterator[tuple[Text, Text, Text]]:
    """(key, value, value as written) by the states of parse_env_file_internal()."""
    content, at = text.value, 0
    while at < len(content):
        if content[at] in _BLANKS:
            at += 1
            continue
        if content[at] in "#;":
            at = _end_of_comment(content, at, modern)
            continue
        start = at
        while at < len(content) and content[at] not in "=" + _NEWLINES:
            at += 1
        if at >= len(content) or content[at] != "=":
            continue
        key = text[start:at]
        value, raw, at = _value(text, at + 1)
        yield key, value, raw


def _end_of_comment(content: str, at: int, modern: bool) -> int:
    while at < len(content) and content[at] not in _NEWLINES:
        at += 2 if content[at] == "\\" and not (modern and content[at + 1 : at + 2] in ("\n", "\r")) else 1
    return at


def _value(text: Text, at: int) -> tuple[Text, Text, int]:
    content = text.value
    pieces: list[Text] = []
    start, state = None, "before"
    keep = end = 0  # how many pieces stay when trailing blanks go; where the value as written ends
    while at < len(content):
        c = content[at]
        if state in ("before", "value"):
            if c in _NEWLINES:
                break
            if start is None and c not in _BLANKS:
                start = at
            if c == "\\":
                if at + 1 < len(content) and content[at + 1] not in _NEWLINES:
                    pieces.append(text[at : at + 2].becomes(content[at + 1]).within("env-file:bare"))
                at += 2
                state, keep, end = "value", len(pieces), min(at, len(content))
            elif state == "before" and c in "'\"":
                state, at = c, at + 1
            elif state == "before" and c in _BLANKS:
                at += 1
            else:
                state = "value"
                pieces.append(text[at].within("env-file:bare"))
                at += 1
                if c not in _BLANKS:
                    keep, end = len(pieces), at
        elif c == state:
            state, at = "before", at + 1
            keep, end = len(pieces), at
        elif state == '"' and c == "\\" and at + 1 < len(content):
            following = content[at + 1]
            if following in '"\\`$':
                pieces.append(text[at : at + 2].becomes(following).within("env-file:double"))
            elif following != "\n":
                pieces.append(text[at : at + 2].within("env-file:double"))
            at += 2
            keep, end = len(pieces), at
        else:
            pieces.append(text[at].within("env-file:double" if state == '"' else "env-file:single"))
            at += 1
            keep, end = len(pieces), at
    start = at if start is None else start
    return Text.join(pieces[:keep]), text[start : max(start, end)], at


def read_files(
    tree: Tree,
    settings: Iterable[tuple[Assignment, str]],
    *,
    modern: bool,
    specific: Callable[[Assignment], bool],
) -> tuple[Environment, list[str], list[str]]:
    """All EnvironmentFile= of a unit: variables, warnings, and why the unit cannot start."""
    found: Environment = {}
    warnings: list[str] = []
    problems: list[str] = []
    for setting, path in settings:
        optional = path.startswith("-")
        path = path.removeprefix("-")
        where = f"{setting.file}:{setting.line}"
        if not path.startswith("/"):
            warnings.append(
                f"{where}: EnvironmentFile= wants an absolute path, not {path!r}; systemd ignores it"
            )
            continue
        paths = _matches(tree, path)
        read = 0
        for one in paths:
            data = tree.read(one)
            if data is None:
                continue
            read += 1
            try:
                variables, ignored = of_file(one, data, modern=modern)
            except ValueError as error:
                (warnings if optional else problems).append(f"{where}: {error}, so systemd does not take it")
                continue
            warnings += ignored
            for variable in variables:
                found.pop(variable.name, None)
                found[variable.name] = Variable(
                    variable.name,
                    variable.value,
                    variable.file,
                    variable.line,
                    variable.kind,
                    None,
                    variable.raw,
                    specific(setting),
                )
        if not read and not optional:
            problems.append(f"{where}: the environment file {path} is not there, so the unit cannot start")
    return found, warnings, problems


def _matches(tree: Tree, path: str) -> list[str]:
    folder, name = posixpath.split(path)
    if not any(c in name for c in "*?["):
        return [path]
    names = [n for n in tree.list(folder) if fnmatch.fnmatchcase(n, name) and (name[0] == "." or n[0] != ".")]
    return [f"{folder}/{n}" for n in sorted(names)]


def unset(environment: Environment, setting: Assignment, table: Mapping[str, str | None]) -> None:
    """Apply one UnsetEnvironment= line: NAME, or NAME=value for exactly that one."""
    split, _ = words.split(setting.value, layers=("specifiers",))
    for word in split:
        try:
            text, _ = specifiers.expand(word.text, table)
        except specifiers.SpecifierError:
            continue
        name, equals, value = text.value.partition("=")
        if name in environment and (not equals or environment[name].value.value == value):
            del environment[name]


@dataclass(frozen=True, slots=True)
class Surprise:
    """A word that does not become what it seems to."""

    word: Word
    what: str
    vanishes: bool  # else it is handed on as written, where a shell may still act on it


def expand_argv(argv: Iterable[Word], environment: Environment) -> tuple[list[Word], list[Surprise]]:
    """The command line with its variables replaced, and what to know about words that do not mean what they
    seem.

    A word that is `$NAME` and nothing else is replaced by the words of its value, and vanishes where it is
    not set; `${NAME}` is replaced within its word; `$$` is `$`; all else stays.
    """
    result: list[Word] = []
    surprises: list[Surprise] = []
    for word in argv:
        value = word.text.value
        if value.startswith("$") and value[1:2] not in ("{", "$"):
            name = value[1:]
            if name in environment:
                result += words.split_variable(environment[name].value.through(word.raw))
            elif not NAME.match(name):
                what = f"systemd runs no shell: the word {value} is taken for a variable and vanishes"
                surprises.append(Surprise(word, what, True))
            continue
        text, literal = _expand(word.text, environment)
        surprises += [Surprise(word, what, False) for what in literal]
        result.append(Word(text, word.raw, word.bare, word.style))
    return result, surprises


_LITERAL = re.compile(r"\$(?:[A-Za-z_]\w*|\(|\{[A-Za-z_]\w*:)")


def _expand(text: Text, environment: Environment) -> tuple[Text, list[str]]:
    value = text.value
    if "$" not in value:
        return text, []
    pieces: list[Text] = []
    warnings: list[str] = []
    at = 0
    while at < len(value):
        if value.startswith("$$", at):
            pieces.append(text[at : at + 2].becomes("$"))
            at += 2
            continue
        if value.startswith("${", at):
            stop = next((i for i in range(at + 2, len(value)) if value[i] in "}:"), None)
            if stop is not None and value[stop] == "}":
                name = value[at + 2 : stop]
                if name in environment:
                    pieces.append(environment[name].value.through(text[at : stop + 1]))
                at = stop + 1
                continue
        found = _LITERAL.match(value, at)
        if found:
            what = value[at:].split()[0]
            warnings.append(f"systemd does not replace {what} there: the program gets it as written")
        if value[at] == "$" and at + 1 < len(value):
            pieces.append(text[at : at + 2])
            at += 2
            continue
        pieces.append(text[at])
        at += 1
    return Text.join(pieces), warnings
