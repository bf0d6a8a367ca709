"""What bursts say of the window: with their uncertainty, and nothing where they cannot."""

from __future__ import annotations

import pytest

from ddtui.bench.model import Estimate
from ddtui.tuning import measured
from ddtui.tuning.measured import Sample


def sample(context: int, accept: float, step: float, *, spread: float = 0.05, concurrency: int = 1) -> Sample:
    def around(value: float) -> Estimate:
        return Estimate(value, value * (1 - spread), value * (1 + spread), 32)

    return Sample(concurrency, context, "code", around(accept), around(step))


def test_a_fall_of_the_accept_length_beyond_the_window_is_said_with_its_size() -> None:
    found = measured.judge([sample(512, 5.0, 20), sample(16384, 2.4, 30)], 2048)
    assert found.cells == 2
    accept, step, missing = found.text
    assert "falls by 52%" in accept
    assert "n=32" in accept
    assert "[4.75, 5.25]" in accept
    assert "grows by 50%" in step
    assert missing == "a second context beyond 2048 would show how the time per step goes on (C=1, code)"


def test_what_lies_within_the_uncertainty_is_no_difference() -> None:
    found = measured.judge([sample(512, 5.0, 20), sample(16384, 4.9, 20.5)], 2048)
    assert all("no difference" in text for text in found.text[:2])


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        (
            [sample(128, 5.0, 20), sample(1024, 2.4, 30)],
            "all within 2048 tokens: what happens beyond it is to be measured at the same load",
        ),
        (
            [sample(4096, 5.0, 20), sample(8192, 2.4, 30)],
            "all beyond 2048 tokens: what they are to be held against is to be measured within it",
        ),
        (
            [sample(512, 5.0, 20), sample(16384, 2.4, 30, concurrency=8)],
            "none of them at the same load on both sides of 2048 tokens: they say nothing of the window",
        ),
    ],
    ids=["below", "beyond", "at another load"],
)
def test_cells_that_say_nothing_of_the_window_say_which_ones_would(samples: list[Sample], said: str) -> None:
    assert measured.judge(samples, 2048).text == (f"2 cells measured, {said}",)


def test_without_a_window_any_two_contexts_are_compared() -> None:
    found = measured.judge([sample(512, 5.0, 20), sample(1024, 5.0, 20)], None)
    assert len(found.text) == 2


def steps(*pairs: tuple[int, float], spread: float = 0.01) -> list[Sample]:
    return [sample(context, 4.0, step, spread=spread) for context, step in pairs]


def growth(samples: list[Sample]) -> str:
    (text,) = [text for text in measured.judge(samples, 2048).text if "beyond 2048" in text]
    return text


def test_a_step_time_that_goes_on_growing_beyond_the_window_is_said_with_its_slope() -> None:
    text = growth(steps((512, 20), (1024, 20.5), (4096, 23.6), (8192, 27.7), (16384, 35.9)))
    assert "beyond 2048 tokens: +1.00 [+0.9" in text
    assert "ms per 1k tokens over 3 contexts, +0.98 [" in text and "up to it (C=1, code)" in text
    assert "it grows there" in text


def test_a_slope_that_is_less_than_the_one_below_by_both_intervals_is_as_a_window_makes_it() -> None:
    text = growth(steps((512, 20), (1024, 24), (2048, 32), (4096, 34), (8192, 38), (16384, 46)))
    assert "it grows less there: as a window in force makes it" in text


def test_a_doubtful_slope_below_is_no_ground_to_call_the_one_beyond_flat() -> None:
    below = steps((512, 20), (1024, 22), (2048, 26), spread=0.18)
    text = growth([*below, *steps((4096, 26), (8192, 26.2), (16384, 26.6), spread=0.03)])
    assert "cannot tell" in text


def test_a_step_time_that_grew_and_is_flat_beyond_the_window_is_as_a_window_makes_it() -> None:
    text = growth(steps((512, 20), (1024, 22), (2048, 26), (4096, 26), (8192, 26), (16384, 26)))
    assert "+0.00 [" in text and "+3.91 [" in text and "flat there: as a window in force makes it" in text


def test_samples_too_uncertain_for_a_slope_say_so() -> None:
    text = growth(steps((512, 20), (1024, 20), (4096, 21), (8192, 22), spread=0.4))
    assert "cannot tell" in text


def test_one_context_beyond_the_window_makes_no_slope_and_a_second_is_asked_for() -> None:
    found = measured.judge(steps((512, 20), (1024, 20.5), (4096, 23.6)), 2048)
    assert not any("time per step beyond" in text for text in found.text)
    assert found.text[-1].startswith("a second context beyond 2048 would show")


def test_cells_that_scatter_beyond_their_own_intervals_widen_the_slopes() -> None:
    still = measured.slope(steps((4096, 30), (8192, 31), (12288, 32), (16384, 33), spread=0.001))
    jumpy = measured.slope(steps((4096, 30.4), (8192, 30.2), (12288, 32.8), (16384, 32.6), spread=0.001))
    assert still is not None and jumpy is not None
    assert still.low > 0 and round(still.value, 2) == 0.24
    assert jumpy.low < still.value < jumpy.high and jumpy.high - jumpy.low > 10 * (still.high - still.low)


def test_a_slope_that_falls_is_not_called_flat() -> None:
    text = growth(steps((512, 20), (1024, 22), (2048, 26), (4096, 25), (8192, 23), (16384, 19)))
    assert "it falls there: as a window in force makes it, and more than that" in text


def test_a_slope_is_the_line_through_all_contexts_each_weighed_by_its_interval() -> None:
    exact = measured.slope(steps((1000, 10), (2000, 12), (3000, 14)))
    assert exact and round(exact.value, 6) == 2.0 and exact.low < 2 < exact.high and exact.n == 3
    doubtful = Sample(1, 3000, "code", None, Estimate(30, 1, 59, 32))
    weighed = measured.slope([*steps((1000, 10), (2000, 12)), doubtful])
    assert weighed and abs(weighed.value - 2.0) < 0.2
    assert measured.slope(steps((1000, 10), (1000, 11))) is None
