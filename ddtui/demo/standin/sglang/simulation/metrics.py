"""/metrics: the names, labels and buckets of 0.5.11, of the values that the stand-in has."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sglang.simulation.machine import Machine
from sglang.simulation.requests import Request

if TYPE_CHECKING:
    from sglang.simulation.scheduler import Scheduler

LATENCY = (
    0.1,
    0.2,
    0.4,
    0.6,
    0.8,
    1.0,
    2.0,
    4.0,
    6.0,
    8.0,
    10.0,
    20.0,
    40.0,
    60.0,
    80.0,
    100.0,
    200.0,
    400.0,
)
PER_TOKEN = (
    *(0.002, 0.004, 0.006, 0.008, 0.010, 0.015, 0.020, 0.025, 0.030, 0.035, 0.040, 0.060, 0.080, 0.100),
    *(0.200, 0.400, 0.600, 0.800, 1.000, 2.000, 4.000, 6.000, 8.000),
)
LENGTH = (
    *(
        100,
        300,
        500,
        700,
        1000,
        1500,
        2000,
        3000,
        4000,
        5000,
        6000,
        7000,
        8000,
        9000,
        10000,
        12500,
        15000,
        17500,
    ),
    *(20000, 22500, 25000, 27500, 30000, 35000, 40000, 60000, 80000, 100000, 200000, 300000, 400000, 600000),
    *(800000, 1000000, 1100000),
)


class Histogram:
    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = [float(bound) for bound in bounds]
        self.counts = [0] * (len(bounds) + 1)
        self.sum, self.count = 0.0, 0

    def observe(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times
        self.count += times

    def lines(self, name: str, labels: str) -> list[str]:
        lines, total = [f"{name}_sum{{{labels}}} {self.sum}"], 0
        for bound, count in zip([*map(_bound, self.bounds), "+Inf"], self.counts):
            total += count
            head, _, tail = labels.partition(",")
            lines.append(f'{name}_bucket{{{head},le="{bound}",{tail}}} {float(total)}')
        return [*lines, f"{name}_count{{{labels}}} {float(total)}"]


def _bound(value: float) -> str:
    return f"{value:g}" if value >= 1e6 else str(value)


class Metrics:
    def __init__(self, machine: Machine, model_name: str) -> None:
        self.machine = machine
        self.labels = f'engine_type="unified",model_name="{model_name}"'
        self.rank_labels = f'{self.labels},moe_ep_rank="0",pp_rank="0",tp_rank="0"'
        self.ttft, self.e2e, self.itl = (
            Histogram(LATENCY),
            Histogram((*LATENCY, 600, 1200, 1800, 2400)),
            Histogram(PER_TOKEN),
        )
        self.prompt, self.generated = Histogram(LENGTH), Histogram(LENGTH)
        self.cached = self.aborted = self.decode_passes = self.prefill_passes = 0
        self.computed = self.decoded_tokens = 0
        self.requests: dict[tuple[str, str], int] = {}
        self.responses: dict[tuple[str, str, int], int] = {}
        self.gauges: dict[str, float] = dict.fromkeys(
            [
                "num_running_reqs",
                "num_queue_reqs",
                "gen_throughput",
                "cache_hit_rate",
                "token_usage",
                "num_used_tokens",
                "spec_accept_length",
                "spec_accept_rate",
                "utilization",
                "decode_sum_seq_lens",
            ],
            0.0,
        )

    def http(self, path: str, method: str, status: int) -> None:
        self.requests[path, method] = self.requests.get((path, method), 0) + 1
        self.responses[path, method, status] = self.responses.get((path, method, status), 0) + 1

    def prefilled(self, tokens: int, cached: int, running: int, queued: int) -> None:
        self.prefill_passes += 1
        self.computed += tokens
        self.cached += cached
        self.gauges.update(
            num_running_reqs=running, num_queue_reqs=queued, cache_hit_rate=cached / max(tokens + cached, 1)
        )

    def stepped(self, gap: float, tokens: int) -> None:
        self.itl.observe(gap / tokens, tokens)
        self.decoded_tokens += tokens

    def decoded(self, scheduler: Scheduler, running: int, length: float, rate: float) -> None:
        """Gauges move with the "Decode batch" line and keep its values while the server idles."""
        self.gauges.update(
            num_running_reqs=running,
            num_queue_reqs=len(scheduler.waiting),
            gen_throughput=scheduler.last_gen_throughput,
            cache_hit_rate=0.0,
            token_usage=round(scheduler.token_usage, 4),
            num_used_tokens=scheduler.used_tokens,
            decode_sum_seq_lens=scheduler.used_tokens,
            spec_accept_length=length,
            spec_accept_rate=rate,
        )

    def finished(self, request: Request) -> None:
        if request.first_token_at is not None:
            self.ttft.observe(request.first_token_at - request.received)
        if request.finished_at is not None:
            self.e2e.observe(request.finished_at - request.received)
        self.prompt.observe(request.prompt_tokens)
        self.generated.observe(request.completion_tokens)
        self.aborted += request.aborted

    def text(self) -> str:
        out: list[str] = []

        def family(name: str, kind: str, words: str, lines: Sequence[str]) -> None:
            out.append(f"# HELP sglang:{name} {words}\n# TYPE sglang:{name} {kind}")
            out.extend(lines)

        def one(name: str, kind: str, words: str, value: float, labels: str) -> None:
            family(name, kind, words, [f"sglang:{name}{{{labels}}} {float(value)}"])

        for name, words, histogram in (
            ("time_to_first_token_seconds", "Histogram of time to first token in seconds.", self.ttft),
            ("e2e_request_latency_seconds", "Histogram of End-to-end request latency in seconds", self.e2e),
            ("prompt_tokens_histogram", "Histogram of prompt token length.", self.prompt),
            ("generation_tokens_histogram", "Histogram of generation token length.", self.generated),
            ("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", self.itl),
        ):
            family(name, "histogram", words, histogram.lines(f"sglang:{name}", self.labels))
        family(
            "http_requests_total",
            "counter",
            "Total number of HTTP requests by endpoint and method",
            [
                f'sglang:http_requests_total{{endpoint="{p}",method="{m}"}} {float(n)}'
                for (p, m), n in self.requests.items()
            ],
        )
        family(
            "http_responses_total",
            "counter",
            "Total number of HTTP responses by endpoint and status code",
            [
                f'sglang:http_responses_total{{endpoint="{p}",method="{m}",status_code="{s}"}} {float(n)}'
                for (p, m, s), n in self.responses.items()
            ],
        )
        prompts, generated = self.prompt.sum, self.generated.sum
        one("prompt_tokens_total", "counter", "Number of prefill tokens processed.", prompts, self.labels)
        one(
            "generation_tokens_total",
            "counter",
            "Number of generation tokens processed.",
            generated,
            self.labels,
        )
        one("num_requests_total", "counter", "Number of requests processed.", self.e2e.count, self.labels)
        one(
            "cached_tokens_total",
            "counter",
            "Number of cached prompt tokens by source (device/host/storage).",
            self.cached,
            f'cache_source="device",{self.labels}',
        )
        one("num_aborted_requests_total", "counter", "Number of requests aborted.", self.aborted, self.labels)
        one(
            "max_total_num_tokens",
            "gauge",
            "Maximum total number of tokens in the KV cache pool.",
            self.machine.max_total_num_tokens,
            self.rank_labels,
        )
        one(
            "context_len",
            "gauge",
            "The maximum context length.",
            self.machine.target.context_len,
            self.rank_labels,
        )
        words_of = {
            "num_running_reqs": "The number of running requests.",
            "num_queue_reqs": "The number of requests in the waiting queue.",
            "gen_throughput": "The generation throughput (token/s).",
            "cache_hit_rate": "The prefix cache hit rate.",
            "token_usage": "The token usage.",
            "num_used_tokens": "The number of used tokens.",
            "decode_sum_seq_lens": "The sum of all sequence lengths in decode.",
            "utilization": "The utilization.",
            "spec_accept_length": "Mean acceptance length of speculative decoding "
            "(accepted drafts + bonus token per forward).",
            "spec_accept_rate": "Speculative acceptance rate (`accepted drafts / proposed drafts` in batch).",
        }
        for name, value in self.gauges.items():
            one(name, "gauge", words_of[name], value, self.rank_labels)
        family(
            "cuda_graph_passes_total",
            "counter",
            "Total number of forward passes categorized by CUDA graph.",
            [
                f'sglang:cuda_graph_passes_total{{mode="{mode}",{self.rank_labels}}} {float(n)}'
                for mode, n in (
                    ("prefill_none", self.prefill_passes),
                    ("decode_cuda_graph", self.decode_passes),
                )
            ],
        )
        family(
            "realtime_tokens_total",
            "counter",
            "Total number of tokens processed (updated on each log interval). "
            "mode: prefill_compute, prefill_cache, decode.",
            [
                f'sglang:realtime_tokens_total{{mode="{mode}",{self.rank_labels}}} {float(n)}'
                for mode, n in (
                    ("prefill_compute", self.computed),
                    ("decode", self.decoded_tokens),
                    ("prefill_cache", self.cached),
                )
            ],
        )
        return "\n".join(out) + "\n"
