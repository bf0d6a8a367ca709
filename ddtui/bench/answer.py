"""What one request's answer says: tokens by arrival, text, counts, and how it ended. Pure.

An `Answer` is fed the body of a response piece by piece, each with the time it arrived. Cumulative streams
(/generate repeats all text so far in each event: 13 MB for 6,000 tokens) are kept cheap: only the newest
event is kept and parsed. Part of what is sent to the inference host: Python 3.9, standard library, orjson
when it is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from ddtui.bench.http_stream import EventReader

try:
    import orjson

    _loads: Callable[[bytes], Any] = orjson.loads
except ImportError:
    _loads = json.loads

# names by SGLang version: 0.5.12+, 0.5.11, 0.5.9-10
ACCEPTED = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
HISTOGRAM = ("spec_correct_drafts_histogram", "spec_accept_histogram")
_COUNT = re.compile(rb'"completion_tokens"\s*:\s*(\d+)')
_TAG = re.compile(r"<[^>]*>")


class Answer:
    """The answer to one request. Times are whatever clock the caller stamps with."""

    def __init__(self, api: str) -> None:
        self.api = api  # generate, completions, chat
        self.times: list[int] = []  # arrival of each token-bearing event
        self.counts: list[int | None] = []  # output tokens after each of them, by the server's count
        self.text = ""
        self.output_ids: list[int] = []
        self.finish: str | None = None
        self.error = ""  # what the server said went wrong, in the stream
        self.malformed = ""  # what of the stream is not as it must be
        self.done = False  # [DONE] has come
        self.prompt_tokens: int | None = None
        self.output_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.verify_steps: int | None = None
        self.accepted_drafts: int | None = None
        self.histogram: list[int] | None = None
        self._events = EventReader()
        self._cumulative: bool | None = None  # /generate: does each event repeat all text so far
        self._kept: list[bytes] = []  # /generate: events that are not parsed yet
        self._pieces: list[str] = []  # of the text

    def feed(self, at: int, body: bytes) -> None:
        """Body bytes that arrived at that time."""
        for event in self._events.feed(body):
            if event.name == "error" and b'"error"' not in event.data:
                self.error = self.error or said(event.data)
            else:
                self._event(at, event.data)

    def end(self, at: int) -> None:
        """The response is over. An event that no empty line ended counts only if it is whole."""
        rest = self._events.end()
        if rest is not None:
            if rest.data.strip() == b"[DONE]" or _parsed(rest.data) is not None:
                self._event(at, rest.data)
            else:
                self.malformed = self.malformed or f"the stream ends inside an event: {shown(rest.data)}"
        for data in self._kept:
            value = _parsed(data)
            if value is None:
                self.malformed = self.malformed or f"an event is not JSON: {shown(data)}"
            else:
                self._generated(value)
        self._kept = []
        self.text = "".join(self._pieces)

    @property
    def whole(self) -> bool:
        """Whether the server said that this is all: a finish reason, or [DONE]."""
        return self.done or self.finish is not None

    def _event(self, at: int, data: bytes) -> None:
        if data.strip() == b"[DONE]":
            self.done = True
            return
        if self.api == "generate" and self._cheap(at, data):
            return
        value = _parsed(data)
        if not isinstance(value, dict):
            self.malformed = self.malformed or f"an event is not a JSON object: {shown(data)}"
        elif value.get("error") or value.get("object") == "error":
            self.error = self.error or said_in(value)
        elif self.api == "generate":
            text = value.get("text")
            if text and text != (self._pieces[-1] if self._pieces else None):
                self.times.append(at)
                self.counts.append(None)
            self._cumulative = self._cumulative is not False and str(text).startswith("".join(self._pieces))
            self._generated(value)
        else:
            self._delta(at, value)

    def _cheap(self, at: int, data: bytes) -> bool:
        """Take an event of /generate by its token count alone; False if it has none."""
        where = data.rfind(b'"completion_tokens"')
        found = _COUNT.match(data, where) if where >= 0 else None
        if found is None:
            return False
        count = int(found[1])
        before = self.counts[-1] if self.counts else 0
        if before is None or count > before:
            self.times.append(at)
            self.counts.append(count)
        if self._cumulative is None and len(self.counts) > 1 and self._kept:
            self._cumulative = _repeats(self._kept[-1], data, count)
        if self._cumulative:
            self._kept = [data]
        else:
            self._kept.append(data)
        return True

    def _generated(self, value: dict[str, Any]) -> None:
        """An event of /generate, whole."""
        if value.get("error"):
            self.error = self.error or said_in(value)
            return
        text, ids = value.get("text"), value.get("output_ids")
        if self._cumulative:
            self._pieces, self.output_ids = [], []
        if isinstance(text, str):
            self._pieces.append(text)
        if isinstance(ids, list):
            self.output_ids += ids
        meta = value.get("meta_info")
        if not isinstance(meta, dict):
            return
        self.prompt_tokens = _int(meta.get("prompt_tokens"), self.prompt_tokens)
        self.output_tokens = _int(meta.get("completion_tokens"), self.output_tokens)
        self.cached_tokens = _int(meta.get("cached_tokens"), self.cached_tokens)
        self._speculation(meta)
        self._finished(meta.get("finish_reason"))

    def _delta(self, at: int, value: dict[str, Any]) -> None:
        """A chunk of /v1/completions or /v1/chat/completions."""
        choices = value.get("choices")
        choice = _dict(choices[0]) if isinstance(choices, list) and choices else {}
        delta, usage = _dict(choice.get("delta")), _dict(value.get("usage"))
        text = "".join(
            part
            for part in (
                choice.get("text"),
                delta.get("reasoning_content"),
                delta.get("reasoning"),
                delta.get("content"),
            )
            if isinstance(part, str)
        )
        if delta.get("tool_calls"):
            text += json.dumps(delta["tool_calls"])
        count = _int(usage.get("completion_tokens"), None)
        known = next((c for c in reversed(self.counts) if c is not None), 0)
        if choice and (text or (count is not None and count > known)):
            self.times.append(at)
            self.counts.append(count)
        if text:
            self._pieces.append(text)
        self.output_tokens = _int(count, self.output_tokens)
        self.prompt_tokens = _int(usage.get("prompt_tokens"), self.prompt_tokens)
        self.cached_tokens = _int(
            _dict(usage.get("prompt_tokens_details")).get("cached_tokens"), self.cached_tokens
        )
        self._speculation(_dict(_dict(value.get("sglext")).get("spec_tokens_details")))
        self._finished(choice.get("finish_reason"))

    def _speculation(self, meta: dict[str, Any]) -> None:
        self.verify_steps = _int(meta.get("spec_verify_ct"), self.verify_steps)
        for name in ACCEPTED:
            if isinstance(meta.get(name), int):
                self.accepted_drafts = meta[name]
                break
        for name in HISTOGRAM:
            if isinstance(meta.get(name), list) and meta[name]:
                self.histogram = [int(count) for count in meta[name]]
                break

    def _finished(self, reason: Any) -> None:
        if isinstance(reason, dict):
            self.finish = str(reason.get("type"))
            if self.finish == "abort":
                self.error = self.error or str(reason.get("message") or "aborted by the server")
        elif reason is not None:
            self.finish = str(reason)


def _repeats(first: bytes, second: bytes, count: int) -> bool | None:
    """Whether the second event holds the first one's text and tokens again; None: it cannot be told yet."""
    one, two = _parsed(first), _parsed(second)
    if not isinstance(one, dict) or not isinstance(two, dict):
        return None
    ids = two.get("output_ids")
    if isinstance(ids, list) and ids:
        return len(ids) == count
    if not one.get("text"):
        return None
    return str(two.get("text")).startswith(str(one["text"]))


def streams(content_type: str) -> bool:
    """Whether that is an event stream; a server that does not say gets the benefit of the doubt."""
    return not content_type or content_type.split(";")[0].strip().lower() == "text/event-stream"


def said(body: bytes) -> str:
    """What an error's body says, short: the message of JSON, the text of HTML."""
    value = _parsed(body)
    if isinstance(value, dict):
        return said_in(value)
    text = body[:4000].decode("utf-8", "replace")
    if text.lstrip()[:1] == "<":
        text = _TAG.sub(" ", text)
    return " ".join(text.split())[:300]


def error_in(body: bytes) -> str:
    """The message of a body that is an error in JSON; empty where it is none."""
    value = _parsed(body)
    if isinstance(value, dict) and (value.get("error") or value.get("object") == "error"):
        return said_in(value)
    return ""


def said_in(value: dict[str, Any]) -> str:
    """The message in a JSON error of SGLang's or OpenAI's shapes."""
    error = value.get("error")
    for holder in (error, value):
        if isinstance(holder, dict):
            for key in ("message", "detail", "error"):
                if isinstance(holder.get(key), str) and holder[key]:
                    return str(holder[key])[:300]
    return (error if isinstance(error, str) else json.dumps(value))[:300]


def _parsed(data: bytes) -> Any:
    """The JSON value, None if it is none (invalid UTF-8 included)."""
    try:
        return _loads(data)
    except ValueError:
        return None


def shown(data: bytes) -> str:
    """The beginning of what is not as it must be."""
    return repr(data[:60].decode("utf-8", "replace"))


def _int(value: Any, otherwise: int | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
