"""Lines of SGLang's log, by what the real 0.5.11 wrote and what the other releases' sources write."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from engine.captured import LOGS, log
from hypothesis import given
from hypothesis import strategies as st

from ddtui.engine import log as logs
from ddtui.engine.log import Kind, Level

DECODE = "Decode batch, #running-req: 8, #token: 4773, token usage: 0.00, accept len: 3.85, accept rate: 0.19"
LINES: list[tuple[str, Kind, dict[str, Any]]] = [
    (f"[2026-12-01 02:55:04] {DECODE}, cuda graph: True, gen throughput (token/s): 3587.35, #queue-req: 0",
     Kind.DECODE, {"running_req": 8, "accept_len": 3.85, "cuda_graph": True, "gen_throughput": 3587.35}),
    (f"[2026-12-01 02:55:04.123 DP0 TP3] {DECODE}, cap len: 4.10, block accept len: 3.9, #queue-req: 2",
     Kind.DECODE, {"cap_len": 4.1, "block_accept_len": 3.9, "queue_req": 2}),
    ("[2026-12-01 02:55:04] Decode batch [41], #running-req: 1, #full token: 7, #swa token: 3, mamba num: 2",
     Kind.DECODE, {"running_req": 1, "full_token": 7, "swa_token": 3, "mamba_num": 2}),
    ("[2026-12-01 02:55:04] Prefill batch, #new-seq: 2, #new-token: 1018, #cached-token: 6, token usage: 0.00,"
     " #running-req: 31, #queue-req: 0, #pending-token: 0, cuda graph: False, input throughput (token/s): 10.5",
     Kind.PREFILL, {"new_seq": 2, "cached_token": 6, "pending_token": 0, "input_throughput": 10.5}),
    ("[2026-12-01 02:55:04] Init torch distributed ends. elapsed=0.18 s, mem usage=0.09 GB",
     Kind.DISTRIBUTED, {"edge": "ends", "elapsed": 0.18, "mem_usage": 0.09}),
    ("[2026-12-01 02:55:04 TP0] Init parallel begin.", Kind.DISTRIBUTED, {"edge": "begin"}),
    ("Loading safetensors checkpoint shards:  38% Completed | 24/64 [00:30<00:50,  1.2s/it]",
     Kind.LOAD_SHARDS, {"done": 24, "total": 64, "percent": 38}),
    ("[2026-12-01 02:55:01 TP7] Load weight end. elapsed=0.04 s, type=DFlashDraftModel, avail mem=68.56 GB,"
     " mem usage=0.11 GB.", Kind.LOAD_END, {"type": "DFlashDraftModel", "drafter": True, "mem_usage": 0.11}),
    ("[2026-12-01 02:55:01] Load weight end. elapsed=93.1 s, type=KimiK2ForCausalLM, quant=fp8, avail mem=1.5 GB,"
     " mem usage=0.11 GB.", Kind.LOAD_END, {"drafter": False, "quant": "fp8", "elapsed": 93.1}),
    ("[2026-12-01 02:55:01] KV Cache is allocated. #tokens: 5, K size: 1.5 GB, V size: 1.25 GB",
     Kind.KV_POOL, {"tokens": 5, "k": 1.5, "v": 1.25}),
    ("[2026-12-01 02:55:01] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 5, KV size: 1.5 GB",
     Kind.KV_POOL, {"tokens": 5, "kv": 1.5, "dtype": "torch.bfloat16"}),
    ("[2026-12-01 02:55:01] SWA KV Cache VA upper bound. dtype: torch.int8, #tokens: 7, KV size: 1.5 GB",
     Kind.KV_POOL, {"tokens": 7, "label": "SWA KV Cache"}),
    ("[2026-12-01 02:55:01] Post-capture KV sizing: KV cache allocated. dtype: torch.int8, #tokens: 7, KV size: 1.5 GB,"
     " avail mem=2.00 GB", Kind.KV_POOL, {"tokens": 7, "kv": 1.5}),
    ("[2026-12-01 02:55:01] Capture cuda graph begin. This can take up to several minutes. avail mem=69.32 GB",
     Kind.GRAPH_BEGIN, {"what": "cuda graph", "avail_mem": 69.32}),
    ("[2026-12-01 02:55:01] Capture draft verify CUDA graph begin. backend=full, num_tokens_per_bs=16, bs=[1, 2, 4],"
     " avail mem=69.32 GB", Kind.GRAPH_BEGIN, {"what": "draft verify CUDA graph", "bs": [1, 2, 4]}),
    ("[2026-12-01 02:55:01] Capture target verify CUDA graph end. bs=[1, 8], elapsed=1.50 s, mem usage=0.5 GB,"
     " avail mem=1.00 GB.", Kind.GRAPH_END, {"bs": [1, 8], "elapsed": 1.5}),
    ("Capturing batches (bs=4 avail_mem=69.10 GB):  61%|██████    | 14/23 [00:01<00:00,  9.4it/s]",
     Kind.GRAPH_STEP, {"done": 14, "total": 23, "size": 4}),
    ("[2026-12-01 02:55:01] Initialized DDTree worker. block_size=8, tree_budget=16, max_tree_nodes=17",
     Kind.DDTREE_WORKER, {"block_size": 8, "tree_budget": 16, "max_tree_nodes": 17}),
    ("[2026-12-01 02:55:01] Initialized DDTREE v2 worker. block_size=8, tree_budget=16, max_tree_nodes=17, prune=True",
     Kind.DDTREE_WORKER, {"tree_budget": 16, "prune": True}),
    ("[2026-12-01 02:55:01] INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)",
     Kind.HTTP_UP, {"url": "http://127.0.0.1:30000"}),
    ('[2026-12-01 02:55:01] INFO:     127.0.0.1:51614 - "GET /health HTTP/1.1" 503 Service Unavailable',
     Kind.ACCESS, {"method": "GET", "path": "/health", "status": 503}),
    ("[2026-12-01 02:55:01] KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_tokens_gained: 5",
     Kind.RETRACT, {"retracted": 3}),
    ("[2026-12-01 02:55:01] Gracefully exiting... Remaining number of requests 8. Remaining requests"
     " remaining_rids=['4fba', 'x'].", Kind.DRAINING, {"remaining": 8}),
    ("[2026-12-01 02:55:01] DFLASH only supports speculative_eagle_topk == 1; overriding speculative_eagle_topk=4 to 1.",
     Kind.OVERRIDE, {"argument": "speculative_eagle_topk", "asked": 4, "became": 1}),
    ("[2026-12-01 02:55:01] Max running requests is reset to 48 for speculative decoding. You can override this by"
     " explicitly setting --max-running-requests.", Kind.OVERRIDE, {"argument": "max_running_requests", "became": 48}),
    ("[2026-12-01 02:55:01] --speculative-draft-window-size has no effect with speculative_algorithm=NGRAM (honored"
     " by DFLASH).", Kind.OVERRIDE, {"argument": "speculative_draft_window_size"}),
    ("[2026-12-01 02:55:01] \x1b[1;33m'--speculative-dflash-draft-window-size' is deprecated and will be removed in a"
     " future release. Use '--speculative-draft-window-size' instead.\x1b[0m",
     Kind.OVERRIDE, {"argument": "speculative_dflash_draft_window_size"}),
    ("sglang serve: error: argument --speculative-dflash-draft-window-size: invalid int value: '2k'",
     Kind.ARGUMENT_ERROR, {"flag": "--speculative-dflash-draft-window-size", "value": "2k"}),
    ("launch_server.py: error: unrecognized arguments: --a 1", Kind.ARGUMENT_ERROR, {"flag": "--a"}),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried", Kind.EXCEPTION, {"type": "torch.OutOfMemoryError"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind", "fields"), LINES, ids=[f"{kind}-{i}" for i, (_, kind, _) in enumerate(LINES)]
)
def test_a_line_is_known_and_its_fields_are_read(text: str, kind: Kind, fields: dict[str, Any]) -> None:
    line = logs.parse(text)
    assert line.kind is kind
    assert {name: line.fields.get(name) for name in fields} == fields


def test_the_prefix_gives_time_and_rank() -> None:
    line = logs.parse(
        "[2026-12-01 02:55:04.123 DP0 PP1 ATTN_CP0 MOE_DP2 TP3 EP4] Load weight begin. avail mem=1.0 GB"
    )
    assert (line.time, line.rank) == ("2026-12-01 02:55:04.123", "DP0 PP1 ATTN_CP0 MOE_DP2 TP3 EP4")
    assert logs.parse("[2026-12-01 02:55:04] x").rank is None
    assert logs.parse("[not a time] x").time is None


def test_of_a_progress_bar_only_the_last_state_counts_and_glued_lines_come_apart() -> None:
    bar = "\rCapturing batches (bs=2): 0%| | 0/2 [00:00<?, ?it/s]\rCapturing batches (bs=1): 50%|#| 1/2 [00:01<00:01]"
    glued = bar + "[2026-12-01 02:54:57] Compiling a graph for dynamic shape takes 0.17 s"
    first, second = logs.parse_all([glued])
    assert first.fields["done"] == 1 and second.text.startswith("Compiling a graph")
    assert logs.parse(glued).time == "2026-12-01 02:54:57"


def test_levels_are_inferred_where_sglang_writes_none() -> None:
    assert (
        logs.parse(
            "[2026-12-01 02:55:04] Scheduler hit an exception: Traceback (most recent call last):"
        ).level
        is Level.ERROR
    )
    assert logs.parse("[2026-12-01 02:55:04] Fail to set RLIMIT_NOFILE: x").level is Level.WARNING
    assert logs.parse("[2026-12-01 02:55:04] The server is fired up and ready to roll!").level is Level.INFO


@pytest.mark.parametrize("name", LOGS)
def test_every_captured_log_is_read_whole(name: str) -> None:
    lines = log(name)
    read = list(logs.parse_all(lines))
    counts = Counter(line.kind for line in read)
    text = "\n".join(lines)
    assert counts[Kind.DECODE] == text.count("Decode batch, ")
    assert counts[Kind.PREFILL] == text.count("Prefill batch, ")
    assert counts[Kind.DRAFT_RUNNER] == text.count("Initialized DFLASH draft runner.")
    assert counts[Kind.KV_POOL] == text.count("KV Cache is allocated.")
    assert counts[Kind.GRAPH_END] == text.count("graph end.")
    assert counts[Kind.READY] == text.count("ready to roll!")
    assert counts[Kind.ARGUMENTS] == text.count("] server_args=ServerArgs(")
    assert counts[Kind.ARGUMENT_ERROR] == text.count(": error: ")
    for line in read:
        if line.kind is Kind.DECODE:
            assert {"running_req", "gen_throughput", "queue_req", "cuda_graph"} <= set(line.fields)


@given(st.text(max_size=200))
def test_no_text_makes_it_fail(text: str) -> None:
    logs.parse(text)
    list(logs.parse_all(text.split("\n")))
