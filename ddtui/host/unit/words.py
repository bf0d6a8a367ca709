"""systemd's words: splitting a value into words, C escapes, and quoting a word back.

After `extract_first_word()` and `cunescape_one()` in systemd's src/basic (v252 and v257 agree).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ddtui.host.unit.text import Text, Word

BLANKS = " \t\n\r"
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SIMPLE |= {"\\": "\\", '"': '"', "'": "'", "s": " "}
_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./=:,+@%^$")
_HEX, _OCTAL = frozenset("0123456789abcdefABCDEF"), frozenset("01234567")


class WordError(ValueError):
    """Text that does not split into words. `str()` says why; `at` is where."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


class UnfitValue(ValueError):
    """A value that cannot stand at the place where it is to be written. `str()` says why."""


def split(text: Text, *, layers: tuple[str, ...] = (), strict: bool = False) -> tuple[list[Word], list[str]]:
    """All words of a value as Environment= (`strict`) and Exec lines take them, and warnings about escapes.

    `layers`: what a value passes before this room's quoting. Raises WordError for unbalanced quotes, and, if
    `strict`, for unknown escapes.
    """
    words: list[Word] = []
    warnings: list[str] = []
    at = 0
    while True:
        try:
            word, at = first_word(text, at, layers=layers)
        except WordError:
            if strict:
                raise
            word, at = first_word(text, at, layers=layers, relaxed=True)
            assert word is not None
            warnings.append(f"unknown escape sequence in {word.raw.value}, taken as it stands")
        if word is None:
            return words, warnings
        words.append(word)


def first_word(
    text: Text, at: int = 0, *, layers: tuple[str, ...] = (), relaxed: bool = False
) -> tuple[Word | None, int]:
    """The next word from `at` on and where the one after it begins. None: there is none.

    `relaxed`: unknown escapes stay as they are. Raises WordError.
    """
    value = text.value
    while at < len(value) and value[at] in BLANKS:
        at += 1
    if at >= len(value):
        return None, at
    start = at
    pieces, at, quote = _to_blank(text, at, "sd", partial(_escaped, relaxed=relaxed))
    if quote:
        raise WordError(f"a quote {quote} that is never closed", start)
    end = at
    while at < len(value) and value[at] in BLANKS:
        at += 1
    word = pieces.within(*layers) if layers else pieces
    return Word(word, text[start:end], (*layers, "sd:bare")), at


def unescape(value: str, at: int) -> tuple[str | None, int]:
    """What the escape after a backslash at `at - 1` stands for, and its length; None: it is not known.

    Bytes from \\xNN and \\NNN above 127 come as surrogate escapes.
    """
    c = value[at]
    if c in _SIMPLE:
        return _SIMPLE[c], 1
    for letter, digits in (("x", 2), ("u", 4), ("U", 8)):
        if c == letter:
            code = value[at + 1 : at + 1 + digits]
            if len(code) < digits or not set(code) <= _HEX:
                return None, 0
            number = int(code, 16)
            if number == 0 or (letter == "U" and not _valid(number)):
                return None, 0
            return (_byte(number) if letter == "x" else _character(number)), 1 + digits
    if c in _OCTAL:
        code = value[at : at + 3]
        if len(code) == 3 and set(code) <= _OCTAL and 0 < int(code, 8) <= 255:
            return _byte(int(code, 8)), 3
    return None, 0


def _byte(number: int) -> str:
    return chr(number) if number < 128 else chr(0xDC00 + number)


def _character(number: int) -> str:
    if 0xD800 <= number <= 0xDFFF:  # systemd writes its three bytes, which are no UTF-8
        return "".join(chr(0xDC00 + b) for b in chr(number).encode("utf-8", "surrogatepass"))
    return chr(number)


def _valid(number: int) -> bool:
    surrogate, non_character = 0xD800 <= number <= 0xDFFF, 0xFDD0 <= number <= 0xFDEF
    return number < 0x110000 and not surrogate and not non_character and number & 0xFFFE != 0xFFFE


def split_variable(text: Text) -> Iterator[Word]:
    """The words that `$NAME` alone gives: split at blanks, quotes honoured, `\\c` is c, no C escapes.

    After `strv_split_full(…, EXTRACT_RELAX | EXTRACT_UNQUOTE)`.
    """
    value, at = text.value, 0
    while True:
        while at < len(value) and value[at] in BLANKS:
            at += 1
        if at >= len(value):
            return
        start = at
        pieces, at, _ = _to_blank(text, at, "split", _taken_literally)
        yield Word(pieces, text[start:at], ("split:bare",))


def _to_blank(
    text: Text, at: int, layer: str, escaped: Callable[[Text, int, str], tuple[Text, int]]
) -> tuple[Text, int, str]:
    """A word from `at` up to a blank outside quotes: itself, where it ends, and the quote still open there.

    `escaped` gives what a backslash at a place stands for between these quotes, and where it goes on.
    """
    value, quote = text.value, ""
    between = {"": f"{layer}:bare", "'": f"{layer}:single", '"': f"{layer}:double"}
    pieces: list[Text] = []
    while at < len(value):
        c = value[at]
        if c == "\\":
            piece, at = escaped(text, at, quote)
            pieces.append(piece.within(between[quote]))
            continue
        if c == quote:
            quote = ""
        elif not quote and c in "'\"":
            quote = c
        elif not quote and c in BLANKS:
            break
        else:
            pieces.append(text[at].within(between[quote]))
        at += 1
    return Text.join(pieces), at, quote


def _escaped(text: Text, at: int, quote: str, *, relaxed: bool) -> tuple[Text, int]:
    """An escape as systemd unquotes words; `relaxed`: an unknown one as it stands. Raises WordError."""
    value = text.value
    if at + 1 >= len(value):
        if not relaxed or quote:
            raise WordError("a lone backslash at the end", at)
        return text[at], at + 1
    made, length = unescape(value, at + 1)
    if made is not None:
        return text[at : at + 1 + length].becomes(made), at + 1 + length
    if not relaxed:
        raise WordError(f"unknown escape sequence {value[at : at + 2]}", at)
    return text[at : at + 2], at + 2


def _taken_literally(text: Text, at: int, quote: str) -> tuple[Text, int]:
    """`\\c` is c; nothing at the end."""
    if at + 1 < len(text.value):
        return text[at : at + 2].becomes(text.value[at + 1]), at + 2
    return text[at:at], at + 1


def quote(value: str) -> str:
    """A word for an Exec line or Environment=, before `%` and `$` are escaped. Raises UnfitValue."""
    check_text(value)
    if value and set(value) <= _SAFE:
        return value
    return f'"{escape(value, chr(34))}"'


def quote_argument(value: str, *, expands: bool = True) -> str:
    """An argument for an Exec line: `%` and (unless the command has the `:` prefix) `$` escaped too."""
    value = value.replace("%", "%%")
    return quote(value.replace("$", "$$") if expands else value)


def escape(value: str, quote: str) -> str:
    """What to write between these quotes for `value`."""
    check_text(value)
    made = []
    for c in value:
        if c in ("\\", quote):
            made.append("\\" + c)
        elif c in "\n\t":
            made.append({"\n": "\\n", "\t": "\\t"}[c])
        elif c < " " or c == "\x7f":
            made.append(f"\\x{ord(c):02x}")
        elif "\x80" <= c < "\xa0" or c in "\u2028\u2029":
            made.append(f"\\u{ord(c):04x}")
        else:
            made.append(c)
    return "".join(made)


def check_text(value: str) -> None:
    """Raises UnfitValue for what no unit file can carry."""
    if "\0" in value:
        raise UnfitValue("it holds a NUL byte, which no command line can carry")
    if any("\ud800" <= c <= "\udfff" for c in value):
        raise UnfitValue("it is not valid UTF-8")
