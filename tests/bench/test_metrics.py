"""From records to a point: every definition on numbers that can be checked by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ddtui.bench import metrics
from ddtui.bench.metrics import Run
from ddtui.bench.model import Cell, Outcome, RequestRecord, ServerSide

CELL = Cell(2, 100)


def record(sent: float = 0.0, *, index: int = 0, **what: Any) -> RequestRecord:
    """9 tokens: 1 after 0.1 s, then four steps of 2 tokens, 50 ms apart."""
    made = RequestRecord(
        cell=CELL,
        index=index,
        outcome=Outcome.OK,
        message="",
        sent=sent,
        first=sent + 0.1,
        last=sent + 0.3,
        first_tokens=1,
        prompt_tokens=100,
        output_tokens=9,
        cached_tokens=0,
        verify_steps=4,
        accepted_drafts=4,
        accept_histogram=None,
        step_gaps=(0.05,) * 4,
        step_tokens=(2,) * 4,
        ended=sent + 0.3,
        finish="length",
    )
    return replace(made, **what)


def steady(waves: int = 22, **what: Any) -> Run:
    """Two slots, one request after the other without a pause; the first wave is warm-up."""
    records = [
        record(wave * 0.3 + slot * 0.15, index=2 * wave + slot, warm_up=wave == 0, **what)
        for wave in range(waves)
        for slot in range(2)
    ]
    last = max(r.ended or 0.0 for r in records)
    return Run(CELL, 0.0, last, records, last - 0.15, 0.1, 9, final=True)


class TestDefinitions:
    def test_ttft_step_gap_tpot_and_e2e(self) -> None:
        point = metrics.point(steady())
        assert point.ttft_ms and point.ttft_ms.value == pytest.approx(100)
        assert point.step_ms and point.step_ms.value == pytest.approx(50)
        assert point.tpot_ms and point.tpot_ms.value == pytest.approx(200 / 8)
        assert point.e2e_ms and point.e2e_ms.value == pytest.approx(300)
        assert point.per_user_rate and point.per_user_rate.value == pytest.approx(40)
        assert point.tpot_how == "n - n1"

    def test_a_first_chunk_of_many_tokens_does_not_speed_up_the_rest(self) -> None:
        bundled = record(first_tokens=5, output_tokens=13)
        assert metrics.tpot_seconds(bundled) == pytest.approx(0.2 / 8)
        unknown = record(first_tokens=None, output_tokens=13)
        assert metrics.tpot_seconds(unknown) == pytest.approx(0.2 / 12)
        assert metrics.point(steady(first_tokens=None)).tpot_how == "n - 1"

    def test_step_gap_and_per_token_itl_are_two_views(self) -> None:
        spreads = metrics.point(steady()).spreads
        assert spreads["step_ms"].median == pytest.approx(50) and spreads["itl_ms"].median == pytest.approx(
            25
        )
        assert spreads["itl_ms"].n == 2 * spreads["step_ms"].n

    def test_unknown_token_counts_stay_unknown(self) -> None:
        point = metrics.point(
            steady(output_tokens=None, first_tokens=None, step_tokens=(), verify_steps=None)
        )
        assert point.output_rate is None and point.tpot_ms is None and point.output_tokens is None
        assert point.ttft_ms and point.step_ms and "token counts unknown" in point.marks
        assert "itl_ms" not in point.spreads

    @pytest.mark.parametrize(
        ("what", "how", "length"),
        [
            ({"accept_histogram": (1, 1, 2)}, "histogram", (4 + 1 + 4) / 4),
            ({"accepted_drafts": 6}, "accepted drafts / verify steps", 10 / 4),
            ({"accepted_drafts": None}, "tokens / verify steps", 9 / 4),
            ({"accepted_drafts": None, "verify_steps": None}, "tokens / chunk", 2.0),
        ],
    )
    def test_accept_length_by_the_best_that_is_known(
        self, what: dict[str, Any], how: str, length: float
    ) -> None:
        point = metrics.point(steady(**what))
        assert point.accept_how == how and point.accept_length
        assert point.accept_length.value == pytest.approx(length)

    def test_accept_length_weighs_by_verify_steps(self) -> None:
        one, other = record(verify_steps=1, accepted_drafts=9), record(verify_steps=9, accepted_drafts=0)
        _, length = metrics.accept_length([one, other])
        assert length and length.value == pytest.approx((1 + 9 + 9) / 10)

    def test_cache_hits_that_no_answer_tells_are_unknown(self) -> None:
        assert metrics.point(steady()).cache_told
        assert not metrics.point(steady(cached_tokens=None)).cache_told

    def test_rates_by_draft_position(self) -> None:
        assert metrics.accept_rates([record(accept_histogram=(2, 1, 0, 1))]) == (0.5, 0.25, 0.25)
        assert metrics.accept_rates([record()]) == ()


class TestSteadyWindow:
    def test_it_lies_between_the_first_waves_end_and_the_first_empty_slot(self) -> None:
        run = steady()
        assert metrics.steady_window(run) == pytest.approx((0.45, 22 * 0.3))
        point = metrics.point(run)
        # two slots of 9 tokens in 0.3 s
        assert point.output_rate and point.output_rate.value == pytest.approx(60, rel=0.02)
        assert point.total_rate == pytest.approx(2 * 109 / 0.3, rel=0.03)
        assert point.marks == () and point.trusted

    def test_first_wave_and_tail_are_not_measured(self) -> None:
        run = steady()
        slow = [replace(r, first=r.sent + 9) if r.warm_up else r for r in run.records]
        drained = record(7.0, index=99, first=7.0001, ended=7.3)
        point = metrics.point(replace(run, records=[*slow, drained]))
        assert point.ttft_ms and point.ttft_ms.high == pytest.approx(100) and point.ok == 41

    def test_without_it_the_rate_is_an_estimate_and_marked(self) -> None:
        run = steady(waves=2)
        point = metrics.point(replace(run, unfilled=None))
        assert point.output_rate and point.output_rate.value == pytest.approx(60)
        assert "no steady window" in point.marks and point.preview

    def test_tokens_count_when_they_arrive(self) -> None:
        assert [at for at, _ in metrics.tokens_by_arrival(record())] == pytest.approx(
            [0.1, 0.15, 0.2, 0.25, 0.3]
        )
        assert [n for _, n in metrics.tokens_by_arrival(record())] == [1, 2, 2, 2, 2]
        even = metrics.tokens_by_arrival(record(first_tokens=None, step_tokens=()))
        assert [n for _, n in even] == pytest.approx([1.8] * 5)


class TestMarks:
    def marks(self, **what: Any) -> str:
        run = what.pop("run", None) or steady()
        return "; ".join(metrics.point(replace(run, **what)).marks)

    def test_a_clean_point_has_none(self) -> None:
        assert self.marks() == ""

    def test_few_requests_are_a_preview(self) -> None:
        assert not metrics.point(steady(waves=18)).preview and metrics.point(steady(waves=15)).preview
        assert metrics.least_samples(1) == 32 and metrics.least_samples(32) == 160

    def test_failures_above_two_percent(self) -> None:
        failed = record(1.0, outcome=Outcome.TRUNCATED, message="closed")
        run = steady(waves=60)
        assert self.marks(run=replace(run, records=[*run.records, failed])) == ""
        point = metrics.point(replace(run, records=[*run.records, failed, failed, failed]))
        assert point.marks == ("failures 2 %",) and point.failed == 3 and point.messages == ("closed",)

    def test_what_ddtui_itself_cut_short_is_no_failure(self) -> None:
        run = steady()
        cut = record(1.0, outcome=Outcome.ABORTED, message="cancelled")
        assert metrics.point(replace(run, records=[*run.records, cut])).failed == 0
        theirs = replace(cut, message="Aborted")
        assert metrics.point(replace(run, records=[*run.records, theirs])).failed == 1

    def test_cache_hits_but_not_a_templates_head(self) -> None:
        assert self.marks(run=steady(cached_tokens=12)) == ""
        assert "cache hits in 41 of 41" in self.marks(run=steady(cached_tokens=60))

    def test_a_slow_client(self) -> None:
        assert self.marks(lag_p99_ms=4.9) == ""
        assert "client-limited: 5.1 ms late in steps of 50.0 ms" in self.marks(lag_p99_ms=5.1)

    def test_other_traffic(self) -> None:
        assert "other traffic: 9 requests" in self.marks(others="9 requests")

    def test_answers_that_are_too_short_and_prompts_of_another_length(self) -> None:
        assert "41 of 41 answers shorter than asked" in self.marks(output=10)
        assert "prompts of 110 tokens in place of 100" in self.marks(run=steady(prompt_tokens=110))

    def test_drift(self) -> None:
        run = steady(waves=40)
        slower = [replace(r, step_gaps=(0.05 * (1 + r.sent / 40),) * 4) for r in run.records]
        assert "drift +28 % in step time" in self.marks(run=replace(run, records=slower))

    def test_two_modes(self) -> None:
        run = steady(waves=40)
        both = [replace(r, step_gaps=(0.05 if r.index % 3 else 0.07,) * 4) for r in run.records]
        assert "two modes, step times a factor 1.40 apart" in self.marks(run=replace(run, records=both))

    def test_a_server_that_counts_otherwise(self) -> None:
        rate = metrics.point(steady()).output_rate_whole or 0
        assert self.marks(server=ServerSide(output_rate=rate * 1.02, accept_length=2.0)) == ""
        assert "server's output rate" in self.marks(server=ServerSide(output_rate=rate * 1.05))
        counted = ServerSide(accept_length=2.2, accept_how="verify counter")
        assert "server's accept length 2.2, ours 2" in self.marks(server=counted)
        lagging = ServerSide(accept_length=2.2, accept_how="average since flush")
        assert self.marks(server=lagging) == ""

    def test_the_servers_log_is_held_against_ours(self) -> None:
        made = metrics.point(steady())
        assert made.output_rate and made.output_tokens
        # a prefill's token is in no decode line
        ours = made.output_rate.value * (made.output_tokens - 1) / made.output_tokens
        assert self.marks(server=ServerSide(log_rate=ours * 1.02, log_accept=2.02)) == ""
        assert "decode rate in the server's log" in self.marks(server=ServerSide(log_rate=ours * 0.96))
        assert self.marks(server=ServerSide(log_rate=ours * 0.96, log_rate_error=ours * 0.02)) == ""
        # the log counts what a request's last steps had too many, so it may be above us by so much
        above = ServerSide(log_rate=ours * (1 + 1.9 * 2 / made.output_tokens), log_accept=2.0)
        assert self.marks(server=above) == ""
        assert "decode rate" in self.marks(server=replace(above, log_rate=ours * 2.0))
        assert "accept length in the server's log 2.2" in self.marks(server=ServerSide(log_accept=2.2))

    def test_nothing_measured(self) -> None:
        point = metrics.point(Run(CELL, 0.0, 1.0, [], None, None, 9, final=True))
        assert point.marks == ("nothing measured",) and point.output_rate is None and not point.trusted
