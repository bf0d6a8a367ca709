"""The journal's lines, bounded: plain data without a terminal.

Lines have absolute numbers that never change; the oldest ones are dropped in chunks when the store is full,
and earlier ones from the host's journal are put before the oldest (numbers then go below zero).
"""

from __future__ import annotations

import time
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ddtui.sanitize import Span, sanitize
from ddtui.session import JournalLine
from ddtui.view import Decode
from ddtui.widgets.journal_filter import Filter
from ddtui.widgets.journal_lines import (
    Level,
    bar_label,
    begins_trace,
    in_trace,
    level_of,
    raises,
    without_prefix,
)

LONGEST_TRACE = 2000  # lines of one traceback that are kept
LONGEST_KEPT = 65_536  # characters of a line that are kept
MEAN_KEPT = 1_000  # characters of a line on average, beyond which the oldest are dropped
DECODE_FRESH = 10.0  # seconds in which a server that decodes has long written another line
ANCHORS = 256  # one line in so many keeps its place in the host's journal


@dataclass(slots=True)
class Pin:
    """A pattern whose lines are counted."""

    text: str
    filter: Filter
    count: int = 0


@dataclass(slots=True)
class Reading:
    """Earlier lines that are being read from the host."""

    began: float  # unix time, by the clock of this machine
    usual: float | None = None  # seconds that it took the last time
    part: float = 0.0  # of the way back to the time that is wanted


@dataclass(slots=True)
class _Trace:
    """A traceback that is being written: the line it is folded into."""

    number: int
    head: str
    cause: str = ""


class JournalStore:
    """At most `limit` lines, and as many earlier ones. `base` is the number of the oldest line kept, `end` of
    the next one to come.

    `version` grows with every change, and who is in `listeners` is called: often, so that it only takes note.
    """

    def __init__(self, limit: int = 200_000) -> None:
        self.limit = limit
        self.base = 0
        self.version = 0
        self.listeners: set[Callable[[], None]] = set()
        self.touched = 0  # how often a line that was there has changed; the last of them in `touches`
        self.touches: deque[int] = deque(maxlen=256)
        self.texts: list[str] = []
        self.times: list[float] = []  # unix, by the host's clock
        self.ahead = 0.0  # seconds that it is ahead of this machine's
        self.levels = bytearray()
        self.spans: dict[int, tuple[Span, ...]] = {}  # the lines' own colours
        self.folded: dict[int, list[str]] = {}  # tracebacks, by the line that stands for them
        self.bookmarks: list[int] = []
        self.pins: list[Pin] = []
        self.decodes: deque[Decode] = deque(maxlen=240)
        self.decoded_at: float | None = None  # when the newest of these came, by the clock of this machine
        self.reading: Reading | None = None  # of earlier lines
        self.whole = False  # the host's journal has nothing before the oldest line
        self._earlier = 0  # lines that were put before
        self._size = 0  # characters in all
        self._anchors: list[tuple[int, str]] = []
        self._bars: dict[
            tuple[int | None, str], int
        ] = {}  # those that move now: one or several, side by side
        self._traces: dict[int | None, _Trace] = {}  # by process

    @property
    def end(self) -> int:
        return self.base + len(self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    def changed(self) -> None:
        """Say that something is different now."""
        self.version += 1
        for tell in tuple(self.listeners):
            tell()

    def append(self, lines: Iterable[JournalLine], now: float | None = None) -> None:
        """Add lines that came just `now`, and drop the oldest tenth when there are too many."""
        fresh = self.end
        for line in lines:
            self._add(line)
            if line.decode is not None:
                self.decodes.append(line.decode)
                self.decoded_at = now
        for pin in self.pins:
            pin.count += len(self.scan(pin.filter, range(fresh, self.end)))
        self.changed()
        if len(self.texts) > self.limit + self._earlier:
            self._drop(len(self.texts) - self.limit + self.limit // 10)
        while self._size > self.limit * MEAN_KEPT and len(self.texts) > 1:  # a flood of huge lines
            self._drop(max(1, len(self.texts) // 10))

    def _add(self, line: JournalLine) -> None:
        text = line.text.rstrip("\n")
        if "\r" in text:
            text = next((piece for piece in reversed(text.split("\r")) if piece.strip()), "")
        spans = line.spans
        if (
            self._traces
            and line.pid in self._traces
            and self._goes_on(self._traces[line.pid], line.pid, text)
        ):
            return
        whole = len(text)
        text = without_prefix(text)
        if spans:
            spans = _moved(spans, whole - len(text), len(text))
        if not text.isprintable():
            text, spans = sanitize(text), ()
        text = _short(text)
        number = self.end
        label = bar_label(text)
        if label is None:
            self._bars.clear()
        elif (place := self._bars.setdefault((line.pid, label), number) - self.base) < len(self.texts):
            self._size += len(text) - len(self.texts[place])
            self.texts[place] = text
            self.times[place] = line.at
            self._touch(place + self.base)
            return
        if begins_trace(text):
            self._traces[line.pid] = _Trace(number, text)
            self.folded[number] = []
        if spans:
            self.spans[number] = spans
        if line.cursor and (not self._anchors or number - self._anchors[-1][0] >= ANCHORS):
            self._anchors.append((number, line.cursor))
        self._size += len(text)
        self.texts.append(text)
        self.times.append(line.at)
        self.levels.append(Level.MARK if line.mark else level_of(text, line.priority))

    def _goes_on(self, trace: _Trace, pid: int | None, text: str) -> bool:
        """Fold a line into its process's traceback, if it belongs there."""
        body = self.folded.get(trace.number)
        if body is None or not in_trace(text, raised=bool(trace.cause)):
            del self._traces[pid]
            return False
        text = _short(text if text.isprintable() else sanitize(text))
        if len(body) < LONGEST_TRACE:
            self._size += len(text)
            body.append(text)
        if text[:1].strip() and begins_trace(text):
            trace.cause = ""  # of another exception, which this one led to
        elif text[:1].strip() and raises(text):
            trace.cause = text
        if trace.cause:
            place = trace.number - self.base
            self._size -= len(self.texts[place])
            self.texts[place] = f"{trace.head} … {trace.cause}"
            self._size += len(self.texts[place])
        self._touch(trace.number)
        return True

    def _touch(self, number: int) -> None:
        self.touched += 1
        self.touches.append(number)

    def _drop(self, count: int) -> None:
        """Drop so many of the oldest lines, and a few more: up to one whose place on the host is known."""
        place = bisect_left(self._anchors, (self.base + count, ""))
        if place < len(self._anchors) and self._anchors[place][0] - self.base < len(self.texts):
            count = self._anchors[place][0] - self.base
        gone = range(self.base, self.base + count)
        self._size -= sum(map(len, self.texts[:count]))
        self._size -= sum(len(text) for n, body in self.folded.items() if n in gone for text in body)
        del self.texts[:count]
        del self.times[:count]
        del self.levels[:count]
        self.base += count
        base = self.base
        self._anchors = [anchor for anchor in self._anchors if anchor[0] >= base]
        self.spans = {number: spans for number, spans in self.spans.items() if number >= base}
        self.folded = {number: body for number, body in self.folded.items() if number >= base}
        self.bookmarks = [number for number in self.bookmarks if number >= base]
        self._traces = {pid: trace for pid, trace in self._traces.items() if trace.number >= base}
        self._bars = {bar: number for bar, number in self._bars.items() if number >= base}
        self._earlier, self.whole = 0, False

    # earlier lines, from the host

    @property
    def oldest(self) -> str | None:
        """The place in the host's journal of the oldest line; None: it is not known."""
        return self._anchors[0][1] if self._anchors else None

    @property
    def room(self) -> bool:
        """Whether more earlier lines may be put before."""
        return self._earlier < self.limit

    def prepend(self, lines: Sequence[JournalLine]) -> None:
        """Put earlier lines, oldest first, before those that are there."""
        chunk = JournalStore(len(lines) + 1)
        chunk.pins = [Pin(pin.text, pin.filter) for pin in self.pins]
        chunk.append(lines)
        self.base -= len(chunk)
        self.texts[:0] = chunk.texts
        self.times[:0] = chunk.times
        self.levels[:0] = chunk.levels
        self.spans |= {number + self.base: spans for number, spans in chunk.spans.items()}
        self.folded |= {number + self.base: body for number, body in chunk.folded.items()}
        self._anchors[:0] = [(number + self.base, cursor) for number, cursor in chunk._anchors]
        for pin, more in zip(self.pins, chunk.pins, strict=True):
            pin.count += more.count
        self._earlier += len(chunk)
        self._size += chunk._size
        self.changed()

    # finding

    def scan(self, wanted: Filter, numbers: range) -> list[int]:
        """Numbers in the range whose lines match, ascending. A traceback matches with all its lines."""
        low, high = max(numbers.start, self.base), min(numbers.stop, self.end)
        texts = self.texts[low - self.base : high - self.base]
        levels = self.levels[low - self.base : high - self.base]
        if not wanted.searching:
            least = wanted.level
            return [low + i for i, level in enumerate(levels) if level >= least]
        folded = {number for number in self.folded if low <= number < high} if self.folded else set()
        if not folded and not wanted.may_match(texts):
            return []
        matches = wanted.matches
        return [
            n
            for n, text, level in zip(range(low, high), texts, levels, strict=True)
            if matches("\n".join((text, *self.folded[n])) if n in folded else text, level)
        ]

    def number_at(self, at: float) -> int:
        """The first line of this time (unix) or later, the last one if there is none."""
        return min(self.base + bisect_left(self.times, at), max(self.base, self.end - 1))

    def decoding(self, now: float) -> Decode | None:
        """The newest `Decode batch` line, while it is young enough to tell what is so now."""
        if not self.decodes or (self.decoded_at is not None and now - self.decoded_at > DECODE_FRESH):
            return None
        return self.decodes[-1]

    def toggle_bookmark(self, number: int) -> bool:
        """Set a bookmark at this line, or take it away. Gives whether it is there now."""
        self._touch(number)
        self.changed()
        if number in self.bookmarks:
            self.bookmarks.remove(number)
            return False
        insort(self.bookmarks, number)
        return True

    def stamp(self, number: int) -> str:
        """Local time of day of a line."""
        return _stamp(int(self.times[number - self.base]))


def day(at: float) -> str:
    """Local day of a unix time: `Thu 28 May`."""
    return time.strftime("%a %d %b", time.localtime(at))


def _short(text: str) -> str:
    if len(text) <= LONGEST_KEPT:
        return text
    return f"{text[:LONGEST_KEPT]}… ({len(text) - LONGEST_KEPT:,} characters more)"


def _moved(spans: Sequence[Span], by: int, length: int) -> tuple[Span, ...]:
    """Spans of a text that lost `by` characters in front."""
    moved = (Span(max(0, span.start - by), min(length, span.end - by), span.style) for span in spans)
    return tuple(span for span in moved if span.end > span.start)


_stamps: dict[int, str] = {}


def _stamp(second: int) -> str:
    """HH:MM:SS; many lines share a second, so the last few are kept."""
    known = _stamps.get(second)
    if known is None:
        if len(_stamps) > 4096:
            _stamps.clear()
        known = _stamps[second] = time.strftime("%H:%M:%S", time.localtime(second))
    return known
