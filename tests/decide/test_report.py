"""Reports: provenance and labels in every form, hostile text inert, other tools' shapes; advice with its
evidence.
"""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as xml
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from decide.sides import point

from ddtui.bench import kept
from ddtui.bench.advice import Observation, advise, block_of
from ddtui.bench.model import Burst, BurstSpec, BurstState, Cell, Estimate, GpuUse, Point
from ddtui.bench.ranking import front
from ddtui.report import figures, files, page, svg
from ddtui.report.collect import Report, collect, overview
from ddtui.store.history import History
from ddtui.store.model import Setting

HOSTILE = "<script>alert(1)</script> | `x` =cmd"


def estimate(value: float, n: int = 40) -> Estimate:
    return Estimate(value, 0.98 * value, 1.02 * value, n)


def measured(cell: Cell, rate: float, accept: float, step: float, **what: Any) -> Point:
    return point(
        cell,
        rate,
        per_user_rate=estimate(rate / cell.concurrency),
        accept_length=estimate(accept),
        step_ms=estimate(step),
        **what,
    )


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    opened = History.open(tmp_path / "h.sqlite")
    for number, (budget, accept, step_ms) in enumerate(
        [("4", 3.6, 30.0), ("8", 5.0, 36.0), ("16", 5.1, 46.0)]
    ):
        setting = Setting(
            {"budget": budget, "topk": "4"},
            {"tp_size": 8, "api_key": "sk-very-secret-0123456789", "served_model_name": HOSTILE},
            engine="0.5.11 (/opt/sglang)",
            target="/models/kimi",
        )
        step = opened.step("gpu1", "x.service", setting, simulated=True, at=number)
        points = tuple(measured(Cell(c, 1024), 1e3 * accept / step_ms * c, accept, step_ms) for c in (1, 8))
        burst = Burst(
            f"b{number}", step.number, BurstSpec(tuple(p.cell for p in points)), BurstState.DONE,
            points=points, simulated=True, started_at=float(number),
        )  # fmt: skip
        opened.save_burst("gpu1", "x.service", kept.to_plain(burst))
    yield opened
    opened.close()


@pytest.fixture
def report(history: History) -> Report:
    return collect(history, sorted(history.steps(), key=lambda s: s.number), title=f"Kimi {HOSTILE}")


def test_every_form_says_that_it_is_simulated(report: Report, tmp_path: Path) -> None:
    assert "SIMULATED" in page.markdown(report)
    assert "SIMULATED" in page.html(report)
    assert all(row["simulated"] == "True" for row in csv.DictReader(io.StringIO(files.as_csv(report))))
    assert json.loads(files.as_json(report))["simulated"] is True
    for line in files.as_bench_serving(report).splitlines():
        assert json.loads(line)["simulated"] and "SIMULATED" in json.loads(line)["tag"]
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    files.write_parquet(report, tmp_path / "r.parquet")
    table = parquet.read_table(tmp_path / "r.parquet")
    assert table.num_rows == 6 and all(table["simulated"].to_pylist())
    assert table.schema.metadata[b"ddtui.simulated"] == b"true"


def test_no_form_holds_a_secret(report: Report) -> None:
    for text in (page.markdown(report), page.html(report), files.as_csv(report), files.as_json(report)):
        assert "sk-very-secret" not in text
    assert "sk-very-secret" not in files.as_bench_serving(report)


def test_text_from_elsewhere_is_inert_in_html_markdown_and_csv(report: Report) -> None:
    whole = page.html(report)
    assert "<script" not in whole and "&lt;script&gt;" in whole
    assert "<script" not in page.markdown(report).replace("\\<", "").partition("## Provenance")[0]
    first = replace(report.steps[0], host="=HYPERLINK(1)")
    entry = replace(report.entries[0], step=first)
    row = next(csv.DictReader(io.StringIO(files.as_csv(replace(report, entries=(entry,))))))
    assert row["host"] == "'=HYPERLINK(1)"


def test_the_page_asks_nothing_of_the_network(report: Report) -> None:
    whole = page.html(report)
    assert "http://" not in whole.replace("http-equiv", "") and "https://" not in whole
    assert "<link" not in whole and "src=" not in whole and "@import" not in whole
    assert "default-src 'none'" in whole


def test_provenance_and_intervals_are_there(report: Report) -> None:
    text = page.markdown(report)
    for word in ("0.5.11 (/opt/sglang)", "/models/kimi", "tp_size=8", "ddtui bench PROFILE --concurrency 8"):
        assert word in text
    row = next(csv.DictReader(io.StringIO(files.as_csv(report))))
    assert float(row["accept_length_low"]) < float(row["accept_length"]) < float(row["accept_length_high"])
    assert row["accept_length_n"] == "40" and row["knob_budget"] == "4"


def test_the_charts_are_well_formed_and_hold_every_point(report: Report) -> None:
    drawn = figures.all_of(report)
    assert [figure.title for figure in drawn] == [
        "Throughput against speed per user, context 1k",
        "Accept length by budget",
        "Step time by budget, context 1k",
    ]
    for figure in drawn:
        tree = xml.fromstring(svg.draw(figure))
        titles = tree.findall(".//title")
        assert len(titles) == sum(len(line.dots) for line in figure.lines)
    assert "on the front" in svg.draw(drawn[0])


def crowded(lines: int) -> figures.Figure:
    """Steps that are nearly the same: the dots of each concurrency lie on each other, the last at the edge."""
    made = []
    for number in range(lines):
        lift = 1 + number / 200
        dots = tuple(
            figures.Dot(120 * lift / c**0.4, 120 * lift * c**0.6, label=f"C={c}", marked=number == lines - 1)
            for c in (32, 16, 8, 4, 2, 1)
        )
        made.append(figures.Line(f"step {number} ({number} 4)", dots, f"budget {number}"))
    return figures.Figure("t", "x", "y", tuple(made))


@pytest.mark.parametrize("lines", [1, 3, 12])
def test_labels_of_a_crowded_chart_lie_on_nothing_and_inside_it_and_each_is_there_once(lines: int) -> None:
    tree = xml.fromstring(svg.draw(crowded(lines)))
    labels = [
        (t.text or "", float(t.get("x", "")), float(t.get("y", ""))) for t in tree.findall("text[@class]")
    ]
    labels = [one for one in labels if one[0].startswith("C=")]
    assert sorted(words for words, _, _ in labels) == sorted(f"C={c}" for c in (1, 2, 4, 8, 16, 32))
    boxes = [(x, y - 10, x + 6.5 * len(words), y + 2) for words, x, y in labels]
    dots = [(float(c.get("cx", "")), float(c.get("cy", ""))) for c in tree.iter("circle")]
    for left, top, right, bottom in boxes:
        assert left >= 0 and right <= svg.WIDTH and top >= 0
        assert not [
            1 for x, y in dots if left < x < right and top < y < bottom and y < svg.HEIGHT - svg.BOTTOM
        ]
    assert not [
        (one, other)
        for at, one in enumerate(boxes)
        for other in boxes[:at]
        if one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
    ]


def test_of_many_steps_those_of_the_front_are_told_apart_and_the_others_stand_behind() -> None:
    tree = xml.fromstring(svg.draw(crowded(12)))
    styles = [group.get("class") for group in tree.findall("g") if group.find("polyline") is not None]
    assert styles == ["quiet"] * 11 + ["s0"]
    words = [text.text for text in tree.iter("text")]
    assert "step 11: budget 11" in words and "11 more, behind" in words


def test_budgets_are_the_ticks_each_doubling_as_wide_as_the_next(report: Report) -> None:
    tree = xml.fromstring(svg.draw(figures.all_of(report)[-1]))
    places = {text.text: float(text.get("x", "")) for text in tree.iter("text") if text.get("x")}
    assert places["8"] - places["4"] == pytest.approx(places["16"] - places["8"], abs=0.2)


def test_what_is_the_same_in_every_row_is_said_once_above_the_table(report: Report) -> None:
    whole = page.html(report)
    assert "In all of them: topk 4, context 1k, workload code." in whole
    assert "<th>topk</th>" not in whole and "<th>budget</th>" in whole


def test_an_empty_report_of_one_point_still_draws() -> None:
    one = figures.Figure("t", "x", "y", (figures.Line("a", (figures.Dot(1.0, 2.0),)),))
    xml.fromstring(svg.draw(one))


def test_the_front_is_what_nothing_else_beats_in_both() -> None:
    def at(speed: float, rate: float) -> Point:
        return point(Cell(1, 1024), rate, per_user_rate=estimate(speed))

    found = front(
        [
            ("a", at(150, 150)),
            ("b", at(60, 900)),
            ("c", at(50, 800)),
            ("d", at(100, 400)),
            ("e", at(100, 300)),
        ]
    )
    assert [name for name, _ in found] == ["b", "d", "a"]


def test_bench_serving_lines_have_its_keys(report: Report) -> None:
    line = json.loads(files.as_bench_serving(report).splitlines()[0])
    for key in (
        "backend", "max_concurrency", "duration", "completed", "output_throughput", "mean_ttft_ms", "median_tpot_ms",
        "p99_itl_ms", "accept_length", "request_throughput", "server_info",
    ):  # fmt: skip
        assert key in line
    assert line["accept_length"] == pytest.approx(3.6)


def test_without_pyarrow_parquet_says_what_to_do(
    report: Report, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(files.MissingPackage, match=r"pip install 'ddtui\[parquet\]'"):
        files.write_parquet(report, tmp_path / "r.parquet")


# advice


def seen(
    budget: str, accept: float, step: float, concurrency: int = 1, context: int = 1024, **knobs: Any
) -> Observation:
    cell = Cell(concurrency, context)
    made = measured(cell, 1e3 * accept / step * concurrency, accept, step)
    return Observation({"budget": budget, "topk": "4", **knobs}, made, f"step {budget}")


def test_saturation_is_named_with_the_numbers_that_show_it() -> None:
    (advice, *_) = advise([seen("4", 3.6, 30), seen("8", 5.0, 36), seen("16", 5.05, 37), seen("32", 5.1, 38)])
    assert advice.text.startswith("accept length saturates at budget 8 at topk 4, C=1, context 1k")
    assert advice.value == "8" and len(advice.evidence) == 4
    assert "5 [4.9, 5.1] n=40" in advice.evidence[1]


def test_growth_at_the_edge_says_to_go_on() -> None:
    (advice,) = advise([seen("4", 3.6, 30), seen("8", 5.0, 36)])
    assert advice.text.endswith("try 16") and advice.value == "16"


@pytest.mark.parametrize(
    ("last", "accept", "topk", "tried"),
    [
        ("8", 5.0, "4", "16"),  # of 8 at most: there is more to have
        ("2", 2.5, "4", "7"),  # below the depth of the block
        ("4", 3.0, "1", "7"),  # a chain has no more than 7 nodes
        ("7", 5.0, "1", None),
        ("16", 7.8, "4", None),  # nearly all of the block
    ],
)
def test_the_block_size_bounds_what_is_tried_next(
    last: str, accept: float, topk: str, tried: str | None
) -> None:
    before = replace(seen("1", 0.8 * accept, 30, topk=topk), block=8)
    found = advise([before, replace(seen(last, accept, 36, topk=topk), block=8)])
    assert [one.value for one in found if "still grows" in one.text] == ([tried] if tried else [])
    assert all(one.evidence[-1].startswith("block size 8: at most 8 tokens a step") for one in found if tried)


def test_the_block_size_is_read_from_the_steps_flags(history: History) -> None:
    assert block_of({"speculative_algorithm": "DDTREE", "speculative_num_draft_tokens": 8}) == 8
    assert block_of({"speculative_algorithm": "DFLASH", "speculative_dflash_block_size": 16}) == 16
    assert block_of({"speculative_algorithm": "EAGLE3", "speculative_num_draft_tokens": 8}) is None
    assert block_of({}) is None
    flags = {"speculative_algorithm": "DDTREE", "speculative_num_draft_tokens": 8}
    for budget, accept in (("4", 3.6), ("8", 5.0)):
        step = history.step("gpu2", "x.service", Setting({"budget": budget, "topk": "4"}, flags))
        made = measured(Cell(1, 1024), 1e3 * accept / 36, accept, 36.0)
        burst = Burst(f"g{budget}", step.number, BurstSpec((made.cell,)), BurstState.DONE, points=(made,))
        history.save_burst("gpu2", "x.service", kept.to_plain(burst))
    whole = collect(history, history.steps("gpu2")).advice
    assert whole and any("block size 8" in line for one in whole for line in one.evidence)
    assert overview(history, "gpu2", "x.service").advice == whole


def test_a_step_that_costs_more_than_it_commits_is_told_at_its_load() -> None:
    found = advise([seen("8", 5.0, 60, 8), seen("16", 5.4, 90, 8)])
    assert any(
        "beyond budget 8 a step costs more than it commits" in one.text and "C=8" in one.text for one in found
    )


def test_acceptance_that_falls_with_context_points_at_the_window() -> None:
    found = advise([seen("8", 5.0, 36, window=None), seen("8", 2.4, 37, context=32768, window=None)])
    assert [one.knob for one in found] == ["window"]
    assert "falls by 52 %" in found[0].text


def test_doubtful_points_advise_nothing() -> None:
    doubtful = seen("8", 5.0, 36)
    doubtful = replace(doubtful, point=replace(doubtful.point, marks=("drift",)))
    assert advise([seen("4", 3.6, 30), doubtful]) == ()


def test_a_step_with_wrong_output_is_said_and_never_on_the_front(history: History) -> None:
    cell = Cell(8, 1024)
    step = {one.number: one for one in history.steps()}[2]
    history.save_quality("gpu1", "x.service", 2, {"of": "check", "verdict": "garbage", "text": "it loops"})
    history.save_quality("gpu1", "x.service", 2, {"of": "burst", "verdict": "unknown", "text": "no garbage"})
    made = collect(history, sorted(history.steps(), key=lambda s: s.number))
    assert made.wrong == {step.id: "it loops"} == overview(history, "gpu1", "x.service").wrong
    assert "step 2: its output is WRONG: it loops" in made.warnings
    assert "- output **WRONG**: it loops" in page.markdown(made)
    assert '<li class="wrong">output WRONG: it loops' in page.html(made)
    said = {one["step"]: one["output"] for one in json.loads(files.as_json(made))["steps"]}
    assert [one["wrong"] for one in said[2]] == [False, True] and said[1] == []
    fastest = max(made.entries, key=lambda e: e.point.output_rate.value if e.point.output_rate else 0)
    assert fastest.step.number == 2 and fastest.point.cell == cell
    (drawn,) = [line for line in figures.pareto(made, 1024).lines if line.name.startswith("step 2")]
    assert not any(dot.marked for dot in drawn.dots)
    assert all("step 2" not in one for advice in made.advice for one in advice.evidence)


def test_what_the_gpus_did_meanwhile_is_in_the_document(report: Report) -> None:
    gpus = tuple(
        GpuUse(n, 3, 120_000.0, 143_360.0, 86.0, 512.0, 700.0, 1650.0, 1980.0, ("power cap",))
        for n in range(8)
    )
    first = replace(report.entries[0], point=replace(report.entries[0].point, gpus=gpus))
    made = replace(report, entries=(first, *report.entries[1:]))
    words = "8 GPUs  busy 86 %  512 of 700 W  1650 of 1980 MHz  117 of 140 GiB  held by power cap on 8"
    assert words in page.html(made) and words in page.markdown(made)
    assert "GPUs meanwhile" not in page.html(report)
