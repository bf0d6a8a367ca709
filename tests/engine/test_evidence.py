"""What the journal of one start proves."""

from __future__ import annotations

import pytest
from engine.captured import log
from engine.orders import new_order

from ddtui.engine import evidence

NONE = (None, False)
WINDOWS = [
    ("start_dflash_nowindow", *NONE, 16, "fa3"),
    ("start_dflash_window2048", 2048, True, 16, "fa3"),
    ("start_dflash_block8_topk4_steps3_window4096", 4096, True, 8, "flashinfer"),
    ("start_dflash_log_requests", *NONE, 16, "fa3"),
    ("start_mem_fraction_0.002", *NONE, 16, "fa3"),
    ("start_cold_jit_dummy_triton", *NONE, 16, "triton"),
    ("crash_token_id_out_of_range", *NONE, 16, "fa3"),
    ("fail_port_in_use", *NONE, 16, "fa3"),
]


@pytest.mark.parametrize(("name", "window", "compact", "block", "backend"), WINDOWS)
def test_the_draft_runner_line_is_the_windows_only_proof(
    name: str, window: int | None, compact: bool, block: int, backend: str
) -> None:
    found = evidence.of_start(log(name))
    assert found.draft_runner is not None and "Initialized DFLASH draft runner" in found.draft_runner.line
    assert (found.draft_window, found.compact_cache) == (window, compact)
    assert (found.block_size, found.draft_backend) == (block, backend)


@pytest.mark.parametrize(
    "name", ["start_no_speculation", "start_ngram", "fail_bad_int", "fail_mem_fraction_high"]
)
def test_without_that_line_nothing_is_claimed(name: str) -> None:
    found = evidence.of_start(log(name))
    assert found.draft_runner is None and found.compact_cache is None and found.draft_window is None


def test_pools_limits_and_graphs() -> None:
    found = evidence.of_start(log("start_dflash_nowindow"))
    assert [pool.fields["tokens"] for pool in found.kv_pools] == [4551735, 4551735]
    assert found.limits and found.limits.fields["max_running_requests"] == 48
    assert found.limits.fields["context_len"] == 32768
    assert found.graph_sizes and found.graph_sizes[-1] == 48 and len(found.graph_sizes) == 23
    assert found.backends and found.ready and found.http_up


@pytest.mark.parametrize("newest", [False, True])
def test_the_newer_releases_lines(newest: bool) -> None:
    found = evidence.of_start(new_order(ranks=8, version_23=newest))
    assert found.draft_window == 2048 and found.compact_cache is True
    assert found.graph_sizes == (1, 2, 4, 8)
    assert [pool.fields.get("kv") or pool.fields["k"] for pool in found.kv_pools] == [30.0, 2.0]


def test_arguments_that_were_overridden_are_quoted() -> None:
    found = evidence.of_start(log("start_dflash_block8_topk4_steps3_window4096"))
    topk = found.overridden("speculative_eagle_topk")
    assert topk and topk.fields["asked"] == 4 and topk.fields["became"] == 1
    assert found.overridden("speculative_num_steps") and found.overridden("max_running_requests")
    assert any("block size mismatch" in line.line for line in found.overrides)
    assert found.overridden("mem_fraction_static") is None


def test_the_server_args_line_is_read_and_its_secrets_are_masked() -> None:
    found = evidence.of_start(log("start_dflash_window2048"))
    assert found.server_args is not None and len(found.server_args) > 360
    assert found.server_args["speculative_dflash_draft_window_size"] == 2048
    assert found.server_args["speculative_algorithm"] == "DFLASH" and found.server_args["api_key"] is None
    assert found.server_args["cuda_graph_bs"][-1] == 256
    line = "[2026-12-01 02:54:32] server_args=ServerArgs(host='h', api_key='sk-very-secret-1', admin_api_key='hunter2!')"
    args = evidence.of_start([line]).server_args
    assert args and args["host"] == "h"
    assert "secret-1" not in str(args["api_key"]) and "hunter2" not in str(args["admin_api_key"])


def test_values_with_commas_quotes_and_objects_and_a_line_that_was_cut() -> None:
    text = "server_args=ServerArgs(a='x, y=(1', b=[1, {'k': 'v,'}], c=<Mode.FULL: 'full, really'>, d=Foo(e=1, f='('), g=-1.5, h='un"
    assert evidence.server_arguments(text) == {
        "a": "x, y=(1",
        "b": [1, {"k": "v,"}],
        "c": "<Mode.FULL: 'full, really'>",
        "d": "Foo(e=1, f='(')",
        "g": -1.5,
    }


def test_the_ddtree_workers_line() -> None:
    line = (
        "[2026-12-01 02:54:32 TP0] Initialized DDTree worker. block_size=8, tree_budget=8, max_tree_nodes=9"
    )
    found = evidence.of_start(["[2026-12-01 02:54:32] Inferred speculative_ddtree_budget=7", line])
    assert (
        found.ddtree
        and found.ddtree.fields["tree_budget"] == 8
        and found.ddtree.fields["max_tree_nodes"] == 9
    )
