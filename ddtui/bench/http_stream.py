"""Reads HTTP/1.x responses and event streams from bytes as they come: pure, incremental, strict.

`ResponseReader` undoes the framing (RFC 9112), `EventReader` splits a server-sent event stream (the WHATWG
HTML standard, section 9.2.6). Neither decodes text, strips anything from data, nor limits the length of a
line; both give the same result however the bytes are cut. Part of what is sent to the inference host: Python
3.9, standard library only.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MOST_HEAD = 262_144  # bytes of status line and headers, or of trailers; more is not HTTP

_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: ([^\r\n]*))?\Z")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;.*)?\Z")
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")


class _Malformed(Exception):
    """What came is not an HTTP/1.x response: one sentence."""


class ResponseReader:
    """One response. Feed it what arrives; it gives back the body's bytes. Interim ones (1xx) are skipped."""

    def __init__(self) -> None:
        self.status = 0  # 0: the head has not come yet
        self.reason = ""
        self.headers: dict[str, str] = {}  # names in lower case; repeated ones joined by a comma
        self.complete = False  # the whole body has come
        self.malformed = ""  # why this is no HTTP/1.x response; nothing is read after that
        self.keep_alive = False  # whether another request may follow on this connection
        self.leftover = b""  # what came after the end
        self.received = 0  # bytes in all
        self._buffer = bytearray()
        self._part = "head"  # head, sized, size line, chunk, chunk end, trailers, to the end
        self._left = 0  # bytes left of a sized body or of the chunk

    def feed(self, data: bytes) -> bytes:
        """The body's bytes that `data` completes; b"" if none. `malformed` tells what stopped it."""
        self.received += len(data)
        if self._part == "size line" and not self._buffer:
            whole = _whole_chunk(data)
            if whole is not None:
                return whole
        if self.malformed:
            return b""
        if self.complete:
            self.leftover += data
            return b""
        if self._part == "to the end":
            return data
        if self._part == "sized" and not self._buffer:
            return self._sized(data)
        self._buffer += data
        body: list[bytes] = []
        try:
            while self._advance(body):
                pass
        except _Malformed as problem:
            self.malformed = str(problem)
        return body[0] if len(body) == 1 else b"".join(body)

    def end(self) -> None:
        """The connection was closed. A body without a length is complete by that; `complete` tells."""
        if self._part == "to the end":
            self.complete = True
        self.keep_alive = False

    @property
    def chunked(self) -> bool:
        return self._part in ("size line", "chunk", "chunk end", "trailers")

    def _sized(self, data: bytes) -> bytes:
        body, rest = data[: self._left], data[self._left :]
        self._left -= len(body)
        if not self._left:
            self._finish(rest)
        return body

    def _finish(self, rest: bytes) -> None:
        self.complete = True
        self.leftover += rest
        self._buffer = bytearray()

    def _advance(self, body: list[bytes]) -> bool:
        """Take one part from the buffer; False when more bytes are needed."""
        buffer = self._buffer
        if self._part == "size line":
            end = buffer.find(b"\r\n")
            if end < 0:
                if len(buffer) > MOST_HEAD:
                    raise _Malformed("a chunk's size line does not end")
                return False
            size = _SIZE.match(bytes(buffer[:end]))
            if not size:
                raise _Malformed(f"{bytes(buffer[:40])!r} stands where a chunk's size should")
            del buffer[: end + 2]
            self._left = int(size[1], 16)
            self._part = "chunk" if self._left else "trailers"
            return True
        if self._part == "chunk":
            if not buffer:
                return False
            piece = bytes(buffer[: self._left])
            del buffer[: self._left]
            self._left -= len(piece)
            body.append(piece)
            if not self._left:
                self._part = "chunk end"
            return True
        if self._part == "chunk end":
            if len(buffer) < 2:
                return False
            if buffer[:2] != b"\r\n":
                raise _Malformed(f"a chunk is longer than its size says: {bytes(buffer[:40])!r}")
            del buffer[:2]
            self._part = "size line"
            return True
        if self._part == "trailers":
            end = buffer.find(b"\r\n")
            if end < 0:
                if len(buffer) > MOST_HEAD:
                    raise _Malformed("the trailers do not end")
                return False
            del buffer[: end + 2]
            if end == 0:
                self._finish(bytes(buffer))
            return end != 0
        if self._part == "sized":
            rest = bytes(buffer)
            buffer.clear()
            body.append(self._sized(rest))
            return False
        return self._head(body)

    def _head(self, body: list[bytes]) -> bool:
        buffer = self._buffer
        start = bytes(buffer[:5])
        if start and not b"HTTP/".startswith(start):
            raise _Malformed(f"the answer is not HTTP: it begins with {bytes(buffer[:40])!r}")
        end = _END_OF_HEAD.search(buffer)
        if not end:
            if len(buffer) > MOST_HEAD:
                raise _Malformed("the answer's headers do not end")
            return False
        lines = bytes(buffer[: end.start()]).replace(b"\r\n", b"\n").split(b"\n")
        del buffer[: end.end()]
        status = _STATUS.match(lines[0])
        if not status:
            raise _Malformed(f"{lines[0][:80]!r} is not a status line of HTTP/1.0 or 1.1")
        headers: dict[str, str] = {}
        for line in lines[1:]:
            name, colon, value = line.partition(b":")
            if not colon or not _NAME.match(name):
                raise _Malformed(f"{line[:80]!r} is not a header")
            key = name.decode("ascii").lower()
            text = value.strip(b" \t").decode("latin-1")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        code = int(status[1])
        if 100 <= code < 200:
            return True  # another head follows
        self.status = code
        self.reason = (status[2] or b"").decode("latin-1")
        self.headers = headers
        self._frame(new=lines[0].startswith(b"HTTP/1.1"))
        if self._part == "to the end":
            body.append(bytes(buffer))
            buffer.clear()
            return False
        return not self.complete

    def _frame(self, *, new: bool) -> None:
        """How the body ends (RFC 9112 section 6.3)."""
        headers = self.headers
        options = [word.strip().lower() for word in headers.get("connection", "").split(",")]
        self.keep_alive = "close" not in options and (new or "keep-alive" in options)
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise _Malformed(f"the body is compressed ({headers['content-encoding']}), unasked")
        coding = headers.get("transfer-encoding", "").lower()
        if self.status in (204, 304):
            self._finish(bytes(self._buffer))
        elif coding:
            if coding != "chunked":
                raise _Malformed(f"the body has the transfer coding {coding!r}, unasked")
            self._part = "size line"
        elif "content-length" in headers:
            sizes = {size.strip() for size in headers["content-length"].split(",")}
            (size, *others) = sizes
            if others or not size.isdigit() or not size.isascii():
                raise _Malformed(f"{headers['content-length']!r} is not a content length")
            self._left = int(size)
            self._part = "sized"
            if not self._left:
                self._finish(bytes(self._buffer))
        else:
            self._part = "to the end"
            self.keep_alive = False


def _whole_chunk(data: bytes) -> bytes | None:
    """The body of `data` if it is exactly one chunk, as a server's single write is; else None."""
    end = data.find(b"\r\n", 1, 9)
    if end < 0 or not data[:end].isalnum() or data[1:2] in b"xX":
        return None
    try:
        size = int(data[:end], 16)
    except ValueError:
        return None
    return data[end + 2 : -2] if size and len(data) == end + 4 + size and data.endswith(b"\r\n") else None


class Event(NamedTuple):
    """One event of a stream: its data (lines joined by a newline) and its name, mostly "message"."""

    data: bytes
    name: str = "message"


class EventReader:
    """Splits a stream into events. Lines end in CRLF, LF or CR; comments and unknown fields are skipped."""

    def __init__(self) -> None:
        self._buffer = bytearray()  # a line that has not ended yet
        self._scanned = 0  # so many bytes of the buffer hold no line end
        self._data: list[bytes] = []  # of the event that has not ended yet
        self._name = ""
        self._begun = False  # the byte order mark, if any, has been passed
        self._after_cr = False  # an LF that comes next belongs to the line that ended

    def feed(self, data: bytes) -> list[Event]:
        """The events that `data` completes."""
        quick = self._quick(data)
        if quick is not None:
            return quick
        events: list[Event] = []
        buffer = self._buffer
        buffer += data
        if not self._begun:
            if len(buffer) < 3 and b"\xef\xbb\xbf".startswith(bytes(buffer)):
                return events
            self._begun = True
            if buffer.startswith(b"\xef\xbb\xbf"):
                del buffer[:3]
        start, at = 0, self._scanned
        lf, cr = buffer.find(b"\n", at), buffer.find(b"\r", at)
        if self._after_cr and buffer:
            self._after_cr = False
            if buffer[0] == 10:
                start = 1
                lf = buffer.find(b"\n", 1)
        while lf >= 0 or cr >= 0:
            end = cr if lf < 0 or 0 <= cr < lf else lf
            self._line(bytes(buffer[start:end]), events)
            start = end + 1
            if end == cr:
                if start == len(buffer):
                    self._after_cr = True
                elif buffer[start] == 10:
                    start += 1
                cr = buffer.find(b"\r", start)
                if 0 <= lf < start:
                    lf = buffer.find(b"\n", start)
            else:
                lf = buffer.find(b"\n", start)
        del buffer[:start]
        self._scanned = len(buffer)
        return events

    def end(self) -> Event | None:
        """What a cut stream left behind: the data of an event that no empty line ended, or None."""
        rest: list[Event] = []
        if self._buffer:
            self._line(bytes(self._buffer), rest)
            self._buffer.clear()
        data, self._data = self._data, []
        return Event(b"\n".join(data), self._name or "message") if data else None

    def _quick(self, data: bytes) -> list[Event] | None:
        """The common case, whole events of one `data:` line each, without looking at every line."""
        if self._buffer or self._data or self._after_cr or self._name:
            return None
        if not (data.startswith(b"data:") and data.endswith(b"\n\n")) or b"\r" in data:
            return None
        events: list[Event] = []
        for block in data[:-2].split(b"\n\n"):
            if b"\n" in block or not block.startswith(b"data:"):
                return None
            events.append(Event(block[6:] if block[5:6] == b" " else block[5:]))
        self._begun = True
        return events

    def _line(self, line: bytes, events: list[Event]) -> None:
        if not line:
            if self._data:
                events.append(Event(b"\n".join(self._data), self._name or "message"))
            self._data = []
            self._name = ""
            return
        field, colon, value = line.partition(b":")
        if colon and value[:1] == b" ":
            value = value[1:]
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
