"""Text that remembers, for every character, where in which file it came from and how it was quoted there.

Each reader (systemd's words, a shell, YAML) takes such text and gives such text, so that a server's
argument at the end of the chain still leads to the exact bytes behind it, and to the layers of quoting that
a new value must pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import overload


@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of a file that can be replaced, and the layers that the new text must pass."""

    file: str
    start: int
    end: int
    quoting: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """Where one character comes from: characters [start, end) of a file."""

    file: str
    start: int
    end: int
    quoting: tuple[str, ...] = ()  # layers that a character written at this place passes, innermost first
    default_of: str | None = None  # it is what ${NAME:-…} gives while NAME is not set
    unknown: bool = False  # not the real text: what only running it would tell
    via: Region | None = None  # where the variable is named whose value it is part of


class Text:
    """A string with a mark for each character. None: the character stands in no file."""

    __slots__ = ("marks", "value")

    def __init__(self, value: str = "", marks: Iterable[Mark | None] | None = None) -> None:
        self.value = value
        self.marks: tuple[Mark | None, ...] = tuple(marks) if marks is not None else (None,) * len(value)
        assert len(self.marks) == len(self.value)

    @classmethod
    def of_file(cls, file: str, content: str, start: int = 0, end: int | None = None) -> Text:
        """A stretch of a file's own text."""
        end = len(content) if end is None else end
        return cls(content[start:end], [Mark(file, i, i + 1) for i in range(start, end)])

    @classmethod
    def join(cls, texts: Iterable[Text]) -> Text:
        texts = list(texts)
        return cls("".join(t.value for t in texts), [m for t in texts for m in t.marks])

    def __len__(self) -> int:
        return len(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return f"Text({self.value!r})"

    def __add__(self, other: Text) -> Text:
        return Text(self.value + other.value, self.marks + other.marks)

    @overload
    def __getitem__(self, at: int) -> Text: ...
    @overload
    def __getitem__(self, at: slice) -> Text: ...
    def __getitem__(self, at: int | slice) -> Text:
        at = slice(at, at + 1 or None) if isinstance(at, int) else at
        return Text(self.value[at], self.marks[at])

    def __iter__(self) -> Iterator[Text]:
        return (Text(c, (m,)) for c, m in zip(self.value, self.marks, strict=True))

    @classmethod
    def unknown(cls, shown: str) -> Text:
        """A stand-in for text that is set somewhere else and not known here."""
        return cls(shown, [Mark("", 0, 0, unknown=True)] * len(shown))

    @property
    def known(self) -> bool:
        return not any(m is not None and m.unknown for m in self.marks)

    def within(self, *layers: str) -> Text:
        """The same, where a character written there also passes these layers first."""
        return self.mapped(lambda m: replace(m, quoting=layers + m.quoting))

    def through(self, reference: Text, *layers: str) -> Text:
        """The same, as the value of the variable that is named by `reference`."""
        first = reference.marks[0] if reference.marks else None
        last = reference.marks[-1] if reference.marks else None
        if first is None or last is None or not first.file:
            return self
        region = Region(first.file, first.start, last.end, layers + first.quoting)
        return self.mapped(lambda m: replace(m, via=region))

    def as_default_of(self, name: str) -> Text:
        """The same, as what `${name:-…}` gives."""
        return self.mapped(lambda m: replace(m, default_of=m.default_of or name))

    def as_unknown(self) -> Text:
        """The same, as a stand-in for what only running it would tell."""
        return self.mapped(lambda m: replace(m, unknown=True)) if any(self.marks) else self

    def mapped(self, change: Callable[[Mark], Mark]) -> Text:
        changed: dict[Mark | None, Mark | None] = {m: m and change(m) for m in set(self.marks)}
        return Text(self.value, map(changed.__getitem__, self.marks))

    def becomes(self, value: str) -> Text:
        """Another value with this text's origin: what an escape or a specifier stands for."""
        first = self.marks[0] if self.marks else None
        last = self.marks[-1] if self.marks else None
        if first is None or last is None or first.file != last.file:
            return Text(value)
        return Text(value, [replace(first, end=last.end)] * len(value))

    def region(self) -> Region | None:
        """The one stretch of one file that this text is; None: it is pieced together, or empty."""
        if not self.marks or self.marks[0] is None or not self.marks[0].file:
            return None
        first = last = self.marks[0]
        for mark in self.marks[1:]:
            if mark is None or mark.file != first.file or mark.quoting != first.quoting:
                return None
            if mark.start != last.end and (mark.start, mark.end) != (last.start, last.end):
                return None
            last = mark
        return Region(first.file, first.start, last.end, first.quoting)

    def split(self) -> list[Text]:
        """Pieces between blanks."""
        pieces, start = [], None
        for i, c in enumerate(self.value + " "):
            if c in " \t\n":
                if start is not None:
                    pieces.append(self[start:i])
                start = None
            elif start is None:
                start = i
        return pieces

    def strip(self) -> Text:
        start = len(self.value) - len(self.value.lstrip(" \t\n\r"))
        return self[start : max(start, len(self.value.rstrip(" \t\n\r")))]


@dataclass(frozen=True, slots=True)
class Word:
    """One argument: what the program gets, and how it stands in its source.

    `raw` is its whole stretch there, quotes and all, and its marks carry the outer quoting only; `bare` are
    the layers that a word written in its place passes before those. `style` is how words are kept apart
    there.
    """

    text: Text
    raw: Text
    bare: tuple[str, ...]
    style: str = "blank"  # blank; flow or block: items of a YAML list

    @property
    def value(self) -> str:
        """The argument as text; escaped bytes that form UTF-8 are put together."""
        value = self.text.value
        if value.isascii():
            return value
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")

    @property
    def place(self) -> Region | None:
        """The whole word's stretch, with the layers that a word written in its place passes."""
        return self._stretch([(m.file, m.start, m.end, m.quoting) for m in self.raw.marks if m is not None])

    @property
    def standing(self) -> Region | None:
        """The same, where a value of a variable stands as the variable's name does."""
        via = [m.via or Region(m.file, m.start, m.end, m.quoting) for m in self.raw.marks if m is not None]
        return self._stretch([(r.file, r.start, r.end, r.quoting) for r in via])

    def _stretch(self, places: list[tuple[str, int, int, tuple[str, ...]]]) -> Region | None:
        if not places or len(places) != len(self.raw) or not places[0][0]:
            return None
        file, start, end, quoting = places[0]
        for other in places[1:]:
            if (other[0], other[3]) != (file, quoting) or other[1] < start:
                return None
            end = max(end, other[2])
        return Region(file, start, end, self.bare + quoting)


def spaced(words: Sequence[Word]) -> Text:
    """Words as one text, with blanks between them."""
    pieces: list[Text] = []
    for i, word in enumerate(words):
        pieces += [Text(" "), word.text] if i else [word.text]
    return Text.join(pieces)
