"""A drafter's config.json: what kind it is, its block, its layers, and which of them slide by the config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class DrafterError(Exception):
    """A config.json that cannot be used. `str()` is one sentence: what, where, what to do."""


class Family(StrEnum):
    DFLASH = "DFLASH"
    EAGLE = "EAGLE"
    EAGLE3 = "EAGLE3"
    MTP = "MTP"
    STANDALONE = "standalone"


@dataclass(frozen=True, slots=True)
class Layer:
    index: int
    slides: bool  # by the config
    why: str


@dataclass(frozen=True, slots=True)
class Rope:
    theta: float | None
    kind: str  # default, yarn, linear, llama3, …
    factor: float | None
    original_max_position: int | None
    spelling: str  # "rope_scaling" (old), "rope_parameters" (new), ""


@dataclass(frozen=True, slots=True)
class DrafterConfig:
    path: str
    family: Family
    model_type: str
    architectures: tuple[str, ...]
    num_hidden_layers: int | None
    hidden_size: int | None
    num_attention_heads: int | None
    num_key_value_heads: int | None
    head_dim: int | None
    vocab_size: int | None
    max_position_embeddings: int | None
    dtype: str | None
    block_size: int | None
    target_layer_ids: tuple[int, ...] | None
    mask_token_id: int | None
    num_target_layers: int | None
    layer_types: tuple[str, ...] | None
    sliding_window: int | None  # as written
    use_sliding_window: bool | None
    max_window_layers: int | None
    is_causal: bool | None
    rope: Rope
    layers: tuple[Layer, ...]
    window: int | None  # tokens that sliding layers see by the config; None: no layer slides
    slides_validly: bool  # SGLang >= 0.5.14 would load it and slide these layers
    why: str  # one sentence on `slides_validly`
    warnings: tuple[str, ...]
    raw: Mapping[str, Any]

    @property
    def sliding_layers(self) -> int:
        return sum(layer.slides for layer in self.layers)

    @property
    def full_layers(self) -> int:
        return sum(not layer.slides for layer in self.layers)


def parse(data: bytes, path: str) -> DrafterConfig:
    """Read config.json. Raises DrafterError."""
    raise NotImplementedError


def is_repo_id(name: str) -> bool:
    """Whether a model path is a Hugging Face repo id rather than a folder."""
    raise NotImplementedError


def hf_cache_candidates(
    repo: str, env: Mapping[str, str], *, home: str, revision: str | None = None
) -> tuple[str, ...]:
    """Folders of the HF cache that may hold the repo (`…/models--OWNER--NAME`), by HF_HUB_CACHE, HF_HOME, …."""
    raise NotImplementedError
