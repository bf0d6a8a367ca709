"""The journal's filter as it is typed: words, `!not`, `/regex/`, `>=warning`; and what it finds in a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ddtui.widgets.journal_lines import LEVELS, Level
from ddtui.widgets.journal_regex import Regex


class FilterError(ValueError):
    """A filter that cannot be used, in one sentence."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What lines to look for: all `words` (or the regular expression), of at least this level, or not."""

    words: tuple[str, ...] = ()
    regex: Regex | None = None
    not_words: tuple[str, ...] = ()
    level: Level = Level.DEBUG
    folded: bool = True  # case does not matter: no capital letter was typed
    inverse: bool = False  # lines that do not match, of at least the level

    @property
    def empty(self) -> bool:
        return not (self.words or self.regex or self.not_words or self.level > Level.DEBUG)

    @property
    def searching(self) -> bool:
        """Whether it looks for words, and not only at the level."""
        return bool(self.words or self.regex or self.not_words)

    def matches(self, text: str, level: int) -> bool:
        return level >= self.level and self._found(text) is not self.inverse

    def _found(self, text: str) -> bool:
        if self.regex is not None and not self.regex.found(text):
            return False
        if self.words or self.not_words:
            hay = text.casefold() if self.folded else text
            if any(word not in hay for word in self.words) or any(word in hay for word in self.not_words):
                return False
        return True

    def may_match(self, texts: Sequence[str]) -> bool:
        """Whether one of many lines could match: one look for the words over all of them, which is quick."""
        if self.inverse or not self.words:
            return True
        hay = "\n".join(texts)
        if self.folded:
            hay = hay.casefold()
        return all(word in hay for word in self.words)

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where to highlight, as (start, end) in the text."""
        if self.inverse:
            return
        if self.regex is not None:
            yield from self.regex.spans(text)
        hay = text.lower() if self.folded else text
        if len(hay) != len(text):  # lower() may grow a string: positions would be off
            return
        for word in self.words:
            start = hay.find(word)
            while start >= 0:
                yield start, start + len(word)
                start = hay.find(word, start + len(word))


LONGEST_PATTERN = 200  # characters of a regular expression
_REGEX = re.compile(r"/(?P<pattern>.+)/(?:\s+(?P<rest>.*))?")


def parse_filter(text: str, level: Level = Level.DEBUG) -> Filter:
    """A filter as it is typed: `/regex/`, words that all must occur, `!word` that must not, `>=warning`.

    `! ` or `!/` in front inverts it. Without capital letters it ignores case. Raises FilterError.
    """
    text = text.strip()
    if text.startswith(("! ", "!/")):
        return replace(parse_filter(text[1:], level), inverse=True)
    folded = text == text.lower()
    regex = None
    if written := _REGEX.fullmatch(text):
        regex, text = _compile(written["pattern"], folded), written["rest"] or ""
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
    return Filter(tuple(words), regex, tuple(not_words), level, folded)


def _compile(pattern: str, folded: bool) -> Regex:
    if len(pattern) > LONGEST_PATTERN:
        raise FilterError(f"the regular expression is too long ({LONGEST_PATTERN} characters)")
    try:
        return Regex(pattern, folded)
    except re.error as error:
        raise FilterError(f"/{pattern}/ is no regular expression: {error.msg}") from None
    except (RecursionError, OverflowError):
        raise FilterError("the regular expression is too deep") from None
