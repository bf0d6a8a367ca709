"""Command lines in Exec settings: prefixes, words, specifiers, several commands in one line.

After config_parse_exec() in systemd's load-fragment.c (v252; `|` came with v258).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ddtui.host.unit import specifiers, words
from ddtui.host.unit.syntax import Assignment
from ddtui.host.unit.text import Text, Word

_PREFIXES = "-@:+!|"


@dataclass(frozen=True, slots=True)
class Command:
    """One command of an Exec setting. Specifiers are replaced, variables not yet."""

    assignment: Assignment
    prefixes: str
    path: str
    argv: tuple[Word, ...]  # argv[0] included
    end: int  # where in the assignment's value the command ends: for what is appended

    @property
    def expands(self) -> bool:
        """Whether `$` is looked at."""
        return ":" not in self.prefixes

    @property
    def layers(self) -> tuple[str, ...]:
        """What a new argument passes before systemd's quoting."""
        return ("variables", "specifiers") if self.expands else ("specifiers",)

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(word.value for word in self.argv)


def parse(setting: Assignment, table: Mapping[str, str | None]) -> tuple[list[Command], list[str], list[str]]:
    """The commands of one assignment, warnings, and why systemd refuses the unit for it."""
    commands: list[Command] = []
    warnings: list[str] = []
    where = f"{setting.file}:{setting.line}"
    at = 0
    while True:
        try:
            first, at, unknown = _next(setting.value, at, ("specifiers",))
        except words.WordError as error:
            warnings.append(f"{where}: {error}; systemd ignores this {setting.key}=")
            return commands, warnings, []
        if first is None:
            return commands, warnings, []
        warnings += _escape_warning(setting, first, unknown)
        prefixes = _prefixes(first.text.value)
        try:
            path, missing = specifiers.expand(first.text[len(prefixes) :], table)
        except specifiers.SpecifierError as error:
            if "-" in prefixes:
                return commands, [*warnings, f"{where}: {error}; systemd ignores the command"], []
            return commands, warnings, [f"{where}: {error}"]
        warnings += [f"{where}: what {one} stands for is not known here" for one in missing]
        if (problem := _bad_path(path.value)) is not None:
            if "-" in prefixes:
                return commands, [*warnings, f"{where}: {problem}; systemd ignores it"], []
            return commands, warnings, [f"{where}: {problem}"]
        layers = ("specifiers",) if ":" in prefixes else ("variables", "specifiers")
        argv = [] if "@" in prefixes else [Word(path.within(*layers[:-1]), first.raw, (*layers, "sd:bare"))]
        more = False
        end = at
        while at < len(setting.value):
            rest = setting.value.value[at:]
            if rest[0] == ";" and (len(rest) == 1 or rest[1] in words.BLANKS):
                at += len(rest) - len(rest[1:].lstrip(words.BLANKS))
                more = True
                break
            if rest.startswith("\\;") and (len(rest) == 2 or rest[2] in words.BLANKS):
                both = setting.value[at : at + 2]
                argv.append(Word(both.becomes(";").within(*layers, "sd:bare"), both, (*layers, "sd:bare")))
                at += len(rest) - len(rest[2:].lstrip(words.BLANKS))
                end = at
                continue
            try:
                word, at, unknown = _next(setting.value, at, layers)
            except words.WordError as error:
                line = setting.line_at(setting.value[error.at : error.at + 1])
                problem = f"{setting.file}:{line}: {error}"
                if "-" in prefixes:
                    return commands, [*warnings, f"{problem}; systemd ignores the command"], []
                return commands, warnings, [problem]
            if word is None:
                break
            warnings += _escape_warning(setting, word, unknown)
            try:
                text, missing = specifiers.expand(word.text, table)
            except specifiers.SpecifierError as error:
                problem = f"{setting.file}:{setting.line_at(word.raw)}: {error}"
                if "-" in prefixes:
                    return commands, [*warnings, f"{problem}; systemd ignores the command"], []
                return commands, warnings, [problem]
            warnings += [f"{where}: what {one} stands for is not known here" for one in missing]
            argv.append(Word(text, word.raw, word.bare))
            end = at
        if not argv:
            return commands, warnings, [f"{where}: after @ the word that becomes argv[0] is missing"]
        commands.append(Command(setting, prefixes, path.value, tuple(argv), end))
        if not more:
            return commands, warnings, []


def _next(text: Text, at: int, layers: tuple[str, ...]) -> tuple[Word | None, int, bool]:
    try:
        word, after = words.first_word(text, at, layers=layers)
        return word, after, False
    except words.WordError:
        word, after = words.first_word(text, at, layers=layers, relaxed=True)
        return word, after, True


def _escape_warning(setting: Assignment, word: Word, unknown: bool) -> list[str]:
    if not unknown:
        return []
    line = setting.line_at(word.raw)
    return [f"{setting.file}:{line}: unknown escape sequence in {word.raw.value}, taken as it stands"]


def _prefixes(value: str) -> str:
    """The prefix characters before the path."""
    at = 0
    while (
        at < len(value)
        and value[at] in _PREFIXES
        and (value[at] not in value[:at] or value[:at].endswith("!"))
    ):
        at += 1
    return value[:at]


def _bad_path(path: str) -> str | None:
    if not path:
        return "a command line without a command"
    if any(c < " " or c == "\x7f" for c in path) or any(c in path for c in "\"'\\"):
        return f"the program's name {path!r} holds special characters"
    if path.endswith("/"):
        return f"{path} is a folder, not a program"
    if "/" in path and not path.startswith("/"):
        return f"{path} is neither an absolute path nor the bare name of a program"
    return None
