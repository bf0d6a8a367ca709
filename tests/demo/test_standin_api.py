"""The stand-in's HTTP API against the captured answers of a real 0.5.11."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from demo.standin_process import (
    DDTREE,
    DFLASH,
    KIMI,
    KIMI_DRAFTER,
    Answer,
    StandIn,
    captured_answer,
    stand_in,
)

PROMPT = "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(self, item):\n"
# Values that are the server's own in every run: compared by type alone.
PATHS = ("/opt/models/target", "/opt/models/drafter")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    with stand_in(tmp_path_factory.mktemp("api"), *DFLASH) as server:
        yield server


def shape(value: Any) -> Any:
    """Keys in their order, and types."""
    if isinstance(value, dict):
        return [(key, shape(inside)) for key, inside in value.items()]
    if isinstance(value, list):
        return ["list", shape(value[0])] if value else ["list"]
    return (
        "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__
    )


def same_head(ours: Answer, theirs: Answer) -> None:
    assert ours.status == theirs.status
    names = [name for name in theirs.headers if name != "connection"]
    assert list(ours.headers) == names
    for name in set(names) - {"date", "content-length"}:
        assert ours.headers[name] == theirs.headers[name]


@pytest.mark.parametrize(
    ("name", "method", "path"),
    [
        ("idle_model_info", "GET", "/model_info"),
        ("idle_get_model_info", "GET", "/get_model_info"),
        ("idle_v1_models", "GET", "/v1/models"),
        ("idle_get_load", "GET", "/get_load"),
        ("idle_root", "GET", "/"),
        ("idle_ping", "GET", "/ping"),
        ("idle_health", "GET", "/health"),
        ("idle_health_generate", "GET", "/health_generate"),
        ("idle_not_found", "GET", "/no_such_path"),
        ("flush_cache", "POST", "/flush_cache"),
    ],
)
def test_reading_gives_the_captured_shapes(name: str, method: str, path: str, server: StandIn) -> None:
    ours, theirs = server.ask(method, path), captured_answer(name)
    same_head(ours, theirs)
    if theirs.headers.get("content-type") == "application/json":
        assert shape(ours.json) == shape(theirs.json)
    else:
        assert ours.body == theirs.body


def test_server_info_has_the_real_keys_in_their_order(server: StandIn) -> None:
    server.generate(PROMPT, max_new_tokens=300, ignore_eos=True)
    ours, theirs = server.get("/server_info").json, captured_answer("loaded_server_info").json
    fork = {"speculative_ddtree_budget", "speculative_ddtree_topk_cap"}
    for mine, real in ((ours, theirs), (ours["internal_states"][0], theirs["internal_states"][0])):
        assert set(mine) - set(real) == fork
        assert [key for key in mine if key not in fork] == [key for key in real if key in mine]
    for key in (
        "status",
        "max_req_input_len",
        "version",
        "speculative_num_draft_tokens",
        "speculative_num_steps",
    ):
        assert ours[key] == theirs[key]
    state, real = ours["internal_states"][0], theirs["internal_states"][0]
    assert shape(state["memory_usage"]) == shape(real["memory_usage"])
    assert state["effective_max_running_requests_per_dp"] == 48
    assert state["avg_spec_accept_length"] > 1


def test_the_accept_average_comes_with_a_decode_line_and_goes_with_a_flush(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH) as server:

        def state() -> dict[str, Any]:
            return dict(server.get("/server_info").json["internal_states"][0])

        assert "avg_spec_accept_length" not in state()
        server.generate(PROMPT, max_new_tokens=400, ignore_eos=True)
        assert 1 < state()["avg_spec_accept_length"] < 16
        assert server.post("/flush_cache").status == 200
        assert "avg_spec_accept_length" not in state()


# --- /generate ------------------------------------------------------------------------------------------


def test_generate_has_the_captured_shape(server: StandIn) -> None:
    server.post("/flush_cache")
    ours = server.generate(PROMPT, max_new_tokens=32)
    theirs = captured_answer("generate_text")
    same_head(ours, theirs)
    assert shape(ours.json) == shape(theirs.json)
    again = server.generate(PROMPT, max_new_tokens=32)
    assert shape(again.json) == shape(captured_answer("generate_text_again_cached").json)


def test_a_finished_request_s_numbers_belong_together(server: StandIn) -> None:
    meta = server.generate(PROMPT, max_new_tokens=200, ignore_eos=True).json["meta_info"]
    steps, drafts = meta["spec_verify_ct"], meta["spec_accepted_drafts"]
    assert meta["completion_tokens"] == 200 == 1 + steps + drafts  # the first token comes from the prefill
    assert meta["spec_accept_length"] == 200 / steps
    assert meta["spec_proposed_drafts"] == steps * 15
    assert meta["spec_accept_rate"] == drafts / meta["spec_proposed_drafts"]
    assert meta["finish_reason"] == {"type": "length", "length": 200}


def test_a_stream_is_cumulative_a_step_an_event_with_numbers_at_the_end(server: StandIn) -> None:
    ours = server.generate(PROMPT, stream=True, max_new_tokens=48)
    theirs = captured_answer("generate_text_stream")
    same_head(ours, theirs)
    for at in (0, 1, -1):
        mine, real = ours.events[at], theirs.events[at]
        mine["meta_info"]["cached_tokens_details"] = real["meta_info"]["cached_tokens_details"]
        assert shape(mine) == shape(real), at
    for before, after in pairwise(ours.events):
        assert after["text"].startswith(before["text"])
        assert after["output_ids"][: len(before["output_ids"])] == before["output_ids"]
        assert len(after["output_ids"]) == after["meta_info"]["completion_tokens"]
    assert ours.events[0]["meta_info"]["completion_tokens"] == 1
    assert len(ours.events) == 1 + ours.events[-1]["meta_info"]["spec_verify_ct"]


def test_with_incremental_output_an_event_holds_what_is_new(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH, "--incremental-streaming-output") as server:
        whole = server.generate(PROMPT, max_new_tokens=64).json
        events = server.generate(PROMPT, stream=True, max_new_tokens=64).events
    assert "".join(event["text"] for event in events) == whole["text"]
    assert [token for event in events for token in event["output_ids"]] == whole["output_ids"]


def test_a_stream_interval_joins_steps(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH, "--stream-interval", "20") as server:
        events = server.generate(PROMPT, stream=True, max_new_tokens=100).events
    counts = [event["meta_info"]["completion_tokens"] for event in events]
    assert counts[0] == 1 and counts[-1] == 100
    assert all(after - before >= 20 for before, after in pairwise(counts))


def test_given_ids_and_rid_are_used(server: StandIn) -> None:
    ids = server.post("/tokenize", {"prompt": PROMPT}).json["tokens"]
    answer = server.generate(ids, rid="mine-1", max_new_tokens=16).json
    assert answer["meta_info"]["id"] == "mine-1"
    assert answer["meta_info"]["prompt_tokens"] == len(ids)
    assert answer["text"] == server.generate(PROMPT, max_new_tokens=16).json["text"]


def test_a_batch_is_answered_with_a_list(server: StandIn) -> None:
    body = {"text": [PROMPT, "import os\n"], "sampling_params": {"temperature": 0, "max_new_tokens": 8}}
    ours = server.post("/generate", body).json
    assert [len(one["output_ids"]) for one in ours] == [8, 8]


@pytest.mark.parametrize(("name", "tokens"), [("generate_max0", 0), ("generate_max1", 1)])
def test_none_and_one_token_verify_nothing(name: str, tokens: int, server: StandIn) -> None:
    server.generate(PROMPT, max_new_tokens=1)
    ours, theirs = server.generate(PROMPT, max_new_tokens=tokens).json, captured_answer(name).json
    assert shape(ours) == shape(theirs)
    assert ours["meta_info"]["finish_reason"] == theirs["meta_info"]["finish_reason"]


def test_without_speculation_there_are_no_spec_fields(tmp_path: Path) -> None:
    with stand_in(tmp_path, drafter=None) as server:
        ours = server.generate(PROMPT, max_new_tokens=32).json
        assert server.get("/metrics").json == {"detail": "Not Found"}  # it was not enabled
        assert "accept len" not in server.log and "draft runner" not in server.log
    assert shape(ours) == shape(captured_answer("nospec_generate").json)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("generate_no_prompt", {"sampling_params": {"max_new_tokens": 4}}),
        ("generate_empty_ids", {"input_ids": [], "sampling_params": {"max_new_tokens": 4}}),
        ("generate_max_negative", {"text": PROMPT, "sampling_params": {"max_new_tokens": -1}}),
        ("generate_bad_param", {"text": PROMPT, "sampling_params": {"temperature": -1, "max_new_tokens": 4}}),
        ("generate_unknown_param", {"text": PROMPT, "sampling_params": {"no_such_param": 1}}),
        ("generate_logprob_refused", {"text": PROMPT, "return_logprob": True}),
        ("generate_regex_refused", {"text": PROMPT, "sampling_params": {"regex": "[a-z]+"}}),
        ("generate_too_long", {"input_ids": [5] * 40000, "sampling_params": {"max_new_tokens": 4}}),
        ("generate_too_long_stream", {"input_ids": [5] * 40000, "stream": True}),
        ("generate_sum_too_long", {"input_ids": [5] * 32700, "sampling_params": {"max_new_tokens": 500}}),
        ("generate_bad_json", b"{not json"),
    ],
)
def test_refusals_are_the_captured_ones(name: str, body: Any, server: StandIn) -> None:
    ours, theirs = server.post("/generate", body), captured_answer(name)
    same_head(ours, theirs)
    assert ours.body.replace(b"/opt/sglang/sglang/", b"/opt/site/sglang/") == theirs.body


# --- the OpenAI paths -----------------------------------------------------------------------------------


def v1(server: StandIn, path: str, **body: Any) -> Answer:
    return server.post(path, {"model": "/opt/models/target", "temperature": 0, "max_tokens": 32, **body})


MESSAGES = [{"role": "user", "content": "Write json/decoder.py"}]
USAGE = {"include_usage": True}


def test_completions_and_chat_have_the_captured_shapes(server: StandIn) -> None:
    for name, answer in (
        ("completions", v1(server, "/v1/completions", prompt=PROMPT)),
        ("chat", v1(server, "/v1/chat/completions", messages=MESSAGES)),
        (
            "completions_wrong_model",
            v1(server, "/v1/completions", prompt=PROMPT, model="no-such-model", max_tokens=4),
        ),
    ):
        theirs = captured_answer(name)
        same_head(answer, theirs)
        assert shape(answer.json) == shape(theirs.json)
        assert answer.json["model"] == theirs.json["model"]


@pytest.mark.parametrize(
    ("name", "path", "body"),
    [
        ("completions_stream_usage", "/v1/completions", {"prompt": PROMPT, "stream_options": USAGE}),
        (
            "completions_stream_continuous_usage",
            "/v1/completions",
            {"prompt": PROMPT, "stream_options": {**USAGE, "continuous_usage_stats": True}},
        ),
        ("chat_stream_usage", "/v1/chat/completions", {"messages": MESSAGES, "stream_options": USAGE}),
    ],
)
def test_their_streams_have_the_captured_shapes(
    name: str, path: str, body: dict[str, Any], server: StandIn
) -> None:
    ours, theirs = v1(server, path, stream=True, **body), captured_answer(name)
    same_head(ours, theirs)
    kinds = {json.dumps(shape(event)) for event in ours.events}
    assert kinds == {json.dumps(shape(event)) for event in theirs.events}
    assert shape(ours.events[0]) == shape(theirs.events[0])
    assert [shape(event) for event in ours.events[-2:]] == [shape(event) for event in theirs.events[-2:]]
    assert ours.events[-1]["usage"]["completion_tokens"] == 32


def test_a_stream_s_pieces_are_the_whole_answer(server: StandIn) -> None:
    whole = v1(server, "/v1/completions", prompt=PROMPT).json["choices"][0]["text"]
    events = v1(server, "/v1/completions", prompt=PROMPT, stream=True).events
    assert "".join(event["choices"][0]["text"] for event in events) == whole
    chat = v1(server, "/v1/chat/completions", messages=MESSAGES).json["choices"][0]["message"]["content"]
    events = v1(server, "/v1/chat/completions", messages=MESSAGES, stream=True).events
    assert "".join(event["choices"][0]["delta"].get("content") or "" for event in events) == chat


@pytest.mark.parametrize(
    ("name", "path", "body"),
    [
        ("completions_too_long_stream", "/v1/completions", {"prompt": [5] * 40000, "stream": True}),
        ("chat_too_long", "/v1/chat/completions", {"messages": [{"role": "user", "content": "( " * 40000}]}),
    ],
)
def test_their_refusals_are_400_also_in_a_stream(
    name: str, path: str, body: dict[str, Any], server: StandIn
) -> None:
    ours, theirs = v1(server, path, **body), captured_answer(name)
    same_head(ours, theirs)
    assert re.sub(rb"input \(\d+", b"input (N", ours.body) == re.sub(
        rb"input \(\d+", b"input (N", theirs.body
    )


# --- acting ---------------------------------------------------------------------------------------------


def test_tokenize_and_detokenize_are_each_other_s_reverse(server: StandIn) -> None:
    text = PROMPT + "naïve → “quoted” 漢字 \t end\n"
    answer = server.post("/tokenize", {"prompt": text})
    same_head(answer, captured_answer("tokenize"))
    assert shape(answer.json) == shape(captured_answer("tokenize").json)
    tokens = answer.json["tokens"]
    assert answer.json["count"] == len(tokens)
    back = server.post("/detokenize", {"tokens": tokens})
    assert shape(back.json) == shape(captured_answer("detokenize").json)
    assert back.json == {"text": text}


def start_long_stream(server: StandIn, rid: str) -> Any:
    connection = server.connect()
    body = {"text": PROMPT, "rid": rid, "stream": True}
    body["sampling_params"] = {"temperature": 0, "max_new_tokens": 20_000, "ignore_eos": True}
    connection.request("POST", "/generate", json.dumps(body))
    response = connection.getresponse()
    while b'"completion_tokens":1,' in (line := response.readline()) or not line.startswith(b"data: "):
        assert line  # until it decodes
    return response


def test_an_abort_by_rid_ends_the_stream_with_its_reason(server: StandIn) -> None:
    response = start_long_stream(server, "doomed-1")
    answer = server.post("/abort_request", {"rid": "doomed-1"})
    same_head(answer, captured_answer("abort_request"))
    text = response.read()
    last = json.loads(text.split(b"data: ")[-2])
    assert last["meta_info"]["finish_reason"] == {
        "type": "abort",
        "message": "Aborted",
        "status_code": None,
        "err_type": None,
    }
    assert last["meta_info"]["spec_verify_ct"] > 0
    assert text.endswith(b"data: [DONE]\n\n")
    assert server.post("/abort_request", {"rid": "nobody"}).status == 200


def test_abort_all_ends_everything(server: StandIn) -> None:
    streams = [start_long_stream(server, f"all-{i}") for i in range(3)]
    assert server.get("/get_load").json[0]["num_reqs"] == 3
    server.post("/abort_request", {"abort_all": True})
    assert all(stream.read().endswith(b"[DONE]\n\n") for stream in streams)


def test_a_client_that_goes_away_ends_its_request(server: StandIn) -> None:
    response = start_long_stream(server, "gone-1")
    response.close()
    assert server.post("/flush_cache?timeout=30").status == 200  # waits until nothing runs


def test_the_cache_is_not_flushed_while_anything_runs(server: StandIn) -> None:
    response = start_long_stream(server, "busy-1")
    answer = server.post("/flush_cache")
    same_head(answer, captured_answer("flush_cache_busy"))
    assert answer.body == captured_answer("flush_cache_busy").body
    server.post("/abort_request", {"rid": "busy-1"})
    response.read()
    assert server.wait_for(
        "Cache not flushed because there are pending requests. #queue-req: 0, #running-req: 1"
    )


def test_set_internal_state_says_true_even_when_it_refuses(server: StandIn) -> None:
    for name, change in (
        ("set_internal_state", {"speculative_accept_threshold_single": 0.9}),
        ("set_internal_state_refused", {"speculative_num_draft_tokens": 8}),
    ):
        answer = server.post("/set_internal_state", {"server_args": change})
        same_head(answer, captured_answer(name))
        assert answer.body == captured_answer(name).body
    assert server.wait_for("Updating speculative_num_draft_tokens is not supported.")
    assert server.wait_for("Global server args updated! get_global_server_args()=ServerArgs(model_path=")
    info = server.get("/server_info").json
    assert (info["speculative_accept_threshold_single"], info["speculative_num_draft_tokens"]) == (0.9, 16)


def test_loads_have_the_sections_that_are_asked_for(server: StandIn) -> None:
    server.generate(PROMPT, max_new_tokens=400, ignore_eos=True)
    answer = server.get("/v1/loads?include=core,memory,spec,queues").json
    (load,) = answer["loads"]
    assert {"num_running_reqs", "token_usage", "gen_throughput", "cache_hit_rate"} <= set(load)
    assert {"memory", "speculative", "queues"} <= set(load)
    assert answer["version"] == "0.5.11" and answer["aggregate"]["total_reqs"] == 0
    assert "memory" not in server.get("/v1/loads").json["loads"][0]


def test_metrics_have_the_real_names_and_labels(server: StandIn) -> None:
    server.generate(PROMPT, max_new_tokens=400, ignore_eos=True)
    ours, theirs = server.get("/metrics"), captured_answer("loaded_metrics")
    assert ours.headers["content-type"] == theirs.headers["content-type"]

    def families(text: str) -> dict[str, tuple[str, str]]:
        helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.M))
        return {name: (kind, helps[name]) for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M)}

    def series(text: str) -> set[tuple[str, tuple[str, ...]]]:
        return {
            (name, tuple(sorted(re.findall(r'(\w+)="', labels))))
            for name, labels in re.findall(r"^(sglang:\w+)\{(.*)\} \S+$", text, re.M)
        }

    mine, real = families(ours.body.decode()), families(theirs.body.decode())
    assert len(mine) >= 20
    for name in mine:
        assert mine[name][0] == real[name][0], name
    assert series(ours.body.decode()) <= series(theirs.body.decode())
    accept = re.search(r"^sglang:spec_accept_length\{.*\} (\S+)$", ours.body.decode(), re.M)
    assert accept and 1 < float(accept[1]) < 16


def test_keys_are_asked_for_as_the_real_server_asks(tmp_path: Path) -> None:
    with stand_in(tmp_path, *DFLASH, "--api-key", "user-key", "--admin-api-key", "admin-key") as server:

        def status(path: str, key: str | None, method: str = "GET") -> int:
            headers = {} if key is None else {"authorization": f"Bearer {key}"}
            return server.ask(method, path, {} if method == "POST" else None, headers).status

        assert status("/model_info", None) == 401
        assert server.get("/model_info").json == {"error": "Unauthorized"}
        assert status("/model_info", "user-key") == 200
        assert status("/flush_cache", "user-key", "POST") == 401
        assert status("/flush_cache", "admin-key", "POST") == 200
        assert status("/health", None) == status("/metrics", None) == 200


def test_a_connection_is_kept_and_bodies_may_come_in_chunks(server: StandIn) -> None:
    connection = server.connect()
    body = json.dumps({"prompt": "one two three"}).encode()
    for _ in range(3):
        connection.request(
            "POST", "/tokenize", iter([body[:7], body[7:]]), {"content-type": "application/json"}
        )
        response = connection.getresponse()
        assert json.loads(response.read())["count"] == 3
    sock = connection.sock
    sock.sendall(b"nonsense\r\n\r\n")
    assert sock.recv(4096).startswith(b"HTTP/1.1 400 ")
    connection.close()


def test_requests_are_logged_as_uvicorn_does(server: StandIn) -> None:
    server.get("/model_info?x=1")
    line = server.wait_for("GET /model_info?x=1")
    assert re.fullmatch(
        r'\[[\d :-]+\] INFO:     127\.0\.0\.1:\d+ - "GET /model_info\?x=1 HTTP/1\.1" 200 OK', line
    )


def test_ddtree_counts_drafts_by_its_block(tmp_path: Path) -> None:
    flags = (*DDTREE, "--tp-size", "8", "--speculative-ddtree-budget", "16")
    with stand_in(tmp_path, *flags, model=KIMI, drafter=KIMI_DRAFTER) as server:
        meta = server.generate(PROMPT, max_new_tokens=200, ignore_eos=True).json["meta_info"]
        refused = server.post("/generate", {"text": PROMPT, "return_logprob": True})
    assert meta["spec_proposed_drafts"] == meta["spec_verify_ct"] * 7
    assert 3 < meta["spec_accept_length"] < 8
    assert refused.status == 400 and b"does not support return_logprob yet." in refused.body
