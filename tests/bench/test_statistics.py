"""Intervals, spreads and what makes a series doubtful."""

from __future__ import annotations

import random

import pytest

from ddtui.bench import statistics


def noise(n: int, seed: int = 1, middle: float = 100.0, deviation: float = 10.0) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(middle, deviation) for _ in range(n)]


def test_the_interval_of_a_mean_holds_the_truth_about_as_often_as_it_says() -> None:
    held = 0
    for seed in range(300):
        estimate = statistics.mean(noise(48, seed))
        assert estimate is not None and estimate.low <= estimate.value <= estimate.high
        held += estimate.low <= 100 <= estimate.high
    assert 0.90 <= held / 300 <= 0.98


def test_more_samples_make_it_narrower_and_one_sample_has_no_width() -> None:
    few, many = statistics.mean(noise(32)), statistics.mean(noise(512))
    assert few and many and many.high - many.low < (few.high - few.low) / 2
    one = statistics.mean([5.0])
    assert one and (one.low, one.value, one.high, one.n) == (5, 5, 5, 1)
    assert statistics.mean([]) is None and statistics.median([]) is None and statistics.spread([]) is None


def test_a_ratio_is_sum_over_sum() -> None:
    estimate = statistics.ratio([1.0, 9.0], [1.0, 3.0])
    assert estimate and estimate.value == pytest.approx(2.5)
    assert statistics.ratio([1.0], [0.0]) is None


def test_scaled_and_inverse_keep_the_relative_interval() -> None:
    estimate = statistics.mean(noise(64))
    assert estimate is not None
    double = statistics.scaled(estimate, 2 * estimate.value)
    assert double.high / double.value == pytest.approx(estimate.high / estimate.value)
    inverse = statistics.inverse(estimate, 1000.0)
    assert inverse and inverse.low == pytest.approx(1000 / estimate.high)


def test_the_same_samples_give_the_same_interval() -> None:
    assert statistics.mean(noise(40)) == statistics.mean(noise(40))


def test_percentiles() -> None:
    spread = statistics.spread(list(range(101)))
    assert spread and (spread.mean, spread.median, spread.p90, spread.p95, spread.p99) == (50, 50, 90, 95, 99)


def test_drift_is_seen_and_noise_is_not() -> None:
    times = [float(at) for at in range(60)]
    assert statistics.drift(times, noise(60)) is None
    rising = [value * (1 + 0.2 * at / 59) for at, value in zip(times, noise(60, deviation=3), strict=True)]
    change = statistics.drift(times, rising)
    assert change is not None and change == pytest.approx(0.2, abs=0.06)
    assert sum(statistics.drift(times, noise(60, seed)) is not None for seed in range(200)) <= 2


def test_two_modes_are_seen_and_one_broad_mode_is_not() -> None:
    two = noise(40, 1, 100, 2) + noise(10, 2, 66, 2)
    apart = statistics.two_modes(two)
    assert apart is not None and apart == pytest.approx(1.5, abs=0.05)
    assert sum(statistics.two_modes(noise(50, seed, 100, 25)) is not None for seed in range(200)) <= 2
    assert statistics.two_modes([1.0] * 19) is None


def test_students_t() -> None:
    table = [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (30, 2.042), (10**6, 1.960)]
    for df, value in table:
        assert statistics.t_quantile(0.975, df) == pytest.approx(value, abs=0.001)
