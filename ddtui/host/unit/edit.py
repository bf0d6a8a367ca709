"""Replacing stretches of files: in place, with what a removed argument leaves behind tidied up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ddtui.host.unit import layers
from ddtui.host.unit.syntax import decode
from ddtui.host.unit.text import Text, Word
from ddtui.host.unit.tree import Tree
from ddtui.host.unit.words import UnfitValue


@dataclass(frozen=True, slots=True)
class Replacement:
    """Characters [start, end) of a file become `new`."""

    file: str
    start: int
    end: int
    new: str


def in_text(content: str, changes: Iterable[Replacement]) -> str:
    """The file's text with all replacements made."""
    for one in sorted(changes, key=lambda c: (c.start, c.end), reverse=True):
        content = content[: one.start] + one.new + content[one.end :]
    return content


def in_files(tree: Tree, changes: Sequence[Replacement]) -> Tree:
    """The tree with all replacements made."""
    files: dict[str, bytes | None] = {}
    for path in {c.file for c in changes}:
        content = decode(tree.read(path) or b"")
        changed = in_text(content, [c for c in changes if c.file == path])
        files[path] = changed.encode("utf-8", "surrogateescape")
    return tree.with_files(files)


def in_value(value: Text, changes: Iterable[Replacement]) -> str:
    """A value that is joined of several lines, with the replacements made that fall into it."""

    def index(offset: int) -> int:
        return next((i for i, m in enumerate(value.marks) if m is not None and m.start >= offset), len(value))

    spans = [(index(one.start), index(one.end), one.new) for one in changes]
    text = value.value
    for start, end, new in sorted(spans, key=lambda span: span[:2], reverse=True):
        text = text[:start] + new + text[end:]
    return text


def write(word: Word, value: str) -> Replacement:
    """A whole word becomes another value. Raises UnfitValue."""
    place = word.place
    if place is None or not place.file:
        raise UnfitValue("it is pieced together from several places")
    return Replacement(place.file, place.start, place.end, layers.encode(value, place.quoting))


def write_text(text: Text, value: str) -> Replacement:
    """A part of a word becomes another value, in the quotes in which it stands. Raises UnfitValue."""
    region = text.region()
    if region is None:
        raise UnfitValue("it is pieced together from several places")
    return Replacement(region.file, region.start, region.end, layers.encode(value, region.quoting))


def append(tree: Tree, tail: Word, values: Sequence[str]) -> Replacement:
    """More words after a word, as words are kept apart there. Raises UnfitValue."""
    place = tail.place
    if place is None or not place.file:
        raise UnfitValue("the end of the command stands in no file")
    written = [layers.encode(value, place.quoting) for value in values]
    if tail.style == "flow":
        return Replacement(place.file, place.end, place.end, "".join(f", {one}" for one in written))
    if tail.style == "block":
        content = decode(tree.read(place.file) or b"")
        line_start = content.rfind("\n", 0, place.start) + 1
        lead = re.match(r"[ \t]*", content[line_start:])
        indent = lead[0] if lead else ""
        return Replacement(place.file, place.end, place.end, "".join(f"\n{indent}- {one}" for one in written))
    return Replacement(place.file, place.end, place.end, "".join(f" {one}" for one in written))


def remove(tree: Tree, words: Sequence[Word]) -> list[Replacement]:
    """Words go, with the blanks, commas, dashes and line ends that kept them apart. Raises UnfitValue."""
    stretches: list[list[int]] = []
    files: list[tuple[str, str]] = []
    for word in words:
        place = word.place
        if place is None or not place.file:
            raise UnfitValue("it is pieced together from several places")
        content = decode(tree.read(place.file) or b"")
        same = bool(files) and files[-1] == (place.file, word.style)
        if same and re.fullmatch(r"(?:[ \t,]|\\?\r?\n|- )*", content[stretches[-1][1] : place.start]):
            stretches[-1][1] = place.end
        else:
            stretches.append([place.start, place.end])
            files.append((place.file, word.style))
    made: list[Replacement] = []
    for (start, end), (file, style) in zip(stretches, files, strict=True):
        content = decode(tree.read(file) or b"")
        if style == "flow":
            start, end = _with_comma(content, start, end)
        else:
            start, end = _with_blanks(content, start, end, lines=style in ("block", "entry"))
        made.append(Replacement(file, start, end, ""))
    return made


def _with_comma(content: str, start: int, end: int) -> tuple[int, int]:
    after = re.compile(r"\s*,[ \t]*(?:\r?\n[ \t]*)?").match(content, end)
    if after:
        return start, after.end()
    before = re.search(r",\s*\Z", content[:start])
    return (before.start() if before else start), end


def _with_blanks(content: str, start: int, end: int, *, lines: bool) -> tuple[int, int]:
    """A stretch with the blanks around it; a line of which nothing is left goes whole."""
    line_start = content.rfind("\n", 0, start) + 1
    line_end = content.find("\n", end)
    line_end = len(content) if line_end < 0 else line_end
    before, after = content[line_start:start], content[end:line_end].rstrip("\r")
    if lines and re.fullmatch(r"[ \t]*(- )?", before) and re.fullmatch(r"[ \t]*(#.*)?", after):
        return line_start, min(line_end + 1, len(content))
    if not before.strip():
        if re.fullmatch(r"[ \t]*\\", after):  # the line goes on in the next: that one takes its place
            return line_start, min(line_end + 1, len(content))
        if not after.strip():
            if content[:line_start].endswith("\\\n"):  # the last of several lines: the one before ends now
                cut = len(content[: line_start - 2].rstrip(" \t"))
                return cut, end
            return line_start, min(line_end + 1, len(content))
    follow = re.compile(r"[ \t]+").match(content, end)
    if follow:
        return start, follow.end()
    lead = re.search(r"[ \t]+\Z", before)
    return (start - len(lead[0]) if lead else start), end
