"""How the console writes times, numbers and states: short, with units, readable without colour."""

from __future__ import annotations

import time

from ddtui.tuning.model import Status

# glyph, theme variable of each status; the word is the status itself
STATUS_LOOK: dict[Status, tuple[str, str]] = {
    Status.IN_FORCE: ("✓", "$success"),
    Status.NOT_IN_FORCE: ("✗", "$error"),
    Status.CONFLICTING: ("≠", "$error"),
    Status.RESTART_PENDING: ("↻", "$warning"),
    Status.RELOAD_PENDING: ("↻", "$warning"),
    Status.UNKNOWN: ("?", "$muted"),
}


def duration(seconds: float) -> str:
    """A length of time in its two largest units: 8 s, 2 min 13 s, 2 h 13 min, 3 d 4 h."""
    total = max(0, int(seconds))
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} min {total % 60:02d} s" if total % 60 else f"{total // 60} min"
    if total < 86400:
        return f"{total // 3600} h {total % 3600 // 60:02d} min"
    return f"{total // 86400} d {total % 86400 // 3600} h"


def ago(age: float) -> str:
    """How long something is past, in steps, so that the line is not another one at every look."""
    if age < 10:
        return "just now"
    step = 10 if age < 60 else 60
    return f"{duration(age // step * step)} ago"


def clock(seconds: float) -> str:
    """A length of time as a stop watch shows it: 0:12, 12:07, 1:02:03."""
    total = max(0, round(seconds))
    if total < 3600:
        return f"{total // 60}:{total % 60:02d}"
    return f"{total // 3600}:{total % 3600 // 60:02d}:{total % 60:02d}"


def time_of_day(at: float) -> str:
    """Local time of day of a unix time."""
    return time.strftime("%H:%M:%S", time.localtime(at))


def tokens(count: int) -> str:
    """A token count as engineers write context lengths: 512, 8k, 128k, 1M; 3000 stays 3000."""
    for size, unit in ((1024 * 1024, "M"), (1024, "k")):
        if count >= size and count % size == 0:
            return f"{count // size}{unit}"
    return str(count)


def parse_count(text: str) -> int:
    """The number behind 512, 8k or 1M. Raises ValueError with a sentence."""
    word = text.strip().lower()
    factor = {"k": 1024, "m": 1024 * 1024}.get(word[-1:], 1)
    digits = word[:-1] if factor > 1 else word
    if not digits.isdigit() or int(digits) == 0:
        raise ValueError(f"{text.strip()!r} is no count: write 512, 8k or 1M")
    return int(digits) * factor


def number(value: float) -> str:
    """A measured number with three or so digits that mean something: 0.52, 4.31, 84.2, 912, 12,400."""
    size = abs(value)
    if size >= 10000:
        return f"{round(value, -2):,.0f}"
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
