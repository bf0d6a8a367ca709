"""Replacing stretches of files: in place, with what a removed argument leaves behind tidied up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ddtui.host.unit import layers, yaml_text
from ddtui.host.unit.syntax import decode
from ddtui.host.unit.text import Region, Text, Word
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


def write(tree: Tree, word: Word, value: str) -> Replacement:
    """A whole word becomes another value. Raises UnfitValue."""
    return _replacement(tree, word.place, value)


def write_text(tree: Tree, text: Text, value: str) -> Replacement:
    """A part of a word becomes another value, in the quotes in which it stands. Raises UnfitValue."""
    return _replacement(tree, text.region(), value)


def _replacement(tree: Tree, region: Region | None, value: str) -> Replacement:
    if region is None:
        raise UnfitValue("it is pieced together from several places")
    try:
        new = layers.encode(value, region.quoting)
    except UnfitValue:
        if region.quoting[-1:] != ("yaml:plain",):
            raise
        return _in_quotes(tree, region, layers.encode(value, region.quoting[:-1]))
    return Replacement(region.file, region.start, region.end, new)


def _in_quotes(tree: Tree, region: Region, inner: str) -> Replacement:
    """An unquoted YAML value gets quotes, since what it now holds cannot stand without. Raises UnfitValue."""
    document = yaml_text.load(region.file, decode(tree.read(region.file) or b""))
    scalar = yaml_text.find(document, region.start, region.end) if document is not None else None
    whole = Word(Text(), scalar.raw, ()).place if scalar is not None else None
    if scalar is None or whole is None:
        raise UnfitValue("it stands in an unquoted YAML value")
    changed = in_value(scalar.text, [Replacement(region.file, region.start, region.end, inner)])
    return Replacement(whole.file, whole.start, whole.end, layers.encode(changed, ("yaml:quoted",)))


def append(tree: Tree, tail: Word, values: Sequence[str], *, inside: bool = False) -> Replacement:
    """More words after a word, as words are kept apart there. Raises UnfitValue.

    `inside`: after a word of a variable's value, in that value; else after the variable's name.
    """
    place = tail.place if inside else tail.standing
    if place is None:
        raise UnfitValue("the end of the command stands in no file")
    end = replace(place, start=place.end)
    if tail.style == "blank":
        try:
            written = "".join(f" {layers.encode(value, place.quoting)}" for value in values)
        except UnfitValue:
            if place.quoting[-1:] != ("yaml:plain",):
                raise
            inner = "".join(f" {layers.encode(value, place.quoting[:-1])}" for value in values)
            return _in_quotes(tree, end, inner)
        return Replacement(end.file, end.start, end.end, written)
    items = [layers.encode(value, place.quoting) for value in values]
    if tail.style == "flow":
        return Replacement(end.file, end.start, end.end, "".join(f", {one}" for one in items))
    content = decode(tree.read(place.file) or b"")
    line_start = content.rfind("\n", 0, place.start) + 1
    lead = re.match(r"[ \t]*", content[line_start:])
    indent = lead[0] if lead else ""
    return Replacement(end.file, end.start, end.end, "".join(f"\n{indent}- {one}" for one in items))


def remove(tree: Tree, words: Sequence[tuple[Region, str]]) -> list[Replacement]:
    """Words, given by place and style, go, with the blanks, commas and line ends that kept them apart."""
    stretches: list[list[int]] = []
    files: list[tuple[str, str]] = []
    for place, style in words:
        content = decode(tree.read(place.file) or b"")
        same = bool(files) and files[-1] == (place.file, style)
        between = content[stretches[-1][1] : place.start] if same else ""
        if same and re.fullmatch(r"(?:[ \t,]|\\?\r?\n|- )*", between):
            stretches[-1][1] = max(stretches[-1][1], place.end)
        else:
            stretches.append([place.start, place.end])
            files.append((place.file, style))
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
            before_it = re.search(r"[ \t]*\\\r?\n\Z", content[:line_start])
            if before_it:  # the last of several lines: the one before ends now
                return before_it.start(), end
            return line_start, min(line_end + 1, len(content))
    follow = re.compile(r"[ \t]+").match(content, end)
    if follow:
        return start, follow.end()
    lead = re.search(r"[ \t]+\Z", before)
    return (start - len(lead[0]) if lead else start), end
