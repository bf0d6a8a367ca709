"""A burst on the SGLang stand-in, over a Unix socket as through a link: counts, acceptance, aborts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest
from demo.standin_process import DDTREE, KIMI, KIMI_DRAFTER, StandIn, stand_in

from ddtui.bench import burst
from ddtui.bench.model import Burst, BurstSpec, BurstState, Cell
from ddtui.bench.target import Target
from ddtui.host.base import Endpoint

TREE = (*DDTREE, "--tp", "8", "--speculative-ddtree-budget", "8", "--speculative-ddtree-topk-cap", "4")
SPEC = BurstSpec((Cell(4, 512),), output=64, requests=24)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    with stand_in(tmp_path_factory.mktemp("standin"), *TREE, model=KIMI, drafter=KIMI_DRAFTER) as running:
        yield running


async def measured(server: StandIn, spec: BurstSpec) -> Burst:
    to = Target(Endpoint(str(server.uds), "127.0.0.1", 30000), simulated=True)
    async with asyncio.timeout(60):
        snapshots = [snapshot async for snapshot in burst.run(spec, to)]
    return snapshots[-1]


@pytest.mark.parametrize("endpoint", ["generate", "completions", "chat"])
async def test_every_endpoint_is_measured(server: StandIn, endpoint: str) -> None:
    last = await measured(server, replace(SPEC, endpoint=endpoint))  # type: ignore[arg-type]
    assert last.state is BurstState.DONE and last.simulated, last.text
    (point,) = last.points
    assert point.ok >= 24 and point.failed == 0 and point.output_tokens == 64
    assert point.prompt_tokens == pytest.approx(512, rel=0.0 if endpoint != "chat" else 0.06)
    assert point.cached_tokens < 24 * 16, "the prefix cache is not hit"
    assert point.accept_length and 3.5 < point.accept_length.value < 7
    exact = endpoint == "generate"
    assert point.accept_how == ("accepted drafts / verify steps" if exact else "tokens / chunk")
    assert point.step_ms and point.ttft_ms and point.output_rate and point.per_user_rate


async def test_a_cell_beyond_the_models_context_is_not_sent(server: StandIn) -> None:
    last = await measured(server, replace(SPEC, cells=(Cell(1, 10_000_000),)))
    assert "exceed" in last.points[0].marks[0] and last.points[0].ok == 0
