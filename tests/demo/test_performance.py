"""The performance model against the tables it was taken from.

The tables were made by a few hundred random draws; the model is exact. So numbers agree to the draws' error.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import pytest

from ddtui.demo.standin.sglang.performance import (
    COLLAPSED_SHARE,
    EAGER_FACTOR,
    MEAN_BY_WORKLOAD,
    Acceptance,
    Cell,
    Drafter,
    Knobs,
    collapse,
    commit_length,
    draw_accepted,
    expected,
    first_choice_quantiles,
    kept,
    restart_factor,
    sample_requests,
    step_ms,
    tails,
    tree_tail,
    uniform_bits,
    without_speculation,
)

CODE = MEAN_BY_WORKLOAD["code"]


@pytest.mark.parametrize(
    ("budget", "commit"),
    [
        (1, 1.79),
        (2, 2.48),
        (4, 3.61),
        (6, 4.55),
        (7, 4.98),
        (8, 5.04),
        (12, 5.21),
        (16, 5.35),
        (32, 5.74),
        (64, 6.16),
    ],
)
def test_commit_length_by_budget_at_topk_4_is_that_of_the_table(budget: int, commit: float) -> None:
    assert commit_length(budget, 4, 7, CODE) == pytest.approx(commit, rel=0.025)


@pytest.mark.parametrize(("budget", "commit"), [(8, 5.02), (16, 5.30), (32, 5.61), (64, 5.74)])
def test_commit_length_at_topk_2_is_that_of_the_table(budget: int, commit: float) -> None:
    assert commit_length(budget, 2, 7, CODE) == pytest.approx(commit, rel=0.025)


@pytest.mark.parametrize(("mean", "commit"), [(0.78, 4.88), (0.75, 4.46), (0.72, 4.09)])
def test_a_chain_saturates_at_its_depth(mean: float, commit: float) -> None:
    assert commit_length(7, 1, 7, mean) == pytest.approx(commit, rel=0.03)
    assert commit_length(64, 1, 7, mean) == commit_length(7, 1, 7, mean)


def test_the_mean_of_a_chain_is_the_beta_distribution_s_moments() -> None:
    a, b = 3 * CODE, 3 * (1 - CODE)
    moment, total = 1.0, 1.0
    for d in range(7):
        moment *= (a + d) / (a + b + d)
        total += moment
    assert commit_length(7, 1, 7, CODE) == pytest.approx(total, rel=1e-3)
    assert statistics.fmean(first_choice_quantiles(CODE)) == pytest.approx(CODE, abs=1e-3)


def test_a_larger_tree_never_accepts_less() -> None:
    for topk in (1, 2, 4, 8):
        commits = [commit_length(budget, topk, 7, CODE) for budget in range(1, 65)]
        assert commits == sorted(commits)


def test_a_budget_below_the_depth_cannot_reach_it() -> None:
    assert all(row[3:] == (0.0,) * 4 for row in tails(3, 4, 7, CODE))


def test_the_tree_is_the_best_of_all_trees_of_its_size() -> None:
    """Against a search over all prefix-closed sets: depth 2, two candidates, three nodes."""
    p1 = 0.6
    p = [p1, (1 - p1) * 0.45]
    gains = {"a": p[0], "b": p[1], "aa": p[0] * p[0], "ab": p[0] * p[1], "ba": p[1] * p[0], "bb": p[1] * p[1]}
    names = list(gains)
    best = 0.0
    for bits in range(1 << len(names)):
        chosen = {name for i, name in enumerate(names) if bits >> i & 1}
        if len(chosen) == 3 and all(len(name) == 1 or name[0] in chosen for name in chosen):
            best = max(best, sum(gains[name] for name in chosen))
    assert sum(tree_tail(p1, 3, 2, 2)) == pytest.approx(best)


TABLE = {  # tokens/s, all streams, budget -> rate; None: no speculation
    1: {None: 77, 4: 123, 7: 155, 8: 153, 16: 136, 32: 116, 64: 97},
    8: {None: 411, 8: 547, 64: 361},
    32: {None: 878, 8: 1196, 64: 563},
}


@pytest.mark.parametrize("concurrency", [1, 8, 32])
def test_throughput_by_budget_and_concurrency_is_that_of_the_table(concurrency: int) -> None:
    for budget, rate in TABLE[concurrency].items():
        knobs = without_speculation(Knobs()) if budget is None else Knobs(budget=budget)
        commit = 1.0 if budget is None else commit_length(budget, 4, 7, CODE)
        assert concurrency * commit * 1000 / step_ms(knobs, concurrency, 0) == pytest.approx(rate, rel=0.03)


def test_the_best_budget_is_about_the_draft_depth() -> None:
    for concurrency in (1, 8, 32):
        rates = {
            b: expected(Knobs(budget=b), Cell(concurrency)).throughput
            for b in (2, 4, 6, 7, 8, 12, 16, 32, 64)
        }
        assert max(rates, key=lambda b: rates[b]) in (6, 7, 8)


def test_past_an_unhonoured_training_window_acceptance_collapses() -> None:
    long = Cell(context=16384)
    unhonoured, honoured = expected(Knobs(), long), expected(Knobs(window=2048), long)
    assert unhonoured.accept_length == pytest.approx(2.38, abs=0.1)
    assert honoured.accept_length > 4.6
    assert expected(Knobs(), Cell(context=512)) == expected(Knobs(window=2048), Cell(context=512))


def test_the_collapse_reaches_no_token_after_the_fifth() -> None:
    tail = Acceptance(Knobs(), CODE).at_least(100_000)
    assert tail[:5] == pytest.approx(
        [share * kept(100_000, Knobs()) for share in (0.515, 0.33, 0.23, 0.18, 0.14)], abs=0.04
    )
    assert tail[5:] == [0.0, 0.0]
    assert commit_length(8, 1, 5, CODE * COLLAPSED_SHARE) == pytest.approx(2.38, abs=0.02)


def test_the_collapse_grows_with_what_the_drafter_sees_beyond_its_window() -> None:
    assert [collapse(c, Knobs()) for c in (0, 2048, 3072, 4096, 60_000)] == [0.0, 0.0, 0.5, 1.0, 1.0]
    assert collapse(60_000, Knobs(window=2048)) == 0.0
    assert collapse(60_000, Knobs(window=3072)) == 0.5
    assert collapse(60_000, Knobs(drafter=Drafter(8, None))) == 0.0


def test_with_the_window_honoured_acceptance_is_flat_and_then_declines_slowly() -> None:
    lengths = [
        expected(Knobs(window=2048), Cell(context=c)).accept_length for c in (512, 2048, 8192, 32768, 131072)
    ]
    assert lengths[0] == pytest.approx(lengths[1])
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] > 0.85 * lengths[0]


def test_a_window_much_shorter_than_the_trained_one_costs_acceptance() -> None:
    cell = Cell(context=8192)
    lengths = [expected(Knobs(window=w), cell).accept_length for w in (64, 256, 1024, 2048)]
    assert lengths == sorted(lengths) and lengths[0] < 0.8 * lengths[-1]


def test_a_window_saves_draft_time_at_long_context() -> None:
    assert step_ms(Knobs(window=2048), 8, 65536) < step_ms(Knobs(), 8, 65536) - 9


def test_sampling_accepts_less() -> None:
    greedy, sampled = expected(Knobs(), Cell()), expected(Knobs(), Cell(temperature=1.0))
    assert (sampled.accept_length - 1) / (greedy.accept_length - 1) == pytest.approx(0.89, abs=0.02)


def test_without_cuda_graphs_a_step_takes_several_times_as_long() -> None:
    assert step_ms(Knobs(cuda_graph=False), 1, 0) == pytest.approx(EAGER_FACTOR * step_ms(Knobs(), 1, 0))


def test_workloads_differ() -> None:
    lengths = {kind: expected(Knobs(), Cell(workload=kind)).accept_length for kind in MEAN_BY_WORKLOAD}
    assert lengths["code"] > lengths["document"] > lengths["chat"] > lengths["random"]
    assert expected(Knobs(algorithm="DFLASH"), Cell(workload="chat")).accept_length == pytest.approx(
        3.7, abs=0.2
    )


def test_what_is_drawn_has_exactly_the_expected_mean() -> None:
    knobs = Knobs(window=2048)
    acceptance = Acceptance(knobs, CODE)
    drawn = [draw_accepted(acceptance, 99, position, 9000) for position in range(40_000)]
    error = statistics.stdev(drawn) / math.sqrt(len(drawn))
    assert statistics.fmean(drawn) + 1 == pytest.approx(acceptance.mean(9000), abs=4 * error)


@pytest.mark.parametrize("cell", [Cell(1, 512), Cell(8, 3000), Cell(32, 8192, "chat", 128)])
def test_sampled_requests_have_the_expected_speed_and_acceptance(cell: Cell) -> None:
    knobs = Knobs(budget=16)
    samples = sample_requests(knobs, cell, 1500, start=5, restart_sd=0.0)
    truth = expected(knobs, cell)
    decoded = sum(s.output_tokens - 1 for s in samples)
    assert decoded / sum(s.verify_steps for s in samples) == pytest.approx(truth.accept_length, rel=0.01)
    assert decoded / sum(s.decode_ms for s in samples) * 1000 == pytest.approx(truth.per_user, rel=0.01)
    assert sum(s.accepted + s.verify_steps for s in samples) == decoded


def test_a_prompt_that_is_easy_under_one_setting_is_easy_under_another() -> None:
    """So a comparison that pairs by prompt has less noise than one that does not."""
    cell = Cell(output=128)

    def by_prompt(knobs: Knobs) -> list[float]:
        samples = sample_requests(knobs, cell, 200, start=1, restart_sd=0.0)
        return [(s.output_tokens - 1) / s.verify_steps for s in samples]

    correlation = statistics.correlation(by_prompt(Knobs(budget=8)), by_prompt(Knobs(budget=16)))
    assert correlation > 0.3
    assert by_prompt(Knobs()) == by_prompt(Knobs())


def test_restarts_move_the_speed_by_about_a_percent() -> None:
    factors = [restart_factor(uniform_bits(3, i)) for i in range(4000)]
    assert statistics.stdev(factors) == pytest.approx(0.01, rel=0.1)
    assert statistics.fmean(factors) == pytest.approx(1.0, abs=0.001)
    quiet = sample_requests(Knobs(), Cell(), 40, start=7, restart_sd=0.0)
    moved = sample_requests(Knobs(), Cell(), 40, start=7, restart_sd=0.01)
    ratio = sum(s.decode_ms for s in moved) / sum(s.decode_ms for s in quiet)
    assert ratio == pytest.approx(restart_factor(7))


def test_plain_decoding_gives_one_token_a_step() -> None:
    plain = expected(without_speculation(Knobs()), Cell())
    assert plain.accept_length == pytest.approx(1.0)
    assert plain.per_user == pytest.approx(77, rel=0.02)


def test_prefills_of_others_stall_a_closed_loop() -> None:
    cell = Cell(8, 8192)
    speed = expected(Knobs(window=2048), cell)
    assert speed.with_prefill < 0.7 * speed.throughput
    assert expected(Knobs(window=2048), replace(cell, context=16)).with_prefill > 0.85 * speed.throughput


def test_a_burst_repeats_with_its_seed_and_differs_with_another() -> None:
    def decode(burst: int) -> list[float]:
        return [s.decode_ms for s in sample_requests(Knobs(), Cell(), 20, start=4, burst=burst)]

    assert decode(0) == decode(0) != decode(1)
    for first, second in zip(decode(0), decode(1), strict=True):
        assert first == pytest.approx(second, rel=0.03)
