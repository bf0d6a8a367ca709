"""The output check of a setting: what it is compared with, what is kept, and what a near-tie is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from demo.standin_process import DDTREE, KIMI, KIMI_DRAFTER, StandIn, stand_in

from ddtui.bench import check_output
from ddtui.bench.quality import Output, Verdict, judge
from ddtui.bench.target import BenchError, Target
from ddtui.bench.tasks import coding_tasks
from ddtui.engine import answers
from ddtui.host.base import Endpoint
from ddtui.store.history import History
from ddtui.store.model import Setting, Step
from ddtui.tuning import output_check

TREE = (*DDTREE, "--tp-size", "8")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    with stand_in(tmp_path_factory.mktemp("standin"), *TREE, model=KIMI, drafter=KIMI_DRAFTER) as running:
        yield running


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[History]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    few = coding_tasks()[:2]
    monkeypatch.setattr(check_output, "coding_tasks", lambda: few)
    opened = History.open(tmp_path / "history.sqlite")
    yield opened
    opened.close()


def step(history: History, budget: str, *, algorithm: str | None = "DDTREE", target: str = "/m/kimi") -> Step:
    flags = {"speculative_algorithm": algorithm, "budget": budget}
    return history.step("h", "u", Setting(knobs={"budget": budget}, flags=flags, target=target))


def keep(
    history: History,
    tmp_path: Path,
    of: Step,
    *,
    verdict: str = "equal",
    text: str = "out",
    outputs: bool = True,
) -> None:
    path = tmp_path / f"{of.number}.jsonl"
    if outputs:
        path.write_text(json.dumps({"prompt": "a", "text": text, "ids": [1, 2]}) + "\n")
    judged = replace(judge([Output("a", text, (1, 2))]), verdict=Verdict(verdict))
    history.save_quality("h", "u", of.number, output_check.plain(judged, of, path))


async def test_the_second_setting_is_compared_with_the_first_and_both_are_kept(
    server: StandIn, history: History
) -> None:
    target = Target(Endpoint(str(server.uds), "127.0.0.1", 30000), simulated=True)
    first, second = step(history, "8"), step(history, "16")
    one = await output_check.check(target, history, "h", "u", first, run_tests=False)
    assert one.verdict is Verdict.UNKNOWN and one.reference is None and one.prompts == 2
    two = await output_check.check(target, history, "h", "u", second, run_tests=False)
    assert two.reference == first.number
    assert two.verdict is Verdict.EQUAL, two
    kept = history.quality("h", "u", step=second.number)
    assert kept[0]["verdict"] == "equal" and kept[0]["simulated"]
    with pytest.raises(BenchError, match="step 99 has no outputs to compare with"):
        await output_check.check(target, history, "h", "u", second, reference=99, run_tests=False)


async def test_a_server_known_by_its_url_alone_is_compared_with_its_first_check(
    server: StandIn, history: History
) -> None:
    target = Target(Endpoint(str(server.uds), "127.0.0.1", 30000), simulated=True)
    one = await output_check.check(target, history, "127.0.0.1:30000", "", None, run_tests=False)
    two = await output_check.check(target, history, "127.0.0.1:30000", "", None, run_tests=False)
    assert (one.verdict, two.verdict, two.reference) == (Verdict.UNKNOWN, Verdict.EQUAL, None)
    elsewhere = output_check.find(history, "127.0.0.1:30000", "", None, model="/m/other")
    assert elsewhere is None, "another model is served there now"


def test_a_setting_without_speculative_decoding_is_the_reference(history: History, tmp_path: Path) -> None:
    tree, plain, mine = step(history, "8"), step(history, "0", algorithm=None), step(history, "16")
    keep(history, tmp_path, tree)
    keep(history, tmp_path, plain)
    found = output_check.find(history, "h", "u", mine)
    assert found and found.step == plain.number


def test_else_the_oldest_that_was_right_and_never_the_setting_itself(
    history: History, tmp_path: Path
) -> None:
    wrong, old, new, mine = (step(history, budget) for budget in ("1", "2", "4", "8"))
    keep(history, tmp_path, wrong, verdict="garbage")
    for one in (old, new, mine):
        keep(history, tmp_path, one)
    found = output_check.find(history, "h", "u", mine)
    assert found and found.step == old.number
    named = output_check.find(history, "h", "u", mine, new.number)
    assert named and named.step == new.number


def test_the_reference_comes_with_which_tests_it_passed(history: History, tmp_path: Path) -> None:
    tested, mine = step(history, "1"), step(history, "8")
    keep(history, tmp_path, tested)
    (untold,) = [output_check.find(history, "h", "u", mine)]
    assert untold and untold.tests is None
    path = Path(str(history.quality("h", "u")[0]["outputs"]))
    judged = judge([Output("a", "x", (1, 2))], tests={"a": False})
    history.save_quality("h", "u", tested.number, output_check.plain(judged, tested, path))
    told = output_check.find(history, "h", "u", mine, tested.number)
    assert told and told.tests == {"a": False}


def test_outputs_of_another_model_or_that_are_gone_are_no_reference(history: History, tmp_path: Path) -> None:
    other, gone, mine = step(history, "1", target="/m/other"), step(history, "2"), step(history, "4")
    keep(history, tmp_path, other)
    keep(history, tmp_path, gone, outputs=False)
    assert output_check.find(history, "h", "u", mine) is None
    assert output_check.has_reference(history, "h", "u", "/m/other")
    assert not output_check.has_reference(history, "h", "u", "/m/none")


class Margins:
    """A server that tells the margin of the next token."""

    told: dict[int, float] | None = None
    asked: list[Sequence[int]]

    def __init__(self, *_: Any) -> None:
        type(self).asked = []

    async def tokenize(self, text: str) -> Any:
        return answers.Tokens((7, 7, 7), None)

    async def behind(self, ids: Sequence[int]) -> dict[int, float] | None:
        self.asked.append(tuple(ids))
        return self.told

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        ({3: 0.0, 9: 0.1}, Verdict.NEAR_TIES),
        ({3: 0.1, 9: 0.0, 5: 2.0}, Verdict.NEAR_TIES),
        ({3: 0.0, 9: 4.0}, Verdict.DIFFERENT),
        ({3: 0.0, 5: 0.1}, Verdict.DIFFERENT),
        (None, Verdict.NEAR_TIES),
    ],
    ids=["a near-tie", "the other way", "the reference was sure", "neither of the two", "not told"],
)
async def test_the_margin_at_the_first_difference_tells_a_near_tie_from_corruption(
    monkeypatch: pytest.MonkeyPatch, told: dict[int, float] | None, verdict: Verdict
) -> None:
    monkeypatch.setattr(check_output, "Api", Margins)
    monkeypatch.setattr(Margins, "told", told)
    tasks = coding_tasks()[:8]
    reference = [Output(task.name, "x" * 10, (1, 2, 3, 4)) for task in tasks]
    tested = [replace(one, ids=(1, 2, 9, 4)) if at == 0 else one for at, one in enumerate(reference)]
    target = Target(Endpoint(None, "127.0.0.1", 1))
    known = await check_output._with_margins(target, tasks, reference, tested)
    assert Margins.asked == [(7, 7, 7, 1, 2)]  # the prompt, and what both agree on
    assert judge(tested, known).verdict is verdict


@pytest.mark.parametrize(
    ("body", "behind"),
    [
        (b'{"meta_info": {"output_top_logprobs": [[[-0.1, 5, null], [-0.7, 9, null]]]}}', {5: 0.0, 9: 0.6}),
        (b'{"meta_info": {"output_top_logprobs": [[[-2.5, 5, null]]]}}', None),
        (b'{"meta_info": {"output_top_logprobs": []}}', None),
        (b'{"meta_info": {}}', None),
        (b"<html>", None),
    ],
)
def test_how_far_tokens_are_behind_the_best_is_read(body: bytes, behind: dict[int, float] | None) -> None:
    found = answers.behind(body)
    assert found == (pytest.approx(behind) if behind is not None else None)
