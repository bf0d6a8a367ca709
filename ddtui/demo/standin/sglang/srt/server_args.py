"""The server's arguments, laid out as in SGLang 0.5.11 (one dataclass, one `add_cli_args`), with the
fork's DDTREE.

A subset: some 130 of the 388 long options, one file as there, with the checks and their real texts.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import random
import re
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from sglang.srt.configs.model_config import ModelConfig
from sglang.srt.speculative.dflash_utils import parse_dflash_draft_config

logger = logging.getLogger(__name__)

LOAD_FORMAT_CHOICES = [
    "auto",
    "pt",
    "safetensors",
    "npcache",
    "dummy",
    "sharded_state",
    "gguf",
    "bitsandbytes",
    "mistral",
    "layered",
    "flash_rl",
    "remote",
    "remote_instance",
    "fastsafetensors",
    "private",
    "runai_streamer",
]
QUANTIZATION_CHOICES = [
    "awq",
    "fp8",
    "mxfp8",
    "gptq",
    "marlin",
    "gptq_marlin",
    "awq_marlin",
    "bitsandbytes",
    "gguf",
    "modelopt",
    "modelopt_fp8",
    "modelopt_fp4",
    "modelopt_mixed",
    "petit_nvfp4",
    "w8a8_int8",
    "w8a8_fp8",
    "moe_wna16",
    "qoq",
    "w4afp8",
    "mxfp4",
    "auto-round",
    "compressed-tensors",
    "modelslim",
    "quark_int4fp8_moe",
    "unquant",
]
TOOL_CALL_PARSER_CHOICES = [
    "deepseekv3",
    "deepseekv31",
    "deepseekv32",
    "glm45",
    "gpt-oss",
    "kimi_k2",
    "llama3",
    "mistral",
    "qwen",
    "qwen25",
    "qwen3_coder",
]
ATTENTION_BACKEND_CHOICES = [
    "triton",
    "torch_native",
    "flex_attention",
    "nsa",
    "cutlass_mla",
    "fa3",
    "fa4",
    "flashinfer",
    "flashmla",
    "trtllm_mla",
    "trtllm_mha",
    "dual_chunk_flash_attn",
    "aiter",
    "wave",
    "intel_amx",
    "ascend",
    "intel_xpu",
]
MOE_RUNNER_BACKEND_CHOICES = [
    "auto",
    "deep_gemm",
    "triton",
    "triton_kernel",
    "flashinfer_trtllm",
    "flashinfer_trtllm_routed",
    "flashinfer_cutlass",
    "flashinfer_mxfp4",
    "flashinfer_cutedsl",
    "cutlass",
    "aiter",
]
LOAD_BALANCE_CHOICES = ["auto", "round_robin", "follow_bootstrap_room", "total_requests", "total_tokens"]
MOE_A2A_CHOICES = ["none", "deepep", "mooncake", "nixl", "mori", "ascend_fuseep", "flashinfer"]
REASONING_PARSER_CHOICES = [
    "deepseek-r1",
    "deepseek-v3",
    "glm45",
    "gpt-oss",
    "kimi",
    "kimi_k2",
    "qwen3",
    "qwen3-thinking",
]


def human_readable_int(value: str) -> int:
    """An integer with an optional suffix: k, M, G, T (powers of 1000) or Ki, Mi, Gi, Ti (powers of 1024)."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)", value.strip())
    if match:
        number, suffix = match.groups()
        power = "kMGT".index(suffix[0].replace("K", "k")) + 1
        return int(Decimal(number) * (1024 if suffix.endswith("i") else 1000) ** power)
    try:
        return int(value)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"Invalid integer value: '{value}'. "
            "Use a plain integer, SI suffixes (1k, 1M), or IEC suffixes (1Ki, 1Mi). "
            "Suffixes are case-sensitive."
        ) from None


class DeprecatedStoreTrueAction(argparse.Action):
    """A switch of an old name: it still works, and says so."""

    def __init__(self, option_strings: Sequence[str], dest: str, new_flag: str = "", **kwargs: Any) -> None:
        self.new_flag = new_flag
        super().__init__(option_strings, dest, nargs=0, const=True, default=False, **kwargs)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        logger.warning(
            f"'{option_string}' is deprecated and will be removed in a future release. "
            f"Use '{self.new_flag}' instead."
        )
        setattr(namespace, self.dest, True)


@dataclasses.dataclass
class ServerArgs:
    # Model and tokenizer
    model_path: str
    tokenizer_path: str | None = None
    tokenizer_mode: str = "auto"
    skip_tokenizer_init: bool = False
    load_format: str = "auto"
    trust_remote_code: bool = False
    context_length: int | None = None
    revision: str | None = None

    # HTTP server
    host: str = "127.0.0.1"
    port: int = 30000
    skip_server_warmup: bool = False
    nccl_port: int | None = None

    # Quantization and data type
    dtype: str = "auto"
    quantization: str | None = None
    kv_cache_dtype: str = "auto"

    # Memory and scheduling
    mem_fraction_static: float | None = None
    max_running_requests: int | None = None
    max_queued_requests: int | None = None
    max_total_tokens: int | None = None
    chunked_prefill_size: int | None = None
    max_prefill_tokens: int = 16384
    prefill_max_requests: int | None = None
    schedule_policy: str = "fcfs"
    schedule_conservativeness: float = 1.0
    page_size: int | None = None
    radix_eviction_policy: str = "lru"

    # Runtime options
    device: str | None = None
    tp_size: int = 1
    pp_size: int = 1
    pp_max_micro_batch_size: int | None = None
    stream_interval: int = 1
    incremental_streaming_output: bool = False
    random_seed: int | None = None
    watchdog_timeout: float = 300
    dist_timeout: int | None = None
    download_dir: str | None = None
    base_gpu_id: int = 0
    sleep_on_idle: bool = False

    # Logging
    log_level: str = "info"
    log_level_http: str | None = None
    log_requests: bool = False
    log_requests_level: int = 2
    crash_dump_folder: str | None = None
    show_time_cost: bool = False
    enable_metrics: bool = False
    decode_log_interval: int = 40
    enable_request_time_stats_logging: bool = False

    # API
    api_key: str | None = None
    admin_api_key: str | None = None
    served_model_name: str | None = None
    weight_version: str = "default"
    chat_template: str | None = None
    file_storage_path: str = "sglang_storage"
    enable_cache_report: bool = False
    reasoning_parser: str | None = None
    tool_call_parser: str | None = None
    sampling_defaults: str = "model"

    # Parallelism over several schedulers and nodes
    dp_size: int = 1
    load_balance_method: str = "auto"
    dist_init_addr: str | None = None
    nnodes: int = 1
    node_rank: int = 0

    # Overrides
    json_model_override_args: str = "{}"
    preferred_sampling_params: str | None = None

    # Kernel backends
    attention_backend: str | None = None
    decode_attention_backend: str | None = None
    prefill_attention_backend: str | None = None
    sampling_backend: str | None = None
    grammar_backend: str | None = None

    # Speculative decoding
    speculative_algorithm: str | None = None
    speculative_draft_model_path: str | None = None
    speculative_draft_model_revision: str | None = None
    speculative_draft_load_format: str | None = None
    speculative_num_steps: int | None = None
    speculative_eagle_topk: int | None = None
    speculative_num_draft_tokens: int | None = None
    speculative_dflash_block_size: int | None = None
    speculative_dflash_draft_window_size: int | None = None
    speculative_ddtree_budget: int | None = None
    speculative_ddtree_topk_cap: int | None = None
    speculative_accept_threshold_single: float = 1.0
    speculative_accept_threshold_acc: float = 1.0
    speculative_token_map: str | None = None
    speculative_attention_mode: str = "prefill"
    speculative_draft_attention_backend: str | None = None
    speculative_moe_runner_backend: str | None = None
    speculative_moe_a2a_backend: str | None = None
    speculative_draft_model_quantization: str | None = None
    speculative_adaptive: bool = False
    speculative_adaptive_config: str | None = None
    speculative_skip_dp_mlp_sync: bool = False
    speculative_ngram_min_bfs_breadth: int = 1
    speculative_ngram_max_bfs_breadth: int = 10
    speculative_ngram_match_type: str = "BFS"
    speculative_ngram_max_trie_depth: int = 18
    speculative_ngram_capacity: int = 10 * 1000 * 1000
    speculative_ngram_external_corpus_path: str | None = None
    speculative_ngram_external_sam_budget: int = 0
    speculative_ngram_external_corpus_max_tokens: int = 10000000

    # Mixture of experts
    ep_size: int = 1
    moe_a2a_backend: str = "none"
    moe_runner_backend: str = "auto"
    enable_eplb: bool = False

    # Caches, graphs, optimization, debugging
    enable_hierarchical_cache: bool = False
    hicache_ratio: float = 2.0
    hicache_size: int = 0
    cpu_offload_gb: int = 0
    disable_radix_cache: bool = False
    cuda_graph_max_bs: int | None = None
    cuda_graph_bs: list[int] | None = None
    disable_cuda_graph: bool = False
    disable_cuda_graph_padding: bool = False
    enable_symm_mem: bool = False
    disable_custom_all_reduce: bool = False
    disable_overlap_schedule: bool = False
    enable_mixed_chunk: bool = False
    enable_dp_attention: bool = False
    enable_dp_lm_head: bool = False
    enable_two_batch_overlap: bool = False
    enable_torch_compile: bool = False
    disable_piecewise_cuda_graph: bool = False
    torch_compile_max_bs: int = 32
    enable_p2p_check: bool = False
    triton_attention_num_kv_splits: int = 8
    num_continuous_decode_steps: int = 1
    enable_memory_saver: bool = False
    allow_auto_truncate: bool = False
    enable_custom_logit_processor: bool = False
    disable_shared_experts_fusion: bool = False
    disable_chunked_prefix_cache: bool = False
    enable_return_hidden_states: bool = False

    def __post_init__(self) -> None:
        self.tokenizer_path = self.tokenizer_path or self.model_path
        self.served_model_name = self.served_model_name or self.model_path
        self.device = self.device or "cuda"
        if self.random_seed is None:
            self.random_seed = random.randint(0, 1 << 30)

        self.get_model_config()
        self._handle_gpu_memory_settings()
        self._handle_kernel_backends()
        self._handle_pipeline_parallelism()
        self._handle_speculative_decoding()
        self._handle_cuda_graph_settings()

    def get_model_config(self) -> ModelConfig:
        """The target's config.json. Raises OSError where there is none, ValueError where it does not fit."""
        if not hasattr(self, "_model_config"):
            self._model_config = ModelConfig.from_server_args(self)
        return self._model_config

    def _handle_gpu_memory_settings(self) -> None:
        if self.chunked_prefill_size is None:
            self.chunked_prefill_size = 8192
        if self.mem_fraction_static is None:
            self.mem_fraction_static = 0.875

    def _handle_kernel_backends(self) -> None:
        if self.sampling_backend is None:
            self.sampling_backend = "flashinfer"
        if self.grammar_backend is None:
            self.grammar_backend = "xgrammar"
        if self.page_size is None:
            self.page_size = 1
        if self.attention_backend is None:
            self.attention_backend = self._default_attention_backend()
            logger.info(f"Attention backend not specified. Use {self.attention_backend} backend by default.")

    def _default_attention_backend(self) -> str:
        # The fork verifies trees with Triton's kernels. Otherwise as on Hopper: fa3, but for EAGLE's trees.
        if self.speculative_algorithm == "DDTREE":
            return "triton"
        if (self.speculative_eagle_topk or 1) > 1 and not self.get_model_config().use_mla:
            return "flashinfer"
        return "fa3"

    def get_attention_backends(self) -> tuple[str, str]:
        """Backends of prefill and of decode."""
        both = self.attention_backend or "fa3"
        return self.prefill_attention_backend or both, self.decode_attention_backend or both

    def _handle_pipeline_parallelism(self) -> None:
        if self.pp_size > 1:
            self.disable_overlap_schedule = True
            logger.warning("Pipeline parallelism is incompatible with overlap schedule.")

    def _handle_cuda_graph_settings(self) -> None:
        if self.cuda_graph_bs is None:
            self.cuda_graph_max_bs = self.cuda_graph_max_bs or 256
            sizes = [
                *range(1, 9),
                *range(10, 33, 2),
                *range(40, 65, 8),
                *range(72, 257, 8),
                *range(272, 513, 16),
            ]
            self.cuda_graph_bs = [size for size in sizes if size <= self.cuda_graph_max_bs]
        else:
            self.cuda_graph_max_bs = max(self.cuda_graph_bs)
        if self.max_running_requests is None:
            self.max_running_requests = 2048
        if self.pp_max_micro_batch_size is None:
            self.pp_max_micro_batch_size = max(1, self.max_running_requests // self.pp_size)

    # --- speculative decoding ---------------------------------------------------------------------------

    def _handle_speculative_decoding(self) -> None:
        if self.speculative_algorithm == "NEXTN":
            self.speculative_algorithm = "EAGLE"
        if self.speculative_draft_model_path is not None and self.speculative_draft_model_revision is None:
            self.speculative_draft_model_revision = "main"
        if self.speculative_skip_dp_mlp_sync:
            assert self.speculative_algorithm == "EAGLE", (
                "--speculative-skip-dp-mlp-sync is only supported with "
                f"speculative_algorithm == EAGLE, got {self.speculative_algorithm}."
            )
        self._warn_of_idle_ddtree_flags()
        if self.speculative_algorithm in ("DFLASH", "DDTREE"):
            self._handle_dflash()
        if self.speculative_algorithm == "DDTREE":
            self._handle_ddtree()
        if self.speculative_algorithm in ("EAGLE", "EAGLE3", "STANDALONE"):
            self._handle_eagle()
        if self.speculative_algorithm == "NGRAM":
            self._handle_ngram()

    def _limit_running_requests(self) -> None:
        if self.max_running_requests is None:
            self.max_running_requests = 48
            logger.warning(
                "Max running requests is reset to 48 for speculative decoding. "
                "You can override this by explicitly setting --max-running-requests."
            )

    def _handle_dflash(self) -> None:
        name = self.speculative_algorithm
        if self.enable_dp_attention:
            raise ValueError(f"Currently {name} speculative decoding does not support dp attention.")
        if self.pp_size != 1:
            raise ValueError(f"Currently {name} speculative decoding only supports pp_size == 1.")
        if self.speculative_draft_model_path is None:
            raise ValueError(f"{name} speculative decoding requires setting --speculative-draft-model-path.")

        # A block is drafted in one pass and verified at once: EAGLE's steps and candidates mean nothing
        # here.
        for field in ("speculative_num_steps", "speculative_eagle_topk"):
            value = getattr(self, field)
            if value is not None and int(value) != 1:
                logger.warning(f"DFLASH only supports {field} == 1; overriding {field}={value} to 1.")
            setattr(self, field, 1)

        block_size = self.speculative_dflash_block_size
        if block_size is not None:
            if block_size <= 0:
                raise ValueError(
                    f"DFLASH requires --speculative-dflash-block-size to be positive, got {block_size}."
                )
            if self.speculative_num_draft_tokens not in (None, block_size):
                raise ValueError(
                    "Both --speculative-num-draft-tokens and --speculative-dflash-block-size are set "
                    "but they differ. For DFLASH they must match. "
                    f"speculative_num_draft_tokens={self.speculative_num_draft_tokens}, "
                    f"speculative_dflash_block_size={block_size}."
                )
            self.speculative_num_draft_tokens = block_size

        window_size = self.speculative_dflash_draft_window_size
        if window_size is not None and window_size <= 0:
            raise ValueError(
                f"DFLASH requires --speculative-dflash-draft-window-size to be positive, got {window_size}."
            )
        if self.speculative_num_draft_tokens is None:
            self.speculative_num_draft_tokens = self._infer_block_size()
        if window_size is not None and window_size < self.speculative_num_draft_tokens:
            raise ValueError(
                "DFLASH --speculative-dflash-draft-window-size must be >= "
                "--speculative-num-draft-tokens (block_size). "
                f"window_size={window_size}, block_size={self.speculative_num_draft_tokens}."
            )

        self._limit_running_requests()
        self.disable_overlap_schedule = True
        logger.warning(
            f"Overlap scheduler is disabled when using {name} speculative decoding "
            "(spec v2 is not supported yet)."
        )
        if self.enable_mixed_chunk:
            self.enable_mixed_chunk = False
            logger.warning("Mixed chunked prefill is disabled because of using dflash speculative decoding.")

    def _infer_block_size(self) -> int:
        block_size = None
        try:
            drafter = ModelConfig(self.speculative_draft_model_path or "", is_draft_model=True)
            block_size = parse_dflash_draft_config(drafter.hf_config).block_size
        except Exception as e:
            logger.warning(
                "Failed to infer DFLASH block_size from draft model config; "
                f"defaulting speculative_num_draft_tokens to 16. Error: {e}"
            )
        if block_size is None:
            block_size = 16
            logger.warning(f"speculative_num_draft_tokens is not set; defaulting to {block_size} for DFLASH.")
        return block_size

    def _handle_ddtree(self) -> None:
        assert self.speculative_num_draft_tokens is not None
        depth = self.speculative_num_draft_tokens - 1
        if self.speculative_ddtree_budget is None:
            self.speculative_ddtree_budget = max(depth, 1)
            logger.warning(
                f"Inferred speculative_ddtree_budget={self.speculative_ddtree_budget} from the draft block."
            )
        if self.speculative_ddtree_budget < 1:
            raise ValueError(
                f"--speculative-ddtree-budget must be >= 1, got {self.speculative_ddtree_budget}."
            )
        if self.speculative_ddtree_topk_cap is not None and self.speculative_ddtree_topk_cap < 1:
            raise ValueError(
                f"--speculative-ddtree-topk-cap must be >= 1, got {self.speculative_ddtree_topk_cap}."
            )
        if self.page_size != 1:
            raise ValueError(
                f"DDTREE currently supports only page_size == 1. Got page_size={self.page_size}."
            )
        prefill, decode = self.get_attention_backends()
        if self.speculative_ddtree_budget > depth and (prefill, decode) != ("triton", "triton"):
            raise ValueError(
                "DDTREE full-tree mode currently supports only the triton attention backend "
                "for prefill and decode. "
                f"Got prefill={prefill}, decode={decode}."
            )

    def _warn_of_idle_ddtree_flags(self) -> None:
        if self.speculative_algorithm == "DDTREE":
            return
        for field in ("speculative_ddtree_budget", "speculative_ddtree_topk_cap"):
            if getattr(self, field) is not None:
                logger.warning(
                    f"--{field.replace('_', '-')} has no effect with "
                    f"speculative_algorithm={self.speculative_algorithm} (honored by DDTREE)."
                )

    def _handle_eagle(self) -> None:
        if self.speculative_algorithm == "STANDALONE" and self.enable_dp_attention:
            raise ValueError("Currently standalone speculative decoding does not support dp attention.")
        self._limit_running_requests()
        if (self.speculative_eagle_topk or 1) > 1 and not self.disable_overlap_schedule:
            self.disable_overlap_schedule = True
            reason = "spec v2 currently only supports topk = 1"
        else:
            reason = "overlap schedule is disabled"
        if self.disable_overlap_schedule:
            logger.warning(
                f"Spec v1 is used for eagle/eagle3/standalone speculative decoding because {reason}."
            )
        else:
            logger.warning("Spec v2 is enabled by default for eagle/eagle3/standalone speculative decoding.")
        if self.speculative_num_steps is None:
            assert self.speculative_eagle_topk is None and self.speculative_num_draft_tokens is None
            self.speculative_num_steps, self.speculative_eagle_topk = 3, 1
            self.speculative_num_draft_tokens = 4
        if (
            self.speculative_eagle_topk == 1
            and self.speculative_num_draft_tokens != self.speculative_num_steps + 1
        ):
            logger.warning(
                "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 "
                "when speculative_eagle_topk == 1"
            )
            self.speculative_num_draft_tokens = self.speculative_num_steps + 1

    def _handle_ngram(self) -> None:
        self._limit_running_requests()
        self.disable_overlap_schedule = True
        self.enable_mixed_chunk = False
        self.speculative_eagle_topk = self.speculative_ngram_max_bfs_breadth
        if self.speculative_num_draft_tokens is None:
            self.speculative_num_draft_tokens = 12
            logger.warning(
                "speculative_num_draft_tokens is set to 12 by default for ngram speculative decoding. "
                "You can override this by explicitly setting --speculative-num-draft-tokens."
            )
        logger.warning(
            "The overlap scheduler and mixed chunked prefill are disabled because of "
            "using ngram speculative decoding."
        )

    # --- the command line -------------------------------------------------------------------------------

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser) -> None:
        # fmt: off
        # Model and tokenizer
        parser.add_argument("--model-path", "--model", type=str, required=True,
                            help="Folder of the target model, or its name on a model hub.")
        parser.add_argument("--tokenizer-path", type=str, default=ServerArgs.tokenizer_path,
                            help="Folder of the tokenizer; the model's own by default.")
        parser.add_argument("--tokenizer-mode", type=str, default=ServerArgs.tokenizer_mode,
                            choices=["auto", "slow"],
                            help='Fast tokenizer where there is one ("auto"), or always the slow one.')
        parser.add_argument("--skip-tokenizer-init", action="store_true",
                            help="Take and give token ids only.")
        parser.add_argument("--load-format", type=str, default=ServerArgs.load_format,
                            choices=LOAD_FORMAT_CHOICES, help="Format of the weight files.")
        parser.add_argument("--trust-remote-code", action="store_true",
                            help="Run the code that comes with the model.")
        parser.add_argument("--context-length", type=human_readable_int, default=ServerArgs.context_length,
                            help="Longest context in tokens; by default what the model's config.json says.")
        parser.add_argument("--revision", type=str, default=None,
                            help="Branch, tag or commit of the model.")

        # HTTP server
        parser.add_argument("--host", type=str, default=ServerArgs.host, help="Address to listen on.")
        parser.add_argument("--port", type=int, default=ServerArgs.port, help="Port to listen on.")
        parser.add_argument("--skip-server-warmup", action="store_true",
                            help="Do not send a first request before the server calls itself ready.")
        parser.add_argument("--nccl-port", type=int, default=ServerArgs.nccl_port,
                            help="Port for setting up the process group.")

        # Quantization and data type
        parser.add_argument("--dtype", type=str, default=ServerArgs.dtype,
                            choices=["auto", "half", "float16", "bfloat16", "float", "float32"],
                            help="Data type of weights and activations.")
        parser.add_argument("--quantization", type=str, default=ServerArgs.quantization,
                            choices=QUANTIZATION_CHOICES, help="How the weights are quantized.")
        parser.add_argument("--kv-cache-dtype", type=str, default=ServerArgs.kv_cache_dtype,
                            choices=["auto", "fp8_e5m2", "fp8_e4m3", "bf16", "bfloat16", "fp4_e2m1"],
                            help="Data type of the KV cache.")

        # Memory and scheduling
        parser.add_argument("--mem-fraction-static", type=float, default=ServerArgs.mem_fraction_static,
                            help="Share of the GPU memory for weights and KV cache.")
        parser.add_argument("--max-running-requests", type=int, default=ServerArgs.max_running_requests,
                            help="Most requests that run at once.")
        parser.add_argument("--max-queued-requests", type=int, default=ServerArgs.max_queued_requests,
                            help="Most requests that wait.")
        parser.add_argument("--max-total-tokens", type=human_readable_int,
                            default=ServerArgs.max_total_tokens,
                            help="Tokens in the KV cache; by default what the memory allows.")
        parser.add_argument("--chunked-prefill-size", type=int, default=ServerArgs.chunked_prefill_size,
                            help="Most prompt tokens of one prefill pass; -1 for no chunks.")
        parser.add_argument("--prefill-max-requests", type=int, default=ServerArgs.prefill_max_requests,
                            help="Most requests of one prefill pass.")
        parser.add_argument("--max-prefill-tokens", type=human_readable_int,
                            default=ServerArgs.max_prefill_tokens, help="Most tokens of one prefill batch.")
        parser.add_argument("--schedule-policy", type=str, default=ServerArgs.schedule_policy,
                            choices=["lpm", "random", "fcfs", "dfs-weight", "lof", "priority", "routing-key"],
                            help="Order in which waiting requests are taken.")
        parser.add_argument("--schedule-conservativeness", type=float,
                            default=ServerArgs.schedule_conservativeness,
                            help="How carefully requests are admitted; raise it when requests get retracted.")
        parser.add_argument("--page-size", type=int, default=ServerArgs.page_size,
                            help="Tokens on a page of the KV cache.")
        parser.add_argument("--radix-eviction-policy", type=str, choices=["lru", "lfu", "slru", "priority"],
                            default=ServerArgs.radix_eviction_policy,
                            help="Which cached prefixes go first.")

        # Runtime options
        parser.add_argument("--device", type=str, default=ServerArgs.device, help="Device to run on.")
        parser.add_argument("--tensor-parallel-size", "--tp-size", type=int, default=ServerArgs.tp_size,
                            help="Tensor parallel size.")
        parser.add_argument("--pipeline-parallel-size", "--pp-size", type=int, default=ServerArgs.pp_size,
                            help="Pipeline parallel size.")
        parser.add_argument("--pp-max-micro-batch-size", type=int,
                            default=ServerArgs.pp_max_micro_batch_size,
                            help="Largest micro batch under pipeline parallelism.")
        parser.add_argument("--stream-interval", type=int, default=ServerArgs.stream_interval,
                            help="Tokens between two chunks of a stream.")
        parser.add_argument("--incremental-streaming-output", action="store_true",
                            help="Stream only what is new, not the whole output so far.")
        parser.add_argument("--stream-output", action=DeprecatedStoreTrueAction,
                            dest="incremental_streaming_output", new_flag="--incremental-streaming-output",
                            help="[Deprecated] Use --incremental-streaming-output instead.")
        parser.add_argument("--random-seed", type=int, default=ServerArgs.random_seed,
                            help="Seed of the random numbers.")
        parser.add_argument("--watchdog-timeout", type=float, default=ServerArgs.watchdog_timeout,
                            help="Seconds that one forward pass may take before the server gives up.")
        parser.add_argument("--dist-timeout", type=int, default=ServerArgs.dist_timeout,
                            help="Seconds to wait when setting up torch.distributed.")
        parser.add_argument("--download-dir", type=str, default=ServerArgs.download_dir,
                            help="Where downloaded models go.")
        parser.add_argument("--base-gpu-id", type=int, default=ServerArgs.base_gpu_id,
                            help="First GPU to use.")
        parser.add_argument("--sleep-on-idle", action="store_true",
                            help="Use less CPU when there is nothing to do.")

        # Logging
        parser.add_argument("--log-level", type=str, default=ServerArgs.log_level,
                            help="Level of all loggers.")
        parser.add_argument("--log-level-http", type=str, default=ServerArgs.log_level_http,
                            help="Level of the HTTP server's logger.")
        parser.add_argument("--log-requests", action="store_true", help="Log every request.")
        parser.add_argument("--log-requests-level", type=int, default=ServerArgs.log_requests_level,
                            choices=[0, 1, 2, 3],
                            help="How much: 0 metadata, 1 sampling parameters, 2 shortened texts, 3 all.")
        parser.add_argument("--crash-dump-folder", type=str, default=ServerArgs.crash_dump_folder,
                            help="Where the last requests before a crash are written.")
        parser.add_argument("--show-time-cost", action="store_true", help="Log what custom marks took.")
        parser.add_argument("--enable-metrics", action="store_true",
                            help="Serve Prometheus metrics at /metrics.")
        parser.add_argument("--decode-log-interval", type=int, default=ServerArgs.decode_log_interval,
                            help='Decode steps between two "Decode batch" lines.')
        parser.add_argument("--enable-request-time-stats-logging", action="store_true",
                            help="Log how long each part of a request took.")

        # API
        parser.add_argument("--api-key", type=str, default=ServerArgs.api_key,
                            help="Key that requests must bring.")
        parser.add_argument("--admin-api-key", type=str, default=ServerArgs.admin_api_key,
                            help="Key that requests which change the server must bring.")
        parser.add_argument("--served-model-name", type=str, default=ServerArgs.served_model_name,
                            help="Name of the model in the API.")
        parser.add_argument("--weight-version", type=str, default=ServerArgs.weight_version,
                            help="Name of this version of the weights.")
        parser.add_argument("--chat-template", type=str, default=ServerArgs.chat_template,
                            help="Name or file of the chat template.")
        parser.add_argument("--file-storage-path", type=str, default=ServerArgs.file_storage_path,
                            help="Where uploaded files go.")
        parser.add_argument("--enable-cache-report", action="store_true",
                            help="Report cached tokens in the usage of the OpenAI API.")
        parser.add_argument("--reasoning-parser", type=str, choices=REASONING_PARSER_CHOICES,
                            default=ServerArgs.reasoning_parser,
                            help="Parser for the reasoning of the model.")
        parser.add_argument("--tool-call-parser", type=str, choices=TOOL_CALL_PARSER_CHOICES,
                            default=ServerArgs.tool_call_parser,
                            help="Parser for the tool calls of the model.")
        parser.add_argument("--sampling-defaults", type=str, choices=["openai", "model"],
                            default=ServerArgs.sampling_defaults,
                            help="Where default sampling parameters come from.")

        # Parallelism over several schedulers and nodes
        parser.add_argument("--data-parallel-size", "--dp-size", type=int, default=ServerArgs.dp_size,
                            help="Data parallel size.")
        parser.add_argument("--load-balance-method", type=str, default=ServerArgs.load_balance_method,
                            choices=LOAD_BALANCE_CHOICES,
                            help="How requests are spread over data parallel ranks.")
        parser.add_argument("--dist-init-addr", "--nccl-init-addr", type=str, help="Address of node 0.")
        parser.add_argument("--nnodes", type=int, default=ServerArgs.nnodes, help="Number of nodes.")
        parser.add_argument("--node-rank", type=int, default=ServerArgs.node_rank,
                            help="Number of this node.")

        # Overrides
        parser.add_argument("--json-model-override-args", type=str,
                            default=ServerArgs.json_model_override_args,
                            help="JSON that replaces values of the model's config.json.")
        parser.add_argument("--preferred-sampling-params", type=json.loads,
                            help="JSON of sampling parameters that /model_info recommends.")

        # Kernel backends
        parser.add_argument("--attention-backend", type=str, choices=ATTENTION_BACKEND_CHOICES,
                            default=ServerArgs.attention_backend, help="Kernels of the attention layers.")
        parser.add_argument("--prefill-attention-backend", type=str, choices=ATTENTION_BACKEND_CHOICES,
                            default=ServerArgs.prefill_attention_backend,
                            help="Kernels of prefill; goes before --attention-backend.")
        parser.add_argument("--decode-attention-backend", type=str, choices=ATTENTION_BACKEND_CHOICES,
                            default=ServerArgs.decode_attention_backend,
                            help="Kernels of decode; goes before --attention-backend.")
        parser.add_argument("--sampling-backend", type=str, choices=["flashinfer", "pytorch", "ascend"],
                            default=ServerArgs.sampling_backend, help="Kernels of sampling.")
        parser.add_argument("--grammar-backend", type=str,
                            choices=["xgrammar", "outlines", "llguidance", "none"],
                            default=ServerArgs.grammar_backend, help="Library for grammars.")

        # Speculative decoding
        parser.add_argument("--speculative-algorithm", type=str,
                            choices=["DFLASH", "DDTREE", "EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM"],
                            help="Algorithm of speculative decoding.")
        parser.add_argument("--speculative-draft-model-path", "--speculative-draft-model", type=str,
                            help="Folder of the drafter.")
        parser.add_argument("--speculative-draft-model-revision", type=str, default=None,
                            help="Branch, tag or commit of the drafter.")
        parser.add_argument("--speculative-draft-load-format", type=str,
                            default=ServerArgs.speculative_draft_load_format, choices=LOAD_FORMAT_CHOICES,
                            help="Format of the drafter's weight files.")
        parser.add_argument("--speculative-num-steps", type=int, default=ServerArgs.speculative_num_steps,
                            help="Draft steps (EAGLE).")
        parser.add_argument("--speculative-eagle-topk", type=int, default=ServerArgs.speculative_eagle_topk,
                            help="Candidates per draft step (EAGLE).")
        parser.add_argument("--speculative-num-draft-tokens", type=int,
                            default=ServerArgs.speculative_num_draft_tokens,
                            help="Drafted tokens that are verified per step.")
        parser.add_argument("--speculative-dflash-block-size", type=int,
                            default=ServerArgs.speculative_dflash_block_size,
                            help="Block size of DFLASH: the same as --speculative-num-draft-tokens.")
        parser.add_argument("--speculative-dflash-draft-window-size", type=int,
                            default=ServerArgs.speculative_dflash_draft_window_size,
                            help="Draft attention sees only this many recent tokens (DFLASH, DDTREE).")
        parser.add_argument("--speculative-ddtree-budget", type=int,
                            default=ServerArgs.speculative_ddtree_budget,
                            help="Nodes of the draft tree; block size - 1 by default (DDTREE).")
        parser.add_argument("--speculative-ddtree-topk-cap", type=int,
                            default=ServerArgs.speculative_ddtree_topk_cap,
                            help="Most candidates per position; the budget by default (DDTREE).")
        parser.add_argument("--speculative-accept-threshold-single", type=float,
                            default=ServerArgs.speculative_accept_threshold_single,
                            help="Accept drafts more probable than this; below 1 outputs change.")
        parser.add_argument("--speculative-accept-threshold-acc", type=float,
                            default=ServerArgs.speculative_accept_threshold_acc,
                            help="The same for the accumulated probability.")
        parser.add_argument("--speculative-token-map", type=str, default=ServerArgs.speculative_token_map,
                            help="File of the drafter's frequent tokens.")
        parser.add_argument("--speculative-attention-mode", type=str, choices=["prefill", "decode"],
                            default=ServerArgs.speculative_attention_mode,
                            help="Whether verification uses prefill or decode kernels.")
        parser.add_argument("--speculative-draft-attention-backend", type=str,
                            default=ServerArgs.speculative_draft_attention_backend,
                            help="Kernels of the drafter's attention.")
        parser.add_argument("--speculative-moe-runner-backend", type=str,
                            choices=MOE_RUNNER_BACKEND_CHOICES,
                            default=ServerArgs.speculative_moe_runner_backend,
                            help="MoE kernels of the drafter.")
        parser.add_argument("--speculative-moe-a2a-backend", type=str,
                            choices=MOE_A2A_CHOICES,
                            default=ServerArgs.speculative_moe_a2a_backend,
                            help="MoE all-to-all kernels of the drafter.")
        parser.add_argument("--speculative-draft-model-quantization", type=str,
                            choices=QUANTIZATION_CHOICES,
                            default=ServerArgs.speculative_draft_model_quantization,
                            help="How the drafter's weights are quantized.")
        parser.add_argument("--speculative-adaptive", action="store_true",
                            help="Change the number of draft steps while running (EAGLE with topk 1).")
        parser.add_argument("--speculative-adaptive-config", type=str,
                            default=ServerArgs.speculative_adaptive_config, help="Configuration of that.")
        parser.add_argument("--speculative-skip-dp-mlp-sync", action="store_true",
                            help="Skip one synchronisation under data parallel attention (EAGLE).")
        parser.add_argument("--speculative-ngram-min-bfs-breadth", type=int,
                            default=ServerArgs.speculative_ngram_min_bfs_breadth,
                            help="Least breadth of the search (NGRAM).")
        parser.add_argument("--speculative-ngram-max-bfs-breadth", type=int,
                            default=ServerArgs.speculative_ngram_max_bfs_breadth,
                            help="Greatest breadth of the search (NGRAM).")
        parser.add_argument("--speculative-ngram-match-type", type=str, choices=["BFS", "PROB"],
                            default=ServerArgs.speculative_ngram_match_type,
                            help="Choose by recency (BFS) or by probability (NGRAM).")
        parser.add_argument("--speculative-ngram-max-trie-depth", type=int,
                            default=ServerArgs.speculative_ngram_max_trie_depth,
                            help="Longest match (NGRAM).")
        parser.add_argument("--speculative-ngram-capacity", type=int,
                            default=ServerArgs.speculative_ngram_capacity,
                            help="Size of the n-gram cache (NGRAM).")
        parser.add_argument("--speculative-ngram-external-corpus-path", type=str,
                            default=ServerArgs.speculative_ngram_external_corpus_path,
                            help="A corpus of outside text (NGRAM).")
        parser.add_argument("--speculative-ngram-external-sam-budget", type=int,
                            default=ServerArgs.speculative_ngram_external_sam_budget,
                            help="Drafted tokens from it (NGRAM).")
        parser.add_argument("--speculative-ngram-external-corpus-max-tokens", type=int,
                            default=ServerArgs.speculative_ngram_external_corpus_max_tokens,
                            help="Most tokens of it (NGRAM).")

        # Mixture of experts
        parser.add_argument("--expert-parallel-size", "--ep-size", "--ep", type=int,
                            default=ServerArgs.ep_size, help="Expert parallel size.")
        parser.add_argument("--moe-a2a-backend", type=str,
                            choices=MOE_A2A_CHOICES,
                            default=ServerArgs.moe_a2a_backend,
                            help="All-to-all kernels of expert parallelism.")
        parser.add_argument("--moe-runner-backend", type=str, choices=MOE_RUNNER_BACKEND_CHOICES,
                            default=ServerArgs.moe_runner_backend, help="Kernels of the experts.")
        parser.add_argument("--enable-eplb", action="store_true", help="Balance experts while running.")

        # Caches, graphs, optimization, debugging
        parser.add_argument("--enable-hierarchical-cache", action="store_true",
                            help="Keep evicted KV cache in host memory.")
        parser.add_argument("--hicache-ratio", type=float, default=ServerArgs.hicache_ratio,
                            help="Host cache in units of the device's.")
        parser.add_argument("--hicache-size", type=int, default=ServerArgs.hicache_size,
                            help="Host cache in GB; goes before the ratio.")
        parser.add_argument("--cpu-offload-gb", type=int, default=ServerArgs.cpu_offload_gb,
                            help="GB of weights kept in host memory.")
        parser.add_argument("--disable-radix-cache", action="store_true",
                            help="Do not reuse cached prefixes.")
        parser.add_argument("--cuda-graph-max-bs", type=int, default=ServerArgs.cuda_graph_max_bs,
                            help="Largest batch with a CUDA graph.")
        parser.add_argument("--cuda-graph-bs", type=int, nargs="+", help="Batch sizes with a CUDA graph.")
        parser.add_argument("--disable-cuda-graph", action="store_true", help="No CUDA graphs.")
        parser.add_argument("--disable-cuda-graph-padding", action="store_true",
                            help="CUDA graphs only for exact batch sizes.")
        parser.add_argument("--enable-symm-mem", action="store_true", help="NCCL symmetric memory.")
        parser.add_argument("--disable-custom-all-reduce", action="store_true",
                            help="All-reduce by NCCL only.")
        parser.add_argument("--disable-overlap-schedule", action="store_true",
                            help="Do not prepare the next batch while one runs.")
        parser.add_argument("--enable-mixed-chunk", action="store_true",
                            help="Prefill and decode in one batch.")
        parser.add_argument("--enable-dp-attention", action="store_true", help="Data parallel attention.")
        parser.add_argument("--enable-dp-lm-head", action="store_true",
                            help="Vocabulary parallel across attention groups.")
        parser.add_argument("--enable-two-batch-overlap", action="store_true",
                            help="Two micro batches that overlap.")
        parser.add_argument("--enable-torch-compile", action="store_true", help="Compile the model.")
        parser.add_argument("--disable-piecewise-cuda-graph", action="store_true",
                            help="No piecewise CUDA graphs for prefill.")
        parser.add_argument("--torch-compile-max-bs", type=int, default=ServerArgs.torch_compile_max_bs,
                            help="Largest batch that is compiled.")
        parser.add_argument("--enable-p2p-check", action="store_true",
                            help="Check whether GPUs reach each other.")
        parser.add_argument("--triton-attention-num-kv-splits", type=int,
                            default=ServerArgs.triton_attention_num_kv_splits,
                            help="Splits of the KV cache in Triton's decode kernel.")
        parser.add_argument("--num-continuous-decode-steps", type=int,
                            default=ServerArgs.num_continuous_decode_steps,
                            help="Decode steps between two looks at the queue.")
        parser.add_argument("--enable-memory-saver", action="store_true",
                            help="Allow memory to be released and taken again.")
        parser.add_argument("--allow-auto-truncate", action="store_true",
                            help="Cut requests that are too long in place of refusing them.")
        parser.add_argument("--enable-custom-logit-processor", action="store_true",
                            help="Let requests bring logit processors.")
        parser.add_argument("--disable-shared-experts-fusion", action="store_true",
                            help="Do not fuse shared experts.")
        parser.add_argument("--disable-chunked-prefix-cache", action="store_true",
                            help="No chunked prefix cache for MLA models.")
        parser.add_argument("--enable-return-hidden-states", action="store_true",
                            help="Let requests ask for hidden states.")
        parser.add_argument("--config", type=str, help="YAML file with further flags.")
        # fmt: on

    @classmethod
    def from_cli_args(cls, args: argparse.Namespace) -> ServerArgs:
        args.tp_size = args.tensor_parallel_size
        args.pp_size = args.pipeline_parallel_size
        args.dp_size = args.data_parallel_size
        args.ep_size = args.expert_parallel_size
        return cls(**{field.name: getattr(args, field.name) for field in dataclasses.fields(cls)})

    def url(self) -> str:
        return f"http://{self.host}:{self.port}"


def prepare_server_args(argv: list[str]) -> ServerArgs:
    """The arguments from the command line. Exits with 2 on a flag that is not known or not readable."""
    parser = argparse.ArgumentParser(prog="sglang serve")
    ServerArgs.add_cli_args(parser)
    if "--config" in argv:
        from sglang.srt.server_args_config_parser import merge_config_with_args

        argv = merge_config_with_args(parser, argv)
    raw_args = parser.parse_args(argv)
    logging.basicConfig(
        level=getattr(logging, raw_args.log_level.upper()),
        format="[%(asctime)s] %(message)s",
        datefmt="%Y-%m-%d %H:%M:%S",
        stream=sys.stderr,
        force=True,
    )
    return ServerArgs.from_cli_args(raw_args)
