"""The DFLASH drafter: a block of masked positions is filled in one pass, from the target's hidden states.

As in 0.5.11 every layer attends to all that its cache holds: the layers of a drafter's config.json are
counted, their kinds are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sglang.srt.configs.model_config import ModelConfig
from sglang.srt.speculative.dflash_utils import parse_dflash_draft_config


@dataclass(frozen=True)
class DFlashAttention:
    """One layer: the queries of the block against context and block, not causal within the block."""

    layer_id: int
    num_heads: int
    num_kv_heads: int
    head_dim: int

    def kv_bytes_per_token(self) -> int:
        return self.num_kv_heads * self.head_dim * 2 * 2


class DFlashDraftModel:
    """The drafter's shape on one GPU of `tp_size`. Raises ValueError where the config cannot be right."""

    def __init__(self, config: ModelConfig, tp_size: int, target_layers: int) -> None:
        self.config = config
        self.draft_config = parse_dflash_draft_config(config.hf_config)
        ids = self.draft_config.target_layer_ids
        for at, layer_id in enumerate(ids):
            if not 0 <= layer_id < target_layers:
                raise ValueError(
                    "DFLASH target_layer_ids contains an out-of-range layer id. "
                    f"target_layer_ids[{at}]={layer_id}, target_num_layers={target_layers}."
                )
        self.layers = [
            DFlashAttention(
                layer_id=i,
                num_heads=max(1, config.num_attention_heads // tp_size),
                num_kv_heads=max(1, -(-config.num_kv_heads // tp_size)),
                head_dim=config.head_dim,
            )
            for i in range(config.num_hidden_layers)
        ]
        # the projection of the target's hidden states, whole on every GPU
        self.context_projection_bytes = 2 * len(ids) * config.hidden_size**2

    def kv_bytes_per_token(self) -> int:
        return sum(layer.kv_bytes_per_token() for layer in self.layers)


EntryClass: Any = DFlashDraftModel
