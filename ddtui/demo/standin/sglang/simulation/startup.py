"""A start, from the arguments to the moment before HTTP comes up: the lines of 0.5.11 in their order.

First everything for the target, then everything for the drafter, then the drafter's own lines (0.5.14 and
later interleave them). The shares of the time are those of a large model: most of it goes into reading
weights.
"""

from __future__ import annotations

import time
import traceback
from pathlib import Path

import sglang
from sglang.simulation import progress
from sglang.simulation.journal import Ranks, log
from sglang.simulation.machine import DRAFT_GRAPH_GB, PIECEWISE_GB, Machine, OutOfMemory
from sglang.simulation.switches import SWITCHES
from sglang.srt.server_args import ServerArgs

# Shares of SGLANG_STANDIN_LOAD_SECONDS; the rest (HTTP and the first request) is spent by the server.
ARGUMENTS, CHILDREN, DISTRIBUTED, WEIGHTS, POOL = 0.06, 0.14, 0.08, 0.36, 0.02
GRAPHS, PIECEWISE, DRAFT_WEIGHTS, DRAFT_GRAPHS = 0.12, 0.06, 0.05, 0.05

GRAPH_ADVICE = (
    "Possible solutions:\n"
    "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
    "2. set --cuda-graph-max-bs to a smaller value (e.g., 16)\n"
    "3. disable torch compile by not using --enable-torch-compile\n"
    "4. disable CUDA graph by --disable-cuda-graph. (Not recommended. Huge performance loss)\n"
    "Open an issue on GitHub https://github.com/sgl-project/sglang/issues/new/choose \n"
)
PIECEWISE_SIZES = [
    *(4, 8, 12, 16, 20, 24, 28, 32),
    *range(48, 257, 16),
    *range(288, 513, 32),
    *range(576, 1025, 64),
    *range(1280, 4097, 256),
    *range(4608, 8193, 512),
]


class LaunchFailed(Exception):
    """The main process itself gives up: an uncaught RuntimeError there, exit code 1."""


class SchedulerDied(Exception):
    """The scheduler process ended while loading; what it says is already in the journal."""


def shown(text: str) -> str:
    """Text with the host's own paths: the stand-in's code counts as installed under /opt/sglang."""
    if not SWITCHES.root:
        return text
    return text.replace(str(Path(sglang.__file__).parent.parent), "/opt/sglang").replace(SWITCHES.root, "")


def _sleep(share: float) -> None:
    if share > 0 and SWITCHES.load_seconds > 0:
        time.sleep(share * SWITCHES.load_seconds)


class Startup:
    """Loads. `run` gives the machine, or raises SchedulerDied with the reason in the journal."""

    def __init__(self, server_args: ServerArgs) -> None:
        self.server_args = server_args
        self.machine = Machine(server_args)
        self.ranks = Ranks(server_args.tp_size, server_args.dp_size)

    def announce(self) -> None:
        """What the main process says before it starts its children."""
        log(f"server_args={self.server_args!r}")
        _sleep(ARGUMENTS)
        content = "openai" if self.machine.target.is_multimodal else "string"
        log(f"Using default HuggingFace chat template with detected content format: {content}")
        _sleep(CHILDREN)

    def load(self) -> Machine:
        """What the scheduler processes do."""
        try:
            self._load()
        except LaunchFailed as e:
            raise RuntimeError(str(e)) from None
        except Exception as e:
            name = type(e).__name__
            trace = "".join(traceback.format_exception(type(e), e, e.__traceback__))
            if isinstance(e, OutOfMemory):
                trace = trace.replace(f"{type(e).__module__}.{name}", "torch.OutOfMemoryError")
            self.ranks.every(f"Scheduler hit an exception: {shown(trace)}")
            log("Received sigquit from a child process. It usually means the child failed.")
            raise SchedulerDied from None
        return self.machine

    def _load(self) -> None:
        machine, ranks = self.machine, self.ranks
        machine.load_drafter_config()
        if machine.drafter is not None:
            path = machine.drafter.model_path
            if not (SWITCHES.local(path) / "generation_config.json").exists():
                ranks.every(
                    f"Failed to load generation config for {path}: {path} does not appear to have a file "
                    f"named generation_config.json. Checkout 'https://huggingface.co/{path}/tree/main' for "
                    "available files.. Proceeding without generation config."
                )
        ranks.every("Init torch distributed begin.")
        while SWITCHES.fails("nccl"):
            time.sleep(3600)
        _sleep(DISTRIBUTED)
        used = "0.09" if self.server_args.tp_size == 1 else "1.09"
        ranks.every(
            f"Init torch distributed ends. elapsed={self._seconds(DISTRIBUTED)} s, mem usage={used} GB"
        )

        self._load_target()
        if not self.server_args.disable_cuda_graph:
            self._capture(draft=False)
        if machine.drafter is not None:
            self._load_drafter()
        args = self.server_args
        ranks.first(
            f"max_total_num_tokens={machine.max_total_num_tokens}, "
            f"chunked_prefill_size={args.chunked_prefill_size}, "
            f"max_prefill_tokens={args.max_prefill_tokens}, "
            f"max_running_requests={args.max_running_requests}, context_len={machine.target.context_len}, "
            f"available_gpu_mem={machine.free:.2f} GB"
        )

    def _load_target(self) -> None:
        machine, ranks = self.machine, self.ranks
        ranks.every(f"Load weight begin. avail mem={machine.free:.2f} GB")
        shards = max(1, round(machine.target.weight_bytes / 9.3e9))
        if SWITCHES.fails("killed"):
            progress.shards("Multi-thread loading shards", max(2, shards // 2), WEIGHTS / 2, _sleep)
            raise LaunchFailed(
                "Rank 0 scheduler died during initialization (exit code: -9). "
                "If exit code is -9 (SIGKILL), a common cause is the OS OOM killer. "
                "Run `dmesg -T | grep -i oom` to check."
            )
        progress.shards("Multi-thread loading shards", shards, WEIGHTS, _sleep)
        machine.load_target()
        ranks.every(
            f"Load weight end. elapsed={self._seconds(WEIGHTS)} s, type={machine.target.architectures[0]}, "
            f"avail mem={machine.free:.2f} GB, mem usage={machine.weight_gb:.2f} GB."
        )
        ranks.first("Using KV cache dtype: torch.bfloat16")
        _sleep(POOL)
        tokens, size = machine.allocate_target_pool()
        if machine.target.use_mla:
            ranks.every(f"KV Cache is allocated. #tokens: {tokens}, KV size: {size:.2f} GB")
        else:
            half = f"{size / 2:.2f} GB"
            ranks.every(f"KV Cache is allocated. #tokens: {tokens}, K size: {half}, V size: {half}")
        ranks.every(f"Memory pool end. avail mem={machine.free:.2f} GB")

    def _capture(self, draft: bool) -> None:
        machine, ranks = self.machine, self.ranks
        before, sizes = machine.free, machine.capture_sizes
        ranks.every(
            f"Capture cuda graph begin. This can take up to several minutes. avail mem={before:.2f} GB"
        )
        ranks.first(f"Capture cuda graph bs {sizes}")
        share = DRAFT_GRAPHS if draft else GRAPHS
        if draft:
            machine.free -= DRAFT_GRAPH_GB
        else:
            try:
                machine.capture_graphs(fail=SWITCHES.fails("graph_oom"))
            except OutOfMemory as e:
                raise RuntimeError(f"Capture cuda graph failed: {e}\n{GRAPH_ADVICE}") from None
        described = (f"bs={size} avail_mem={before - 0.06:.2f} GB" for size in reversed(sizes))
        progress.items("Capturing batches", described, len(sizes), share, _sleep)
        ranks.every(
            f"Capture cuda graph end. Time elapsed: {self._seconds(share)} s. "
            f"mem usage={before - machine.free:.2f} GB. avail mem={machine.free:.2f} GB."
        )
        if draft or self.server_args.disable_piecewise_cuda_graph:
            return
        before = machine.free
        ranks.every(f"Capture piecewise CUDA graph begin. avail mem={before:.2f} GB")
        ranks.first(f"Capture cuda graph num tokens {PIECEWISE_SIZES}")
        described = (
            f"num_tokens={size} avail_mem={before - 0.3:.2f} GB" for size in reversed(PIECEWISE_SIZES)
        )
        progress.items("Capturing num tokens", described, len(PIECEWISE_SIZES), PIECEWISE, _sleep)
        machine.free -= PIECEWISE_GB
        ranks.every(
            f"Capture piecewise CUDA graph end. Time elapsed: {self._seconds(PIECEWISE)} s. "
            f"mem usage={PIECEWISE_GB:.2f} GB. avail mem={machine.free:.2f} GB."
        )

    def _load_drafter(self) -> None:
        machine, ranks = self.machine, self.ranks
        assert machine.drafter is not None
        ranks.every("Init torch distributed begin.")
        ranks.every("Init torch distributed ends. elapsed=0.00 s, mem usage=0.00 GB")
        ranks.every(f"Load weight begin. avail mem={machine.free:.2f} GB")
        progress.shards("Multi-thread loading shards", 1, DRAFT_WEIGHTS, _sleep)
        size = machine.load_drafter()
        ranks.every(
            f"Load weight end. elapsed={self._seconds(DRAFT_WEIGHTS)} s, "
            f"type={machine.drafter.architectures[0]}, avail mem={machine.free:.2f} GB, "
            f"mem usage={size:.2f} GB."
        )
        ranks.first("Using KV cache dtype: torch.bfloat16")
        half = f"{machine.allocate_draft_pool(fail=SWITCHES.fails('oom')) / 2:.2f} GB"
        tokens = machine.max_total_num_tokens
        ranks.every(f"KV Cache is allocated. #tokens: {tokens}, K size: {half}, V size: {half}")
        ranks.every(f"Memory pool end. avail mem={machine.free:.2f} GB")
        if not self.server_args.disable_cuda_graph:
            self._capture(draft=True)
        for line in machine.worker.startup_lines() if machine.worker else ():
            ranks.first(line)

    @staticmethod
    def _seconds(share: float) -> str:
        return f"{max(share * SWITCHES.load_seconds, 0.01):.2f}"
