"""What a model's config.json says. Weights are never read: their size is computed from the config."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from sglang.simulation.switches import SWITCHES

if TYPE_CHECKING:
    from sglang.srt.server_args import ServerArgs

GIB = 1 << 30
INT4_BYTES = 0.5625  # 4 bits and a 16-bit scale per 32 weights


class HFValidationError(ValueError):
    """What the hub's client says to a path that is not there."""


HFValidationError.__module__ = "huggingface_hub.errors"


def read_config(path: str) -> dict[str, Any]:
    """`config.json` of a model folder. Raises OSError in transformers' words."""
    folder = SWITCHES.local(path)
    if not folder.is_dir():
        try:
            raise HFValidationError(
                "Repo id must be in the form 'repo_name' or 'namespace/repo_name': "
                f"'{path}'. Use `repo_type` argument if needed."
            )
        except HFValidationError as e:
            raise OSError(f"{e}") from e
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except FileNotFoundError:
        raise OSError(
            f"{path} does not appear to have a file named config.json. "
            f"Checkout 'https://huggingface.co/{path}/tree/main' for available files."
        ) from None
    except ValueError:
        raise OSError(
            f"It looks like the config file at '{path}/config.json' is not a valid JSON file."
        ) from None
    if not isinstance(config, dict):
        raise OSError(f"It looks like the config file at '{path}/config.json' is not a valid JSON file.")
    return config


class ModelConfig:
    """One model. Sizes are bytes for the whole model, not per GPU."""

    def __init__(
        self, model_path: str, context_length: int | None = None, is_draft_model: bool = False
    ) -> None:
        self.model_path, self.is_draft_model = model_path, is_draft_model
        self.hf_config = read_config(model_path)
        text = self.hf_config.get("text_config", self.hf_config)
        self.hf_text_config: dict[str, Any] = text
        self.architectures: list[str] = self.hf_config.get("architectures") or ["UnknownForCausalLM"]
        self.model_type: str | None = self.hf_config.get("model_type")
        self.num_hidden_layers = int(text.get("num_hidden_layers", 32))
        self.hidden_size = int(text.get("hidden_size", 4096))
        self.vocab_size = int(text.get("vocab_size", 163840))
        self.num_attention_heads = int(text.get("num_attention_heads", 32))
        self.num_kv_heads = int(text.get("num_key_value_heads", self.num_attention_heads))
        self.head_dim = int(text.get("head_dim", self.hidden_size // self.num_attention_heads))
        self.use_mla = bool(text.get("kv_lora_rank"))
        self.is_multimodal = "vision_config" in self.hf_config
        self._derive_context_length(context_length)

    @classmethod
    def from_server_args(cls, server_args: ServerArgs) -> ModelConfig:
        return cls(server_args.model_path, server_args.context_length)

    def _derive_context_length(self, context_length: int | None) -> None:
        derived = int(self.hf_text_config.get("max_position_embeddings", 32768))
        if context_length is not None and context_length > derived and not self.is_draft_model:
            message = (
                f"Warning: User-specified context_length ({context_length}) is greater than the derived "
                f"context_length ({derived}). This may lead to incorrect model outputs or CUDA errors. "
                "Note that the derived context_length may differ from max_position_embeddings in the "
                "model's config."
            )
            if os.environ.get("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", "").lower() not in ("1", "true"):
                raise ValueError(
                    f"{message} To allow overriding this maximum, set the env var "
                    "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"
                )
        self.context_len = context_length or derived

    @property
    def kv_bytes_per_token(self) -> int:
        """KV cache of one token in bf16, all heads."""
        if self.use_mla:
            width = int(self.hf_text_config["kv_lora_rank"]) + int(
                self.hf_text_config.get("qk_rope_head_dim", 64)
            )
            return self.num_hidden_layers * width * 2
        return self.num_hidden_layers * self.num_kv_heads * self.head_dim * 2 * 2

    def kv_bytes_per_gpu(self, tp_size: int) -> int:
        """The same for one GPU: MLA's cache is the same on each, heads are divided."""
        if self.use_mla:
            return self.kv_bytes_per_token
        heads = -(-self.num_kv_heads // tp_size)
        return self.num_hidden_layers * heads * self.head_dim * 2 * 2

    @property
    def weight_bytes(self) -> float:
        text, hidden = self.hf_text_config, self.hidden_size
        experts = int(text.get("n_routed_experts", text.get("num_experts", 0)) or 0)
        heads = self.num_attention_heads * self.head_dim
        attention = 2 * hidden * heads + 2 * hidden * self.num_kv_heads * self.head_dim
        if self.use_mla:  # low-rank projections of queries, keys and values
            attention = hidden * (1536 + 576) + 1536 * heads * 2 + 512 * heads * 2 + hidden * heads
        dense = 3 * hidden * int(text.get("intermediate_size", 4 * hidden))
        if not experts:
            per_layer, expert_bytes = attention + dense, 0.0
        else:
            expert = 3 * hidden * int(text.get("moe_intermediate_size", hidden))
            per_layer = attention + expert * int(text.get("n_shared_experts", 1) or 0)
            expert_bytes = expert * experts * self.num_hidden_layers * INT4_BYTES
        embeddings = 0 if self.is_draft_model else 2 * self.vocab_size * hidden
        return 2.0 * (per_layer * self.num_hidden_layers + embeddings) + expert_bytes
