"""The journal's lines, bounded, and the filter over them: plain data without a terminal.

Lines have absolute numbers that never change; the oldest ones are dropped in chunks when the store is full.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from re import _parser as sre  # type: ignore[attr-defined]
from typing import Any

from ddtui.sanitize import sanitize
from ddtui.session import JournalLine
from ddtui.view import Decode


class Level(IntEnum):
    DEBUG = 0
    INFO = 1
    WARNING = 2
    ERROR = 3
    MARK = 4  # ddtui's own lines


LEVELS = {
    "all": Level.DEBUG,
    "debug": Level.DEBUG,
    "info": Level.INFO,
    "warning": Level.WARNING,
    "error": Level.ERROR,
}

# SGLang writes "[time] message" without a level, so the words decide where syslog's priority does not
_ERROR = re.compile(
    r"\b(?:Traceback|[A-Z]\w*(?:Error|Exception):|ERROR\b|CRITICAL\b|FATAL\b|OutOfMemory)|: error: "
)
_WARNING = re.compile(r"\b(?:WARN(?:ING)?\b|Warning:|deprecated\b|overrid|has no effect|disabled when using)")
# uvicorn's line for a question to the server: ddtui itself asks every few seconds
_ASKED = re.compile(r'"GET /[^" ]* HTTP/')
_PREFIX = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?P<rank>(?: [A-Z]{2}\d+)*)\] ?")
_TQDM = re.compile(r"^(?P<label>.{0,200}?)\s*\d{1,3}%\s?(?:\||Completed)")


def level_of(text: str, priority: int) -> Level:
    """The level of a line: by syslog's priority where that says something, else by its words."""
    if priority <= 3:
        return Level.ERROR
    if priority == 4:
        return Level.WARNING
    if priority >= 7 or (text.startswith("INFO:") and _ASKED.search(text)):
        return Level.DEBUG
    head = text[:400]
    if _ERROR.search(head):
        return Level.ERROR
    return Level.WARNING if _WARNING.search(head) else Level.INFO


def without_prefix(text: str) -> str:
    """The line without SGLang's "[date time rank]" in front, which the journal knows; the rank stays."""
    if not text.startswith("["):
        return text
    found = _PREFIX.match(text)
    if found is None:
        return text
    rank = found["rank"].strip()
    return f"{rank} {text[found.end() :]}" if rank else text[found.end() :]


def bar_label(text: str) -> str | None:
    """What a tqdm progress bar's line is about, without its numbers; None if the line is no bar."""
    if "%" not in text:
        return None
    found = _TQDM.match(text)
    return re.sub(r"\([^)]*\)", "", found["label"]).strip(" :") if found else None


class FilterError(ValueError):
    """A filter that cannot be used, in one sentence."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What lines to look for: all `words` (or the regular expression), of at least this level, or not."""

    words: tuple[str, ...] = ()
    regex: re.Pattern[str] | None = None
    not_words: tuple[str, ...] = ()
    level: Level = Level.DEBUG
    folded: bool = True  # case does not matter: no capital letter was typed

    @property
    def empty(self) -> bool:
        return not (self.words or self.regex or self.not_words or self.level > Level.DEBUG)

    @property
    def searching(self) -> bool:
        """Whether it looks for words, and not only at the level."""
        return bool(self.words or self.regex or self.not_words)

    def matches(self, text: str, level: int) -> bool:
        if level < self.level:
            return False
        if self.regex is not None and self.regex.search(text[:REGEX_REACH]) is None:
            return False
        if self.words or self.not_words:
            hay = text.casefold() if self.folded else text
            if any(word not in hay for word in self.words) or any(word in hay for word in self.not_words):
                return False
        return True

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where to highlight, as (start, end) in the text."""
        if self.regex is not None:
            for found in self.regex.finditer(text[:REGEX_REACH]):
                if found.end() > found.start():
                    yield found.span()
        hay = text.lower() if self.folded else text
        if len(hay) != len(text):  # lower() may grow a string: positions would be off
            return
        for word in self.words:
            start = hay.find(word)
            while start >= 0:
                yield start, start + len(word)
                start = hay.find(word, start + len(word))


REGEX_REACH = 2000  # characters of a line that a regular expression looks at


def parse_filter(text: str, level: Level = Level.DEBUG) -> Filter:
    """A filter as it is typed: words that all must occur, `!word` that must not, `/regex/`, `>=warning`.

    A filter without capital letters ignores case. Raises FilterError.
    """
    text = text.strip()
    folded = text == text.lower()
    if len(text) >= 2 and text.startswith("/") and text.endswith("/"):
        return Filter(regex=_compile(text[1:-1], folded), level=level, folded=folded)
    words: list[str] = []
    not_words: list[str] = []
    for word in text.split():
        if word.startswith(">=") and len(word) > 2:
            names = [name for name in LEVELS if name.startswith(word[2:].lower())]
            if not names:
                raise FilterError(f"{word!r}: levels are debug, info, warning and error")
            level = LEVELS[names[0]]
        elif word.startswith("!") and len(word) > 1:
            not_words.append(word[1:].casefold() if folded else word[1:])
        else:
            words.append(word.casefold() if folded else word)
    return Filter(tuple(words), None, tuple(not_words), level, folded)


def _compile(pattern: str, folded: bool) -> re.Pattern[str]:
    if len(pattern) > 200:
        raise FilterError("the regular expression is too long (200 characters)")
    try:
        tree = sre.parse(pattern)
        compiled = re.compile(pattern, re.IGNORECASE if folded else 0)
    except re.error as error:
        raise FilterError(f"/{pattern}/ is no regular expression: {error.msg}") from None
    except (RecursionError, OverflowError):
        raise FilterError("the regular expression is too deep") from None
    if _explodes(tree, inside=False):
        raise FilterError(f"/{pattern}/ repeats a repeat, which can hang: write it without (…+)+")
    return compiled


def _explodes(tree: Iterable[tuple[object, Any]], *, inside: bool) -> bool:
    """Whether an unbounded repeat stands within another: the shape that takes exponential time."""
    for op, argument in tree:
        unbounded = False
        parts: list[object] = [argument]
        if str(op) in ("MAX_REPEAT", "MIN_REPEAT"):
            most, repeated = argument[1], argument[2]
            unbounded = str(most) == "MAXREPEAT" or int(most) > 20
            if unbounded and inside:
                return True
            parts = [repeated]
        while parts:
            part = parts.pop()
            if isinstance(part, sre.SubPattern):
                if _explodes(part, inside=inside or unbounded):
                    return True
            elif isinstance(part, (list, tuple)):
                parts.extend(part)
    return False


class JournalStore:
    """At most `limit` lines. `base` is the number of the oldest line kept, `end` of the next one to come.

    `version` grows with every change; views compare it instead of being told.
    """

    def __init__(self, limit: int = 200_000) -> None:
        self.limit = limit
        self.base = 0
        self.version = 0
        self.rewritten = -1  # number of the last line whose text was replaced
        self.texts: list[str] = []
        self.times: list[float] = []
        self.levels = bytearray()
        self.decodes: deque[Decode] = deque(maxlen=240)
        self._bar: str | None = None

    @property
    def end(self) -> int:
        return self.base + len(self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    def append(self, lines: Iterable[JournalLine]) -> None:
        """Add lines, and drop the oldest tenth when there are too many.

        A tqdm bar takes the place of the same bar just before it.
        """
        for line in lines:
            text = line.text.rstrip("\n")
            if "\r" in text:
                text = next((piece for piece in reversed(text.split("\r")) if piece.strip()), "")
            text = without_prefix(text)
            if not text.isprintable():
                text = sanitize(text)
            label = bar_label(text)
            if label is not None and label == self._bar and self.texts:
                self.texts[-1] = text
                self.times[-1] = line.at
                self.rewritten = self.end - 1
                continue
            self._bar = label
            self.texts.append(text)
            self.times.append(line.at)
            self.levels.append(Level.MARK if line.mark else level_of(text, line.priority))
            if line.decode is not None:
                self.decodes.append(line.decode)
        self.version += 1
        if len(self.texts) > self.limit:
            drop = len(self.texts) - self.limit + self.limit // 10
            del self.texts[:drop]
            del self.times[:drop]
            del self.levels[:drop]
            self.base += drop

    def scan(self, wanted: Filter, numbers: range) -> list[int]:
        """Numbers in the range whose lines match, ascending."""
        base, texts, levels, matches = self.base, self.texts, self.levels, wanted.matches
        low = max(numbers.start, base)
        return [
            n for n in range(low, min(numbers.stop, self.end)) if matches(texts[n - base], levels[n - base])
        ]

    def stamp(self, number: int) -> str:
        """Local time of day of a line."""
        return _stamp(int(self.times[number - self.base]))


_stamps: dict[int, str] = {}


def _stamp(second: int) -> str:
    """HH:MM:SS; many lines share a second, so the last few are kept."""
    known = _stamps.get(second)
    if known is None:
        if len(_stamps) > 4096:
            _stamps.clear()
        known = _stamps[second] = time.strftime("%H:%M:%S", time.localtime(second))
    return known
