"""Comparing two steps: the verdict, its sentence, and what is refused."""

from __future__ import annotations

import math

import pytest
from decide.sides import run, side

from ddtui.bench import contrast
from ddtui.bench.compare import NotComparable, Standing, compare
from ddtui.bench.contrast import Answer, Contrast, Noise
from ddtui.bench.model import Cell

ONE, MANY, LONG = Cell(1, 1024), Cell(32, 1024), Cell(1, 32768)
QUIET = [[100.0, 100.3, 99.8, 100.1, 99.9]]  # A/A runs of a host whose restarts move little
RESTLESS = [[100.0, 96.0, 104.0, 99.0]]


def quiet(load: str, metric: str) -> list[list[float]]:
    return QUIET


def test_a_clear_gain_is_better_with_its_interval_and_said_in_one_sentence() -> None:
    a = side(6, run(ONE), run(MANY), run(LONG))
    b = side(7, run(ONE, 1.11, seed=5), run(MANY, 1.001, seed=6), run(LONG, 1.24, seed=7))
    found = compare(a, b, restarts=quiet)
    assert found.standing is Standing.BETTER
    first = found.cells[0].headline
    assert first and first.answer is Answer.BETTER and first.low < 0.11 < first.high
    assert found.cells[1].headline and found.cells[1].headline.answer is Answer.NO_DIFFERENCE
    assert found.sentence.startswith("step 7 (budget 16, window off) against step 6: throughput ")
    assert "at 1k context +11 % [" in found.sentence
    assert "no difference detectable at ±" in found.sentence and "C=32" in found.sentence
    assert "at 32k context +24 % [" in found.sentence
    assert found.sentence.endswith("outputs equal (192 prompts)")


def test_lower_times_are_better_and_lower_rates_are_worse() -> None:
    found = compare(side(1, run(ONE)), side(2, run(ONE, 0.9)), restarts=quiet)
    differences = found.cells[0].differences
    assert differences["output_rate"].answer is Answer.WORSE
    assert differences["per_user_rate"].answer is Answer.WORSE
    assert differences["tpot_ms"].change > 0 and differences["tpot_ms"].answer is Answer.WORSE
    assert differences["accept_length"].answer is Answer.NO_DIFFERENCE
    assert found.standing is Standing.WORSE


def test_no_verdict_is_surer_than_restarts_allow() -> None:
    a, b = side(1, run(ONE)), side(2, run(ONE, 1.05))
    assert compare(a, b, restarts=quiet).standing is Standing.BETTER
    found = compare(a, b, restarts=lambda load, metric: RESTLESS)
    assert found.standing is Standing.NO_DIFFERENCE
    headline = found.cells[0].headline
    assert headline and headline.floor and headline.half_width == headline.floor > 0.05


def test_below_three_runs_of_the_same_setting_it_is_a_preview_and_says_so() -> None:
    a, b = side(1, run(ONE)), side(2, run(ONE, 1.2))
    for groups in ([], [[100.0, 101.0]], [[100.0], [90.0], [80.0]]):
        found = compare(a, b, restarts=lambda load, metric, groups=groups: groups)  # type: ignore[misc]
        assert found.preview
        assert "preview" in found.sentence and "ddtui calibrate" in found.sentence
    assert not compare(a, b, restarts=quiet).preview


def test_restarts_within_the_comparison_count_as_runs_of_their_setting() -> None:
    a, b = side(1, run(ONE), run(ONE, 1.004, seed=8)), side(2, run(ONE, 1.1), run(ONE, 1.105, seed=9))
    found = compare(a, b, own_noise=True)
    assert found.standing is Standing.BETTER and not found.preview
    assert compare(a, b).preview


def test_the_floor_is_that_of_the_protocol() -> None:
    logs = [math.log(value) for value in RESTLESS[0]]
    middle = sum(logs) / 4
    deviation = math.sqrt(sum((value - middle) ** 2 for value in logs) / 3)
    noise = Noise.of(RESTLESS)
    made = Contrast(0.0, 0.0, 48, 47, noise, restarts=2)
    assert made.floor(0.95) == pytest.approx(3.182 * math.sqrt(2) * deviation / math.sqrt(2), rel=1e-3)


def test_groups_of_different_settings_are_not_taken_for_noise() -> None:
    apart = Noise.of([[100.0, 100.1, 99.9], [200.0, 200.2, 199.8]])
    assert apart and apart.freedom == 4 and apart.deviation < 0.002


def test_many_cells_are_corrected_for_by_holm() -> None:
    noise = Noise(0.0, 100)
    barely = Contrast(0.022, 0.01, 101, 100, noise)  # p = 0.03
    sure = Contrast(0.05, 0.01, 101, 100, noise)
    assert contrast.judge([barely])[0].answer is Answer.BETTER
    answers = [d.answer for d in contrast.judge([barely, barely, sure])]
    assert answers == [Answer.NO_DIFFERENCE, Answer.NO_DIFFERENCE, Answer.BETTER]
    assert [d.answer for d in contrast.judge([sure, barely])] == [Answer.BETTER, Answer.BETTER]


def test_every_interval_leaves_out_zero_exactly_where_the_verdict_does() -> None:
    noise = Noise(0.003, 4)
    made = [Contrast(middle / 1000, 0.01, 48, 47, noise) for middle in range(-60, 61, 7)]
    for one in contrast.judge(made):
        assert (one.low > 0 or one.high < 0) == (one.answer is not Answer.NO_DIFFERENCE)


def test_without_raw_records_it_goes_by_the_intervals_and_says_preview() -> None:
    found = compare(side(1, run(ONE, samples={})), side(2, run(ONE, 1.3, samples={})), restarts=quiet)
    headline = found.cells[0].headline
    assert headline and not headline.paired and headline.preview and headline.answer is Answer.BETTER


def test_only_prompts_that_both_measured_are_compared() -> None:
    """The others would make a difference of their own: prompts differ by a quarter."""
    few = run(ONE, count=64)
    late = run(ONE, count=64)
    some = {at: sample for at, sample in late.samples.items() if at >= 24}
    found = compare(side(1, few), side(2, run(ONE, samples=some)), restarts=quiet)
    headline = found.cells[0].headline
    assert headline and headline.pairs == 40 and abs(headline.change) < 1e-9


def test_a_cell_with_marks_is_shown_and_neither_wins_nor_loses() -> None:
    a = side(1, run(ONE), run(MANY))
    b = side(2, run(ONE), run(MANY, 1.5, marks=("cache hits in 40 of 48",)))
    found = compare(a, b, restarts=quiet)
    assert found.standing is Standing.NO_DIFFERENCE
    assert found.cells[1].doubts == ("B: cache hits in 40 of 48",)
    assert "not judged at C=32 (B: cache hits in 40 of 48)" in found.sentence


def test_a_step_with_wrong_output_never_wins() -> None:
    found = compare(
        side(1, run(ONE)), side(2, run(ONE, 1.5), wrong="the text repeats itself"), restarts=quiet
    )
    assert found.standing is Standing.WORSE
    assert "step 2 (budget 16, window off) gives wrong output: the text repeats itself" in found.sentence


def test_nothing_loses_to_a_step_with_wrong_output() -> None:
    found = compare(side(1, run(ONE, 1.5), wrong="garbage"), side(2, run(ONE)), restarts=quiet)
    assert found.standing is Standing.BETTER
    assert found.sentence.startswith("step 1 gives wrong output: garbage; ")


def test_outputs_are_compared_where_the_prompts_were_the_same_to_the_letter() -> None:
    a = side(1, run(ONE))
    assert compare(a, side(2, run(ONE))).outputs.equal == 64
    other = compare(a, side(2, run(ONE, said="other"))).outputs
    assert (other.compared, other.equal) == (64, 0) and "differ in 64 of 64" in other.text
    assert compare(a, side(2, run(ONE, salt="t"))).outputs.compared == 0
    assert (
        "temperature"
        in compare(side(1, run(ONE, temperature=1.0)), side(2, run(ONE, temperature=1.0))).outputs.text
    )


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ({"target": "/models/other"}, "another model"),
        ({"gpu": "8 x H100"}, "another GPU"),
        ({"simulated": True}, "simulated"),
    ],
)
def test_what_is_not_comparable_is_refused_or_done_knowingly(what: dict[str, object], reason: str) -> None:
    a, b = side(1, run(ONE), gpu="8 x B200"), side(2, run(ONE), gpu="8 x B200")
    b = type(b)(**{**{name: getattr(b, name) for name in b.__dataclass_fields__}, **what})
    with pytest.raises(NotComparable, match=reason) as refused:
        compare(a, b)
    assert "--knowingly" in str(refused.value)
    assert any(reason in warning for warning in compare(a, b, knowingly=True).warnings)


@pytest.mark.parametrize(
    "what",
    [{"place": "host"}, {"prompts": "p2"}, {"output": 64}, {"temperature": 1.0}, {"endpoint": "chat"}],
)
def test_another_load_is_refused(what: dict[str, object]) -> None:
    with pytest.raises(NotComparable):
        compare(side(1, run(ONE)), side(2, run(ONE, **what)))
    assert compare(side(1, run(ONE)), side(2, run(ONE, **what)), knowingly=True).warnings


def test_steps_without_a_shared_cell_cannot_be_compared_even_knowingly() -> None:
    with pytest.raises(NotComparable, match="no cell in common"):
        compare(side(1, run(ONE)), side(2, run(MANY)), knowingly=True)
