"""Which steps gave wrong output, of all checks of all kinds."""

from __future__ import annotations

from pathlib import Path

from ddtui.bench.quality import Verdict
from ddtui.store import listing, outputs
from ddtui.store.history import History
from ddtui.store.model import Setting

GOOD = {"of": "check", "verdict": "equal", "text": "all 46 outputs equal the reference's"}
BAD = {"of": "check", "verdict": "garbage", "text": "12 of 46 outputs are garbage"}
BURST = {"of": "burst", "verdict": "unknown", "text": "no garbage"}


def test_the_newest_check_of_each_kind_counts() -> None:
    assert outputs.why_wrong([]) == ""
    assert outputs.why_wrong([GOOD, BAD]) == ""
    assert outputs.why_wrong([BAD, GOOD]) == BAD["text"]
    assert outputs.why_wrong([BURST, BAD, GOOD]) == BAD["text"], "a burst without garbage clears nothing"
    assert outputs.why_wrong([{**BURST, "verdict": "garbage"}, GOOD]) == BURST["text"]


def test_the_wrong_verdicts_are_those_of_the_check() -> None:
    assert set(outputs.WRONG) == {Verdict.GARBAGE, Verdict.DIFFERENT}


def test_wrong_steps_are_found_and_marked_in_the_list(tmp_path: Path) -> None:
    history = History.open(tmp_path / "h.sqlite")
    for number in range(3):
        history.step("gpu1", "a.service", Setting({"budget": str(number)}, {}), at=number)
    history.step("gpu2", "a.service", Setting({"budget": "8"}, {}), at=9)
    history.save_quality("gpu1", "a.service", 1, BAD, at=1.0)
    history.save_quality("gpu1", "a.service", 1, BURST, at=2.0)
    history.save_quality("gpu1", "a.service", 2, BAD, at=1.0)
    history.save_quality("gpu1", "a.service", 2, GOOD, at=2.0)
    history.save_quality("gpu1", "a.service", None, BAD, at=3.0)
    numbers = {step.id: step.number for step in history.steps("gpu1", "a.service")}
    assert {numbers[one]: why for one, why in outputs.wrong_steps(history).items()} == {1: BAD["text"]}
    assert outputs.wrong_steps(history, "gpu2", "a.service") == {}
    rows = {row.number: row.wrong for row in listing.steps(history, "gpu1", "a.service")}
    assert rows == {1: BAD["text"], 2: "", 3: ""}
    history.close()
