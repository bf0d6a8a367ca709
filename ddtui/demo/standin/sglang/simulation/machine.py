"""The GPUs that are not there: what is loaded on them, how much memory is left, how the model is set.

Memory in GB as SGLang prints it (GiB). The size of the KV cache follows the formula that the captures of a
real 0.5.11 fit: free memory after the weights, less (1 - mem_fraction) of what was free before, divided by
one token's cache, the drafter's layers counted as if they were the target's.
"""

from __future__ import annotations

from typing import Any

from sglang.performance import BLOCK_ALGORITHMS, Drafter, Knobs
from sglang.srt.configs.model_config import ModelConfig
from sglang.srt.server_args import ServerArgs
from sglang.srt.speculative.ddtree_worker import DDTreeWorker
from sglang.srt.speculative.dflash_worker import DFlashWorker
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

GIB = 1 << 30
GPU_TOTAL_GB = 139.80  # one H200, as the driver's message in the captures
GPU_FREE_GB = 139.13  # before anything is loaded
NCCL_GB = 1.09  # [assumed] buffers of eight ranks
GRAPH_BASE_GB, GRAPH_TOKEN_GB = 3.4, 0.0006  # [assumed] per verified token of the largest captured batch
WORKSPACE_GB = 2.0  # [assumed] kernels' workspaces and activations, taken before the drafter comes
PIECEWISE_GB = 0.43
DRAFT_GRAPH_GB = 0.22


class OutOfMemory(Exception):
    """A CUDA allocation that failed. `str()` is PyTorch's message."""

    def __init__(self, wanted_gb: float, free_gb: float) -> None:
        used = GPU_TOTAL_GB - max(free_gb, 0.0)
        super().__init__(
            f"CUDA out of memory. Tried to allocate {wanted_gb:.2f} GiB. GPU 0 has a total capacity of "
            f"{GPU_TOTAL_GB:.2f} GiB of which {max(free_gb, 0.0):.2f} GiB is free. Including non-PyTorch "
            f"memory, this process has {used:.2f} GiB memory in use. Of the allocated memory "
            f"{used - 0.86:.2f} GiB is allocated by PyTorch, with 392.91 MiB allocated in private pools "
            "(e.g., CUDA Graphs), and 52.59 MiB is "
            "reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  "
            "See documentation for Memory Management "
            " (https://docs.pytorch.org/docs/stable/notes/cuda.html"
            "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
        )


class Machine:
    """One GPU of the server; the others are like it. `free` is what is left of its memory."""

    def __init__(self, server_args: ServerArgs) -> None:
        self.server_args = server_args
        self.algorithm = SpeculativeAlgorithm.from_string(server_args.speculative_algorithm)
        self.target = server_args.get_model_config()
        self.drafter: ModelConfig | None = None
        self.worker: DFlashWorker | None = None
        self.free = GPU_FREE_GB - (NCCL_GB if server_args.tp_size > 1 else 0.0)
        self.free_at_first = self.free
        self.weight_gb = self.kv_gb = self.graph_gb = 0.0
        self.max_total_num_tokens = 0

    def load_drafter_config(self) -> None:
        """Raises OSError, as the scheduler process does, where the folder is not there."""
        path = self.server_args.speculative_draft_model_path
        if path and not self.algorithm.is_none() and self.algorithm is not SpeculativeAlgorithm.NGRAM:
            self.drafter = ModelConfig(path, is_draft_model=True)

    def load_target(self) -> None:
        """Raises OutOfMemory where one GPU cannot hold its share."""
        self.weight_gb = self.target.weight_bytes / self.server_args.tp_size / GIB
        if self.weight_gb > self.free:
            raise OutOfMemory(0.44, 0.19)
        self.free -= self.weight_gb

    def load_drafter(self) -> float:
        """GB of the drafter's weights. Raises ValueError where it does not fit the target, OutOfMemory."""
        assert self.drafter is not None
        size = self.drafter.weight_bytes / self.server_args.tp_size
        if self.algorithm.is_dflash():
            self.worker = self.algorithm.worker_class()(self.server_args, self.target, self.drafter)
            size += self.worker.draft_model.context_projection_bytes
        if size / GIB > self.free:
            raise OutOfMemory(0.44, self.free)
        self.free -= size / GIB
        return size / GIB

    def allocate_target_pool(self) -> tuple[int, float]:
        """Tokens and GB of the target's KV cache. Raises RuntimeError where there is no room for one."""
        fraction = self.server_args.mem_fraction_static or 0.875
        rest = (self.free - self.free_at_first * (1.0 - fraction)) * GIB
        per_token = self.target.kv_bytes_per_gpu(self.server_args.tp_size)
        layers = self.drafter.num_hidden_layers if self.drafter else 0
        tokens = int(rest / (per_token * (1 + layers / self.target.num_hidden_layers)))
        if self.server_args.max_total_tokens:
            tokens = min(tokens, self.server_args.max_total_tokens)
        if tokens <= 0:
            raise RuntimeError(
                "Not enough memory. Please try to increase --mem-fraction-static. "
                f"Current value: mem_fraction_static={self.server_args.mem_fraction_static}"
            )
        self.max_total_num_tokens = tokens
        self.kv_gb = tokens * per_token / GIB
        self.free -= self.kv_gb
        return tokens, self.kv_gb

    def allocate_draft_pool(self, fail: bool = False) -> float:
        """GB of the drafter's KV cache: a slot for every token of the target's. Raises OutOfMemory."""
        assert self.drafter is not None
        size = self.max_total_num_tokens * self.drafter.kv_bytes_per_gpu(self.server_args.tp_size) / GIB
        if fail or size > self.free:
            raise OutOfMemory(size, min(self.free, size * 0.8) if fail else self.free)
        self.free -= size
        return size

    @property
    def capture_sizes(self) -> list[int]:
        limit = self.server_args.max_running_requests or 48
        sizes = [size for size in self.server_args.cuda_graph_bs or [] if size <= limit]
        return sizes or [limit]

    def capture_graphs(self, fail: bool = False) -> float:
        """GB of the target's CUDA graphs. Raises OutOfMemory."""
        tokens = self.capture_sizes[-1] * (self.knobs.nodes + 1)
        size = GRAPH_BASE_GB + GRAPH_TOKEN_GB * tokens
        if fail or size > self.free:
            raise OutOfMemory(min(size, 2.0), min(self.free, 0.31))
        self.graph_gb = size
        self.free -= size + WORKSPACE_GB
        return size

    @property
    def knobs(self) -> Knobs:
        """The setting as the performance model knows it: what this code does, whatever a config.json says."""
        args = self.server_args
        if self.algorithm.is_none():
            return Knobs(algorithm=None, overlap=not args.disable_overlap_schedule, drafter=Drafter(1, None))
        worker, block = self.worker, args.speculative_num_draft_tokens or 4
        return Knobs(
            algorithm=self.algorithm.value,
            budget=args.speculative_ddtree_budget or block - 1,
            topk=worker.topk if isinstance(worker, DDTreeWorker) else args.speculative_eagle_topk or 1,
            window=worker.draft_window_size if worker else None,
            block=block,
            steps=args.speculative_num_steps or 1,
            overlap=not args.disable_overlap_schedule,
            cuda_graph=not args.disable_cuda_graph,
            drafter=self._trained_drafter(block),
        )

    def _trained_drafter(self, block: int) -> Drafter:
        """What the drafter was trained for: a truth about the weights that the engine does not look at."""
        if self.drafter is None or self.algorithm.value not in BLOCK_ALGORITHMS:
            return Drafter(block, None)
        config: dict[str, Any] = self.drafter.hf_config
        slides = config.get("use_sliding_window", True) and "sliding_attention" in (
            config.get("layer_types") or ()
        )
        trained = self.worker.draft_model.draft_config.block_size if self.worker else None
        window = config.get("sliding_window") if slides else None
        return Drafter(trained or block, int(window) if window else None)
