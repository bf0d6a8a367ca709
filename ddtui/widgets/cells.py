"""Text that fits in so many cells of the terminal."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size


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
