"""What SGLang's HTTP API answers, as the real 0.5.11 answered, and the keys that other releases have."""

from __future__ import annotations

import json
from typing import Any

import pytest
from engine.captured import body
from hypothesis import given
from hypothesis import strategies as st

from ddtui.engine import answers
from ddtui.engine.answers import UnknownShape


def captured(name: str) -> Any:
    return json.loads(body(name))


def test_server_info_of_an_idle_and_of_a_loaded_server() -> None:
    idle = answers.server_info(captured("idle_server_info"))
    assert idle.version == "0.5.11" and idle.argument("speculative_algorithm") == "DFLASH"
    assert idle.argument("speculative_num_draft_tokens") == 16
    assert idle.draft_window is None and idle.has_draft_window
    assert (idle.weight_gb, idle.kv_gb) == (0.18, 69.45)
    assert idle.token_capacity == 4551735 and idle.max_total_num_tokens == 4551735
    assert idle.max_running_requests == 48 and len(idle.dp) == 1
    loaded = answers.server_info(captured("loaded_server_info"))
    assert loaded.accept_length == pytest.approx(
        captured("loaded_server_info")["internal_states"][0]["avg_spec_accept_length"]
    )
    assert answers.server_info(captured("win_server_info")).draft_window == 2048
    assert answers.server_info(captured("win_server_info")).accept_length is None  # nothing verified yet


def test_dp_ranks_are_summed_where_that_is_right_and_kept() -> None:
    state = {"last_gen_throughput": 100.0, "memory_usage": {"weight": 80.0, "kvcache": 40.0, "token_capacity": 1000,
             "graph": {"decode": 1.5, "prefill": 0.5}}, "effective_max_running_requests_per_dp": 24}  # fmt: skip
    info = answers.server_info(
        {
            "model_path": "/m",
            "version": "0.5.23",
            "speculative_draft_window_size": 512,
            "internal_states": [
                state | {"avg_spec_accept_length": 5.0},
                state | {"avg_spec_accept_length": 3.0},
                state,
            ],
        }
    )
    assert info.accept_length == 4.0 and info.gen_throughput == 300.0 and info.token_capacity == 3000
    assert info.graph_gb == 2.0 and info.max_running_requests == 24 and len(info.dp) == 3
    assert info.draft_window == 512


def test_secrets_in_the_arguments_are_masked_everywhere() -> None:
    answer = {
        "model_path": "/m",
        "api_key": "sk-123456789",
        "internal_states": [{"admin_api_key": "hunter22222"}],
    }
    info = answers.server_info(answer)
    assert "sk-123456789" not in repr(info) and "hunter22222" not in repr(info)


def test_model_info_and_tokens() -> None:
    model = answers.model_info(captured("idle_model_info"))
    assert model.model_path == "/opt/models/target" and model.model_type == "qwen3"
    assert answers.model_info(captured("idle_get_model_info")) == model
    found = answers.tokens(captured("tokenize"))
    assert len(found.ids) == 27 and found.max_model_len == 32768


def test_loads_in_the_old_shape_the_new_one_and_from_metrics() -> None:
    old = answers.loads(captured("idle_get_load"), "/get_load")
    assert (old.running, old.waiting, old.source) == (0, 0, "/get_load")
    rank = {"num_running_reqs": 3, "num_waiting_reqs": 1, "token_usage": 0.5, "gen_throughput": 10.0}
    new = answers.loads({"loads": [rank | {"speculative": {"accept_length": 4.0}}, rank]}, "/v1/loads")
    assert (new.running, new.waiting, new.token_usage, new.gen_throughput, new.accept_length) == (
        6,
        2,
        0.5,
        20.0,
        4.0,
    )
    busy = answers.loads_by_metrics(answers.metrics(body("loaded_metrics").decode()))
    assert busy.running == 10 and busy.accept_length and busy.gen_throughput


def test_speculative_counts_under_each_releases_names() -> None:
    found = answers.generated(captured("generate_ids"))
    assert found.finish == "length" and found.completion_tokens == 32 and len(found.output_ids) == 32
    assert (found.verify_steps, found.accepted_drafts, found.proposed_drafts) == (7, 24, 105)
    assert found.accept_histogram is None  # DFLASH on 0.5.11 gives none
    base = {"text": "x", "meta_info": {"spec_verify_ct": 2, "finish_reason": {"type": "stop"}}}
    for names in zip(answers.ACCEPTED, answers.PROPOSED, strict=True):
        meta = (
            base["meta_info"] | dict(zip(names, (5, 30), strict=True)) | {"spec_accept_histogram": [1, 0, 1]}
        )
        one = answers.generated(base | {"meta_info": meta})
        assert (one.accepted_drafts, one.proposed_drafts, one.accept_histogram) == (5, 30, (1, 0, 1))
    plain = answers.generated(captured("nospec_generate"))
    assert plain.verify_steps is None and plain.accepted_drafts is None


def test_metrics() -> None:
    found = answers.metrics(body("loaded_metrics").decode())
    assert answers.total(found, "sglang:spec_accept_length") == pytest.approx(4.5, abs=1.0)
    assert answers.total(found, "sglang:max_total_num_tokens") == 4551735
    assert answers.total(found, "sglang:no_such_thing") is None
    labels, value = found["sglang:num_running_reqs"][0]
    assert labels["model_name"] == "/opt/models/target" and value == 10.0
    odd = answers.metrics(
        '# HELP a b\na{x="1\\"2\\n,}",y=""} NaN 17\nb 1e3\nbroken {\n c{tp_rank="1"} 4\nc{tp_rank="0"} 5\n'
    )
    assert odd["a"][0][0] == {"x": '1"2\n,}', "y": ""} and answers.total(odd, "b") == 1000.0
    assert answers.total(odd, "c") == 5.0


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["model_path", "internal_states", "memory_usage", "meta_info", "loads", "tokens", "graph", "text"]),
        inner, max_size=4,
    ),
    max_leaves=10,
)  # fmt: skip


@given(anything)
def test_whatever_comes_is_read_or_refused_as_the_wrong_shape(answer: Any) -> None:
    for read in (
        answers.server_info, answers.model_info, answers.generated, answers.tokens, lambda a: answers.loads(a, "/x")
    ):  # fmt: skip
        try:
            read(answer)
        except UnknownShape as error:
            assert str(error).endswith(".")
