"""A drafter's config.json: what is read, which layers slide and why, and every way it can be broken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from engine.captured import CAPTURES
from hypothesis import given
from hypothesis import strategies as st

from ddtui.engine import drafter
from ddtui.engine.drafter import DrafterConfig, DrafterError, Family

FIVE_OF_SIX = ["sliding_attention"] * 5 + ["full_attention"]


def config(**fields: Any) -> DrafterConfig:
    base = {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        "num_hidden_layers": 6,
        "hidden_size": 768,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "block_size": 16,
        "dflash_config": {"mask_token_id": 4, "target_layer_ids": [1, 2, 3]},
    }
    return drafter.parse(
        json.dumps({k: v for k, v in (base | fields).items() if v is not ...}).encode(), "c.json"
    )


def test_the_captured_drafter_is_read_whole() -> None:
    path = CAPTURES / "models" / "drafter" / "config.json"
    read = drafter.parse(path.read_bytes(), str(path))
    assert read.family is Family.DFLASH
    assert (read.num_hidden_layers, read.block_size, read.mask_token_id) == (6, 16, 4)
    assert read.target_layer_ids == (1, 2, 3, 4, 5, 6) and read.num_target_layers == 8
    assert (read.sliding_window, read.use_sliding_window, read.max_window_layers) == (2048, True, 5)
    assert (read.sliding_layers, read.full_layers, read.window) == (5, 1, 2048)
    assert read.slides_validly and read.warnings == ()
    assert (read.rope.theta, read.rope.kind, read.rope.factor) == (1e6, "yarn", 4.0)
    assert read.rope.original_max_position == 8192 and read.rope.spelling == "rope_scaling"
    assert read.kv_bytes_per_token() == 12288 and read.kv_bytes_per_token(tp=8) == 6 * 1 * 128 * 2 * 2


SLIDING = [
    # layer_types, sliding_window, use_sliding_window, max_window_layers -> sliding layers, valid, words of the why
    (FIVE_OF_SIX, 2048, True, 5, 5, True, "5 of 6 layers slide"),
    (FIVE_OF_SIX, 2048, True, ..., 5, True, "5 of 6"),
    (FIVE_OF_SIX, 2048, False, 5, 0, False, "use_sliding_window is false"),
    (FIVE_OF_SIX, 2048, ..., 5, 0, False, "use_sliding_window is not set"),
    (FIVE_OF_SIX, None, True, 5, 0, False, "sliding_window is not set"),
    (FIVE_OF_SIX, 0, True, 5, 5, False, "no window"),
    (["full_attention"] * 6, None, False, 6, 0, False, "full attention for every layer"),
    (["full_attention"] * 6, 2048, True, 0, 0, False, "full attention for every layer"),
    (FIVE_OF_SIX[:4], 2048, True, 5, 4, False, "4 entries for 6 layers"),
    (["chunked_attention"] * 6, 2048, True, 5, 0, False, "'chunked_attention'"),
    (..., 2048, True, 2, 4, True, "4 of 6 layers slide"),  # layer i slides when i >= max_window_layers
    (..., 2048, True, 6, 0, False, "max_window_layers is 6 of 6"),
    (..., 2048, True, ..., 0, False, "max_window_layers is 28"),  # Transformers' default
    (..., 2048, False, 2, 0, False, "use_sliding_window is false"),
    (..., None, ..., ..., 0, False, "no sliding_window"),
    ("sliding_attention", 2048, True, 5, 0, False, "not a list"),
]


@pytest.mark.parametrize(("types", "window", "use", "first", "count", "valid", "why"), SLIDING)
def test_which_layers_slide_by_the_config_and_why(
    types: Any, window: Any, use: Any, first: Any, count: int, valid: bool, why: str
) -> None:
    read = config(layer_types=types, sliding_window=window, use_sliding_window=use, max_window_layers=first)
    assert read.sliding_layers == count
    assert read.slides_validly is valid
    assert why in read.why
    assert len(read.layers) == 6 and all(layer.why for layer in read.layers)


def test_other_model_types_have_no_switch_for_the_window() -> None:
    read = config(model_type="llama", layer_types=FIVE_OF_SIX, sliding_window=1024, use_sliding_window=...)
    assert read.slides_validly and read.window == 1024


def test_fields_are_looked_up_as_sglang_does() -> None:
    nested = config(
        block_size=16, dflash_config={"block_size": 8, "target_layer_ids": [0], "num_target_layers": 61}
    )
    assert nested.block_size == 8 and nested.num_target_layers == 61
    top = config(dflash_config=..., target_layer_ids=[1, 5], mask_token_id=7)
    assert top.target_layer_ids == (1, 5) and top.mask_token_id == 7 and top.family is Family.DFLASH
    text = config(num_hidden_layers=..., text_config={"num_hidden_layers": 3, "layer_types": FIVE_OF_SIX[:3]})
    assert text.num_hidden_layers == 3 and text.layer_types == tuple(FIVE_OF_SIX[:3])


def test_rope_in_its_new_spelling() -> None:
    read = config(rope_parameters={"rope_type": "yarn", "factor": 64.0, "rope_theta": 50000.0})
    assert (read.rope.theta, read.rope.kind, read.rope.factor) == (50000.0, "yarn", 64.0)
    assert read.rope.spelling == "rope_parameters"
    by_kind = config(
        rope_parameters={"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}
    )
    assert by_kind.rope.theta == 1e6
    assert "rope_theta is 10000" in config(rope_theta=1e4, rope_parameters={"rope_theta": 1e6}).warnings[0]


@pytest.mark.parametrize(
    ("fields", "family"),
    [
        ({"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 32000}, Family.EAGLE3),
        ({"architectures": ["LlamaForCausalLMEagle"]}, Family.EAGLE),
        ({"architectures": ["DeepseekV3ForCausalLMNextN"]}, Family.MTP),
        ({"architectures": ["DeepseekV3ForCausalLM"], "num_nextn_predict_layers": 1}, Family.MTP),
        ({"architectures": ["Qwen3ForCausalLM"]}, Family.STANDALONE),
        ({"architectures": ["DFlashDraftModel"]}, Family.DFLASH),
        ({"speculators_model_type": "eagle3"}, Family.EAGLE3),
    ],
)
def test_kinds_of_drafters(fields: dict[str, Any], family: Family) -> None:
    assert drafter.parse(json.dumps(fields).encode(), "c.json").family is family


BROKEN = [
    (b"", "is empty"),
    (b"   \n", "is empty"),
    (b'{"block_size": 16', "cut off"),
    (b'{"block_size" 16}', "not valid JSON"),
    (b"[1, 2]", "holds a list"),
    (b"null", "holds null"),
    (b"\x80\x02}", "not UTF-8"),
    (b"[" * 200_000, "nested too deep"),
    (b"x" * (65 << 20), "65 MB"),
]


@pytest.mark.parametrize(("data", "words"), BROKEN, ids=[words for _, words in BROKEN])
def test_a_file_that_cannot_be_used_is_one_sentence_with_its_path(data: bytes, words: str) -> None:
    with pytest.raises(DrafterError) as raised:
        drafter.parse(data, "/models/d/config.json")
    text = str(raised.value)
    assert (
        words in text and text.startswith("/models/d/config.json") and "\n" not in text and text.endswith(".")
    )


def test_what_can_be_tolerated_is_read_with_a_warning() -> None:
    marked = drafter.parse(b"\xef\xbb\xbf" + json.dumps({"block_size": 8}).encode(), "c")
    assert marked.block_size == 8 and "byte order mark" in marked.warnings[0]
    nan = drafter.parse(b'{"block_size": NaN, "sliding_window": Infinity, "num_hidden_layers": 3}', "c")
    assert nan.block_size is None and nan.sliding_window is None and nan.num_hidden_layers == 3
    assert any("NaN" in warning for warning in nan.warnings)
    large = drafter.parse(json.dumps({"block_size": 16, "x": "y" * 5_000_000}).encode(), "c")
    assert large.block_size == 16 and "5.0 MB" in large.warnings[0]
    wrong = config(
        num_hidden_layers="6", block_size="sixteen", use_sliding_window="yes", layer_types={"a": 1}
    )
    assert wrong.num_hidden_layers == 6 and wrong.block_size is None
    named = {warning.split()[0] for warning in wrong.warnings}
    assert named == {"layer_types", "use_sliding_window", "num_hidden_layers", "block_size"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
KEYS = [
    "architectures",
    "model_type",
    "num_hidden_layers",
    "block_size",
    "dflash_config",
    "layer_types",
    "sliding_window",
    "text_config",
    "use_sliding_window",
    "max_window_layers",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "target_layer_ids",
    "head_dim",
]


@given(st.dictionaries(st.sampled_from(KEYS), json_values))
def test_no_json_object_makes_it_fail(fields: dict[str, Any]) -> None:
    read = drafter.parse(json.dumps(fields).encode(), "c.json")
    assert read.sliding_layers + read.full_layers == len(read.layers)
    assert read.why and (read.window is not None) == (read.sliding_layers > 0)


@given(st.binary(max_size=64))
def test_no_bytes_make_it_fail_with_anything_but_its_own_error(data: bytes) -> None:
    try:
        drafter.parse(data, "c.json")
    except DrafterError as error:
        assert "\n" not in str(error)


def test_repo_ids_and_where_they_lie_in_the_cache() -> None:
    assert drafter.is_repo_id("moonshotai/Kimi-K2.6-DFlash")
    assert not any(map(drafter.is_repo_id, ("/srv/models/x", "./x/y", "a/b/c", "name", "~/x", "a/..")))
    repo = "z-lab/Qwen3-4B-DFlash-b16"
    folder = "models--z-lab--Qwen3-4B-DFlash-b16"
    home = "/home/sgl"
    assert drafter.hf_cache_candidates(repo, {}, home=home) == (f"/home/sgl/.cache/huggingface/hub/{folder}",)
    assert drafter.hf_cache_candidates(repo, {"HF_HOME": "/srv/hf"}, home=home)[0] == f"/srv/hf/hub/{folder}"
    both = drafter.hf_cache_candidates(repo, {"HF_HOME": "/a", "HF_HUB_CACHE": "~/hub"}, home=home)
    assert both[:2] == (f"/home/sgl/hub/{folder}", f"/a/hub/{folder}")
    assert drafter.hf_ref("/c/m") == "/c/m/refs/main"
    assert drafter.hf_config("/c/m", "0123\n") == "/c/m/snapshots/0123/config.json"
