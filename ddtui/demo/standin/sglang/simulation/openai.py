"""/v1/completions and /v1/chat/completions."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Callable

from sglang.simulation.answers import OpenAIStream, Whole, openai_answer
from sglang.simulation.http1 import Connection, HttpRequest, Response, json_response
from sglang.simulation.intake import Intake, Refused, TokenOutOfRange
from sglang.simulation.machine import Machine
from sglang.simulation.requests import Request
from sglang.simulation.scheduler import Scheduler

COMPLETION_TOKENS = 16  # when max_tokens is not given; a chat goes on to its end
PASSED_ON = (
    *(
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "frequency_penalty",
        "presence_penalty",
        "repetition_penalty",
    ),
    *("stop", "stop_token_ids", "ignore_eos", "regex", "ebnf", "json_schema"),
)


def error(message: str) -> Response:
    body = {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}
    return json_response(body, 400)


class OpenAI:
    def __init__(
        self, machine: Machine, scheduler: Scheduler, intake: Intake, crash: Callable[[], None]
    ) -> None:
        self.machine, self.scheduler, self.intake, self._crash = machine, scheduler, intake, crash

    async def completions(self, request: HttpRequest, connection: Connection) -> Response | None:
        return await self._answer(request, connection, chat=False)

    async def chat(self, request: HttpRequest, connection: Connection) -> Response | None:
        return await self._answer(request, connection, chat=True)

    def _chat_ids(self, messages: list[dict[str, Any]]) -> list[int]:
        """The prompt of a conversation, by a template such as Kimi's."""
        text = ""
        for message in messages:
            content = message.get("content") or ""
            if isinstance(content, list):
                content = "".join(part.get("text", "") for part in content)
            role = message.get("role", "user")
            text += f"<|im_{role}|>{role}<|im_middle|>{content}<|im_end|>"
        return self.intake.tokenizer.encode(text + "<|im_assistant|>assistant<|im_middle|>")

    def _prompt_ids(self, prompt: Any) -> list[int]:
        if isinstance(prompt, list) and prompt and isinstance(prompt[0], int):
            return [int(token) for token in prompt]
        if isinstance(prompt, list):
            prompt = "".join(map(str, prompt))
        return self.intake.tokenizer.encode(str(prompt or "")) or [0]

    async def _answer(self, http: HttpRequest, connection: Connection, *, chat: bool) -> Response | None:
        try:
            body = json.loads(http.body)
        except ValueError as e:
            return error(f"1 validation error:\n  JSON decode error: {e}")
        if not isinstance(body, dict) or ("messages" if chat else "prompt") not in body:
            return error(f"1 validation error:\n  {'messages' if chat else 'prompt'}: Field required")
        ids = self._chat_ids(body["messages"]) if chat else self._prompt_ids(body["prompt"])
        sampling = {name: body[name] for name in PASSED_ON if body.get(name) is not None}
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        if limit is not None:
            sampling["max_new_tokens"] = limit
        rid = self.intake.rids(body.get("rid"), 1)[0]
        model = str(body.get("model") or self.machine.server_args.served_model_name)
        cache = self.machine.server_args.enable_cache_report
        try:
            self.intake.check(rid, ids, sampling)
            self.intake.check_algorithm(rid, {"return_logprob": body.get("logprobs")}, sampling)
            default = None if chat else COMPLETION_TOKENS
            request = self.intake.make(rid, ids, sampling, default_new_tokens=default)
        except Refused as e:
            return error(str(e))
        except TokenOutOfRange:
            self._crash()
            await asyncio.Event().wait()
            return None
        connection.on_disconnect = lambda: self.scheduler.abort(request)
        if not body.get("stream"):
            await self._run(request, Whole())
            return json_response(openai_answer(request, model, chat=chat, cache=cache))
        options = body.get("stream_options") or {}
        connection.start_stream()
        stream = OpenAIStream(
            connection,
            model,
            chat=chat,
            with_usage=bool(options.get("include_usage")),
            continuous=bool(options.get("continuous_usage_stats")),
            cache=cache,
        )
        await self._run(request, stream)
        connection.write_chunk(b"data: [DONE]\n\n")
        connection.end_stream()
        return None

    async def _run(self, request: Request, sink: OpenAIStream | Whole) -> None:
        request.on_tokens = sink
        self.scheduler.submit(request)
        await sink.done
