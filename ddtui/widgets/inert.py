"""The last guard before the terminal: whatever a widget was given, nothing that could act on it goes out.

Text from the host is made inert where it comes in (`sanitize`), which shows what was there. This takes away,
cell for cell, what should have been and was not: from an old history, an import, a library's own message.
"""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_HARMLESS = frozenset("\u200c\u200d\ufe0e\ufe0f")  # joiners and variation selectors, inside words and emoji


class Inert(LineFilter):
    """Replaces what is not printable by as many blanks as it has cells."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        if all(segment.text.isprintable() for segment in segments):
            return segments
        return [
            Segment(_inert(segment.text), segment.style, segment.control) if segment.text else segment
            for segment in segments
        ]


def _inert(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in _HARMLESS else " " * cell_len(one) for one in text)
