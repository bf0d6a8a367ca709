"""Speculation with a DFLASH drafter: draft a block in one pass, verify it as a chain.

With `--speculative-dflash-draft-window-size` the worker keeps a compact cache: a request-to-token table of
its own that lists the last tokens only, over the same KV slots, so that every draft layer sees no more than
the window. Without the flag it uses the target's table, and every draft layer sees everything.
"""

from __future__ import annotations

import logging

from sglang.srt.configs.model_config import ModelConfig
from sglang.srt.models.dflash import DFlashDraftModel
from sglang.srt.server_args import ServerArgs

logger = logging.getLogger(__name__)

DRAFT_ATTENTION_BACKENDS = ("flashinfer", "fa3", "fa4", "triton")


class DFlashWorker:
    def __init__(self, server_args: ServerArgs, target: ModelConfig, drafter: ModelConfig) -> None:
        assert server_args.speculative_num_draft_tokens is not None
        self.server_args, self.target = server_args, target
        self.block_size = server_args.speculative_num_draft_tokens
        self.draft_window_size = server_args.speculative_dflash_draft_window_size
        self.use_compact_draft_cache = self.draft_window_size is not None
        self.draft_model = DFlashDraftModel(drafter, server_args.tp_size, target.num_hidden_layers)
        self.attention_backend = self._choose_attention_backend()

    def _choose_attention_backend(self) -> str:
        wanted = self.server_args.speculative_draft_attention_backend
        backend = wanted or self.server_args.get_attention_backends()[1]
        if backend not in DRAFT_ATTENTION_BACKENDS:
            logger.warning(
                f"DFLASH draft worker only supports attention_backend in {DRAFT_ATTENTION_BACKENDS} for now, "
                f"but got {backend!r}. Falling back to 'flashinfer'."
            )
            return "flashinfer"
        return backend

    def visible_draft_len(self, seq_len: int) -> int:
        """Tokens of the context that the drafter sees."""
        if self.draft_window_size is None:
            return seq_len
        return min(seq_len, self.draft_window_size)

    def startup_lines(self) -> list[str]:
        """What rank 0 logs once the drafter is loaded."""
        config = self.draft_model.draft_config
        lines = []
        if config.block_size is not None and config.block_size != self.block_size:
            lines.append(
                f"DFLASH block size mismatch: using speculative_num_draft_tokens={self.block_size} "
                f"but draft config block_size={config.block_size}."
            )
        if config.num_target_layers not in (None, self.target.num_hidden_layers):
            lines.append(
                f"DFLASH draft config num_target_layers={config.num_target_layers} differs from runtime "
                f"target num_hidden_layers={self.target.num_hidden_layers}."
            )
        mask_token_id = (
            config.mask_token_id if config.mask_token_id is not None else self.target.vocab_size - 2
        )
        first = self.draft_model.layers[0]
        return [
            *lines,
            f"Initialized DFLASH draft runner. attention_backend={self.attention_backend}, "
            f"model={type(self.draft_model).__name__}, block_size={self.block_size}, "
            f"draft_window_size={self.draft_window_size}, compact_cache={self.use_compact_draft_cache}",
            f"DFLASH draft runner ready. mask_token={config.mask_token}, mask_token_id={mask_token_id}, "
            f"mask_token_id_override={config.mask_token_id}",
            f"DFLASH fused KV materialization enabled. n_layers={len(self.draft_model.layers)}, "
            f"num_kv_heads={first.num_kv_heads}, head_dim={first.head_dim}",
        ]
