"""How fast a speculative server would be: a model of DDTree, nothing measured.

Everything that decides the speed of the stand-in is here, every constant with its source: [A] assumed or
fitted, [P] the DDTree paper (arXiv 2604.12989), [I] an issue or a pull request, [M] measured on a real
SGLang 0.5.11. The one outside check: Kimi K2.6, TP8 on PCIe cards, decodes about 79 tokens/s without
speculation (local-inference-lab/vllm #11) where this model says 77.

    commit    tokens that one verify step gives: 1 + the drafted tokens that the target accepts
    step      seconds of one verify step of the whole batch
    budget B  nodes of the draft tree beside its root; a chain of L tokens is a tree with K = 1 and B = L
    topk K    candidates that the tree considers at each position
    depth L   positions that one draft pass fills (block size - 1)

All functions are pure. The server and `sample_requests` draw from `Acceptance`; `expected` is the exact
mean of what they draw, so the truth behind every simulated measurement is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from heapq import heappop, heappush

# --- acceptance ------------------------------------------------------------------------------------

# Mean chance that the drafter's first choice is right, by kind of text, for a block-8 drafter of Kimi's
# kind. [A] "code" is fitted to commit 5 at budget 8; "chat" is set so that a chain gives the 3.7 that the
# Kimi-K2.5-DFlash card states for MT-Bench; "math" is the easiest, as in the card; the others lie between.
# "random": random token ids understate acceptance (vLLM #52536).
MEAN_BY_WORKLOAD = {
    "code": 0.78,
    "completion": 0.79,
    "math": 0.80,
    "document": 0.74,
    "chat": 0.69,
    "random": 0.45,
}
BETA_CONCENTRATION = 3.0  # [A] p1 ~ Beta(3m, 3(1-m)) per verify step
SECOND_SHARE = 0.45  # [A] rank 2 gets this share of 1-p1 ...
RANK_DECAY = 0.55  # [A] ... and every further rank this much of the rank before
# [A] Prompts differ: equally likely offsets of the mean, known by the prompt alone, so that a comparison of
# two settings on the same prompts has less noise than one on different prompts.
PROMPT_OFFSETS = (-0.03, -0.015, 0.0, 0.015, 0.03)
QUANTILES = 64  # points at which Beta is evaluated

# Past its training window a drafter that sees everything collapses. Acceptance by position 0.60 0.39 0.22
# 0.11 0.06 0 (AEON-7 #6, vLLM #40898, z-lab/dflash #126) [I]: nothing after the fifth, commit 2.38. This
# mean gives it, for a tree too: its side branches come from the same misled distributions and save nothing
# [A].
COLLAPSED_DEPTH = 5
COLLAPSED_SHARE = 0.66  # [A] of the workload's mean: 0.78 becomes 0.515
# Within the window, or beyond it with the window honoured: flat, then a slow decline.
LONG_CONTEXT = 4096
LONG_CONTEXT_LOSS = 0.02  # [A] of the accepted tokens, per doubling of the context beyond LONG_CONTEXT
SHORT_WINDOW_LOSS = 0.06  # [A] of the accepted tokens, per halving of the window below the trained one
# Sampling at temperature 1 leaves (commit - 1) x 0.85 to 0.93 [P]: T=0 and T=1 rows of the paper's table.
TEMPERATURE_LOSS = 0.11

# --- time of one step, milliseconds ----------------------------------------------------------------

BASE_MS = 12.0  # [A] attention, all-reduces, the dense parts of the weights
EXPERTS_MS = 42.0  # [A] reading every expert once
EXPERTS, EXPERTS_PER_TOKEN = 384, 8  # Kimi K2's config.json
ROUTING_INDEPENDENCE = 1.0  # [A] g: 1 = every token routes on its own, 0.5 = correlated
TOKEN_MS = 0.12  # [A] arithmetic per verified token
CONTEXT_MS = 0.0006  # [A] per request and thousand tokens of context: reading MLA's small cache
DRAFT_BASE_MS, DRAFT_REQUEST_MS = 3.5, 0.25  # [A] one pass of the drafter
DRAFT_CONTEXT_MS = 0.02  # [A] per request and thousand tokens that the drafter sees
# 0.5.11 switches the overlap scheduler off under DFLASH: tree building and bookkeeping are on the clock
# [A].
NO_OVERLAP_BASE_MS, NO_OVERLAP_REQUEST_MS = 8.0, 0.8
EAGER_FACTOR = 3.8  # without CUDA graphs: one user's plain decoding, 20 against 77 tok/s [I]

PREFILL_TOKENS_PER_SECOND = 20_000.0  # [A] eight H200, chunked prefill
PREFILL_BASE_MS = 35.0  # [A] per prefill pass

# --- noise -----------------------------------------------------------------------------------------

STEP_NOISE_SD = 0.02  # [A] from step to step
RESTART_NOISE_SD = 0.01  # [A] from start to start: placement, clocks, kernel choice

TREE_ALGORITHMS = ("DDTREE",)
BLOCK_ALGORITHMS = ("DFLASH", "DDTREE")


@dataclass(frozen=True)
class Drafter:
    """What of the drafter decides its acceptance."""

    block: int = 8  # block size it was trained for
    trained_window: int | None = 2048  # sliding_window of its sliding layers; None: no layer slides


@dataclass(frozen=True)
class Knobs:
    """One setting of the server. `window` is what the engine enforces, not what a config.json says."""

    algorithm: str | None = "DDTREE"  # None: no speculation
    budget: int = 8
    topk: int = 4
    window: int | None = None
    block: int = 8  # draft tokens: block size of DFLASH and DDTREE, tokens verified per request of EAGLE
    steps: int = 7  # draft depth of EAGLE
    overlap: bool = False
    cuda_graph: bool = True
    drafter: Drafter = field(default_factory=Drafter)

    @property
    def depth(self) -> int:
        if self.algorithm in BLOCK_ALGORITHMS:
            return max(min(self.block, self.drafter.block) - 1, 0)
        return self.steps if self.algorithm else 0

    @property
    def nodes(self) -> int:
        """Drafted tokens that are verified in a step."""
        if self.algorithm is None:
            return 0
        return self.budget if self.algorithm in TREE_ALGORITHMS else self.block - 1

    @property
    def candidates(self) -> int:
        if self.algorithm in TREE_ALGORITHMS:
            return max(1, min(self.topk, self.budget))
        return 1 if self.algorithm == "DFLASH" else max(1, self.topk)


@dataclass(frozen=True)
class Cell:
    """One load."""

    concurrency: int = 1
    context: int = 512  # prompt tokens
    workload: str = "code"
    output: int = 256  # tokens per request
    temperature: float = 0.0


@dataclass(frozen=True)
class TrueSpeed:
    """The model's exact answer. Rates in tokens/s."""

    accept_length: float
    step_ms: float
    per_user: float  # one stream while nothing is prefilled: accept length / step time
    throughput: float  # all streams while nothing is prefilled
    with_prefill: float  # all streams in a closed loop of `concurrency` workers, prefills stalling decodes
    ttft_ms: float  # of a request that meets no queue


@dataclass(frozen=True)
class RequestSample:
    """One simulated request of a closed loop."""

    prompt: int
    output_tokens: int
    verify_steps: int
    accepted: int
    ttft_ms: float
    decode_ms: float  # from the first token to the last, while nothing is prefilled


# --- commit length ---------------------------------------------------------------------------------


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function: Lentz's continued fraction."""
    if x <= 0.0 or x >= 1.0:
        return min(max(x, 0.0), 1.0)
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _incomplete_beta(b, a, 1.0 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    tiny = 1e-30
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    result = d
    for m in range(1, 200):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + numerator * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + numerator / c
            c = c if abs(c) > tiny else tiny
            result *= c * d
        if abs(c * d - 1.0) < 1e-12:
            break
    return front * result / a


@lru_cache(maxsize=64)
def first_choice_quantiles(mean: float) -> tuple[float, ...]:
    """The values of p1 in QUANTILES equally likely slices of Beta(3m, 3(1-m))."""
    a, b = BETA_CONCENTRATION * mean, BETA_CONCENTRATION * (1.0 - mean)
    found = []
    for i in range(QUANTILES):
        target, low, high = (i + 0.5) / QUANTILES, 0.0, 1.0
        for _ in range(48):
            middle = (low + high) / 2
            if _incomplete_beta(a, b, middle) < target:
                low = middle
            else:
                high = middle
        found.append((low + high) / 2)
    return tuple(found)


def tree_tail(p1: float, budget: int, topk: int, depth: int) -> tuple[float, ...]:
    """P(accepted depth >= d) for d = 1 ... depth, with the best-first tree of `budget` nodes.

    The tree holds the `budget` prefixes of highest probability; a prefix of length d is accepted with its own
    probability, so the chance of getting at least d deep is the sum over the tree's nodes at depth d.
    """
    ranks = [p1] + [(1.0 - p1) * SECOND_SHARE * RANK_DECAY**r for r in range(topk - 1)]
    tail = [0.0] * depth
    if depth == 0 or budget <= 0:
        return tuple(tail)
    heap = [(-ranks[0], 0, 0, 1.0)]  # (-probability, position, rank, probability of the parent)
    for _ in range(budget):
        if not heap:
            break
        negative, position, rank, parent = heappop(heap)
        probability = -negative
        tail[position] += probability
        if rank + 1 < len(ranks):
            heappush(heap, (-parent * ranks[rank + 1], position, rank + 1, parent))
        if position + 1 < depth:
            heappush(heap, (-probability * ranks[0], position + 1, 0, probability))
    return tuple(tail)


@lru_cache(maxsize=1024)
def tails(budget: int, topk: int, depth: int, mean: float) -> tuple[tuple[float, ...], ...]:
    """`tree_tail` for every quantile of p1."""
    return tuple(tree_tail(p1, budget, topk, depth) for p1 in first_choice_quantiles(mean))


def commit_length(budget: int, topk: int, depth: int, mean: float) -> float:
    """Mean tokens per verify step, for drafts whose first choice is right with chance `mean`."""
    return 1.0 + sum(map(sum, tails(budget, topk, depth, mean))) / QUANTILES


def collapse(context: float, knobs: Knobs) -> float:
    """How much of the collapse past the training window shows: 0 (none) to 1 (all, at twice the window)."""
    trained = knobs.drafter.trained_window
    if trained is None or knobs.algorithm not in BLOCK_ALGORITHMS:
        return 0.0
    seen = context if knobs.window is None else min(context, knobs.window)
    return min(max((seen - trained) / trained, 0.0), 1.0)


def kept(context: float, knobs: Knobs, temperature: float = 0.0) -> float:
    """Share of the accepted tokens that long context, a short window and sampling leave."""
    share = 1.0 - TEMPERATURE_LOSS * min(max(temperature, 0.0), 1.0)
    if context > LONG_CONTEXT:
        share *= 1.0 - LONG_CONTEXT_LOSS * math.log2(context / LONG_CONTEXT)
    trained = knobs.drafter.trained_window or LONG_CONTEXT
    if knobs.window is not None and knobs.window < min(trained, context):
        share *= max(0.2, 1.0 - SHORT_WINDOW_LOSS * math.log2(min(trained, context) / knobs.window))
    return share


class Acceptance:
    """How many drafted tokens a verify step accepts, for one prompt of one kind under one setting."""

    def __init__(self, knobs: Knobs, mean: float, temperature: float = 0.0) -> None:
        self.knobs, self.temperature = knobs, temperature
        self._full = tails(knobs.nodes, knobs.candidates, knobs.depth, mean)
        self._collapsed = tails(knobs.nodes, 1, min(knobs.depth, COLLAPSED_DEPTH), mean * COLLAPSED_SHARE)

    def draw(self, context: int, which: float, deep: float, regime: float) -> int:
        """Accepted drafts of one step; the three numbers are uniform in [0, 1)."""
        keep = kept(context, self.knobs, self.temperature)
        if regime >= keep:
            return 0
        rows = self._collapsed if regime < keep * collapse(context, self.knobs) else self._full
        accepted = 0
        for chance in rows[int(which * QUANTILES)]:
            if deep >= chance:
                break
            accepted += 1
        return accepted

    def at_least(self, context: int) -> list[float]:
        """P(accepted >= d) for d = 1 ... depth: the exact distribution that `draw` follows."""
        keep, fallen = kept(context, self.knobs, self.temperature), collapse(context, self.knobs)
        tail = [keep * (1.0 - fallen) * chance for chance in _mean_tail(self._full)]
        for d, chance in enumerate(_mean_tail(self._collapsed)):
            tail[d] += keep * fallen * chance
        return tail

    def mean(self, context: int) -> float:
        """The exact mean of 1 + `draw`."""
        return 1.0 + sum(self.at_least(context))


@lru_cache(maxsize=1024)
def _mean_tail(rows: tuple[tuple[float, ...], ...]) -> tuple[float, ...]:
    return tuple(sum(column) / len(rows) for column in zip(*rows))


def workload_mean(workload: str) -> float:
    """The mean first-choice chance of a kind of text; "code" for a kind not known."""
    return MEAN_BY_WORKLOAD.get(workload, MEAN_BY_WORKLOAD["code"])


def prompt_mean(workload: str, seed: int) -> float:
    """The same for one prompt of it, known by its seed."""
    return workload_mean(workload) + PROMPT_OFFSETS[uniform_bits(seed, 0) % len(PROMPT_OFFSETS)]


# --- time ------------------------------------------------------------------------------------------


def experts_touched(tokens: float) -> float:
    """Share of the experts that a batch of `tokens` tokens reads."""
    return 1.0 - math.pow(1.0 - EXPERTS_PER_TOKEN / EXPERTS, ROUTING_INDEPENDENCE * tokens)


def step_ms(knobs: Knobs, concurrency: float, context: float) -> float:
    """Milliseconds of one decode step of `concurrency` requests with `context` tokens each."""
    tokens = concurrency * (knobs.nodes + 1)
    ms = BASE_MS + EXPERTS_MS * experts_touched(tokens) + TOKEN_MS * tokens
    ms += CONTEXT_MS * concurrency * context / 1000.0
    if knobs.algorithm is not None:
        seen = context if knobs.window is None else min(context, knobs.window)
        ms += DRAFT_BASE_MS + DRAFT_REQUEST_MS * concurrency + DRAFT_CONTEXT_MS * concurrency * seen / 1000.0
        if not knobs.overlap:
            ms += NO_OVERLAP_BASE_MS + NO_OVERLAP_REQUEST_MS * concurrency
    return ms if knobs.cuda_graph else ms * EAGER_FACTOR


def prefill_passes(tokens: int, chunk: int = 8192) -> int:
    """Passes that a prompt takes under chunked prefill."""
    return max(1, -(-tokens // chunk))


def prefill_ms(tokens: int, passes: int = 1) -> float:
    """Milliseconds to prefill `tokens` tokens in `passes` passes."""
    return passes * PREFILL_BASE_MS + tokens / PREFILL_TOKENS_PER_SECOND * 1000.0


@lru_cache(maxsize=4096)
def expected(knobs: Knobs, cell: Cell) -> TrueSpeed:
    """What a cell gives under a setting, computed exactly: no noise, infinitely many prompts."""
    steps = decode_ms = 0.0
    for offset in PROMPT_OFFSETS:
        acceptance = Acceptance(knobs, workload_mean(cell.workload) + offset, cell.temperature)
        more_steps, more_ms = _to_finish(acceptance, cell)
        steps += more_steps / len(PROMPT_OFFSETS)
        decode_ms += more_ms / len(PROMPT_OFFSETS)
    prefill = prefill_ms(cell.context, prefill_passes(cell.context))
    decoded = cell.output - 1  # the first token comes from the prefill
    per_user = decoded / decode_ms * 1000.0
    return TrueSpeed(
        accept_length=decoded / steps,
        step_ms=decode_ms / steps,
        per_user=per_user,
        throughput=cell.concurrency * per_user,
        with_prefill=cell.concurrency * cell.output * 1000.0 / (cell.concurrency * prefill + decode_ms),
        ttft_ms=prefill,
    )


def _to_finish(acceptance: Acceptance, cell: Cell) -> tuple[float, float]:
    """Expected verify steps and milliseconds from the first token to the last; the output has at least 2."""
    steps, milliseconds = [0.0] * (cell.output + 1), [0.0] * (cell.output + 1)
    for done in range(cell.output - 1, 0, -1):
        context = cell.context + done
        steps[done], milliseconds[done] = 1.0, step_ms(acceptance.knobs, cell.concurrency, context)
        left = 1.0  # chance that at least this many were accepted
        for accepted, chance in enumerate([*acceptance.at_least(context), 0.0]):
            after = min(done + accepted + 1, cell.output)
            steps[done] += (left - chance) * steps[after]
            milliseconds[done] += (left - chance) * milliseconds[after]
            left = chance
    return steps[1], milliseconds[1]


# --- chance ----------------------------------------------------------------------------------------

_MASK = (1 << 64) - 1


def uniform_bits(seed: int, position: int) -> int:
    """64 random bits that depend on `seed` and `position` alone (SplitMix64)."""
    z = (seed + (position + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def draw_accepted(acceptance: Acceptance, seed: int, position: int, context: int) -> int:
    """Accepted drafts of the step that starts after `position` output tokens of the prompt `seed`.

    The same prompt gives the same draws under every setting, as greedy decoding does: settings differ by what
    they make of them.
    """
    bits = uniform_bits(seed, position + 1)
    scale = 1.0 / (1 << 21)
    return acceptance.draw(
        context, (bits & 0x1FFFFF) * scale, (bits >> 21 & 0x1FFFFF) * scale, (bits >> 42 & 0x1FFFFF) * scale
    )


def _normal(seed: int, position: int) -> float:
    bits = uniform_bits(seed, position)
    u, v = ((bits & 0xFFFFFFFF) + 0.5) / 2**32, ((bits >> 32) + 0.5) / 2**32
    return math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v)


def restart_factor(seed: int, sd: float = RESTART_NOISE_SD) -> float:
    """Factor on every step time of one start."""
    return math.exp(sd * _normal(seed, 0))


def step_noise(seed: int, step: int) -> float:
    """Factor on the time of one step."""
    return math.exp(STEP_NOISE_SD * _normal(seed, step + 1))


@lru_cache(maxsize=65536)
def _undisturbed(knobs: Knobs, cell: Cell, prompt: int) -> tuple[int, int, float, float]:
    """One prompt without noise: verify steps, accepted drafts, milliseconds, and the sum of their squares."""
    seed = uniform_bits(0x70726F6D7074, prompt)
    acceptance = Acceptance(knobs, prompt_mean(cell.workload, seed), cell.temperature)
    done, steps, accepted, milliseconds, squares = 1, 0, 0, 0.0, 0.0
    while done < cell.output:
        context = cell.context + done
        got = min(draw_accepted(acceptance, seed, done, context), cell.output - done - 1)
        ms = step_ms(knobs, cell.concurrency, context)
        done, steps, accepted = done + got + 1, steps + 1, accepted + got
        milliseconds, squares = milliseconds + ms, squares + ms * ms
    return steps, accepted, milliseconds, squares


def sample_requests(
    knobs: Knobs,
    cell: Cell,
    requests: int,
    *,
    start: int,
    burst: int = 0,
    restart_sd: float = RESTART_NOISE_SD,
) -> list[RequestSample]:
    """Simulated requests of a closed loop on one cell: what a burst would have measured, without the waiting.

    `start` seeds the server's start (its speed differs by `restart_sd` from the true one), `burst` the noise
    of this burst; prompts are the same in every burst. A request's step noise is drawn at once, as a sum.
    """
    factor = restart_factor(start, restart_sd)
    noise = uniform_bits(start, burst + 17)
    prefill = prefill_ms(cell.context, prefill_passes(cell.context)) * factor
    samples = []
    for prompt in range(requests):
        steps, accepted, milliseconds, squares = _undisturbed(knobs, cell, prompt)
        decode = factor * (milliseconds + STEP_NOISE_SD * math.sqrt(squares) * _normal(noise, prompt))
        samples.append(RequestSample(prompt, cell.output, steps, accepted, prefill, decode))
    return samples


def without_speculation(knobs: Knobs) -> Knobs:
    """The same server with speculation off: its scheduler overlaps."""
    return replace(knobs, algorithm=None, overlap=True)
