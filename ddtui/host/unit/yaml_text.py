"""YAML whose scalars remember where each of their characters stands in the file.

PyYAML finds the structure; the characters of a scalar are decoded here once more, with their places, and
count only if both agree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import yaml

from ddtui.host.unit.text import Mark, Text, Word

_SIMPLE = {"0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_SIMPLE |= {"e": "\x1b", " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028"}
_SIMPLE |= {"P": "\u2029"}


class YamlError(ValueError):
    """A file that is no YAML. `str()` is one sentence with file and line."""


@dataclass(frozen=True, slots=True)
class Scalar:
    text: Text
    raw: Text  # the whole token, quotes and all
    plain: bool  # unquoted: may be a number, a switch or nothing
    tag: str  # str, bool, int, float, null, …
    flow: bool = False  # inside [ ]

    def word(self, text: Text | None = None, *, bare: tuple[str, ...] = ("yaml:item",)) -> Word:
        return Word(self.text if text is None else text, self.raw, bare, "flow" if self.flow else "block")


@dataclass(frozen=True, slots=True)
class Entry:
    key: Scalar
    value: Node
    start: int  # of the key
    end: int  # of the value's last character


@dataclass(frozen=True, slots=True)
class Map:
    entries: tuple[Entry, ...]

    def get(self, key: str) -> Node | None:
        """The value of a key; merged ones (`<<`) come after those that stand here."""
        found = [e.value for e in self.entries if e.key.text.value == key]
        return found[-1] if found else None


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]
    flow: bool = field(default=False)


Node = Scalar | Map | Sequence


def load(path: str, content: str) -> Node | None:
    """The document in a file; None: it is empty. Raises YamlError."""
    try:
        root = yaml.compose(content, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else path
        raise YamlError(f"{where}: no valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise YamlError(f"{path}: no valid YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise YamlError(f"{path}: nested too deeply") from None
    return _node(path, content, root, False, 0) if root is not None else None


def _node(path: str, content: str, node: yaml.Node, flow: bool, depth: int) -> Node:
    if depth > 60:
        raise YamlError(f"{path}:{node.start_mark.line + 1}: nested too deeply")
    if isinstance(node, yaml.MappingNode):
        return _map(path, content, node, depth)
    if isinstance(node, yaml.SequenceNode):
        inside = bool(node.flow_style)
        return Sequence(tuple(_node(path, content, item, inside, depth + 1) for item in node.value), inside)
    assert isinstance(node, yaml.ScalarNode)
    start, end = node.start_mark.index, node.end_mark.index
    source = Text.of_file(path, content, start, end)
    try:
        text = _decode(source, node.style)
    except (IndexError, ValueError):
        text = Text()
    if text.value != node.value:  # a form that is not followed here: shown, and not edited in place
        text = Text(node.value, [Mark(path, start, end, ("yaml:opaque",))] * len(node.value))
    return Scalar(text, source, node.style is None, node.tag.rpartition(":")[2], flow)


def _map(path: str, content: str, node: yaml.MappingNode, depth: int) -> Map:
    merged: list[Entry] = []
    own: list[Entry] = []
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag.endswith(":merge"):
            sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for source in reversed(sources):
                if isinstance(source, yaml.MappingNode):
                    merged += _map(path, content, source, depth + 1).entries
            continue
        name = _node(path, content, key, False, depth + 1)
        if isinstance(name, Scalar):
            made = _node(path, content, value, bool(node.flow_style), depth + 1)
            own.append(Entry(name, made, key.start_mark.index, _end(made, value.end_mark.index)))
    return Map((*merged, *own))


def _end(node: Node, otherwise: int) -> int:
    """Where a value's last character ends: PyYAML's own mark is beyond the line break of a block."""
    if isinstance(node, Scalar):
        text = node.raw.value.rstrip()
        mark = node.raw.marks[len(text) - 1] if text else None
        return mark.end if mark else otherwise
    if isinstance(node, Sequence):
        return otherwise if node.flow or not node.items else _end(node.items[-1], otherwise)
    return otherwise if not node.entries else node.entries[-1].end


def find(node: Node, start: int, end: int) -> Scalar | None:
    """The scalar in which a stretch of the file stands."""
    if isinstance(node, Scalar):
        first, last = (node.raw.marks[0], node.raw.marks[-1]) if node.raw.marks else (None, None)
        return node if first and last and first.start <= start and end <= last.end else None
    inner = node.items if isinstance(node, Sequence) else [n for e in node.entries for n in (e.key, e.value)]
    return next((found for one in inner if (found := find(one, start, end)) is not None), None)


def _decode(source: Text, style: str | None) -> Text:
    if style in ("|", ">"):
        return _block(source, folded=style == ">")
    if style == "'":
        return _flow(source[1:-1], "yaml:single", doubled=True)
    if style == '"':
        return _flow(source[1:-1], "yaml:double", escapes=True)
    return _flow(source, "yaml:plain")


def _flow(text: Text, layer: str, *, escapes: bool = False, doubled: bool = False) -> Text:
    """A plain or quoted scalar: line breaks fold, blanks around them go."""
    value, at = text.value, 0
    pieces: list[Text] = []
    while at < len(value):
        found = re.compile(r"[ \t]*((?:\r?\n[ \t]*)+)").match(value, at)
        if found:
            breaks = found[1].count("\n")
            pieces.append(
                text[found.start() : found.end()].becomes(" " if breaks == 1 else "\n" * (breaks - 1))
            )
            at = found.end()
        elif doubled and value.startswith("''", at):
            pieces.append(text[at : at + 2].becomes("'"))
            at += 2
        elif escapes and value[at] == "\\":
            made, length = _escape(value, at)
            if made is not None:
                pieces.append(text[at : at + length].becomes(made))
            at += length
        else:
            pieces.append(text[at])
            at += 1
    return Text.join(pieces).within(layer)


def _escape(value: str, at: int) -> tuple[str | None, int]:
    joined = re.compile(r"\\[ \t]*\r?\n[ \t]*").match(value, at)
    if joined and value[at + 1] in "\r\n":
        return None, joined.end() - at
    c = value[at + 1]
    if c in _SIMPLE:
        return _SIMPLE[c], 2
    digits = {"x": 2, "u": 4, "U": 8}[c]
    return chr(int(value[at + 2 : at + 2 + digits], 16)), 2 + digits


def _block(source: Text, *, folded: bool) -> Text:
    header_end = source.value.index("\n") + 1
    header = source.value[:header_end].split("#")[0]
    chomp = "-" if "-" in header else "+" if "+" in header else ""
    lines: list[Text] = []
    at = header_end
    while at < len(source):
        end = source.value.find("\n", at)
        end = len(source) if end < 0 else end + 1
        lines.append(source[at:end])
        at = end
    filled = [line for line in lines if line.value.strip(" \r\n")]
    if not filled:
        return Text("\n" * len(lines) if chomp == "+" else "")
    if any(c.isdigit() for c in header):
        raise ValueError("an explicit indentation")
    indent = len(filled[0].value) - len(filled[0].value.lstrip(" "))
    bodies: list[tuple[Text, Text]] = []  # a line's text, and its break
    for line in lines:
        text = line[indent:] if line.value.strip(" \r\n") else Text()
        broken = line[len(line.value.rstrip("\r\n")) :] if line.value.endswith("\n") else Text()
        bodies.append((text[: len(text.value.rstrip("\r\n"))], broken))
    while bodies and not bodies[-1][0] and chomp != "+":
        bodies.pop()
    pieces: list[Text] = []
    for i, (text, broken) in enumerate(bodies):
        pieces.append(text)
        last = i == len(bodies) - 1
        if last and chomp == "-":
            break
        newline = broken.becomes("\n") if broken else Text("" if last else "\n")
        if folded and not last and text and text.value[0] not in " \t":
            following = next((t for t, _ in bodies[i + 1 :] if t), None)
            if following is not None and following.value[0] not in " \t":
                pieces.append(broken.becomes(" ") if bodies[i + 1][0] else Text())
                continue
        pieces.append(newline)
    return Text.join(pieces).within("yaml:block")
