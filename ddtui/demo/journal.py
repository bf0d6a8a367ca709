"""The demo host's journal: entries as journald keeps them, on disk, with cursors and followers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

from ddtui.demo.clock import Clock

Fields: TypeAlias = Mapping[str, str]

KEPT = 60_000  # entries; older ones are vacuumed
BIG = 4096  # bytes: journalctl -o json without -a shows longer fields as null


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: `number` counts on and on; times in microseconds."""

    number: int
    realtime: int
    monotonic: int
    boot_id: str
    fields: Fields

    @property
    def hash(self) -> str:
        digest = hashlib.blake2b(f"{self.number}.{self.realtime}".encode(), digest_size=8).hexdigest()
        return digest.lstrip("0") or "0"

    def cursor(self, sequence: str) -> str:
        where = f"s={sequence};i={self.number:x};b={self.boot_id}"
        return f"{where};m={self.monotonic:x};t={self.realtime:x};x={self.hash}"


@dataclass(frozen=True, slots=True)
class Cursor:
    """What a cursor string says."""

    sequence: str
    number: int
    realtime: int


class BadCursor(ValueError):
    """Not a cursor."""


def parse_cursor(text: str) -> Cursor:
    """Raises BadCursor."""
    parts = dict(re.findall(r"(?:\A|;)([sibmtx])=([0-9a-f]+)(?=;|\Z)", text))
    try:
        return Cursor(parts["s"], int(parts["i"], 16), int(parts["t"], 16))
    except (KeyError, ValueError):
        raise BadCursor(text) from None


@dataclass
class Journal:
    """All entries of all boots, in order."""

    path: Path
    clock: Clock
    machine_id: str
    boot_id: str
    hostname: str
    entries: deque[Entry] = field(default_factory=deque)
    sequence: str = ""
    _followers: list[Callable[[Entry], None]] = field(default_factory=list)
    _next: int = 1
    _last_realtime: int = 0

    def __post_init__(self) -> None:
        if self.path.exists():
            self._load()
        if not self.sequence:
            self.sequence = uuid4().hex
            self.path.write_text(json.dumps({"sequence": self.sequence}) + "\n")
        self._file = self.path.open("a", encoding="utf-8", buffering=1)

    def _load(self) -> None:
        with self.path.open(encoding="utf-8") as file:
            for line in file:
                try:
                    record = json.loads(line)
                except ValueError:  # cut off by a crash
                    continue
                if isinstance(record, dict):
                    self.sequence = record["sequence"]
                    continue
                entry = Entry(record[0], record[1], record[2], record[3], record[4])
                self.entries.append(entry)
                self._next = entry.number + 1
                self._last_realtime = max(self._last_realtime, entry.realtime)
        if len(self.entries) > KEPT:
            while len(self.entries) > KEPT // 2:
                self.entries.popleft()
            lines = [json.dumps({"sequence": self.sequence})] + [_record(entry) for entry in self.entries]
            new = self.path.with_suffix(".new")
            new.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
            new.replace(self.path)

    @property
    def newest_realtime(self) -> float:
        """Unix time of the newest entry; 0 if there is none."""
        return self._last_realtime / 1e6

    def add(self, fields: Fields) -> Entry:
        """Append an entry, now by the host's clock, and tell the followers.

        Fields may hold lone surrogates: bytes that are no UTF-8.
        """
        at = self.clock.now()
        realtime = max(int(at * 1e6), self._last_realtime + 1)
        entry = Entry(
            self._next, realtime, int(self.clock.monotonic(realtime / 1e6) * 1e6), self.boot_id, fields
        )
        self._next += 1
        self._last_realtime = realtime
        self.entries.append(entry)
        if len(self.entries) > KEPT:
            self.entries.popleft()
        if not self._file.closed:
            self._file.write(_record(entry) + "\n")
        for follower in tuple(self._followers):
            follower(entry)
        return entry

    def common(self) -> dict[str, str]:
        """The fields that every entry has."""
        return {
            "_BOOT_ID": self.boot_id,
            "_MACHINE_ID": self.machine_id,
            "_HOSTNAME": self.hostname,
            "_RUNTIME_SCOPE": "system",
        }

    def position(self, cursor: Cursor) -> float:
        """The number of the cursor's entry; one from another journal is placed by its time, between two."""
        if cursor.sequence == self.sequence:
            return cursor.number
        return next((e.number for e in self.entries if e.realtime > cursor.realtime), self._next) - 0.5

    def follow(self) -> Follower:
        return Follower(self)

    def close(self) -> None:
        """What is added from now on is lost."""
        self._file.close()


class Follower:
    """New entries as they come. Use as a context manager."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._queue: asyncio.Queue[Entry] = asyncio.Queue()

    def __enter__(self) -> Follower:
        self._journal._followers.append(self._queue.put_nowait)
        return self

    def __exit__(self, *_: object) -> None:
        self._journal._followers.remove(self._queue.put_nowait)

    async def next(self) -> Entry:
        return await self._queue.get()


def _record(entry: Entry) -> str:
    return json.dumps([entry.number, entry.realtime, entry.monotonic, entry.boot_id, dict(entry.fields)])


# -- matching -----------------------------------------------------------------------------------------------

Match: TypeAlias = Sequence[Mapping[str, Sequence[str]]]  # any of: all fields of: any value of


def matches(entry: Entry, groups: Sequence[Match]) -> bool:
    """Whether every group has an alternative whose fields all have one of the values wanted."""
    return all(
        any(
            all(entry.fields.get(name) in values for name, values in alternative.items())
            for alternative in group
        )
        for group in groups
    )


def unit_match(unit: str) -> Match:
    """What `journalctl -u UNIT` shows: its processes' lines, and what systemd and others say about it."""
    return (
        {"_SYSTEMD_UNIT": (unit,)},
        {"_PID": ("1",), "UNIT": (unit,)},
        {"_UID": ("0",), "OBJECT_SYSTEMD_UNIT": (unit,)},
        {"MESSAGE_ID": ("fc2e22bc6ee647b6b90729ab34a250b1",), "_UID": ("0",), "COREDUMP_UNIT": (unit,)},
    )


# -- showing ------------------------------------------------------------------------------------------------

_PLAIN = re.compile(r"[\t\n -~\u00a0-\ud7ff\ue000-\U0010ffff]*\Z")


def as_json(entry: Entry, sequence: str, *, all_fields: bool, only: Sequence[str] = ()) -> str:
    """The entry as `journalctl -o json` prints it.

    Text with control characters (all ANSI colour, `\\r`) or bad UTF-8 comes as a list of bytes; text over
    4096 bytes as null, unless `all_fields`.
    """
    out: dict[str, object] = {
        "__CURSOR": entry.cursor(sequence),
        "__REALTIME_TIMESTAMP": str(entry.realtime),
        "__MONOTONIC_TIMESTAMP": str(entry.monotonic),
        "_BOOT_ID": entry.boot_id,
    }
    for name, text in entry.fields.items():
        if only and name not in only:
            continue
        data = text.encode("utf-8", "surrogateescape")
        if len(data) > BIG and not all_fields:
            out[name] = None
        elif _PLAIN.match(text):
            out[name] = text
        else:
            out[name] = list(data)
    return json.dumps(out, ensure_ascii=False, separators=(",", ":"))
