"""One request on its way through the scheduler, and what it generates."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any, Callable

from sglang.performance import Acceptance, uniform_bits
from sglang.simulation import writing
from sglang.simulation.radix_cache import pack
from sglang.simulation.tokenizer import Tokenizer

CORRUPT = ("the", "the", ",,", "\ufffd", "}}}}", "the", "((", "0", "0", "0", "]]", ";;", "of", "of", "")


class Output:
    """The tokens that a prompt is answered with: the same ones every time, at temperature 0."""

    def __init__(self, tokenizer: Tokenizer, seed: int, kind: str, *, ends: bool, corrupt: bool) -> None:
        self._tokenizer = tokenizer
        self._ready: list[int] = []
        self._blocks = self._garbage(seed) if corrupt else writing.blocks(seed, kind)
        self._left = writing.natural_length(seed) if ends else None

    @staticmethod
    def _garbage(seed: int) -> Iterator[str]:
        position = 0
        while True:
            yield " " + CORRUPT[uniform_bits(seed, position) % len(CORRUPT)]
            position += 1

    def take(self, count: int) -> list[int]:
        """The next tokens; where the output ends, the end-of-sequence token comes last."""
        ended = self._left is not None and count > self._left
        if ended:
            assert self._left is not None
            count = self._left
        while len(self._ready) < count:
            self._ready.extend(self._tokenizer.encode(next(self._blocks)))
        taken, self._ready = self._ready[:count], self._ready[count:]
        if self._left is not None:
            self._left -= len(taken)
            if ended:
                taken.append(self._tokenizer.eos_id)
        return taken


class Request:
    """`on_tokens` is called after every step that gave tokens; at the end with the finish reason set."""

    def __init__(
        self,
        rid: str,
        input_ids: Sequence[int],
        *,
        max_new_tokens: int,
        seed: int,
        output: Output,
        acceptance: Acceptance,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        on_finish: Callable[[], object] = lambda: None,
        counted: bool = True,
    ) -> None:
        self.rid, self.prompt_tokens, self.key = rid, len(input_ids), pack(input_ids)
        self.max_new_tokens, self.temperature, self.seed = max_new_tokens, temperature, seed
        self.output, self.acceptance, self.stop = output, acceptance, tuple(stop)
        self.on_tokens: Callable[[Request], object] = lambda request: None
        self.on_finish, self.counted = on_finish, counted
        self.received, self.received_ts = time.monotonic(), time.time()
        self.first_token_at: float | None = None
        self.finished_at: float | None = None
        self.finished_ts = 0.0
        self.prefilled = 0  # tokens of the prompt, cached ones included
        self.cached_tokens = 0
        self.retractions = 0
        self.output_ids: list[int] = []
        self.text = ""
        self.text_json, self.ids_json = bytearray(), bytearray()  # the same, escaped for a JSON body
        self.told_at = self.received  # when the last tokens came, monotonic
        self.verify_steps = self.accepted = 0
        self.finish_reason: dict[str, Any] | None = None
        self.aborted = False

    @property
    def completion_tokens(self) -> int:
        return len(self.output_ids)

    @property
    def tokens(self) -> int:
        """Tokens in the KV cache."""
        return self.prompt_tokens + len(self.output_ids)

    def add(self, ids: list[int], tokenizer: Tokenizer) -> None:
        """Append tokens and see whether the request ends with them."""
        if self.first_token_at is None and ids:
            self.first_token_at = time.monotonic()
        ended = bool(ids) and ids[-1] == tokenizer.eos_id
        self.output_ids.extend(ids)
        text = tokenizer.decode(ids[:-1] if ended else ids)
        self.text += text
        self.text_json += json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "replace")
        if ids:
            self.ids_json += (b"," if self.ids_json else b"") + ",".join(map(str, ids)).encode()
        if ended:
            self.finish({"type": "stop", "matched": tokenizer.eos_id})
        elif not self._stopped(len(text)) and self.completion_tokens >= self.max_new_tokens:
            self.finish({"type": "length", "length": self.completion_tokens})

    def _stopped(self, new: int) -> bool:
        for stop in self.stop:
            at = self.text.find(stop, max(0, len(self.text) - new - len(stop)))
            if at >= 0:
                self.text = self.text[:at]
                self.text_json = bytearray(json.dumps(self.text, ensure_ascii=False)[1:-1].encode())
                self.finish({"type": "stop", "matched": stop})
                return True
        return False

    def abort(self) -> None:
        if self.finish_reason is None:
            self.finish({"type": "abort", "message": "Aborted", "status_code": None, "err_type": None})

    def finish(self, reason: dict[str, Any]) -> None:
        self.finish_reason, self.finished_at, self.finished_ts = reason, time.monotonic(), time.time()
