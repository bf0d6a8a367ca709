"""One request and what came back: kept as it arrived, read later, told as a record. Pure.

Part of what is sent to the inference host: Python 3.9, standard library only.
"""

from __future__ import annotations

from typing import Any

from ddtui.bench.answer import Answer, error_in, said, shown, streams
from ddtui.bench.http_stream import ResponseReader

PILE = 262_144  # bytes that one stream may pile up unread


class Exchange:
    """One request and what came back, with arrival times."""

    def __init__(self, request: dict[str, Any], api: str) -> None:
        self.request = request
        self.api = api
        self.sent = 0
        self.ended = 0
        self.raw: list[tuple[int, bytes]] = []  # as it arrived
        self._pile = 0  # bytes in `raw`, as far as they were weighed
        self._heard = 0  # when the last byte came that is not in `raw` any more
        self.streaming = False  # the head has come, and the body is chunked
        self.lost = ""  # why the connection ended before the response did
        self.stalled = False
        self.cancelled = False
        self.retried = False
        self.reader = ResponseReader()
        self.answer = Answer(api)
        self.other = b""  # the body of an answer that is not a stream
        self._bodies: list[tuple[int, bytes]] = []  # without framing, events not read

    @property
    def heard(self) -> int:
        """When the last byte came; when it was sent, if none has."""
        return self.raw[-1][0] if self.raw else self._heard or self.sent

    def heavy(self) -> bool:
        """Whether much is piled up; asked after every 64th arrival."""
        self._pile += sum(len(data) for _, data in self.raw[-64:])
        return self._pile > PILE

    def frame(self) -> None:
        """Undo the framing of what has come."""
        self._heard = self.heard
        raw, self.raw, self._pile = self.raw, [], 0
        for at, data in raw:
            body = self.reader.feed(data)
            if body:
                self._bodies.append((at, body))
        self.streaming = self.reader.chunked

    def digest(self) -> None:
        """Read the events of what has come."""
        if self.raw:
            self.frame()
        bodies, self._bodies = self._bodies, []
        if self.reader.status == 200 and streams(self.reader.headers.get("content-type", "")):
            for at, body in bodies:
                self.answer.feed(at, body)
        elif len(self.other) < 65_536:
            self.other += b"".join(body for _, body in bodies)

    def record(self) -> dict[str, Any]:
        """All of it, once it is over."""
        self.digest()
        answer = self.answer
        answer.end(self.ended)
        result, message = self._outcome()
        return {
            "kind": "record",
            "index": self.request["index"],
            "rid": self.request["rid"],
            "warm_up": bool(self.request.get("warm_up")),
            "outcome": result,
            "message": message,
            "status": self.reader.status,
            "sent": self.sent,
            "ended": self.ended,
            "arrivals": [(at - self.sent) // 1000 for at in answer.times],
            "counts": answer.counts,
            "prompt_tokens": answer.prompt_tokens,
            "output_tokens": answer.output_tokens,
            "cached_tokens": answer.cached_tokens,
            "verify_steps": answer.verify_steps,
            "accepted_drafts": answer.accepted_drafts,
            "histogram": answer.histogram,
            "finish": answer.finish,
            "retried": self.retried,
            "bytes": self.reader.received,
            "text": answer.text,
            "output_ids": answer.output_ids,
        }

    def _outcome(self) -> tuple[str, str]:
        """How it ended, and why not well: (Outcome's value, message)."""
        result, message = self._by_the_server()
        if result == "ok":
            return "ok", ""
        if self.cancelled:
            return "aborted", "cancelled"
        if self.reader.malformed:
            return "malformed", self.reader.malformed
        if self.stalled and result != "http error":
            return "stalled", self.lost
        return result, message

    def _by_the_server(self) -> tuple[str, str]:
        """As if nobody had cut it short here."""
        answer, status, body = self.answer, self.reader.status, self.other
        content_type = self.reader.headers.get("content-type", "")
        if not status:
            return "refused", self.lost or "the connection was closed before any answer"
        if status != 200:
            text = said(body)
            return "http error", f"HTTP {status}: {text}" if text else f"HTTP {status}"
        if not streams(content_type):
            error = error_in(body)
            if error:
                return "error in the stream", error
            return "malformed", f"the answer is {content_type}, not an event stream: {shown(body)}"
        if answer.finish == "abort":
            return "aborted", answer.error or "aborted by the server"
        if answer.error:
            return "error in the stream", answer.error
        if not answer.whole:
            if not self.reader.complete:
                lost = self.lost or "the connection was closed before the end"
                return "truncated", answer.malformed or lost
            if answer.malformed:
                return "malformed", answer.malformed
            if not answer.times:
                return "empty", "the stream ended without a token"
            return "truncated", "the stream ended without a finish reason"
        if answer.malformed:
            return "malformed", answer.malformed
        if not answer.times:
            return "empty", "the answer has no tokens"
        return "ok", ""
