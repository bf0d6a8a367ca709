"""Words, environment files and `$` expansion by systemd's rules (systemd.syntax(7), systemd.exec(5))."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress


class Unbalanced(ValueError):
    """A quote that is not closed."""


_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " ", "\\": "\\",
            '"': '"', "'": "'"}  # fmt: skip
_CODED = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})")


def split_words(text: str) -> Iterator[str]:
    """Words by systemd's quoting: quotes anywhere, C escapes in and outside them. Raises Unbalanced."""
    i, size = 0, len(text)
    while True:
        while i < size and text[i] in " \t\n\r":
            i += 1
        if i >= size:
            return
        word, quote = "", ""
        while i < size:
            c = text[i]
            if c == "\\" and i + 1 < size:
                if text[i + 1] in _ESCAPES:
                    word += _ESCAPES[text[i + 1]]
                    i += 2
                    continue
                coded = _CODED.match(text, i + 1)
                if coded:
                    number = coded[1] or coded[2] or coded[3]
                    word += chr(int(number, 16) if number else int(coded[4], 8))
                    i = coded.end()
                    continue
                word += c
                i += 1
            elif quote:
                if c == quote:
                    quote = ""
                else:
                    word += c
                i += 1
            elif c in "'\"":
                quote = c
                i += 1
            elif c in " \t\n\r":
                break
            else:
                word += c
                i += 1
        if quote:
            raise Unbalanced(text)
        yield word


def environment_file(data: bytes) -> dict[str, str]:
    """Variables of an environment file: comments, quotes, continued lines; `export A=1` is no assignment."""
    out: dict[str, str] = {}
    text = data.decode(errors="replace").replace("\\\n", "")
    pattern = (
        r"""^[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*((?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\n"'\\])*)$"""
    )
    for found in re.finditer(pattern, text, re.MULTILINE | re.DOTALL):
        out[found[1]] = _unquote(found[2].strip())
    return out


def _unquote(text: str) -> str:
    def piece(found: re.Match[str]) -> str:
        if found[1] is not None:
            return re.sub(r'\\(["\\`$])', r"\1", found[1])
        if found[2] is not None:
            return found[2]
        return found[3]

    return re.sub(r'"((?:\\.|[^"\\])*)"|\'([^\']*)\'|\\(.)', piece, text, flags=re.DOTALL)


def expand(argv: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """`$VAR` as a whole word (split at blanks, gone if unset), `${VAR}` anywhere (one word), as systemd does.

    The first word, which names the program, is left alone.
    """
    out = list(argv[:1])
    for word in argv[1:]:
        if len(word) > 1 and word[0] == "$" and word[1] not in "{$":
            with suppress(Unbalanced):
                out.extend(split_words(environment.get(word[1:], "")))
            continue
        out.append(
            re.sub(
                r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)\}",
                lambda found: environment.get(found[1], "") if found[1] else "$",
                word,
            )
        )
    return out
