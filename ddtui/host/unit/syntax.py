"""The lines of a unit file, as systemd's config_parse() takes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ddtui.host.unit.text import Mark, Text

BLANKS = " \t\n\r"


@dataclass(frozen=True, slots=True)
class Assignment:
    """`Key=Value` in a section. The value is joined over its lines and stripped."""

    file: str
    line: int
    section: str
    key: str
    value: Text
    content: str = field(default="", repr=False, compare=False)  # of the whole file

    def line_at(self, text: Text) -> int:
        """The line on which a part of the value begins."""
        mark = text.marks[0] if text.marks else None
        return self.line if mark is None else line_of(self.content, mark.start)


@dataclass(frozen=True, slots=True)
class Fault:
    """A line that systemd ignores or refuses."""

    file: str
    line: int
    what: str
    fatal: bool = False  # the rest of the file is not read
    text: Text = field(default_factory=Text)  # the line, where it was ignored as a whole

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


@dataclass(frozen=True, slots=True)
class UnitFile:
    """A parsed file. `content` is its text (bytes that are no UTF-8 as surrogate escapes)."""

    path: str
    content: str
    assignments: tuple[Assignment, ...]
    faults: tuple[Fault, ...]

    @property
    def masked(self) -> bool:
        """Empty, or a link to /dev/null."""
        return not self.content

    def of(self, section: str, key: str) -> list[Assignment]:
        return [a for a in self.assignments if a.section == section and a.key == key]


def decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def line_of(content: str, offset: int) -> int:
    """The number of the line, as editors count, that a character stands on."""
    return content.count("\n", 0, offset) + 1


def parse(path: str, data: bytes) -> UnitFile:
    """Read a unit file. Never fails: what systemd would not take is among the faults."""
    content = decode(data)
    assignments: list[Assignment] = []
    faults: list[Fault] = []
    section: str | None = None
    for text in _logical_lines(path, content):
        stripped = text.strip()
        if not stripped or stripped.value[0] in "#;":
            continue
        first = stripped.marks[0]
        line = line_of(content, first.start if first else 0)

        def fault(what: str, *, fatal: bool = False, at: int = line, of: Text = stripped) -> None:
            faults.append(Fault(path, at, what, fatal, of))

        if any("\udc80" <= c <= "\udcff" for c in stripped.value):
            fault("a byte that is not UTF-8; systemd ignores the line")
            continue
        if stripped.value[0] == "[":
            if not stripped.value.endswith("]"):
                fault(f"invalid section header {stripped.value!r}; systemd reads no further here", fatal=True)
                break
            section = stripped.value[1:-1]
            continue
        equals = stripped.value.find("=")
        if section is None:
            fault("an assignment outside of any section; systemd ignores it")
        elif equals < 0:
            fault("no '=' in this line; systemd ignores it")
        elif equals == 0:
            fault("no key before '='; systemd ignores the line")
        else:
            key, value = stripped[:equals].strip().value, stripped[equals + 1 :].strip()
            assignments.append(Assignment(path, line, section, key, value, content))
    return UnitFile(path, content, tuple(assignments), tuple(faults))


def _logical_lines(path: str, content: str) -> Iterator[Text]:
    """Lines with their continuations. A backslash at the end joins with a blank; comment lines in between are
    skipped even if they end in a backslash; a blank line ends the value."""
    pending: Text | None = None
    for number, (start, end, _) in enumerate(_physical_lines(content)):
        line = content[start:end]
        bare = line.lstrip(BLANKS)
        if bare and bare[0] in "#;":
            continue
        if number == 0 and line.startswith("\ufeff"):
            start += 1
        text = Text.of_file(path, content, start, end)
        if pending is not None:
            text = _joined(pending, start) + text
        backslashes = len(text.value) - len(text.value.rstrip("\\"))
        if backslashes % 2:
            pending = text
            continue
        pending = None
        yield text
    if pending is not None:
        yield _joined(pending, len(content))


def _joined(text: Text, next_start: int) -> Text:
    """A line with its last backslash turned into the blank that stands for the line break."""
    last = text.marks[-1]
    assert last is not None
    return text[:-1] + Text(" ", [Mark(last.file, last.start, next_start)])


def _physical_lines(content: str) -> Iterator[tuple[int, int, int]]:
    """(start, end, start of the next) of each line. CR, LF and NUL end one; CR LF is one end."""
    start = at = 0
    while at < len(content):
        if content[at] not in "\n\r\0":
            at += 1
            continue
        end, seen = at, ""
        while at < len(content) and content[at] in "\n\r\0" and content[at] not in seen:
            seen += content[at]
            at += 1
            if seen[-1] == "\0":
                break
        yield start, end, at
        start = at
    if start < len(content):
        yield start, len(content), len(content)
