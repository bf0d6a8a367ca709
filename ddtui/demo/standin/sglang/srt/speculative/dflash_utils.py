"""The part of a drafter's config.json that DFLASH needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DFlashDraftConfig:
    block_size: int | None
    mask_token: str
    mask_token_id: int | None
    target_layer_ids: tuple[int, ...]
    num_target_layers: int | None


def parse_dflash_draft_config(draft_hf_config: dict[str, Any]) -> DFlashDraftConfig:
    """Each field from `dflash_config` first, then from the top level."""
    nested = draft_hf_config.get("dflash_config") or {}

    def field(name: str) -> Any:
        return nested.get(name, draft_hf_config.get(name))

    block_size, mask_token_id = field("block_size"), field("mask_token_id")
    if block_size is not None and int(block_size) <= 0:
        raise ValueError(f"DFLASH block_size must be positive, got {block_size}.")
    return DFlashDraftConfig(
        block_size=None if block_size is None else int(block_size),
        mask_token=field("mask_token") or "<|MASK|>",
        mask_token_id=None if mask_token_id is None else int(mask_token_id),
        target_layer_ids=tuple(int(i) for i in field("target_layer_ids") or ()),
        num_target_layers=field("num_target_layers"),
    )
