"""Text that fits in so many cells of the terminal."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

LONG = 16  # cells of a name of which both ends are kept


def cut(text: str, width: int) -> str:
    """The text in at most `width` cells, with … where something is missing."""
    if width <= 0:
        return ""
    if text.isascii():
        return text if len(text) <= width else text[: width - 1] + "…"
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def cut_left(text: str, width: int) -> str:
    """Like `cut`, but keeps the end: for paths."""
    if width <= 0:
        return ""
    kept = text[-width:] if cell_len(text) > width else text
    while cell_len(kept) > width - (kept != text):
        kept = kept[1:]
    return kept if kept == text else f"…{kept}"


def cut_value(text: str, width: int) -> str:
    """A value: of a path the end is kept, of anything else the beginning."""
    return cut_left(text, width) if text.startswith("/") else cut(text, width)


def label(text: str, column: int, room: int) -> str:
    """A label before its value, in `column` cells. A longer one is left whole where there is `room` for it,
    else its middle is missing (long names begin alike), or of a short one the end.
    """
    size = max(column, min(cell_len(text), room))
    if cell_len(text) > size >= LONG:
        head = size // 2
        text = cut(text, head + 1) + cut_left(text, size - head).removeprefix("…")
    text = cut(text, size)
    return text + " " * (size - cell_len(text))
