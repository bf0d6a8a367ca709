"""The journal of one unit: followed without gap or repeat, read for one start, or read backwards.

Entries are asked for as JSON with `-a`: without it every field over 4096 bytes is null. Text is decoded,
redacted and made inert here, once; colours stay as spans. Pieces of an overlong line are joined again.

Commands, with `--user` for a user unit:
`journalctl -u UNIT -o json -a --no-pager --output-fields=…` and one of `-n N`, `-f -m -n all [--cursor=C]`,
`--since=@S [--until=@S]`, `--cursor=C -r -n N`;
for a start whose time is not known, the matches `_SYSTEMD_INVOCATION_ID=X + INVOCATION_ID=X +
USER_INVOCATION_ID=X` in place of `-u UNIT`;
where nothing came, to see whether we may read it, `journalctl -u UNIT -n 0 --no-pager`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from ddtui import redact, sanitize
from ddtui.host.base import CommandFailed, Completed, Host, LinkLost, NotPermitted, Unreachable
from ddtui.journald import INVOCATION, message, one
from ddtui.profile import Scope
from ddtui.sanitize import Span

FIELDS = (
    *(
        "MESSAGE",
        "PRIORITY",
        "SYSLOG_IDENTIFIER",
        "_PID",
        "_SYSTEMD_UNIT",
        "_SYSTEMD_USER_UNIT",
        "UNIT",
        "USER_UNIT",
    ),
    *(
        "_SYSTEMD_INVOCATION_ID",
        "INVOCATION_ID",
        "USER_INVOCATION_ID",
        "_STREAM_ID",
        "_LINE_BREAK",
        "N_DROPPED",
    ),
)
TEXT_LIMIT = 4 * 1024 * 1024  # characters of one joined line
RESTART_PAUSE = 0.5  # seconds before a journalctl that ended is started again
_INFO = 6


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One line of the journal, safe to show."""

    cursor: str
    realtime_us: int  # when, by the host's clock, microseconds since 1970 UTC
    text: str  # redacted and inert; of a progress bar its last piece
    priority: int = _INFO  # 0 emergency … 7 debug
    pid: int | None = None
    identifier: str = ""
    unit: str = ""
    invocation: str = ""  # of the start that it belongs to; "" if the entry does not say
    boot: str = ""
    dropped: int = 0  # journald says that it threw away so many lines of this unit (rate limit)
    gap: bool = False  # not from the journal: lines before this one are missing, `text` says why
    spans: tuple[Span, ...] = ()  # colours in `text`


async def follow(
    host: Host, unit: str, scope: Scope, *, after: str | None = None, lines: int = 100, sudo: bool = False
) -> AsyncIterator[JournalEntry]:
    """The unit's entries from now on, for ever, beginning with the last `lines` or after the cursor `after`.

    Goes on after a lost link or a reboot of the host exactly where it was. Where the journal no longer holds
    the place (vacuumed, rotated away), an entry with `gap` set comes first. Raises NotPermitted if this user
    may not read the journal, and what `host.connected()` raises when the link is refused or closed. Give it
    to `contextlib.aclosing` if you leave it early.
    """
    place = _Place(after)
    while place.cursor is None and not place.empty:
        try:
            tail = await read(host, unit, scope, lines=max(lines, 1), sudo=sudo)
        except (LinkLost, Unreachable):
            await _link_back(host)
            continue
        for entry in tail:
            place.move(entry)
            if lines:
                yield entry
        place.empty = not tail
    while True:
        words = ["-f", "-m", "-n", "all", *([f"--cursor={place.cursor}"] if place.cursor else [])]
        if place.cursor is None and place.since is not None:
            words.append(f"--since=@{place.since}")
        awaited = place.cursor  # the first entry is the one that we have; if not, some are missing
        reader = EntryReader()
        try:
            async with host.follow(_journalctl(unit, scope, words), sudo=sudo) as stream:
                async for line in stream:
                    if (new := reader.feed(line)) is None:
                        continue
                    if awaited is not None:
                        known, awaited = same_place(new.cursor, awaited), None
                        if known:
                            continue
                        yield place.gap(new)
                    place.move(new)
                    yield new
            await asyncio.sleep(RESTART_PAUSE)  # ended on the host (killed, out of memory): begin again
        except (LinkLost, Unreachable):
            await _link_back(host)
        except CommandFailed as error:
            if "cursor" in str(error) and place.cursor is not None:
                place.forget_cursor()
            await asyncio.sleep(RESTART_PAUSE)


async def read(
    host: Host,
    unit: str,
    scope: Scope,
    *,
    invocation: str | None = None,
    since: float | None = None,
    until: float | None = None,
    lines: int | None = None,
    sudo: bool = False,
    timeout: float = 60.0,
) -> list[JournalEntry]:
    """Entries of the unit, oldest first: of one start (`invocation`), of a time (unix seconds by the host's
    clock), the last `lines`.

    An invocation should come with `since`, the time of that start: lines of processes that die at once carry
    no invocation, and those of the run before can carry the new one. Raises NotPermitted if this user may not
    read the journal, CommandFailed.
    """
    words = [] if since is None else [f"--since=@{since:.6f}"]
    if until is not None:
        words.append(f"--until=@{until:.6f}")
    if lines is not None:
        words += ["-n", str(lines)]
    if invocation and since is None:
        names = ("_SYSTEMD_INVOCATION_ID", "INVOCATION_ID", "USER_INVOCATION_ID")
        matches = [word for name in names for word in (f"{name}={invocation}", "+")][:-1]
        argv = _journalctl(None, scope, [*words, *matches])
    else:
        argv = _journalctl(unit, scope, words)
    done = await host.run(argv, sudo=sudo, timeout=timeout)
    entries = _entries(done)
    if not entries:
        await _demand_rights(host, unit, scope, sudo)
    if not done.ok:
        raise CommandFailed(f"the journal of {unit} on {host.name} cannot be read: {done.last_words}")
    if invocation:
        entries = [entry for entry in entries if entry.invocation in (invocation, "")]
    return entries


async def earlier(
    host: Host, unit: str, scope: Scope, before: str, count: int, *, sudo: bool = False, timeout: float = 60.0
) -> list[JournalEntry]:
    """Up to `count` entries before the cursor `before`, oldest first. Raises NotPermitted, CommandFailed."""
    words = [f"--cursor={before}", "-r", "-n", str(count + 1)]
    done = await host.run(_journalctl(unit, scope, words), sudo=sudo, timeout=timeout)
    if not done.ok:
        raise CommandFailed(f"the journal of {unit} on {host.name} cannot be read: {done.last_words}")
    newest_first = [line for line in done.stdout.split(b"\n") if line]
    entries = _entries(replace(done, stdout=b"\n".join(reversed(newest_first))))
    if not entries:
        await _demand_rights(host, unit, scope, sudo)
    return [entry for entry in entries if not same_place(entry.cursor, before)][-count:]


class EntryReader:
    """Lines of `journalctl -o json` → entries. Joins the pieces that journald makes of an overlong line."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[str]] = {}  # by stream

    def feed(self, line: bytes) -> JournalEntry | None:
        """The entry, or None for a piece that goes on in the next one, or a line that is no entry."""
        try:
            fields = json.loads(line)
            cursor, when = fields["__CURSOR"], int(fields["__REALTIME_TIMESTAMP"])
        except (ValueError, KeyError, TypeError):
            return None
        text = message(fields.get("MESSAGE"))
        stream = one(fields, "_STREAM_ID")
        if stream:
            before = self._pieces.get(stream)
            if one(fields, "_LINE_BREAK") == "line-max":
                pieces = self._pieces.setdefault(stream, [])
                if sum(map(len, pieces)) < TEXT_LIMIT:
                    pieces.append(text)
                return None
            if before is not None:
                del self._pieces[stream]
                text = "".join((*before, text))
        shown, spans = safe(text)
        pid, dropped = one(fields, "_PID"), one(fields, "N_DROPPED")
        priority = one(fields, "PRIORITY")
        return JournalEntry(
            cursor=cursor,
            realtime_us=when,
            text=shown,
            priority=int(priority) if priority.isdigit() else _INFO,
            pid=int(pid) if pid.isdigit() else None,
            identifier=sanitize.line(one(fields, "SYSLOG_IDENTIFIER")),
            unit=one(fields, "USER_UNIT", "UNIT", "_SYSTEMD_USER_UNIT", "_SYSTEMD_UNIT"),
            invocation=one(fields, *INVOCATION),
            boot=one(fields, "_BOOT_ID"),
            dropped=int(dropped) if dropped.isdigit() else 0,
            spans=spans,
        )


def same_place(one: str, other: str) -> bool:
    """Whether two cursors name the same entry. A file that was rotated keeps boot, times and hash."""
    return one == other or [part for part in one.split(";") if part[:2] in _WHERE] == [
        part for part in other.split(";") if part[:2] in _WHERE
    ]


_WHERE = ("b=", "m=", "t=", "x=")


@dataclass
class _Place:
    """How far a follower has come."""

    cursor: str | None
    since: float | None = None  # begin by time, where there is no cursor any more
    at_us: int | None = None  # time of the last entry
    empty: bool = False  # nothing was there when we began: take all that comes

    def move(self, entry: JournalEntry) -> None:
        self.cursor, self.at_us, self.since = entry.cursor, entry.realtime_us, None

    def forget_cursor(self) -> None:
        at_us = self.at_us if self.at_us is not None else _cursor_time(self.cursor or "")
        self.since = (at_us or int(time.time() * 1e6)) / 1e6
        self.cursor = None

    def gap(self, entry: JournalEntry) -> JournalEntry:
        """The notice that lines may be missing before this entry."""
        at_us = self.at_us if self.at_us is not None else _cursor_time(self.cursor or "")
        since = f" after {_clock(at_us)} UTC" if at_us else ""
        return JournalEntry(
            cursor=self.cursor or entry.cursor,
            realtime_us=entry.realtime_us,
            text=f"lines{since} may be missing here: the host's journal no longer holds the place"
            f" where it was left; it goes on at {_clock(entry.realtime_us)} UTC",
            priority=4,
            gap=True,
        )


def _journalctl(unit: str | None, scope: Scope, words: Sequence[str]) -> list[str]:
    argv = ["journalctl", *(["--user"] if scope is Scope.USER else []), *(["-u", unit] if unit else [])]
    return [*argv, "-o", "json", "-a", "--no-pager", f"--output-fields={','.join(FIELDS)}", *words]


def _entries(done: Completed) -> list[JournalEntry]:
    reader = EntryReader()
    fed = (reader.feed(line) for line in done.stdout.split(b"\n"))
    return [entry for entry in fed if entry is not None]


async def _demand_rights(host: Host, unit: str, scope: Scope, sudo: bool) -> None:
    """Raise NotPermitted if nothing came because this user sees nothing.

    journalctl exits with 0 all the same, and with `-o json` keeps the hint to itself: so it is asked without.
    """
    argv = ["journalctl", *(["--user"] if scope is Scope.USER else []), "-u", unit, "-n", "0", "--no-pager"]
    said = (await host.run(argv, sudo=sudo)).err
    hidden = "not seeing messages from other users" in said and scope is Scope.SYSTEM
    if hidden or "insufficient permissions" in said:
        raise NotPermitted(
            f"this user may not read the journal of {unit} on {host.name}",
            "Put the user into the group systemd-journal (or adm) and log in again.",
        )


async def _link_back(host: Host) -> None:
    await asyncio.sleep(0)
    await host.connected()


def safe(text: str) -> tuple[str, tuple[Span, ...]]:
    """A line as it may be shown, and its colours."""
    text = redact.redact(sanitize.last_piece(text))
    return sanitize.styled(text)


def _cursor_time(cursor: str) -> int | None:
    """Microseconds since 1970 from a cursor."""
    for part in cursor.split(";"):
        if part.startswith("t="):
            with suppress(ValueError):
                return int(part[2:], 16)
    return None


def _clock(us: int) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(us / 1e6))
