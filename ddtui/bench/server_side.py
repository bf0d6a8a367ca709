"""What the server tells of itself around and during a cell: limits, counters, and whether others use it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from ddtui.bench.growing import Prompts
from ddtui.bench.model import BurstSpec, Cell, ServerSide
from ddtui.engine.api import Api, ApiError, Metrics

POLL = 2.0  # s
SURE = 3  # polls in a row that must show other clients' requests: one may catch ours at a hand-over


@dataclass(frozen=True, slots=True)
class Limits:
    """What the server takes. None: not known."""

    whole: int | None = None  # prompt and output tokens of one request
    prompt: int | None = None
    pool: int | None = None  # tokens of all requests together, on one data-parallel rank
    running: int | None = None  # requests at once, on one rank
    vocab: int | None = None
    ranks: int = 1

    def problem(self, spec: BurstSpec, cell: Cell, prompts: Prompts | None = None) -> str | None:
        """Why this cell must not be sent; with its prompts, if they are made: text may come out longer."""
        prompt = max(cell.context, prompts.longest if prompts else 0)
        need = f"{cell.context} + {spec.output} tokens"
        if prompt > cell.context:
            need = f"text of {cell.context} tokens, which may be {prompt}, + {spec.output} tokens"
        if self.whole is not None and prompt + spec.output > self.whole:
            return f"{need} exceed the model's limit of {self.whole}"
        if self.prompt is not None and prompt > self.prompt:
            return f"{prompt} prompt tokens exceed the server's limit of {self.prompt}"
        if self.pool is not None and prompt + spec.output > self.pool:
            return f"one request of {prompt + spec.output} tokens exceeds the KV pool of {self.pool}"
        largest = prompts.largest_id if prompts else None
        if self.vocab is not None and largest is not None and largest >= self.vocab:
            return f"token id {largest} is beyond the vocabulary of {self.vocab}"
        return None

    def warning(self, spec: BurstSpec, cell: Cell) -> str | None:
        """Why this cell will measure a queue as well."""
        running, pool = (None if one is None else self.ranks * one for one in (self.running, self.pool))
        if running is not None and cell.concurrency > running:
            return f"the server runs {running} requests at once: {cell.concurrency} wait for each other"
        need = cell.concurrency * (cell.context + spec.output)
        if pool is not None and need > pool:
            return f"{cell.concurrency} requests need {need} tokens of a KV pool of {pool}: they wait"
        return None


async def limits(api: Api, vocab: int | None, longest: int | None) -> Limits:
    """The server's limits. `longest`: max_model_len as /tokenize told it."""
    try:
        info = await api.server_info()
    except ApiError:
        return Limits(whole=longest, vocab=vocab)
    told = info.raw.get("max_req_input_len")
    known = [
        value
        for value in (longest, info.arguments.get("context_length"))
        if isinstance(value, int) and value > 0
    ]
    return Limits(
        whole=min(known, default=None),
        prompt=told if isinstance(told, int) else None,
        pool=info.max_total_num_tokens,
        running=info.max_running_requests,
        vocab=vocab,
        ranks=max(1, len(info.dp)),
    )


@dataclass(slots=True)
class Counters:
    """The server's own counters at one moment. None: it does not tell."""

    tokens: float | None = None
    verifies: float | None = None

    @classmethod
    async def read(cls, api: Api) -> Counters:
        try:
            metrics = await api.metrics()
        except ApiError:
            return cls()
        return cls(_sum(metrics, "generation_tokens_total"), _sum(metrics, "spec_verify_calls_total"))


def _sum(metrics: Metrics, name: str) -> float | None:
    for key in (f"sglang:{name}", f"sglang_{name}", name):
        if metrics.get(key):
            return sum(value for _, value in metrics[key])
    return None


@dataclass(slots=True)
class Watch:
    """Looks at the server while a cell runs. `run()` until cancelled, then `result()`."""

    api: Api
    ours: int  # requests that we keep running
    flushed: bool  # before this cell: the server's average accept length began anew
    others: str = ""
    _before: Counters = field(default_factory=Counters)
    _most: int | None = None
    _over: int = 0
    _since: float = 0.0

    async def begin(self) -> None:
        self._before = await Counters.read(self.api)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(POLL)
            try:
                loads = await self.api.loads()
            except ApiError:
                continue
            if loads.running is None:
                continue
            seen = loads.running + (loads.waiting or 0)
            self._most = max(seen, self._most or 0)
            self._over = self._over + 1 if seen > self.ours else 0
            if self._over >= SURE and not self.others:
                self.others = f"{seen} requests on the server, {self.ours} of them ours"

    async def result(self, seconds: float, requests: int) -> ServerSide:
        """After the load has ended. Each of the requests got one token by prefill, not by a verify step."""
        after = await Counters.read(self.api)
        tokens = _grown(self._before.tokens, after.tokens)
        verifies = _grown(self._before.verifies, after.verifies)
        accept, how = None, ""
        if tokens and verifies:
            accept, how = (tokens - requests) / verifies, "verify counter"
        elif self.flushed:
            try:
                accept = (await self.api.server_info()).accept_length
                how = "average since flush" if accept else ""
            except ApiError:
                pass
        return ServerSide(
            output_rate=tokens / seconds if tokens and seconds > 0 else None,
            accept_length=accept,
            accept_how=how,
            most_running=self._most,
        )


def _grown(before: float | None, after: float | None) -> float | None:
    return after - before if before is not None and after is not None and after >= before else None
