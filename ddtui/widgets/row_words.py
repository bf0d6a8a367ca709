"""The history's rows as lines of a list: what matters first, in so many cells. Pure."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from textual.content import Content

from ddtui.store.listing import BurstRow, ChangeRow, NoteRow, StepRow, SweepRow
from ddtui.widgets.cells import cut
from ddtui.words import number, plural

Row = StepRow | BurstRow | ChangeRow | SweepRow | NoteRow
STATES = {
    "done": ("✓", "$success"),
    "verified": ("✓", "$success"),
    "failed": ("✗", "$error"),
    "rolled back": ("↶", "$warning"),
    "failed and not rolled back": ("✗", "$error"),
    "applied, not all in force": ("!", "$warning"),
    "cancelled": ("–", "$muted"),
    "stopped": ("–", "$warning"),
    "running": ("▶", "$primary"),
}


def values(knobs: Mapping[str, str | None], order: Sequence[str], cells: int = 0) -> str:
    """The values of the knobs in the profile's order, then others: `8 4 off`; each in at least `cells`."""
    names = [*(name for name in order if name in knobs), *(name for name in knobs if name not in order)]
    words = ("off" if knobs[name] is None else str(knobs[name] or "on") for name in names)
    return " ".join(word.rjust(cells) for word in words)


def line(row: Row, width: int, order: Sequence[str], *, hosts: bool = False, mark: str = "") -> Content:
    """One row. `hosts`: with its host; `mark`: what stands before it, such as A or B."""
    match row:
        case StepRow():
            return _step(row, width, order, hosts, mark)
        case BurstRow():
            return _burst(row, width, hosts)
        case ChangeRow():
            return _change(row, width, hosts)
        case SweepRow():
            return _sweep(row, width, hosts)
        case NoteRow():
            return _fit(width, (when(row.at), "$muted"), (f" {row.on:<9} ", "bold"), (flat(row.text), ""))


def _step(row: StepRow, width: int, order: Sequence[str], hosts: bool, mark: str) -> Content:
    rate = f"{number(row.rate):>6} tok/s" if row.rate is not None else " " * 12
    note = f"“{flat(row.note)}” " if row.note else ""
    host = f"{row.host} " if hosts else ""
    parts = [
        (f"{mark:<2}" if mark else "  ", "bold $accent"),
        (f"{row.number:>4} ", "bold"),
        (f"{cut(values(row.knobs, order, VALUE), 24):<14}", ""),
        (rate, "" if row.rate is not None else "$muted"),
        (f" {plural(row.bursts, 'burst'):<10}" if width >= ROOMY else "", "$muted"),
        (f" {when(row.measured_at or row.at)} ", "$muted"),
        ("sim " if row.simulated else "", "$accent"),
        ("✗ wrong output " if row.wrong else "", "bold $error"),
        (host, "$primary"),
        (note, "$warning"),
    ]
    return _fit(width, *parts)


VALUE = 4  # cells of a value: 2048
ROOMY = 72  # cells from which a line has room for what matters less


def _burst(row: BurstRow, width: int, hosts: bool) -> Content:
    rate = f"{number(row.rate):>6} tok/s" if row.rate is not None else ""
    step = f"step {row.step}" if row.step is not None else "no step"
    return _fit(
        width,
        _state(row.state),
        (f"{when(row.at)} ", "$muted"),
        (f"{step:<9} ", "bold"),
        (f"{plural(row.cells, 'cell'):<8} ", "$muted"),
        (f"{rate:<13}", ""),
        (f"{row.host} " if hosts else "", "$primary"),
        (flat(row.note), "$muted"),
    )


def _change(row: ChangeRow, width: int, hosts: bool) -> Content:
    return _fit(
        width,
        _state(row.phase),
        (f"{when(row.at)} ", "$muted"),
        (", ".join(row.turns) or "restart", "bold"),
        (f"  {row.phase}", "$muted"),
        (f"  {row.host}" if hosts else "", "$primary"),
        (f"  {flat(row.result)}" if row.result and row.result != row.phase else "", "$muted"),
    )


def _sweep(row: SweepRow, width: int, hosts: bool) -> Content:
    size = f"{row.settings} × {row.cells}" if row.settings else plural(row.cells, "cell")
    return _fit(
        width,
        _state(row.state),
        (f"{when(row.at)} ", "$muted"),
        (f"{row.order:<9} ", "bold"),
        (f"{size:<8} ", "$muted"),
        (f"{row.state} after {plural(row.trials, 'trial')}  ", ""),
        (f"{row.host}  " if hosts else "", "$primary"),
        (flat(row.why or row.outcome), "$muted"),
    )


def _state(state: str) -> tuple[str, str]:
    glyph, colour = STATES.get(state, ("·", "$muted"))
    return f"{glyph} ", f"bold {colour}"


def _fit(width: int, *parts: tuple[str, str]) -> Content:
    """The parts as far as they go."""
    kept: list[tuple[str, str]] = []
    room = width
    for text, style in parts:
        if room <= 0:
            break
        text = cut(text, room)
        kept.append((text, style))
        room -= len(text)
    return Content.assemble(*kept)


def when(at: float) -> str:
    """Local date and time: 05-28 09:47."""
    return time.strftime("%m-%d %H:%M", time.localtime(at))


def flat(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())
