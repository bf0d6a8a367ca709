"""A bar with share and estimate, one line: `▓▓▓▓▓▓▓░░░ 71 %  eta 0:12`."""

from __future__ import annotations

from textual.content import Content

from ddtui.words import clock


def bar(
    width: int,
    fraction: float | None,
    eta: float | None = None,
    *,
    label: str = "",
    elapsed: float | None = None,
    colour: str = "$primary",
) -> Content:
    """The bar in `width` cells. `fraction` None: how far is not known, and it says so instead of guessing."""
    tail = f" {fraction:4.0%}" if fraction is not None else "  "
    if eta is not None:
        tail += f"  eta {clock(eta)}"
    elif elapsed is not None:
        tail += f"  {clock(elapsed)}"
    head = f"{label} " if label else ""
    cells = width - len(head) - len(tail)
    if cells < 4:
        return Content.assemble((head, ""), (tail.strip(), "$muted")).truncate(width, ellipsis=True)
    done = round((fraction or 0.0) * cells)
    return Content.assemble(
        head, ("▓" * done, colour), ("░" * (cells - done), "$border-blurred"), (tail, "$muted")
    )
