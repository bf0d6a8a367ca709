"""What an answer says: tokens by arrival, text, counts, speculation, under each version's names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ddtui.bench import answer as reading
from ddtui.bench.answer import Answer
from ddtui.bench.http_stream import ResponseReader

CAPTURES = Path(__file__).parents[1] / "captures" / "sglang-0.5.11" / "http"


def captured(name: str, api: str, *, piece: int = 1 << 30) -> Answer:
    """The answer of a real server, read in pieces of so many bytes; the clock counts the pieces."""
    data = (CAPTURES / f"{name}.raw").read_bytes()
    reader, answer = ResponseReader(), Answer(api)
    for at in range(0, len(data), piece):
        answer.feed(at, reader.feed(data[at : at + piece]))
    answer.end(len(data))
    return answer


def streamed(api: str, *values: Any, done: bool = True) -> Answer:
    answer = Answer(api)
    for at, value in enumerate(values, 1):
        answer.feed(at, b"data: " + json.dumps(value).encode() + b"\n\n")
    if done:
        answer.feed(len(values) + 1, b"data: [DONE]\n\n")
    answer.end(len(values) + 2)
    return answer


def generated(text: str, count: int, finish: str | None = None, **meta: Any) -> dict[str, Any]:
    reason = {"type": finish} if finish else None
    return {
        "text": text,
        "output_ids": list(range(count)),
        "meta_info": {
            "finish_reason": reason,
            "prompt_tokens": 9,
            "completion_tokens": count,
            "cached_tokens": 0,
            **meta,
        },
    }


def chunk(text: str, finish: str | None = None, usage: Any = "absent") -> dict[str, Any]:
    value: dict[str, Any] = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}
    if usage != "absent":
        value["usage"] = usage
    return value


class TestRealAnswers:
    @pytest.mark.parametrize("piece", [1 << 30, 700, 17])
    def test_generate_of_0_5_11(self, piece: int) -> None:
        answer = captured("generate_ids_stream", "generate", piece=piece)
        assert answer.counts == [1, 11, 19, 22, 27, 28, 29, 37, 38, 47, 48]
        assert answer.text.startswith("\n        27: 0,  # 'ю'\n") and answer.text.endswith("33:")
        assert len(answer.output_ids) == answer.output_tokens == 48
        assert (answer.prompt_tokens, answer.cached_tokens) == (64, 63)
        assert (answer.verify_steps, answer.accepted_drafts, answer.histogram) == (10, 37, None)
        assert answer.finish == "length" and answer.done and not answer.malformed

    def test_the_last_event_alone_is_parsed_of_a_cumulative_stream(self) -> None:
        answer = captured("abort_by_rid_stream", "generate")
        assert answer.counts[-1] == answer.output_tokens == len(answer.output_ids) == 598
        assert answer.finish == "abort" and answer.error == "Aborted"

    def test_completions_with_continuous_usage_give_the_first_chunks_tokens(self) -> None:
        answer = captured("completions_stream_continuous_usage", "completions")
        assert answer.counts == [1, 3, 6, 8, 15, 18, 22, 32]
        assert answer.text.startswith("# Copyright 2024 The HuggingFace")

    def test_completions_without_it_count_the_whole_only(self) -> None:
        answer = captured("completions_stream_usage", "completions")
        assert answer.output_tokens == 32 and set(answer.counts) == {None}
        assert answer.verify_steps is None and answer.cached_tokens is None

    def test_the_role_chunk_of_a_chat_is_no_token(self) -> None:
        answer = captured("chat_stream_usage", "chat")
        assert len(answer.times) == 9 and answer.output_tokens == 32 and answer.finish == "length"

    def test_a_server_that_died_leaves_what_came(self) -> None:
        answer = captured("stream_over_scheduler_crash", "generate")
        assert not answer.whole and answer.counts[-1] == answer.output_tokens == 686

    def test_an_error_of_the_tokenizer_comes_as_an_event(self) -> None:
        answer = captured("generate_too_long_stream", "generate")
        assert answer.error.startswith("The input (40000 tokens) is longer") and not answer.times


class TestGenerate:
    def test_incremental_streams_are_joined(self) -> None:
        first, second = generated("one ", 2), generated("two", 5, "length")
        second["output_ids"] = [2, 3, 4]
        answer = streamed("generate", first, second)
        assert (answer.text, answer.output_ids, answer.counts) == ("one two", [0, 1, 2, 3, 4], [2, 5])

    def test_incremental_text_without_ids_is_joined_too(self) -> None:
        events = [generated("a", 1), generated("b", 3), generated("c", 4, "stop")]
        for event in events:
            del event["output_ids"]
        assert streamed("generate", *events).text == "abc"

    def test_an_event_that_brings_no_token_has_no_arrival(self) -> None:
        answer = streamed("generate", generated("a", 1), generated("a", 1), generated("ab", 3, "length"))
        assert (answer.times, answer.counts, answer.text) == ([1, 3], [1, 3], "ab")

    def test_a_count_inside_the_text_is_no_count(self) -> None:
        text = 'x = {"completion_tokens": 999}'
        assert streamed("generate", generated(text, 7, "length")).counts == [7]

    @pytest.mark.parametrize(
        ("meta", "steps", "accepted", "histogram"),
        [
            (
                {"spec_verify_ct": 4, "spec_accept_token_num": 9, "spec_accept_histogram": [1, 0, 3]},
                4,
                9,
                [1, 0, 3],
            ),
            ({"spec_verify_ct": 4, "spec_accepted_drafts": 9}, 4, 9, None),
            (
                {
                    "spec_verify_ct": 4,
                    "spec_accepted_drafts": 1,
                    "spec_num_correct_drafts": 9,
                    "spec_correct_drafts_histogram": [2, 2],
                },
                4,
                9,
                [2, 2],
            ),
            ({}, None, None, None),
        ],
    )
    def test_speculation_under_each_versions_names(
        self, meta: dict[str, Any], steps: int | None, accepted: int | None, histogram: list[int] | None
    ) -> None:
        answer = streamed("generate", generated("a", 13, "length", **meta))
        assert (answer.verify_steps, answer.accepted_drafts, answer.histogram) == (steps, accepted, histogram)


class TestOpenAI:
    def test_usage_null_on_each_chunk_is_no_usage(self) -> None:
        answer = streamed("chat", chunk("a", usage=None), chunk("b", "stop", usage=None))
        assert (answer.text, answer.output_tokens, answer.counts) == ("ab", None, [None, None])

    def test_reasoning_and_tool_calls_are_tokens(self) -> None:
        values = [
            {"choices": [{"delta": {"role": "assistant", "content": ""}}]},
            {"choices": [{"delta": {"reasoning_content": "hm"}}]},
            {"choices": [{"delta": {"tool_calls": [{"function": {"name": "f"}}]}}]},
            {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
        ]
        assert streamed("chat", *values).times == [2, 3]

    def test_empty_chunks_are_no_tokens(self) -> None:
        answer = streamed("chat", chunk(""), {"choices": []}, chunk("x"), chunk("", "length"))
        assert answer.times == [3] and answer.finish == "length"

    def test_cached_tokens_are_read_from_the_details(self) -> None:
        usage = {"completion_tokens": 2, "prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}
        assert streamed("chat", chunk("x", "stop", usage)).cached_tokens == 4


class TestSaid:
    @pytest.mark.parametrize(
        ("body", "text"),
        [
            (b'{"error":{"message":"too long"}}', "too long"),
            (b'{"object":"error","message":"bad","code":400}', "bad"),
            (b'{"detail":"Not Found"}', "Not Found"),
            (b'{"error":"Unauthorized"}', "Unauthorized"),
            (b"<html><title>502</title><h1>Bad   Gateway</h1></html>", "502 Bad Gateway"),
            (b"Internal Server Error", "Internal Server Error"),
            (b"", ""),
            (b"\xff\xfe", "\ufffd\ufffd"),
        ],
    )
    def test_the_message_of_each_shape(self, body: bytes, text: str) -> None:
        assert reading.said(body) == text
