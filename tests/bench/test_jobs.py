"""What the worker processes are given: how a load is shared among them, and what each request asks."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ddtui.bench import jobs
from ddtui.bench.growing import Prompt, Prompts
from ddtui.bench.model import ApiKind, BurstSpec, Cell

SPEC = BurstSpec((Cell(512, 64),), output=64)


def made(cell: Cell, processes: int, spec: BurstSpec = SPEC) -> list[dict[str, Any]]:
    count = cell.concurrency + jobs.measured_requests(spec, cell)
    ids = spec.endpoint != "chat"
    prompts = Prompts(("1,2", "3"), tuple(Prompt(at, (0, 1), 3, "x") for at in range(count)), ids, "same", 3)
    address = {"host": "127.0.0.1", "port": 30000}
    return jobs.make(spec, cell, prompts, address=address, rid="b-0", processes=processes)


@pytest.mark.parametrize(
    ("concurrency", "processes", "slots"),
    [
        (1, 8, [1]),
        (128, 8, [128]),
        (129, 8, [65, 64]),
        (512, 8, [128] * 4),
        (512, 2, [256] * 2),  # more processes than cores would only wait for each other
    ],
)
def test_a_process_has_about_128_streams(concurrency: int, processes: int, slots: list[int]) -> None:
    cell = Cell(concurrency, 64)
    shares = made(cell, processes)
    assert [share["slots"] for share in shares] == slots
    asked = [request for share in shares for request in share["requests"]]
    assert len({request["rid"] for request in asked}) == len(asked)
    assert sum(request["warm_up"] for request in asked) == concurrency, "the first wave is discarded"
    for share in shares:
        assert sum(request["warm_up"] for request in share["requests"]) == share["slots"]


def test_a_load_ends_when_all_shares_together_are_as_tight_as_asked() -> None:
    whole, quarter = made(Cell(128, 64), 8)[0], made(Cell(512, 64), 8)[0]
    assert whole["precision"] == SPEC.precision and whole["minimum"] == 5 * 128
    assert quarter["precision"] == pytest.approx(2 * SPEC.precision) and quarter["minimum"] == 5 * 128
    assert made(Cell(1, 64), 8)[0]["minimum"] == 32
    assert made(Cell(1, 64), 8, replace(SPEC, requests=7))[0]["precision"] is None, "so many, no fewer"


@pytest.mark.parametrize("endpoint", ["generate", "completions", "chat"])
def test_a_request_asks_for_a_fixed_length_at_temperature_0(endpoint: ApiKind) -> None:
    (job,) = made(Cell(1, 64), 1, replace(SPEC, endpoint=endpoint))
    text = job["head"] + job["separator"].join(job["pieces"]) + job["tail"]
    body = json.loads(text)
    sampling = body["sampling_params"] if endpoint == "generate" else body
    assert (sampling["temperature"], sampling["ignore_eos"], body["stream"]) == (0.0, True, True)
    assert sampling["max_new_tokens" if endpoint == "generate" else "max_tokens"] == 64
    prompts = {
        "generate": body.get("input_ids"),
        "completions": body.get("prompt"),
        "chat": body.get("messages"),
    }
    message = [{"role": "user", "content": "1,23"}]
    assert prompts[endpoint] == (message if endpoint == "chat" else [1, 2, 3])
