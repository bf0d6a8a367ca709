"""What a line of the journal is: its level, SGLang's prefix, progress bars, tracebacks."""

from __future__ import annotations

import re
from enum import IntEnum


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
LEVEL_NAMES = ("debug", "info", "warning", "error")

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


# tracebacks: a head, indented lines, the exception; and again after "During handling of the above exception"
TRACE_HEAD = "Traceback (most recent call last):"
_RAISED = re.compile(r"(?![A-Z]+:)[A-Za-z_][\w.]*(?:: |:?$)")
_CHAINED = ("During handling of the above exception", "The above exception was the", TRACE_HEAD)


def begins_trace(text: str) -> bool:
    return text.endswith(TRACE_HEAD)


def in_trace(text: str, *, raised: bool) -> bool:
    """Whether a line goes on with the traceback before it. `raised`: its exception was named already."""
    if not text.strip() or text.startswith(_CHAINED):
        return True
    return text[0] in " \t" if raised else text[0] in " \t" or raises(text)


def raises(text: str) -> bool:
    """Whether a line of a traceback names the exception: `torch.OutOfMemoryError: CUDA out of memory`."""
    return _RAISED.match(text) is not None
