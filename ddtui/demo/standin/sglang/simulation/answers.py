"""What goes out for a request: /generate's events and the chunks of the OpenAI API, byte by byte as 0.5.11
has them.

A stream's event holds the whole text and all ids so far. They are kept escaped, so that an event is put
together from bytes that are there already: 64 streams of long outputs cost little.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from sglang.simulation.http1 import Connection
from sglang.simulation.requests import Request

BACKLOG_LIMIT = 8 << 20  # a client that is this many bytes behind gets its next event later, with more in it


def dumps(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class MetaInfo:
    """meta_info of one request: the part that does not change, ready to be written."""

    def __init__(self, request: Request, weight_version: str, proposed_per_step: int) -> None:
        self._request, self._proposed, self._version = request, proposed_per_step, weight_version
        self._dispatched = time.time()
        self._sent: float | None = None

    def _head(self) -> dict[str, Any]:
        request = self._request
        return {
            "id": request.rid,
            "finish_reason": request.finish_reason,
            "prompt_tokens": request.prompt_tokens,
            "weight_version": self._version,
            "total_retractions": request.retractions,
            "queue_time": 0.0,
            "prefill_waiting_latency": None,
            "prefill_launch_latency": None,
            "reasoning_tokens": 0,
            "completion_tokens": request.completion_tokens,
            "cached_tokens": request.cached_tokens,
            "cached_tokens_details": {"device": request.cached_tokens, "host": 0}
            if request.cached_tokens
            else None,
            "dp_rank": None,
        }

    def running(self) -> bytes:
        meta = self._head()
        if self._sent is None:
            self._sent = meta["response_sent_to_client_ts"] = time.time()
        return dumps(meta)

    def finished(self) -> dict[str, Any]:
        request, meta = self._request, self._head()
        assert request.finished_at is not None
        meta["e2e_latency"] = request.finished_at - request.received
        if request.verify_steps:
            proposed = request.verify_steps * self._proposed
            meta["spec_accept_rate"] = request.accepted / proposed if proposed else 0.0
            meta["spec_accept_length"] = request.completion_tokens / request.verify_steps
            meta["spec_accepted_drafts"] = request.accepted
            meta["spec_proposed_drafts"] = proposed
            meta["spec_verify_ct"] = request.verify_steps
        meta["request_received_ts"] = request.received_ts
        meta["api_server_dispatch_finish_ts"] = self._dispatched
        if self._sent is not None:
            meta["response_sent_to_client_ts"] = self._sent
        meta["request_finished_ts"] = request.finished_ts
        # 0.5.11 computes these two against the wrong clock: its inference_time is the host's uptime
        meta["inference_time"] = time.perf_counter()
        if request.completion_tokens:
            began = request.first_token_at or request.finished_at
            spent = max(request.finished_at - began, 1e-6)
            meta["decode_throughput"] = request.completion_tokens / (
                spent if self._sent is not None else 1e-6
            )
        meta.setdefault("response_sent_to_client_ts", time.time())
        return meta


def whole_answer(request: Request, meta: MetaInfo) -> dict[str, Any]:
    return {"text": request.text, "output_ids": request.output_ids, "meta_info": meta.finished()}


class GenerateStream:
    """/generate with "stream": an event per step, then [DONE]."""

    def __init__(self, connection: Connection, meta: MetaInfo, interval: int, incremental: bool) -> None:
        self._connection, self._meta = connection, meta
        self._interval, self._incremental = interval, incremental
        self._told = 0  # tokens of the last event
        self._from = (0, 0)
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __call__(self, request: Request) -> None:
        finished = request.finish_reason is not None
        if self._connection.closed:
            if finished:
                _done(self.done)
            return
        if not finished:
            new = request.completion_tokens - self._told
            if new < (self._interval if self._told else 1) or self._connection.backlog > BACKLOG_LIMIT:
                return
        self._told = request.completion_tokens
        text, ids = request.text_json, request.ids_json
        if self._incremental:
            before = self._from
            self._from = (len(text), len(ids))
            text, ids = text[before[0] :], ids[before[1] :].lstrip(b",")
        meta = dumps(self._meta.finished()) if finished else self._meta.running()
        self._connection.write_chunk(
            b'data: {"text":"', text, b'","output_ids":[', ids, b'],"meta_info":', meta, b"}\n\n"
        )
        if finished:
            _done(self.done)


class Whole:
    """Waits for the end of a request."""

    def __init__(self) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __call__(self, request: Request) -> None:
        if request.finish_reason is not None:
            _done(self.done)


def finish_words(request: Request) -> tuple[str | None, Any]:
    """finish_reason and matched_stop of the OpenAI API."""
    reason = request.finish_reason or {}
    return reason.get("type"), reason.get("matched")


def usage(request: Request, report_cache: bool) -> dict[str, Any]:
    return {
        "prompt_tokens": request.prompt_tokens,
        "total_tokens": request.prompt_tokens + request.completion_tokens,
        "completion_tokens": request.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": request.cached_tokens} if report_cache else None,
        "reasoning_tokens": 0,
    }


class OpenAIStream:
    """/v1/completions and /v1/chat/completions with "stream": what is new, step by step."""

    def __init__(
        self,
        connection: Connection,
        model: str,
        *,
        chat: bool,
        with_usage: bool,
        continuous: bool,
        cache: bool,
    ) -> None:
        self._connection, self._model, self._chat = connection, model, chat
        self._with_usage, self._continuous, self._cache = with_usage, continuous, cache
        self._begun, self._told = False, 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def _chunk(self, request: Request, choices: list[dict[str, Any]], **more: Any) -> None:
        body = {
            "id": request.rid,
            "object": "chat.completion.chunk" if self._chat else "text_completion",
            "created": int(time.time()),
            "model": self._model,
            "choices": choices,
            **more,
        }
        self._connection.write_chunk(b"data: ", dumps(body), b"\n\n")

    def _choice(
        self, inside: dict[str, Any], reason: str | None = None, matched: Any = None
    ) -> dict[str, Any]:
        return {"index": 0, **inside, "logprobs": None, "finish_reason": reason, "matched_stop": matched}

    def __call__(self, request: Request) -> None:
        finished = request.finish_reason is not None
        if self._connection.closed:
            if finished:
                _done(self.done)
            return
        if self._connection.backlog > BACKLOG_LIMIT and not finished:
            return
        new, self._told = request.text[self._told :], len(request.text)
        if self._chat:
            self._chat_step(request, new)
        else:
            reason, matched = finish_words(request)
            so_far = usage(request, self._cache) if self._continuous else None
            self._chunk(request, [self._choice({"text": new}, reason, matched)], usage=so_far)
        if request.finish_reason is not None:
            if self._with_usage:
                total = usage(request, self._cache)
                if not self._chat and not self._cache:
                    del total["prompt_tokens_details"]
                self._chunk(request, [], usage=total)
            _done(self.done)

    def _chat_step(self, request: Request, new: str) -> None:
        more = {"usage": usage(request, self._cache)} if self._continuous else {}
        if not self._begun:
            self._begun = True
            delta = {"reasoning_content": None, "role": "assistant", "content": ""}
            self._chunk(request, [self._choice({"delta": delta})], **more)
        if new:
            self._chunk(
                request, [self._choice({"delta": {"reasoning_content": None, "content": new}})], **more
            )
        if request.finish_reason is not None:
            reason, matched = finish_words(request)
            self._chunk(
                request, [self._choice({"delta": {"reasoning_content": None}}, reason, matched)], **more
            )


def openai_answer(request: Request, model: str, *, chat: bool, cache: bool) -> dict[str, Any]:
    reason, matched = finish_words(request)
    message = {"role": "assistant", "content": request.text, "reasoning_content": None, "tool_calls": None}
    inside: dict[str, Any] = {"message": message} if chat else {"text": request.text}
    choice = {"index": 0, **inside, "logprobs": None, "finish_reason": reason, "matched_stop": matched}
    return {
        "id": request.rid,
        "object": "chat.completion" if chat else "text_completion",
        "created": int(time.time()),
        "model": model,
        "choices": [choice],
        "usage": usage(request, cache),
        "metadata": {"weight_version": "default"},
    }
