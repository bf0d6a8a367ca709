"""The decode loop: one step clock for all running requests, prefills before decodes, as 0.5.11 schedules.

Every step takes as long as the performance model says; at its end each running request gets its tokens at
once.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque

from sglang import performance
from sglang.simulation.journal import Ranks, log
from sglang.simulation.machine import Machine
from sglang.simulation.metrics import Metrics
from sglang.simulation.radix_cache import RadixCache, pack
from sglang.simulation.requests import Request
from sglang.simulation.switches import SWITCHES
from sglang.simulation.tokenizer import Tokenizer


class Scheduler:
    def __init__(self, machine: Machine, tokenizer: Tokenizer, metrics: Metrics) -> None:
        args = machine.server_args
        self.machine, self.tokenizer, self.metrics, self.args = machine, tokenizer, metrics, args
        self.ranks = Ranks(args.tp_size, args.dp_size)
        self.knobs = machine.knobs
        self.max_running_requests = args.max_running_requests or 48
        self.capture_max = machine.capture_sizes[-1]
        chunk = args.chunked_prefill_size or 0
        self.chunk = chunk if chunk > 0 else 1 << 30
        self.cache = RadixCache()
        self.waiting: deque[Request] = deque()
        self.prefilling: Request | None = None  # the one whose prompt is done in part
        self.running: list[Request] = []
        self.corrupt = SWITCHES.fails("corrupt")
        self.hung = False
        self.in_no_time = SWITCHES.load_seconds == 0  # until the server is ready: a start "at once"
        self._wake = asyncio.Event()
        self._deadline = 0.0
        self._restart = performance.restart_factor(SWITCHES.seed) if SWITCHES.noise else 1.0
        self._step = 0
        self._verified_once = False
        # what the "Decode batch" line and /server_info report
        self.last_gen_throughput = 0.0
        self.total_accepted_tokens = self.total_forwards = 0
        self.last_receive_ts = time.time()
        self._window_tokens = self._window_accepted = self._window_forwards = self._window_steps = 0
        self._window_began = self._last_prefill = time.monotonic()

    # --- what the API asks --------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        return not self.waiting and not self.running and self.prefilling is None

    def requests(self) -> list[Request]:
        """Everything that waits or runs."""
        first = [self.prefilling] if self.prefilling else []
        return [*self.waiting, *first, *self.running]

    @property
    def used_tokens(self) -> int:
        return sum(request.tokens for request in self.running) + (
            self.prefilling.prefilled if self.prefilling else 0
        )

    @property
    def pending_tokens(self) -> int:
        waiting = sum(request.prompt_tokens for request in self.waiting)
        rest = self.prefilling.prompt_tokens - self.prefilling.prefilled if self.prefilling else 0
        return waiting + rest

    @property
    def token_usage(self) -> float:
        return self.used_tokens / self.machine.max_total_num_tokens

    @property
    def average_accept_length(self) -> float | None:
        return self.total_accepted_tokens / self.total_forwards if self.total_forwards else None

    def submit(self, request: Request) -> None:
        self.waiting.append(request)
        self._wake.set()

    def abort(self, request: Request) -> None:
        request.aborted = True
        if request in self.waiting:
            self.waiting.remove(request)
            self._close(request)

    def flush_cache(self) -> bool:
        if not self.idle:
            log(
                "Cache not flushed because there are pending requests. "
                f"#queue-req: {len(self.waiting)}, #running-req: {len(self.running)}"
            )
            return False
        self.cache.reset()
        self.reset_accept_average()
        self._window_accepted = self._window_forwards = 0
        self.ranks.every("Cache flushed successfully!")
        return True

    def reset_accept_average(self) -> None:
        self.total_accepted_tokens = self.total_forwards = 0

    # --- the loop -----------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            if self.idle or self.hung:
                self._wake.clear()
                await self._wake.wait()
                self._deadline = asyncio.get_running_loop().time()
                continue
            if self._can_prefill():
                await self._prefill()
            elif self.running:
                await self._decode()
            else:
                await asyncio.sleep(0.005)  # the queue's first does not fit: it waits for memory

    async def _spend(self, milliseconds: float) -> None:
        """Let a forward pass take its time; a late end shortens the next, so the clock does not drift."""
        if self.in_no_time:
            return
        now = asyncio.get_running_loop().time()
        self._deadline = max(self._deadline, now - 0.02) + milliseconds / 1000.0 / SWITCHES.speed
        await asyncio.sleep(max(0.0, self._deadline - now))

    def _can_prefill(self) -> bool:
        if self.prefilling is not None:
            return True
        return (
            bool(self.waiting)
            and len(self.running) < self.max_running_requests
            and self._fits(self.waiting[0])
        )

    def _fits(self, request: Request) -> bool:
        wanted = request.tokens + min(request.max_new_tokens - request.completion_tokens, 512)
        return self.used_tokens + wanted <= self.machine.max_total_num_tokens or not self.running

    async def _prefill(self) -> None:
        """One pass: up to a chunk of tokens of the prompts that come first."""
        done: list[Request] = []
        room, new_tokens, cached, new = int(self.chunk), 0, 0, 0
        running_before = len(self.running)
        while room > 0:
            request = self.prefilling
            if request is None:
                if not self.waiting or running_before + len(done) >= self.max_running_requests:
                    break
                if not self._fits(self.waiting[0]):
                    break
                request = self.waiting.popleft()
                new += 1
                if not self.args.disable_radix_cache:
                    request.cached_tokens = min(self.cache.match(request.key), request.prompt_tokens - 1)
                request.prefilled = request.cached_tokens
                cached += request.cached_tokens
            part = min(room, request.prompt_tokens - request.prefilled)
            request.prefilled += part
            room, new_tokens = room - part, new_tokens + part
            if request.prefilled < request.prompt_tokens:
                self.prefilling = request
                break
            self.prefilling = None
            done.append(request)
        if not new_tokens:
            return
        await self._spend(performance.prefill_ms(new_tokens) * self._restart)
        self._log_prefill(new, new_tokens, cached, running_before)
        for request in done:
            self._begin(request)

    def _begin(self, request: Request) -> None:
        """The prompt is in the cache: the first token, unless the request was resumed or wants none."""
        if not self.args.disable_radix_cache:
            self.cache.insert(request.key)
            self.cache.shrink_to(self.machine.max_total_num_tokens - self.used_tokens)
        self.running.append(request)
        if request.max_new_tokens == 0:
            request.finish({"type": "length", "length": 0})
        elif not request.completion_tokens:
            request.add(request.output.take(1), self.tokenizer)
            self._window_tokens += 1
            request.told_at = time.monotonic()
        self._tell([request])

    async def _decode(self) -> None:
        batch = list(self.running)
        context = sum(request.tokens for request in batch) / len(batch)
        eager = self.args.disable_cuda_graph or len(batch) > self.capture_max
        milliseconds = performance.step_ms(self.knobs, len(batch), context) * self._restart
        if eager and self.knobs.cuda_graph:
            milliseconds *= performance.EAGER_FACTOR
        if SWITCHES.noise:
            milliseconds *= performance.step_noise(SWITCHES.seed, self._step)
        await self._spend(milliseconds)
        self._step += 1
        speculates = self.knobs.algorithm is not None
        now = time.monotonic()
        for request in batch:
            if request.aborted:
                continue
            accepted = 0
            if speculates:
                done = request.completion_tokens
                accepted = performance.draw_accepted(
                    request.acceptance, request.seed, done, request.prompt_tokens + done
                )
                if self.corrupt:
                    accepted = min(accepted, 1)
                accepted = min(accepted, request.max_new_tokens - done - 1)
                request.verify_steps += 1
                request.accepted += accepted
                self._window_forwards += 1
                self._window_accepted += accepted + 1
            ids = request.output.take(accepted + 1)
            self._window_tokens += len(ids)
            request.add(ids, self.tokenizer)
            if request.counted and ids:
                self.metrics.stepped(now - request.told_at, len(ids))
            request.told_at = now
        if self.machine.algorithm.is_dflash() and not self._verified_once:
            self._verified_once = True
            self.ranks.first(
                f"DFLASH verify completed. num_accepted_drafts_per_req={[r.accepted for r in batch]}"
            )
        self._window_steps += 1
        self.metrics.decode_passes += 1
        if self._window_steps >= self.args.decode_log_interval:
            self._log_decode(len(batch), not eager)
        self._tell(batch)
        self._retract_if_full()

    def _tell(self, batch: list[Request]) -> None:
        self.last_receive_ts = time.time()
        for request in batch:
            if request.aborted:
                request.abort()
            if request.finish_reason is not None:
                self._close(request)
            else:
                request.on_tokens(request)

    def _close(self, request: Request) -> None:
        if request.aborted:
            request.abort()
        if request in self.running:
            self.running.remove(request)
            if not self.args.disable_radix_cache and request.output_ids:
                self.cache.insert(request.key + pack(request.output_ids[:-1]))
        if request.counted:
            self.metrics.finished(request)
        request.on_finish()
        request.on_tokens(request)

    def _retract_if_full(self) -> None:
        """When outputs outgrow the cache, the youngest requests go back to the queue."""
        capacity = self.machine.max_total_num_tokens
        gone: list[Request] = []
        while len(self.running) > 1 and self.used_tokens > capacity:
            request = self.running.pop()
            request.retractions += 1
            request.prefilled = 0
            self.waiting.appendleft(request)
            gone.append(request)
        if gone:
            self.ranks.first(
                f"KV cache pool is full. Retract requests. #retracted_reqs: {len(gone)}, "
                f"#new_tokens_gained: {sum(request.tokens for request in gone)}, "
                "#new_token_ratio: 0.5973 -> 1.0000"
            )

    # --- the journal --------------------------------------------------------------------------------

    def _log_prefill(self, new: int, tokens: int, cached: int, running: int) -> None:
        now = time.monotonic()
        rate = tokens / max(now - self._last_prefill, 1e-6)
        self._last_prefill = now
        self.metrics.prefilled(tokens, cached, running, len(self.waiting))
        # piecewise graphs serve prefills, but not those that feed a drafter
        graph = not self.args.disable_piecewise_cuda_graph and self.machine.drafter is None
        self.ranks.first(
            f"Prefill batch, #new-seq: {new}, #new-token: {tokens}, #cached-token: {cached}, "
            f"token usage: {self.token_usage:.2f}, #running-req: {running}, #queue-req: {len(self.waiting)}, "
            f"#pending-token: {self.pending_tokens}, cuda graph: {graph}, "
            f"input throughput (token/s): {rate:.2f}"
        )

    def _log_decode(self, batch: int, graph: bool) -> None:
        now = time.monotonic()
        self.last_gen_throughput = self._window_tokens / max(now - self._window_began, 1e-6)
        accept = ""
        length = rate = 0.0
        if self._window_forwards:
            drafts = max((self.args.speculative_num_draft_tokens or 2) - 1, 1)
            length = self._window_accepted / self._window_forwards
            rate = (self._window_accepted - self._window_forwards) / (self._window_forwards * drafts)
            accept = f"accept len: {length:.2f}, accept rate: {rate:.2f}, "
            self.total_accepted_tokens += self._window_accepted
            self.total_forwards += self._window_forwards
        self.metrics.decoded(self, batch, length, rate)
        self.ranks.first(
            f"Decode batch, #running-req: {batch}, #token: {self.used_tokens}, "
            f"token usage: {self.token_usage:.2f}, {accept}cuda graph: {graph}, "
            f"gen throughput (token/s): {self.last_gen_throughput:.2f}, #queue-req: {len(self.waiting)}"
        )
        self._window_tokens = self._window_accepted = self._window_forwards = self._window_steps = 0
        self._window_began = now
