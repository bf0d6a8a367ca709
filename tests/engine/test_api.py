"""The API client against a real socket: the real 0.5.11's answers, and every way a call can go wrong."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
from engine.replies import Where, captured, reply, serving

from ddtui.engine.api import Api, ApiError, Health, Trouble

REAL = {
    "/server_info": captured("loaded_server_info"),
    "/model_info": captured("idle_model_info"),
    "/v1/loads": captured("idle_v1_loads"),  # 500, by a newer FastAPI than the release knew
    "/get_load": captured("idle_get_load"),
    "/health": captured("idle_health"),
    "/generate": captured("generate_ids"),
    "/flush_cache": captured("flush_cache"),
    "/abort_request": captured("abort_request"),
    "/tokenize": captured("tokenize"),
    "/metrics": captured("loaded_metrics"),
}


async def test_every_call_against_the_real_answers() -> None:
    async with serving(REAL) as server, Api(server.where) as api:
        assert (await api.server_info()).version == "0.5.11"
        assert (await api.model_info()).model_path == "/opt/models/target"
        assert await api.health() is Health.READY
        assert (await api.generate_one(input_ids=[1, 2], max_new_tokens=32, rid="ddtui-1")).verify_steps == 7
        assert await api.flush_cache() is True
        await api.abort("ddtui-1")
        assert len((await api.tokenize("class Stack:")).ids) == 27
        assert "sglang:spec_accept_length" in await api.metrics()
        asked = {request.path: request for request in server.requests}
        assert asked["/generate"].json() == {
            "input_ids": [1, 2],
            "rid": "ddtui-1",
            "sampling_params": {"max_new_tokens": 32, "temperature": 0.0, "ignore_eos": False},
        }
        assert asked["/abort_request"].json() == {"rid": "ddtui-1"}
        assert asked["/tokenize"].json() == {"prompt": "class Stack:"}


async def test_loads_falls_back_and_does_not_ask_in_vain_again() -> None:
    async with serving(REAL) as server, Api(server.where) as api:
        assert (await api.loads()).source == "/get_load"
        assert (await api.loads()).running == 0
        assert [request.path.partition("?")[0] for request in server.requests] == [
            "/v1/loads",
            "/get_load",
            "/get_load",
        ]
    without = {path: answer for path, answer in REAL.items() if path != "/get_load"}
    async with serving(without) as server, Api(server.where) as api:
        assert (await api.loads()).source == "/metrics"


async def test_the_old_names_of_paths() -> None:
    old = {
        "/get_server_info": captured("idle_get_server_info"),
        "/get_model_info": captured("idle_get_model_info"),
    }
    async with serving(old) as server, Api(server.where) as api:
        assert (await api.server_info()).version == "0.5.11"
        await api.server_info()
        assert (await api.model_info()).model_type == "qwen3"
        paths = [request.path for request in server.requests]
        assert paths == [
            "/server_info",
            "/get_server_info",
            "/get_server_info",
            "/model_info",
            "/get_model_info",
        ]


async def test_over_a_unix_socket(tmp_path: Path) -> None:
    async with serving(REAL, uds=tmp_path / "s") as server, Api(server.where) as api:
        assert (await api.model_info()).model_type == "qwen3"
        assert server.requests[0].headers["host"] == "127.0.0.1:30000"


async def test_up_is_not_ready() -> None:
    warming = REAL | {"/health": captured("health_while_draining")}
    async with serving(warming) as server, Api(server.where) as api:
        assert (await api.model_info()).model_type == "qwen3"
        assert await api.health() is Health.NOT_READY
    async with serving({"/health": "hang"}) as server, Api(server.where) as api:
        assert await api.health(timeout=0.05) is Health.NOT_READY
    async with serving({"/health": None}) as server, Api(server.where) as api:
        assert await api.health() is Health.DOWN  # a tunnel to a port that nobody listens on
    assert await Api(nobody()).health() is Health.DOWN


def nobody() -> Where:
    """A port on which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return Where(None, "127.0.0.1", taken.getsockname()[1])


async def test_a_busy_server_does_not_flush() -> None:
    async with serving({"/flush_cache": captured("flush_cache_busy")}) as server, Api(server.where) as api:
        assert await api.flush_cache() is False


TROUBLES: list[tuple[bytes | str | None, Trouble, int | None, str]] = [
    (None, Trouble.CLOSED, None, "broke the connection without a whole answer"),
    ("hang", Trouble.TIMEOUT, None, "did not answer within 0.05 s"),
    (reply(200, "<html><body>Sign in</body></html>", "text/html"), Trouble.INVALID, 200, "web page"),
    (reply(200, "not json"), Trouble.INVALID, 200, "not JSON: not json"),
    (reply(200, b"\xff\xfe\x00"), Trouble.INVALID, 200, "not JSON"),
    (reply(200, "[1]"), Trouble.INVALID, 200, "not what /server_info"),
    (reply(200, "{}"), Trouble.INVALID, 200, "not what /server_info"),
    (reply(401, '{"error":"Unauthorized"}'), Trouble.UNAUTHORIZED, 401, "wants an API key"),
    (reply(403, '{"error":"Forbidden"}'), Trouble.FORBIDDEN, 403, "forbidden"),
    (reply(503, ""), Trouble.NOT_READY, 503, "not ready"),
    (reply(500, "Internal Server Error", "text/plain"), Trouble.SERVER, 500, "Internal Server Error."),
    (reply(502, "<!DOCTYPE html><h1>Bad Gateway</h1>", "text/html"), Trouble.SERVER, 502, "web page"),
    (
        reply(400, '{"error":{"message":"The input is too long."}}'),
        Trouble.BAD_REQUEST,
        400,
        "The input is too long.",
    ),
    (reply(422, '{"detail":[{"loc":["x"]}]}'), Trouble.BAD_REQUEST, 422, "loc"),
    (b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{", Trouble.CLOSED, None, "whole answer"),
    (b"SSH-2.0-OpenSSH_9.2\r\n", Trouble.CLOSED, None, "whole answer"),
    (reply(307, ""), Trouble.INVALID, 307, "answered 307"),
]


@pytest.mark.parametrize(
    ("answer", "kind", "status", "words"),
    TROUBLES,
    ids=[f"{kind}-{i}" for i, (_, kind, _, _) in enumerate(TROUBLES)],
)
async def test_each_trouble_is_one_sentence_and_a_kind(
    answer: bytes | str | None, kind: Trouble, status: int | None, words: str
) -> None:
    replies: Mapping[str, bytes | str | None] = {"/server_info": answer, "/get_server_info": answer}
    async with (
        serving(replies) as server,
        Api(server.where, timeout=0.05 if answer == "hang" else 5.0) as api,
    ):
        with pytest.raises(ApiError) as raised:
            await api.server_info()
    error = raised.value
    assert error.kind is kind and error.status == status
    text = str(error)
    assert words in text and text.endswith(".") and "\n" not in text and "127.0.0.1" in text


async def test_nobody_listens() -> None:
    async with Api(nobody()) as api:
        with pytest.raises(ApiError, match="nothing listens there") as raised:
            await api.model_info()
    assert raised.value.kind is Trouble.REFUSED


async def test_the_api_key_is_sent_and_never_shown() -> None:
    key = "sk-0123456789abcdef"
    echo = reply(400, f'{{"error":{{"message":"bad key {key}"}}}}')
    refused = {"/server_info": reply(401, "{}"), "/generate": echo}
    async with serving(refused) as server, Api(server.where, key) as api:
        with pytest.raises(ApiError, match="refused the API key"):
            await api.server_info()
        assert server.requests[0].headers["authorization"] == f"Bearer {key}"
        with pytest.raises(ApiError) as raised:
            await api.generate_one(text="x")
        assert key not in str(raised.value)


async def test_metrics_that_are_off_are_not_there() -> None:
    async with serving({}) as server, Api(server.where) as api:
        with pytest.raises(ApiError) as raised:
            await api.metrics()
        assert raised.value.kind is Trouble.NOT_FOUND


async def test_aborting_nothing_in_particular_is_refused() -> None:
    async with serving(REAL) as server, Api(server.where) as api:
        with pytest.raises(ValueError, match="needs a rid"):
            await api.abort()
        await api.abort(all=True)
        assert server.requests[0].json() == {"abort_all": True}
