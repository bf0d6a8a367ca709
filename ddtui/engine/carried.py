"""A server's lines taken out of a saved log: what journalctl, docker or kubectl put around them.

journalctl's output modes: systemd's journalctl(1), `-o`. docker's: its json-file driver (`{"log": …}`), and
`docker compose logs` (`name  | …`); `docker logs -t` and `kubectl logs --timestamps`: an RFC 3339 time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ddtui.journald import INVOCATION, message, one

MOST = 0.5  # part of the lines that must have a carrier's form for it to be the carrier
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)"
_JOURNAL = re.compile(
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"  # short, short-precise
    r"|(?:[A-Z][a-z]{2} )?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? [A-Z]\S*"  # short-full
    rf"|{_TIME}|\d{{10}}\.\d{{6}}|\[ *\d+\.\d{{6}}\])"  # short-iso, short-unix, short-monotonic
    r" [^\s\[\]]+ (?P<by>[^\s:\[]*[A-Za-z][^\s:\[]*)(?:\[\d+\])?: ?"
)
_STAMP = re.compile(rf"{_TIME} ")
_BLOB = re.compile(r"\[[\d.]+[KMG]?B? blob data\]")  # what journalctl shows of such a message as text
_COMPOSE = re.compile(r"[\w.-]+ +\| ?")
_DOCKER = "log"  # the key of a line in docker's json-file
Row = tuple[str, str, str]  # a line, the program that wrote it, the id of its start; "": not told


@dataclass(frozen=True, slots=True)
class Carried:
    """The lines of a server's last start in a saved log."""

    lines: tuple[str, ...]
    carrier: str  # "journalctl", "journalctl -o json", …; "": the lines stood alone
    earlier_starts: int  # that were left out
    nulls: int  # messages that journalctl left out, run without -a: long ones, ones with control characters


def last_start(text: str) -> Carried:
    """Of several starts the last: each has settings of its own."""
    lines = [line for line in text.split("\n") if not line.startswith("-- ")]
    objects = [entry for entry in map(_object, lines) if entry is not None]
    if len(objects) > MOST * sum(bool(line.strip()) for line in lines):
        rows, carrier = _of_objects(objects)
        nulls = sum("MESSAGE" in entry and entry["MESSAGE"] is None for entry in objects)
    else:
        plain, carrier = _unwrapped(lines)
        rows = [(line, by, "") for line, by in plain]
        nulls = sum(_BLOB.fullmatch(line) is not None for line, _ in plain)
    begin, earlier = _begin(rows)
    return Carried(tuple(line for line, _, _ in rows[begin:]), carrier, earlier, nulls)


def _object(line: str) -> dict[str, Any] | None:
    """What an object per line is kept in: an entry of the journal, or of docker's."""
    if not line.lstrip("\x1e").startswith("{"):  # json-seq begins with a record separator
        return None
    with suppress(ValueError, RecursionError):
        found = json.loads(line.lstrip("\x1e"))
        return found if isinstance(found, dict) and ("MESSAGE" in found or _DOCKER in found) else None
    return None


def _of_objects(objects: Sequence[dict[str, Any]]) -> tuple[list[Row], str]:
    """The lines of entries, and what keeps such."""
    rows: list[Row] = []
    for entry in objects:
        by, start = one(entry, "SYSLOG_IDENTIFIER"), one(entry, *INVOCATION)
        text = message(entry.get("MESSAGE", entry.get(_DOCKER)))
        rows += [(line, by, start) for line in text.removesuffix("\n").split("\n")]
    return rows, "journalctl -o json" if "MESSAGE" in objects[0] else "docker's json-file"


def _unwrapped(lines: list[str]) -> tuple[list[tuple[str, str]], str]:
    """Lines without what most of them begin with, and who wrote each where that is told."""
    names, writers = [], [""] * len(lines)
    for name, form in (
        ("docker compose logs", _COMPOSE),
        ("journalctl", _JOURNAL),
        ("a time before each line", _STAMP),
    ):
        filled = [line for line in lines if line.strip() and not line[0].isspace()]
        if sum(form.match(line) is not None for line in filled) > MOST * len(filled):
            heads = [form.match(line) for line in lines]
            lines = list(_without(lines, heads))
            writers = [head.groupdict().get("by", "") if head else "" for head in heads]
            names.append(name)
    return list(zip(lines, writers, strict=True)), ", ".join(names)


def _without(lines: Sequence[str], heads: Sequence[re.Match[str] | None]) -> Iterator[str]:
    """What is written behind the head of each line; the further lines of a message are set in as far."""
    inset = 0
    for line, head in zip(lines, heads, strict=True):
        inset = head.end() if head else inset
        yield line if head is None and line[:inset].strip() else line[inset:]


def _begin(rows: Sequence[Row]) -> tuple[int, int]:
    """Where the last start's lines begin, and how many starts were before it.

    By the journal's own ids where it has them; else by what systemd says of starts (`Starting …`, or where it
    does not say that, `Started …`); else by the line that each server writes its arguments in.
    """
    ids = list(dict.fromkeys(start for _, _, start in rows if start))
    if ids:
        return next(at for at, (_, _, start) in enumerate(rows) if start == ids[-1]), len(ids) - 1
    by_systemd = [(at, line) for at, (line, by, _) in enumerate(rows) if by == "systemd"]
    begun = [at for at, line in by_systemd if line.startswith("Starting ")]
    begun = begun or [at for at, line in by_systemd if line.startswith("Started ")]
    if begun:
        cut_off = any(by != "systemd" for _, by, _ in rows[: begun[0]])
        return begun[-1], len(begun) - 1 + cut_off
    servers = [at for at, (line, _, _) in enumerate(rows) if "server_args=ServerArgs(" in line]
    return (servers[-1], len(servers) - 1) if len(servers) > 1 else (0, 0)
