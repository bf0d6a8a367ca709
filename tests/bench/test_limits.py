"""What a server takes, held against a cell before anything is sent: one length or id too many has killed
servers.
"""

from __future__ import annotations

import pytest

from ddtui.bench.growing import Prompts
from ddtui.bench.model import BurstSpec, Cell
from ddtui.bench.server_side import Limits

CELL = Cell(4, 1000)
SPEC = BurstSpec((CELL,), output=100)


def prompts(*, largest_id: int | None = None, longest: int = 1000) -> Prompts:
    return Prompts((), (), largest_id is not None, "", largest_id, "", longest)


@pytest.mark.parametrize(
    ("limits", "made", "says"),
    [
        (Limits(), prompts(largest_id=10**9), None),
        (Limits(whole=1100), None, None),
        (Limits(whole=1099), None, "1000 + 100 tokens exceed the model's limit of 1099"),
        (Limits(prompt=1000), None, None),
        (Limits(prompt=999), None, "1000 prompt tokens exceed the server's limit of 999"),
        (Limits(pool=1100), None, None),
        (Limits(pool=1099), None, "one request of 1100 tokens exceeds the KV pool of 1099"),
        (Limits(vocab=500), prompts(largest_id=499), None),
        (Limits(vocab=500), prompts(largest_id=500), "token id 500 is beyond the vocabulary of 500"),
        (Limits(whole=1200, prompt=1100), prompts(longest=1100), None),
        (Limits(whole=1199), prompts(longest=1100), "text of 1000 tokens, which may be 1100, + 100 tokens exceed"),
        (Limits(prompt=1099), prompts(longest=1100), "1100 prompt tokens exceed"),
    ],
)  # fmt: skip
def test_a_cell_beyond_a_limit_has_a_problem(limits: Limits, made: Prompts | None, says: str | None) -> None:
    problem = limits.problem(SPEC, CELL, made)
    assert problem is None if says is None else says in (problem or "")


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        (Limits(running=4, pool=4400), None),
        (Limits(running=3), "the server runs 3 requests at once: 4 wait for each other"),
        (Limits(running=3, pool=4399, ranks=2), None),
        (Limits(pool=4399), "4 requests need 4400 tokens of a KV pool of 4399: they wait"),
    ],
)
def test_a_load_that_queues_is_told(limits: Limits, says: str | None) -> None:
    assert limits.warning(SPEC, CELL) == says
