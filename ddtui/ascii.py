"""Only characters that every terminal has: what is drawn is written as the nearest ASCII character.

One cell for one cell, so the layout stays as it is; letters are left as they are.
"""

from __future__ import annotations

from typing import Any, TextIO

_NEAREST = {
    "-": "─━╌╍┄┅┈┉╴╶╸╺–—═",
    "|": "│┃╎╏┆┇┊┋╵╷╹╻║▏▎▍▌▐▕▊▋▉",
    "+": "┌┍┎┏┐┑┒┓└┕┖┗┘┙┚┛├┝┞┟┠┡┢┣┤┥┦┧┨┩┪┫┬┭┮┯┰┱┲┳┴┵┶┷┸┹┺┻┼╋╭╮╯╰╬╔╗╚╝",
    "#": "█▓▇▆▅▛▜▙▟■",
    ":": "▒░▄▀",
    "_": "▁▂▃▔",
    ".": "…·",
    "*": "●◆★▣◉•",
    "o": "○◌◐◑◒◓◇□",
    ">": "▶▸→❯›⇄",
    "<": "◀◂←‹",
    "^": "▲▴↑△",
    "v": "▼▾↓▽✓",
    "x": "✗×✕✖",
    "!": "⚠",
    "~": "≈↻↺∼",
    "=": "⏸≡",
}
TABLE = {ord(drawn): plain for plain, all_of in _NEAREST.items() for drawn in all_of}
TABLE |= {ord("↵"): "<", ord("⌫"): "<", ord("≥"): ">", ord("≤"): "<", ord("±"): "~", ord("⏎"): "/"}
TABLE |= {code: ("." if bin(code & 0xFF).count("1") < 3 else ":") for code in range(0x2801, 0x2900)}
TABLE[0x2800] = " "


class InAscii:
    """A terminal's stream that draws in ASCII."""

    def __init__(self, stream: Any) -> None:
        self._stream: TextIO = stream

    def write(self, text: str) -> int:
        if text.isascii():
            return self._stream.write(text)
        self._stream.write(text.translate(TABLE))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
