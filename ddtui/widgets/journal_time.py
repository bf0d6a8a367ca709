"""Times as the operator writes them, to jump to in the journal."""

from __future__ import annotations

import re
import time

_CLOCK = re.compile(
    r"(?:(?P<year>\d{4})-(?P<month>\d\d?)-(?P<day>\d\d?)[ T])?"
    r"(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d))?"
)
_SPAN = re.compile(r"(?P<sign>[+-]?)(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[smhd])(?P<ago>\s+ago)?")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
EXAMPLES = "12:01  12:01:30  2026-05-28 12:01  -5m  +30s  2h ago"


def parse_time(text: str, *, now: float, here: float) -> float:
    """The time that is meant, as unix time: local time of day (the last such one), date and time, `+30s` and
    `-5m` from the line where one is (`here`), `5m ago`.

    Raises ValueError with a sentence.
    """
    text = text.strip()
    if span := _SPAN.fullmatch(text):
        seconds = float(span["number"]) * _SECONDS[span["unit"]]
        if span["ago"] and not span["sign"]:
            return now - seconds
        if span["sign"] and not span["ago"]:
            return here + (seconds if span["sign"] == "+" else -seconds)
    if clock := _CLOCK.fullmatch(text):
        today = time.localtime(now)
        hour, minute, second = (int(clock[name] or 0) for name in ("hour", "minute", "second"))
        if clock["year"]:
            year, month, day = (int(clock[name]) for name in ("year", "month", "day"))
        else:
            year, month, day = today.tm_year, today.tm_mon, today.tm_mday
        if hour < 24 and minute < 60 and second < 60 and 1 <= month <= 12 and 1 <= day <= 31:
            at = _local(year, month, day, hour, minute, second)
            if not clock["year"] and at > now + 60:  # a clock on the host may be a little ahead
                at = _local(year, month, day - 1, hour, minute, second)
            return at
    raise ValueError(f"{text!r} is no time; write {EXAMPLES}")


def _local(year: int, month: int, day: int, hour: int, minute: int, second: int) -> float:
    try:
        return time.mktime((year, month, day, hour, minute, second, 0, 0, -1))
    except (OverflowError, ValueError):
        raise ValueError(f"the year {year} is out of reach") from None
