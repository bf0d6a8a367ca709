"""What bursts say of the window: with their uncertainty, and nothing where they cannot."""

from __future__ import annotations

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
    accept, step = found.text
    assert "falls by 52%" in accept
    assert "n=32" in accept
    assert "[4.75, 5.25]" in accept
    assert "grows by 50%" in step


def test_what_lies_within_the_uncertainty_is_no_difference() -> None:
    found = measured.judge([sample(512, 5.0, 20), sample(16384, 4.9, 20.5)], 2048)
    assert all("no difference" in text for text in found.text)


def test_cells_on_one_side_of_the_window_say_nothing_of_it() -> None:
    found = measured.judge([sample(128, 5.0, 20), sample(1024, 2.4, 30)], 2048)
    assert found.text == (
        "2 cells measured, none of them with contexts on both sides of 2048: they say nothing of the window",
    )


def test_only_cells_of_the_same_load_are_compared() -> None:
    found = measured.judge([sample(512, 5.0, 20), sample(16384, 2.4, 30, concurrency=8)], 2048)
    assert "say nothing" in found.text[0]


def test_without_a_window_any_two_contexts_are_compared() -> None:
    found = measured.judge([sample(512, 5.0, 20), sample(1024, 5.0, 20)], None)
    assert len(found.text) == 2
