"""From a request's JSON to the scheduler: what is refused, with which words, and what a prompt is worth."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Sequence
from typing import Any

from sglang.performance import Acceptance, prompt_mean, uniform_bits
from sglang.simulation.machine import Machine
from sglang.simulation.radix_cache import pack
from sglang.simulation.requests import Output, Request
from sglang.simulation.scheduler import Scheduler
from sglang.simulation.tokenizer import Tokenizer

DEFAULT_MAX_NEW_TOKENS = 128
SAMPLING = {
    *(
        "max_new_tokens",
        "min_new_tokens",
        "n",
        "ignore_eos",
        "stop",
        "stop_token_ids",
        "stop_regex",
        "no_stop_trim",
    ),
    *("temperature", "top_p", "top_k", "min_p", "sampling_seed", "logit_bias"),
    *("frequency_penalty", "presence_penalty", "repetition_penalty"),
    *("json_schema", "regex", "ebnf", "structural_tag", "custom_params", "stream_interval"),
    *("skip_special_tokens", "spaces_between_special_tokens"),
}


class Refused(ValueError):
    """A request that is answered with an error; `str()` is SGLang's sentence."""


class TokenOutOfRange(Exception):
    """A token id beyond the vocabulary: on a real server a device-side assert that ends it."""


class Intake:
    def __init__(self, machine: Machine, scheduler: Scheduler, tokenizer: Tokenizer) -> None:
        self.machine, self.scheduler, self.tokenizer = machine, scheduler, tokenizer
        self.context_len = machine.target.context_len
        # Requests that the real server knows of. It forgets none that it refused after taking it in, and
        # waits for all of them when it is to stop.
        self.rid_to_state: dict[str, Request | None] = {}

    def prompts(self, body: dict[str, Any]) -> tuple[list[list[int]], bool]:
        """Token ids of every prompt, and whether there is a batch."""
        text, ids = body.get("text"), body.get("input_ids")
        if (text is None) == (ids is None):
            raise Refused("Either text, input_ids or input_embeds should be provided.")
        if ids is not None:
            if not ids:
                raise Refused("input_ids cannot be empty.")
            if isinstance(ids[0], list):
                return [list(map(int, one)) for one in ids], True
            return [list(map(int, ids))], False
        if isinstance(text, list):
            return [self.tokenizer.encode(str(one)) for one in text], True
        return [self.tokenizer.encode(str(text)) or [0]], False

    def rids(self, rid: Any, count: int) -> list[str]:
        if isinstance(rid, list):
            return [str(one) for one in rid]
        first = str(rid) if rid else uuid.uuid4().hex
        return [first if count == 1 else f"{first}_{i}" for i in range(count)]

    def check(self, rid: str, ids: Sequence[int], sampling: dict[str, Any]) -> None:
        """Raises Refused as the tokenizer process does: the request stays in its table."""
        self.rid_to_state[rid] = None
        if len(ids) >= self.context_len:
            raise Refused(
                f"The input ({len(ids)} tokens) is longer than the model's context length "
                f"({self.context_len} tokens)."
            )
        new = sampling.get("max_new_tokens")
        if isinstance(new, int) and new + len(ids) > self.context_len:
            raise Refused(
                f"Requested token count exceeds the model's maximum context length of {self.context_len} "
                f"tokens. You requested a total of {new + len(ids)} tokens: {len(ids)} tokens from the input "
                f"messages and {new} tokens for the completion. Please reduce the number of tokens in the "
                "input messages or the completion to fit within the limit."
            )
        unknown = sorted(set(sampling) - SAMPLING)
        if unknown:
            raise TypeError(f"SamplingParams.__init__() got an unexpected keyword argument '{unknown[0]}'")
        if new is not None and new < 0:
            raise Refused(f"max_new_tokens must be at least 0, got {new}.")
        for name, low, high, words in (
            ("temperature", 0.0, float("inf"), "must be non-negative"),
            ("top_p", 1e-9, 1.0, "must be in (0, 1]"),
            ("min_p", 0.0, 1.0, "must be in [0, 1]"),
        ):
            value = sampling.get(name)
            if value is not None and not low <= value <= high:
                raise Refused(f"{name} {words}, got {value}.")

    def check_algorithm(self, rid: str, body: dict[str, Any], sampling: dict[str, Any]) -> None:
        """Raises Refused as the scheduler does: the request is forgotten."""
        name = self.machine.algorithm.value
        refused = None
        if self.machine.algorithm.is_dflash():
            if body.get("return_logprob"):
                refused = f"{name} speculative decoding does not support return_logprob yet."
            elif any(sampling.get(key) for key in ("regex", "json_schema", "ebnf", "structural_tag")):
                refused = f"{name} speculative decoding does not support grammar-constrained decoding yet."
        if refused:
            self.rid_to_state.pop(rid, None)
            raise Refused(refused)

    def make(
        self,
        rid: str,
        ids: list[int],
        sampling: dict[str, Any],
        *,
        default_new_tokens: int | None = DEFAULT_MAX_NEW_TOKENS,
        counted: bool = True,
    ) -> Request:
        """A request for the scheduler. Raises TokenOutOfRange."""
        if max(ids) >= self.machine.target.vocab_size or min(ids) < 0:
            raise TokenOutOfRange
        new = sampling.get("max_new_tokens")
        if new is None:
            new = default_new_tokens
        rest = self.context_len - len(ids)
        temperature = float(sampling.get("temperature", 1.0) or 0.0)
        kind = self.tokenizer.kind(ids)
        prompt = int.from_bytes(hashlib.blake2b(pack(ids), digest_size=8).digest(), "little")
        seed = (
            prompt
            if temperature == 0
            else uniform_bits(prompt, sampling.get("sampling_seed") or time.time_ns())
        )
        output = Output(
            self.tokenizer,
            seed,
            "code" if kind == "code" else "prose",
            ends=not sampling.get("ignore_eos"),
            corrupt=self.scheduler.corrupt,
        )
        acceptance = Acceptance(self.scheduler.knobs, prompt_mean(kind, prompt), temperature)
        stop = sampling.get("stop") or ()
        request = Request(
            rid,
            ids,
            max_new_tokens=rest if new is None else min(new, rest),
            seed=seed,
            output=output,
            acceptance=acceptance,
            temperature=temperature,
            stop=[stop] if isinstance(stop, str) else stop,
            on_finish=lambda: self.rid_to_state.pop(rid, None),
            counted=counted,
        )
        self.rid_to_state[rid] = request
        return request

    def abort(self, rid: str, everything: bool) -> None:
        """Abort one request with its like-named batch, or all."""
        if not everything and rid not in self.rid_to_state:
            return
        for request in self.scheduler.requests():
            if everything or request.rid.startswith(rid):
                self.scheduler.abort(request)
