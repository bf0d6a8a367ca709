"""Prompts: exact lengths, natural text, a beginning of their own; and the tasks that ship."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Sequence

import pytest

from ddtui.bench import material, workload
from ddtui.bench.growing import Prompts
from ddtui.bench.model import Cell
from ddtui.bench.target import BenchError
from ddtui.bench.tasks import coding_tasks

BEGIN = 1  # of the tokenizer below: it puts this before every text


class Words:
    """A tokenizer: words, spaces and signs; remembers what it gave."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.asked: list[str] = []

    async def __call__(self, text: str) -> Sequence[int]:
        self.asked.append(text)
        ids = [BEGIN]
        for word in re.findall(r"\w+|\s+|.", text, re.S):
            ids.append(zlib.crc32(word.encode()) % 100_000 + 10)
            self.texts[ids[-1]] = word
        return ids

    def text(self, prompts: Prompts, at: int) -> str:
        ids = json.loads("[" + ",".join(prompts.pieces[p] for p in prompts.prompts[at].pieces) + "]")
        assert ids[0] == BEGIN and BEGIN not in ids[1:]
        return "".join(self.texts[i] for i in ids[1:])

    def length(self, prompts: Prompts, at: int) -> int:
        return sum(len(json.loads(f"[{prompts.pieces[p]}]")) for p in prompts.prompts[at].pieces)


@pytest.mark.parametrize("name", ["code", "completion", "chat", "document"])
@pytest.mark.parametrize("context", [512, 8192, 131072])
async def test_every_prompt_has_the_exact_length(name: str, context: int) -> None:
    words = Words()
    made = await workload.build(Cell(4, context, name), 6, api="generate", tokenize=words, salt="s")
    assert {words.length(made, at) for at in range(6)} == {context} and not made.note
    assert made.largest_id and made.largest_id <= 100_010


async def test_a_long_prompt_is_natural_text_with_the_task_at_its_end() -> None:
    words = Words()
    made = await workload.build(Cell(4, 8192, "code"), 3, api="generate", tokenize=words, salt="s")
    for at in range(3):
        text = words.text(made, at)
        assert coding_tasks()[at].prompt in text[-3000:] and text.rstrip().endswith("```python")
        packed = len(zlib.compress(text.encode())) / len(text)
        assert 0.15 < packed < 0.45, "neither random nor repeated"
    assert words.text(made, 0)[2000:2500] != words.text(made, 1)[2000:2500]


async def test_prompts_begin_apart_within_a_run_and_between_runs() -> None:
    words = Words()
    begins = set()
    for salt in ("one", "two"):
        made = await workload.build(Cell(1, 512), 40, api="generate", tokenize=words, salt=salt)
        begins |= {words.text(made, at)[:12] for at in range(40)}
    assert len(begins) == 80


async def test_but_for_the_salt_they_are_the_same_every_time_and_for_any_count() -> None:
    words = Words()
    one = await workload.build(Cell(1, 2048), 4, api="generate", tokenize=words, salt="a")
    two = await workload.build(Cell(8, 2048), 9, api="generate", tokenize=words, salt="b")
    for at in range(4):
        same = [words.text(made, at).partition("# The files")[2] for made in (one, two)]
        assert same[0] == same[1] != ""
    assert one.identity == two.identity


async def test_other_prompts_have_another_identity() -> None:
    words = Words()
    made = [
        await workload.build(cell, 1, api="generate", tokenize=words, salt="a", seed=seed)
        for cell, seed in (
            (Cell(1, 512), 0),
            (Cell(1, 1024), 0),
            (Cell(1, 512, "chat"), 0),
            (Cell(1, 512), 1),
        )
    ]
    assert len({prompts.identity for prompts in made}) == 4


async def test_long_contexts_share_their_pieces() -> None:
    made = await workload.build(Cell(32, 131072, "code"), 160, api="generate", tokenize=Words(), salt="s")
    held = sum(map(len, made.pieces))
    sent = sum(len(made.pieces[piece]) for prompt in made.prompts for piece in prompt.pieces)
    assert held < sent / 40


async def test_text_prompts_have_about_the_length() -> None:
    words = Words()
    made = await workload.build(Cell(1, 4096, "document"), 4, api="chat", tokenize=words, salt="s")
    assert not made.ids and not made.note
    for prompt in made.prompts:
        text = json.loads('"' + "".join(made.pieces[piece] for piece in prompt.pieces) + '"')
        assert len(await words(text)) == pytest.approx(4096, rel=0.05)


async def test_a_task_that_is_longer_than_the_context_is_cut_at_its_beginning_and_said() -> None:
    words = Words()
    made = await workload.build(Cell(1, 64, "code"), 4, api="generate", tokenize=words, salt="s")
    assert {words.length(made, at) for at in range(4)} == {64}
    assert "longer than 64 tokens by themselves" in made.note


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b'{"a": 1}\n', "line 1"),
        (b'{"prompt": "x"}\nnope\n', "line 2"),
        (b"\xff\n", "UTF-8"),
    ],
)
async def test_a_users_file_that_cannot_be_used_is_explained(tmp_path, content: bytes, says: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "mine.jsonl"
    path.write_bytes(content)
    with pytest.raises(BenchError, match=says):
        await workload.build(Cell(1, 64, str(path)), 1, api="generate", tokenize=Words(), salt="s")


async def test_an_unknown_workload_or_a_missing_file_is_explained() -> None:
    for name, says in (("poems", "there is no workload 'poems'"), ("/nowhere/x.jsonl", "cannot be read")):
        with pytest.raises(BenchError, match=says):
            await workload.build(Cell(1, 64, name), 1, api="generate", tokenize=Words(), salt="s")


def test_there_is_material_enough_for_the_longest_contexts() -> None:
    assert sum(len(document.text) for document in material.code()) > 2_000_000
    assert sum(len(document.text) for document in material.prose()) > 400_000


class TestTasks:
    def test_there_are_forty_or_more_of_different_names(self) -> None:
        names = [task.name for task in coding_tasks()]
        assert len(names) >= 40 and len(set(names)) == len(names)

    @pytest.mark.parametrize("task", coding_tasks(), ids=lambda task: task.name)
    def test_its_solution_passes_its_tests_and_nothing_does_not(self, task) -> None:  # type: ignore[no-untyped-def]
        exec(f"{task.solution}\n{task.tests}", {"__name__": "solution"})
        with pytest.raises(Exception):  # noqa: B017
            exec(f"def unrelated(): pass\n{task.tests}", {"__name__": "nothing"})
        assert task.prompt.count("```") == 2 and len(task.text) > 60
