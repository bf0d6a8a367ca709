"""A log that is plain text: a file on the host, or what a command prints. Its lines as the journal's are.

A line's time is the one that it begins with: RFC 3339 (docker, kubectl), else SGLang's own `[2026-12-01
09:21:28 TP0]`, in the host's time zone; a line without one has that of the line before. No line says which
start it belongs to: that goes by time.

Commands: `stat -L -c '%s %i' -- FILE`, `date +%z`, `dd if=FILE iflag=skip_bytes,count_bytes skip=N count=N
status=none`, `tail -c +N -F -- FILE`, and the commands that are given.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone

from ddtui.host.base import Command, CommandFailed, Completed, Host, LinkLost, NotPermitted, Unreachable
from ddtui.host.journal import JournalEntry, safe
from ddtui.sanitize import decode

AT_ONCE = 8 * 1024 * 1024  # bytes of a log that are read at most at a time
LINE = 400  # bytes that a line has, roughly
PAUSE = 1.0  # seconds before a command that ended is started again
_RFC = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d) ?")
_OWN = re.compile(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")


@dataclass(slots=True)
class Reader:
    """Lines in order → entries."""

    zone: timezone
    at_us: int = 0  # of the line before

    def entry(self, line: bytes, cursor: str = "") -> JournalEntry:
        """The entry; where `cursor` is empty, its RFC 3339 time is the cursor."""
        line = line.rstrip(b"\r\n")
        if found := _RFC.match(line):
            whole = datetime.fromisoformat((found[1] + found[3].replace(b"Z", b"+00:00")).decode())
            self.at_us = int(whole.timestamp()) * 1_000_000 + int(float(found[2] or b"0") * 1e6)
            cursor = cursor or found[0].decode().strip()
            line = line[found.end() :]
        elif found := _OWN.search(line[:200]):
            with suppress(ValueError):
                at = datetime.fromisoformat(found[1].decode()).replace(tzinfo=self.zone)
                self.at_us = int(at.timestamp()) * 1_000_000
        text, spans = safe(decode(line))
        return JournalEntry(cursor, self.at_us or int(time.time() * 1e6), text, spans=spans)


def zone_of(done: Completed) -> timezone:
    """The answer to `date +%z`; UTC where it is none."""
    found = re.fullmatch(r"([+-])(\d\d)(\d\d)", done.out.strip())
    if not found:
        return UTC
    offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
    return timezone(-offset if found[1] == "-" else offset)


def chosen(
    entries: Sequence[JournalEntry], since: float | None, until: float | None, lines: int | None
) -> list[JournalEntry]:
    """Those of a time, the last `lines` of them. A log has whole seconds: `since` is rounded down."""
    found = [
        entry
        for entry in entries
        if (since is None or entry.realtime_us >= int(since) * 1_000_000)
        and (until is None or entry.realtime_us <= until * 1e6)
    ]
    return found if lines is None else found[-lines:] if lines else []


@dataclass(frozen=True, slots=True)
class FileLog:
    """A file that the server's lines go to. A cursor is `inode:offset` of the line's first byte."""

    path: str

    async def _size(self, host: Host) -> tuple[int, str, timezone]:
        stat, date = await host.batch(
            [Command(("stat", "-L", "-c", "%s %i", "--", self.path)), Command(("date", "+%z"))]
        )
        if not stat.ok:
            said = stat.last_words
            if "Permission denied" in said:
                raise NotPermitted(f"this user may not read the log {self.path} on {host.name}")
            raise CommandFailed(f"the log {self.path} on {host.name} cannot be read: {said}")
        size, inode = stat.out.split()
        return int(size), inode, zone_of(date)

    async def _part(self, host: Host, begin: int, end: int, inode: str, zone: timezone) -> list[JournalEntry]:
        """The whole lines between two places."""
        begin = max(begin, 0)
        words = (f"skip={begin}", f"count={end - begin}", "status=none")
        done = await host.run(("dd", f"if={self.path}", "iflag=skip_bytes,count_bytes", *words), timeout=60.0)
        if not done.ok:
            raise CommandFailed(f"the log {self.path} on {host.name} cannot be read: {done.last_words}")
        reader, at, entries = Reader(zone), begin, []
        for number, line in enumerate(done.stdout.splitlines(keepends=True)):
            if line.endswith(b"\n") and not (
                number == 0 and begin
            ):  # else only the end, or the start, of one
                entries.append(reader.entry(line, f"{inode}:{at}"))
            at += len(line)
        return entries

    async def lines(
        self, host: Host, since: float | None, until: float | None, lines: int | None
    ) -> list[JournalEntry]:
        size, inode, zone = await self._size(host)
        wanted = AT_ONCE if lines is None else min(AT_ONCE, 64 * 1024 + lines * LINE)
        return chosen(await self._part(host, size - wanted, size, inode, zone), since, until, lines)

    async def earlier(self, host: Host, before: str, count: int) -> list[JournalEntry]:
        _, inode, zone = await self._size(host)
        known, _, offset = before.partition(":")
        if known != inode:
            return []  # another file by now
        end = int(offset)
        found = await self._part(host, end - 64 * 1024 - count * LINE, end, inode, zone)
        return found[-count:]

    async def follow(self, host: Host, after: str | None, lines: int) -> AsyncIterator[JournalEntry]:
        known = after is not None  # the line at the cursor has been seen
        while True:
            try:
                size, inode, zone = await self._size(host)
                if after is None:
                    tail = await self.lines(host, None, None, lines)
                    for entry in tail:
                        yield entry
                    known = bool(tail)
                    after = tail[-1].cursor if tail else f"{inode}:{size}"
                same, _, offset = after.partition(":")
                at, reader = int(offset), Reader(zone)
                if same != inode or at > size:
                    text = f"lines may be missing here: {self.path} is another file now"
                    yield JournalEntry(f"{inode}:0", int(time.time() * 1e6), text, 4, gap=True)
                    at, known = 0, False
                async with host.follow(("tail", "-c", f"+{at + 1}", "-F", "--", self.path)) as stream:
                    async for line in stream:
                        entry = reader.entry(line, f"{inode}:{at}")
                        at += len(line) + 1
                        if not known:
                            yield entry
                        after, known = entry.cursor, False
                    known = True
            except (LinkLost, Unreachable):
                known = True
                await host.connected()
            except CommandFailed:
                pass  # not there yet
            await asyncio.sleep(PAUSE)


@dataclass(frozen=True, slots=True)
class CommandLog:
    """What a command prints. With `since`, an option that takes a time, the cursor is a line's time; without,
    its number, which holds as long as the command prints the same lines again.
    """

    read: tuple[str, ...]
    go_on: tuple[str, ...]
    since: str | None = None
    last: tuple[str, ...] = ()  # the service, say, which comes after the options
    sudo: bool = False

    def _argv(self, base: tuple[str, ...], after: str | None) -> tuple[str, ...]:
        return (*base, *((self.since, after) if self.since and after else ()), *self.last)

    def _numbered(self, entry: JournalEntry, number: int) -> JournalEntry:
        return entry if self.since else replace(entry, cursor=str(number))

    async def lines(
        self, host: Host, since: float | None, until: float | None, lines: int | None
    ) -> list[JournalEntry]:
        argv = self._argv(self.read, str(int(since)) if since is not None else None)
        (date,) = await host.batch([Command(("date", "+%z"))])
        done = await host.run(argv, sudo=self.sudo, timeout=60.0)
        if not done.ok:
            raise CommandFailed(f"the log cannot be read: `{argv[0]}` on {host.name}: {done.last_words}")
        reader = Reader(zone_of(date))
        entries = [
            self._numbered(reader.entry(line), number) for number, line in enumerate(done.stdout.splitlines())
        ]
        return chosen(entries, since, until, lines)

    async def earlier(self, host: Host, before: str, count: int) -> list[JournalEntry]:
        entries = await self.lines(host, None, None, None)
        places = [number for number, entry in enumerate(entries) if entry.cursor == before]
        return entries[max(places[0] - count, 0) : places[0]] if places else []

    async def follow(self, host: Host, after: str | None, lines: int) -> AsyncIterator[JournalEntry]:
        began = after is not None
        while True:
            try:
                if not began:
                    found = await self.lines(host, None, None, None)
                    for entry in found[-lines:] if lines else ():
                        yield entry
                    after, began = (found[-1].cursor if found else None), True
                (date,) = await host.batch([Command(("date", "+%z"))])
                reader, number, resume = Reader(zone_of(date)), 0, after
                async with host.follow(self._argv(self.go_on, after), sudo=self.sudo) as stream:
                    async for line in stream:
                        entry = self._numbered(reader.entry(line), number)
                        number += 1
                        if resume is not None and not _later(entry.cursor, resume):
                            continue
                        resume, after = None, entry.cursor
                        yield entry
            except (LinkLost, Unreachable):
                await host.connected()
            except CommandFailed:
                pass  # no server, no log
            await asyncio.sleep(PAUSE)


def _later(cursor: str, than: str) -> bool:
    if cursor.isdigit() and than.isdigit():
        return int(cursor) > int(than)
    return cursor > than
