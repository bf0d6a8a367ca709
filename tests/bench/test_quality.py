"""Right or only fast: first differences, near-ties, garbage, and the model's code run alone."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from bench.little_server import HEAD, LAST, LittleServer, Reply, chunk, event, serving

from ddtui.bench import check_output, quality, sandbox
from ddtui.bench.quality import Output, Verdict
from ddtui.bench.target import BenchError, Target
from ddtui.bench.tasks import coding_tasks
from ddtui.host.base import Endpoint

PROSE = "The quick brown fox jumps over the lazy dog while five wizards box in the parlour. "
SANE = PROSE + "Nobody knows why they do so, and the landlord has long ceased to ask about it."


def outputs(*texts: str, ids: tuple[int, ...] = (), margins: tuple[float, ...] = ()) -> list[Output]:
    return [Output(f"p{at}", text, ids, margins) for at, text in enumerate(texts)]


class TestDivergence:
    def test_by_tokens_where_both_have_them(self) -> None:
        one, other = Output("p", "abc", (1, 2, 3, 4), (9.0, 9.0, 0.1, 9.0)), Output("p", "abd", (1, 2, 9, 4))
        found = quality.divergence(one, other)
        assert found and (found.position, found.in_tokens, found.margin, found.near_tie) == (
            2,
            True,
            0.1,
            True,
        )

    def test_by_characters_else(self) -> None:
        found = quality.divergence(Output("p", "abc"), Output("p", "abd", (1,)))
        assert found and (found.position, found.in_tokens, found.near_tie) == (2, False, False)

    def test_equal_or_cut_short_is_none(self) -> None:
        assert quality.divergence(Output("p", "abc"), Output("p", "abc")) is None
        assert quality.divergence(Output("p", "abc"), Output("p", "ab")) is None


class TestGarbage:
    @pytest.mark.parametrize(
        "text",
        [
            SANE,
            "short",
            "for i in range(10):\n    for j in range(10):\n        print(i, j, i * j, sep='\\t')\n    print()\n",
            "| a | b | c |\n|---|---|---|\n| 1 | 2 | 3 |\n| 4 | 5 | 6 |\n| 7 | 8 | 9 |\n| 10 | 11 | 12 |\n",
            coding_tasks()[4].solution,
        ],
    )
    def test_good_text_is_none(self, text: str) -> None:
        assert quality.garbage(text) is None

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            (SANE + " and then, and then" + ", and then" * 20, "times over"),
            ("x" * 200, "times over"),
            (SANE + "\ufffd" * 9, "broken UTF-8"),
            ("abab" + "ab" * 100, "times over"),
            (SANE[:80] + "".join(map(chr, range(1, 9))) * 2, "cannot be printed"),
            (" ".join(["one two three four"] * 12 + [SANE[:20]] + ["one two three four"] * 60), "times over"),
        ],
    )
    def test_bad_text_is_told_with_the_reason(self, text: str, why: str) -> None:
        assert why in (quality.garbage(text) or "")


class TestJudgement:
    def test_equal(self) -> None:
        judged = quality.judge(outputs(SANE, PROSE * 2), outputs(SANE, PROSE * 2), reference_step=3)
        assert (judged.verdict, judged.reference, judged.wrong) == (Verdict.EQUAL, 3, False)

    def test_garbage_is_wrong_even_without_a_reference(self) -> None:
        judged = quality.judge(outputs(SANE, "z" * 300))
        assert judged.verdict is Verdict.GARBAGE and judged.wrong and "p1" in judged.text

    def test_a_loop_that_the_reference_has_too_is_not_the_steps_fault(self) -> None:
        loop = SANE + ", and then" * 40
        assert quality.judge(outputs(loop), outputs(loop)).verdict is Verdict.EQUAL

    def test_differences_after_near_ties_are_fine(self) -> None:
        reference = outputs(SANE, ids=(1, 2, 3), margins=(5.0, 0.2, 5.0))
        judged = quality.judge(outputs(SANE, ids=(1, 7, 3)), reference)
        assert judged.verdict is Verdict.NEAR_TIES and "token 1" in judged.text

    def test_a_difference_where_the_reference_was_sure_is_wrong(self) -> None:
        reference = outputs(SANE, ids=(1, 2, 3), margins=(5.0, 4.0, 5.0))
        judged = quality.judge(outputs(SANE, ids=(1, 7, 3)), reference)
        assert judged.verdict is Verdict.DIFFERENT and judged.wrong

    def test_without_margins_only_few_differences_are_excused(self) -> None:
        same = [f"{SANE} {n}" for n in range(20)]
        few = [*same[:17], *(text.replace("fox", "cat") for text in same[17:])]
        many = [text.replace("fox", "cat") for text in same]
        assert quality.judge(outputs(*few), outputs(*same)).verdict is Verdict.NEAR_TIES
        assert quality.judge(outputs(*many), outputs(*same)).verdict is Verdict.DIFFERENT

    def test_a_pass_rate_that_falls_beyond_chance_is_wrong(self) -> None:
        same = outputs(SANE, PROSE * 2)
        before = {f"task{n}": True for n in range(40)}

        def judged(failed: int) -> quality.Quality:
            now = {name: at >= failed for at, name in enumerate(before)}
            return quality.judge(same, same, tests=now, tests_before=before)

        assert judged(6).verdict is Verdict.EQUAL and "6 that passed with the reference" in judged(6).text
        assert judged(7).verdict is Verdict.DIFFERENT and judged(7).wrong
        other_way = quality.judge(same, same, tests=before, tests_before=dict.fromkeys(before, False))
        assert other_way.verdict is Verdict.EQUAL

    def test_without_a_reference_it_is_unknown(self) -> None:
        assert quality.judge(outputs(SANE)).verdict is Verdict.UNKNOWN


class TestProgram:
    task = coding_tasks()[0]

    @pytest.mark.parametrize(
        "answer",
        [
            "Sure!\n```python\n{}\n```\nIt works.",
            "{}\n```\n\nThis goes on in a block that was open.",
            "```\nimport os\n```\nand\n```py\n{}\n```",
            "{}",
            "```python\n{}",
        ],
    )
    def test_the_code_is_found_in_the_answer(self, answer: str) -> None:
        made = quality.program(self.task, answer.replace("{}", self.task.solution))
        exec(made, {"__name__": "found"})
        assert made.startswith(self.task.solution.split("\n")[0])


ALONE = sandbox.find()
needs_sandbox = pytest.mark.skipif(ALONE is None, reason="no sandbox on this machine")


@needs_sandbox
class TestSandbox:
    def run(self, program: str, **what: int) -> sandbox.Ran:
        assert ALONE is not None
        return ALONE.run(program, **what)

    def test_a_program_that_ends_passes(self) -> None:
        assert self.run("print('hello')") == sandbox.Ran(True, "hello")

    @pytest.mark.parametrize(
        "program", ["assert False, 'no'", "raise SystemExit(0)", "import os; os._exit(0)", "x = ("]
    )
    def test_one_that_does_not_come_to_its_end_does_not(self, program: str) -> None:
        assert not self.run(program).passed

    def test_there_is_no_network(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            ran = self.run(f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)")
        assert not ran.passed and ("unreachable" in ran.said or "refused" in ran.said)

    def test_files_of_this_machine_are_not_there(self, tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        secret.write_text("x")
        for path in (secret, Path.home(), Path("/etc/passwd"), Path("/proc/1/environ"), Path(__file__)):
            assert not self.run(f"open({str(path)!r})").passed

    def test_nothing_but_its_own_folder_can_be_written(self) -> None:
        assert self.run("open('own', 'w').write('x')").passed
        for path in ("/usr/x", "/bin/x", "/lib/x"):
            assert not self.run(f"open({path!r}, 'w')").passed

    def test_no_rights_are_left(self) -> None:
        assert not self.run("import os; os.chroot('/usr')").passed
        mount = "import ctypes; assert ctypes.CDLL(None).mount(b'x', b'/usr', b'tmpfs', 0, None) == 0"
        assert not self.run(mount).passed

    def test_an_endless_program_is_stopped_with_all_its_children(self) -> None:
        ran = self.run("import os\nos.fork()\nwhile True: pass", seconds=1)
        assert not ran.passed and "stopped" in ran.said

    def test_memory_and_files_are_limited(self) -> None:
        assert not self.run("x = bytearray(10**9)").passed
        assert not self.run("open('big', 'wb').write(bytes(10**7))").passed
        assert not self.run("print('y' * 10**7)").passed

    def test_nothing_is_left_behind(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", None)
        self.run("open('own', 'w').write('x')")
        assert list(tmp_path.iterdir()) == []

    def test_its_environment_is_empty(self) -> None:
        os.environ["DDTUI_TEST_SECRET"] = "x"
        assert self.run(
            "import os; assert 'DDTUI_TEST_SECRET' not in os.environ and 'HOME' not in os.environ"
        ).passed


@pytest.mark.parametrize("endpoint", ["generate", "chat"])
async def test_a_check_on_a_server_compares_and_tests(endpoint: str) -> None:
    tasks = coding_tasks()[:5]
    wrong = tasks[3].name

    async def script(reply: Reply) -> None:
        asked = reply.body["text"] if reply.api == "generate" else reply.body["messages"][0]["content"]
        (task,) = [task for task in tasks if task.prompt in asked]
        code = "pass" if task.name == wrong else task.solution
        text = f"```python\n{code}\n```"
        if reply.api == "generate":
            meta = {"completion_tokens": 9, "prompt_tokens": 5, "finish_reason": {"type": "stop"}}
            data = event({"text": text, "output_ids": [], "meta_info": meta})
        else:
            data = event({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]})
        await reply.send(HEAD, chunk(data + event("[DONE]")), LAST)

    async with serving(LittleServer(script=script)) as server:
        target = Target(Endpoint(None, "127.0.0.1", server.port))
        _, first = await check_output.check(target, tasks=tasks, endpoint=endpoint, run_tests=False)  # type: ignore[arg-type]
        judged, again = await check_output.check(
            target,
            tasks=tasks,
            endpoint=endpoint,  # type: ignore[arg-type]
            reference=first,
            reference_step=1,
            run_tests=ALONE is not None,
        )
    assert judged.verdict is Verdict.EQUAL and again == first and judged.prompts == 5
    if ALONE is not None:
        assert (judged.tests_passed, judged.tests_run, judged.failed_tasks) == (4, 5, (wrong,))
        assert judged.sandbox == ALONE.name and "4 of 5 coding tasks" in judged.text


async def test_a_check_sends_nothing_beyond_the_servers_limits() -> None:
    tasks = coding_tasks()[:2]
    longest = max(len(task.prompt.encode()) for task in tasks)
    async with serving(LittleServer(limit=longest + 300)) as server:
        target = Target(Endpoint(None, "127.0.0.1", server.port))
        await check_output.check(target, tasks=tasks, run_tests=False)
        assert len(server.requests) == 2
        for body in server.requests:
            assert len(body["text"].encode()) + body["sampling_params"]["max_new_tokens"] < server.limit
        server.requests.clear()
        server.limit = longest + 20
        with pytest.raises(BenchError, match="the server takes"):
            await check_output.check(target, tasks=tasks, run_tests=False)
        assert server.requests == []
