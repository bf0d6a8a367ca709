"""Text from the host is data: made inert once, when it comes in, so that it cannot act on the terminal.

Control characters, escape sequences, bidi overrides, NUL and invalid UTF-8 are shown in a visible form or
dropped; colours (SGR) can be kept as spans. What comes out holds printable characters only, so it is safe in
a terminal; it may still hold `[` and the like, so give it to Textual as content, never as markup.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CSI = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]")
_CSI_OR_REST = re.compile(r"(?:\x1b\[|\x9b)(?P<args>[0-?]*)[ -/]*(?P<final>[@-~])")
_JOINERS = frozenset("\u200c\u200d\ufe0e\ufe0f")  # inside emoji and several scripts; harmless
_TAB = 8


@dataclass(frozen=True, slots=True)
class Span:
    """A coloured stretch of a text: characters start to end, and the style as Rich and Textual write it."""

    start: int
    end: int
    style: str  # "bold red", "color(208) on #102030"


def decode(data: bytes) -> str:
    """Bytes as text; bytes that are not UTF-8 become visible as `\\xNN`. Not yet inert: see `sanitize`."""
    return data.decode("utf-8", "backslashreplace")


def sanitize(text: str, *, newlines: bool = False) -> str:
    """Text with everything that could act on a terminal dropped or shown. `newlines` keeps line ends.

    Cursor movements and colours (CSI sequences) are dropped; every other control character is shown: ESC as
    `␛`, NUL as `␀`, a right-to-left override as `<U+202E>`. Tabs become blanks.
    """
    if text.isprintable():
        return text
    if newlines:
        return "\n".join(sanitize(line) for line in text.replace("\r\n", "\n").split("\n"))
    if "\x1b" in text or "\x9b" in text:
        text = _CSI.sub("", text)
    if "\t" in text:
        text = text.expandtabs(_TAB)
    if text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def last_piece(text: str) -> str:
    """What a terminal would show of a progress bar that redraws itself with `\\r`: its last piece."""
    if "\r" not in text:
        return text
    pieces = [piece for piece in text.split("\r") if piece.strip()]
    return pieces[-1] if pieces else ""


def line(data: bytes | str) -> str:
    """One line from the host, ready to be shown: decoded, the last piece of a progress bar, inert."""
    return sanitize(last_piece(data if isinstance(data, str) else decode(data)))


def styled(text: str) -> tuple[str, tuple[Span, ...]]:
    """The text made inert, and where its SGR colours were.

    >>> styled("a \\x1b[1;31mred\\x1b[0m word")
    ('a red word', (Span(start=2, end=5, style='bold red'),))
    """
    if "\x1b[" not in text and "\x9b" not in text:
        return sanitize(text), ()
    parts: list[str] = []
    spans: list[Span] = []
    style, length, at = _Style(), 0, 0

    def add(piece: str) -> None:
        nonlocal length
        shown = sanitize(piece)
        if not shown:
            return
        described = str(style)
        if described:
            if spans and spans[-1].end == length and spans[-1].style == described:
                spans[-1] = Span(spans[-1].start, length + len(shown), described)
            else:
                spans.append(Span(length, length + len(shown), described))
        parts.append(shown)
        length += len(shown)

    for found in _CSI_OR_REST.finditer(text):
        add(text[at : found.start()])
        at = found.end()
        if found["final"] == "m":
            style = style.after(found["args"])
    add(text[at:])
    return "".join(parts), tuple(spans)


def _shown(character: str) -> str:
    if character.isprintable() or character in _JOINERS:
        return character
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if code < 0xA0:
        return f"\\x{code:02x}"
    if 0xD800 <= code < 0xE000:
        # half of a pair, or a byte that "surrogateescape" smuggled in
        return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"
    if character.isspace():
        return " "
    return f"<U+{code:04X}>"


_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 5: "blink", 7: "reverse", 9: "strike"}
_OFF = {
    22: ("bold", "dim"),
    23: ("italic",),
    24: ("underline",),
    25: ("blink",),
    27: ("reverse",),
    29: ("strike",),
}


@dataclass(frozen=True, slots=True)
class _Style:
    attributes: frozenset[str] = frozenset()
    foreground: str = ""
    background: str = ""

    def __str__(self) -> str:
        words = [name for name in _ON.values() if name in self.attributes]
        if self.foreground:
            words.append(self.foreground)
        if self.background:
            words += ["on", self.background]
        return " ".join(words)

    def after(self, arguments: str) -> _Style:
        """The style after one SGR sequence, e.g. arguments `1;38;5;208`."""
        try:
            codes = [int(word or 0) for word in arguments.replace(":", ";").split(";")]
        except ValueError:
            return self
        attributes, foreground, background = set(self.attributes), self.foreground, self.background
        at = 0
        while at < len(codes):
            code = codes[at]
            at += 1
            if code == 0:
                attributes, foreground, background = set(), "", ""
            elif code in _ON:
                attributes.add(_ON[code])
            elif code in _OFF:
                attributes.difference_update(_OFF[code])
            elif code in (38, 48):
                colour, used = _extended(codes[at:])
                at += used
                if code == 38:
                    foreground = colour or foreground
                else:
                    background = colour or background
            elif code in (39, 49):
                foreground, background = ("", background) if code == 39 else (foreground, "")
            elif 30 <= code <= 37:
                foreground = _COLOURS[code - 30]
            elif 40 <= code <= 47:
                background = _COLOURS[code - 40]
            elif 90 <= code <= 97:
                foreground = "bright_" + _COLOURS[code - 90]
            elif 100 <= code <= 107:
                background = "bright_" + _COLOURS[code - 100]
        return _Style(frozenset(attributes), foreground, background)


def _extended(codes: list[int]) -> tuple[str, int]:
    """A 256-colour or RGB colour, and how many codes it took."""
    if codes[:1] == [5] and len(codes) >= 2 and codes[1] < 256:
        return f"color({codes[1]})", 2
    if codes[:1] == [2] and len(codes) >= 4 and all(code < 256 for code in codes[1:4]):
        return "#{:02x}{:02x}{:02x}".format(*codes[1:4]), 4
    return "", len(codes)
