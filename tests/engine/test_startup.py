"""A start as a progress: it never goes back, in both orders, and says where it is."""

from __future__ import annotations

import random

import pytest
from engine.captured import GOOD, LOGS, log
from engine.orders import new_order

from ddtui.engine.log import parse_all
from ddtui.engine.startup import Phase, Start


def run(lines: list[str]) -> list[Start]:
    """Every state of a start, one second apart."""
    states = [Start()]
    for at, line in enumerate(parse_all(lines), 1):
        states.append(states[-1].see(line, at=float(at)))
    return states


ORDERS = {
    **{name: log(name) for name in LOGS},
    "new order": new_order(),
    "new order, 8 ranks": new_order(ranks=8),
    "0.5.23": new_order(ranks=2, version_23=True),
}


@pytest.mark.parametrize("name", ORDERS)
def test_it_never_goes_back(name: str) -> None:
    states = run(ORDERS[name])
    fractions = [state.fraction for state in states]
    assert fractions == sorted(fractions)
    assert all(0 <= fraction <= 1 for fraction in fractions)


@pytest.mark.parametrize("name", [*GOOD, "new order", "new order, 8 ranks", "0.5.23"])
def test_a_good_start_comes_to_the_ready_line_and_only_health_makes_it_whole(name: str) -> None:
    last = run(ORDERS[name])[-1]
    if name == "start_dflash_block8_topk4_steps3_window4096":  # its warm-up request never returned
        assert (
            last.http_up and not last.ready_line_seen and last.phase is Phase.WARM_UP and last.fraction < 0.99
        )
        assert "not ready" in last.text
        return
    assert last.ready_line_seen and last.phase is Phase.READY and last.fraction == pytest.approx(0.99)
    whole = last.ready(at=1000.0)
    assert whole.fraction == 1.0 and whole.timings()[Phase.READY] < 1000.0


def test_the_phases_of_the_old_order() -> None:
    entered = list(run(log("start_dflash_nowindow"))[-1].entered)
    assert entered == [
        Phase.LAUNCHING, Phase.ARGUMENTS, Phase.DISTRIBUTED,
        Phase.TARGET_WEIGHTS, Phase.TARGET_POOL, Phase.TARGET_GRAPHS,
        Phase.DRAFT_WEIGHTS, Phase.DRAFT_POOL, Phase.DRAFT_GRAPHS,
        Phase.SCHEDULER, Phase.WARM_UP, Phase.READY,
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["new order", "new order, 8 ranks", "0.5.23"])
def test_the_phases_of_the_new_order(name: str) -> None:
    entered = list(run(ORDERS[name])[-1].entered)
    assert entered == [
        Phase.LAUNCHING, Phase.ARGUMENTS, Phase.DISTRIBUTED,
        Phase.TARGET_WEIGHTS, Phase.DRAFT_WEIGHTS, Phase.TARGET_POOL, Phase.DRAFT_POOL,
        Phase.TARGET_GRAPHS, Phase.DRAFT_GRAPHS, Phase.SCHEDULER, Phase.WARM_UP, Phase.READY,
    ]  # fmt: skip


def test_a_server_without_a_drafter_uses_the_whole_bar() -> None:
    last = run(log("start_no_speculation"))
    assert not last[-1].drafter and last[-1].fraction == pytest.approx(0.99)
    before = max(state.fraction for state in last if state.phase is Phase.TARGET_GRAPHS)
    assert before > 0.8


def test_shards_and_captured_graphs_are_counted_in_words() -> None:
    texts = [state.text for state in run(new_order())]
    assert "loading target weights, 39 % (24 of 61 shards)" in texts
    assert "capturing draft CUDA graphs, 12 of 23" in texts
    fine = [state.fraction for state in run(new_order()) if "shards)" in state.text]
    assert len(set(fine)) > 55  # it moves with every shard


def test_what_memory_says_of_the_weights_moves_the_bar_where_the_journal_is_silent() -> None:
    start = next(state for state in run(new_order()) if state.phase is Phase.TARGET_WEIGHTS)
    half = start.loaded(0.5)
    assert half.fraction > start.fraction and "about 50%" in half.text
    assert half.loaded(0.2).fraction == half.fraction
    assert Start().loaded(0.5) == Start()


def test_lines_in_a_random_order_never_send_it_back() -> None:
    lines = new_order(ranks=2)
    for seed in range(20):
        random.Random(seed).shuffle(lines)
        fractions = [state.fraction for state in run(lines)]
        assert fractions == sorted(fractions) and fractions[-1] <= 1


def test_the_estimate_comes_from_an_earlier_starts_timings() -> None:
    states = run(new_order())
    earlier = states[-1].ready().timings()
    ready = earlier[Phase.READY]
    assert Start().eta(0.0, earlier) == ready
    same = next(state for state in states if state.phase is Phase.TARGET_POOL)
    assert same.eta(earlier[Phase.TARGET_POOL], earlier) == pytest.approx(ready - earlier[Phase.TARGET_POOL])
    slow = next(state for state in states if "24 of 61" in state.text)
    began = earlier[Phase.TARGET_WEIGHTS]
    left = slow.eta(began + 240.0, earlier)  # ten times slower than last time: believe the shards
    assert left is not None and 300 < left < 500
    assert same.eta(10_000.0, earlier) >= 0
    assert same.eta(5.0, {}) is None
