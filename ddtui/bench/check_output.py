"""The output check on a server: greedy answers to the coding tasks, compared, tested in the sandbox.

The prompts are the same every time (no salt): outputs of two steps can be compared token by token. The prefix
cache does no harm here, since no time is measured.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ddtui.bench import jobs, load, quality, sandbox, server_side
from ddtui.bench.growing import Prompt, Prompts, as_json_text
from ddtui.bench.model import ApiKind, BurstSpec, Cell, Outcome, RequestRecord
from ddtui.bench.quality import Output, Quality
from ddtui.bench.target import BenchError, Target
from ddtui.bench.tasks import Task, coding_tasks
from ddtui.engine.api import Api, ApiError

ANSWER = 768  # tokens at most
LEAST_ANSWER = 64
TEMPLATE = 64  # tokens that a chat template may add
AT_ONCE = 4
SECONDS = 600.0
MOST_MARGINS = 24  # differences that are looked into: with more of them the output is different anyway


async def check(
    target: Target,
    *,
    reference: Sequence[Output] = (),
    reference_step: int | None = None,
    reference_tests: Mapping[str, bool] | None = None,
    tasks: Sequence[Task] | None = None,
    endpoint: ApiKind = "generate",
    run_tests: bool = True,
    output: int = ANSWER,
    on_progress: Callable[[str, float], None] | None = None,
) -> tuple[Quality, list[Output]]:
    """The judgement, and the outputs to keep as a reference for others.

    `endpoint`: "chat" puts the model's chat template around the tasks. Raises BenchError, HostError.
    """
    asked = list(tasks if tasks is not None else coding_tasks())
    tell = on_progress or (lambda text, part: None)
    output = await _room(target, asked, output)
    outputs = await _answers(target, asked, endpoint, output, tell)
    if endpoint == "generate":
        reference = await _with_margins(target, asked, reference, outputs)
    tests: dict[str, bool] | None = None
    alone = await asyncio.to_thread(sandbox.find) if run_tests else None
    if alone is not None:
        tests = {}
        by_name = {task.name: task for task in asked}
        for at, answer in enumerate(outputs):
            tell(f"testing {answer.prompt}", 0.7 + 0.3 * at / len(outputs))
            ran = await asyncio.to_thread(alone.run, quality.program(by_name[answer.prompt], answer.text))
            tests[answer.prompt] = ran.passed
    refused = "no sandbox on this machine: tests were not run" if run_tests else ""
    judged = quality.judge(
        outputs,
        reference,
        reference_step=reference_step,
        tests=tests,
        sandbox=alone.name if alone is not None else refused,
        simulated=target.simulated,
        tests_before=reference_tests,
    )
    return judged, outputs


async def _room(target: Target, asked: Sequence[Task], output: int) -> int:
    """How many tokens every answer may have: a request beyond the server's limits is never sent."""
    longest = max(len(_text(task).encode()) for task in asked) + TEMPLATE  # no token is less than a byte
    api = Api(target.endpoint, target.api_key)
    try:
        with suppress(ApiError):
            told = (await api.tokenize("x")).max_model_len
            limits = await server_side.limits(api, target.vocab_size, told)
            if limits.prompt is not None and longest > limits.prompt:
                raise BenchError(
                    f"the output check's prompts may have {longest} tokens, the server takes {limits.prompt}"
                )
            whole = min((one for one in (limits.whole, limits.pool) if one is not None), default=None)
            if whole is not None and whole < longest + LEAST_ANSWER:
                raise BenchError(
                    f"the output check needs {longest + LEAST_ANSWER} tokens a request, "
                    f"and the server takes {whole}"
                )
            if whole is not None:
                output = min(output, whole - longest)
    finally:
        await api.close()
    return output


async def _with_margins(
    target: Target, asked: Sequence[Task], reference: Sequence[Output], outputs: Sequence[Output]
) -> list[Output]:
    """The reference with its margin at each first difference, as far as the server tells them.

    The margin is the target model's own, given what stands before: the server that is tested can be asked.
    """
    by_name, given = {task.name: task for task in asked}, {one.prompt: one for one in reference}
    by_prompt = {one.prompt: one for one in outputs}
    found = [quality.divergence(given[one.prompt], one) for one in outputs if one.prompt in given]
    api = Api(target.endpoint, target.api_key)
    try:
        for at in [one for one in found if one is not None and one.in_tokens][:MOST_MARGINS]:
            before = (await api.tokenize(_text(by_name[at.prompt]))).ids
            same = given[at.prompt].ids[: at.position]
            behind = await api.behind([*before, *same])
            if behind is None:
                break
            # a near-tie is one between these two: any other token is far off, however close the best are
            two = given[at.prompt].ids[at.position], by_prompt[at.prompt].ids[at.position]
            margin = max(behind.get(token, math.inf) for token in two)
            known = (math.inf,) * at.position + (margin,)
            given[at.prompt] = replace(given[at.prompt], margins=known)
    except (ApiError, TimeoutError):
        pass  # what is known is known
    finally:
        await api.close()
    return list(given.values())


async def _answers(
    target: Target, asked: Sequence[Task], endpoint: ApiKind, output: int, tell: Callable[[str, float], None]
) -> list[Output]:
    slots = min(AT_ONCE, target.max_concurrency, len(asked))
    cell = Cell(slots, 512, "quality")
    spec = BurstSpec(
        (cell,), output=output, requests=len(asked), max_seconds=SECONDS, endpoint=endpoint, ignore_eos=False
    )
    pieces = tuple(_piece(task, endpoint) for task in asked)
    numbered = tuple(Prompt(at, (at,), None, task.name) for at, task in enumerate(asked))
    prompts = Prompts(pieces, numbered, False, "", None)
    end = target.endpoint
    (job,) = jobs.make(
        spec,
        cell,
        prompts,
        address={"uds": end.uds, "host": end.host, "port": end.port},
        rid=f"check-{secrets.token_hex(4)}",
        api_key=target.api_key,
        processes=1,
    )
    records: list[RequestRecord] = []

    def see(told: dict[str, Any]) -> None:
        if told["kind"] == "record":
            records.append(jobs.record(told, cell))
            tell(f"{len(records)} of {len(asked)} answers", 0.7 * len(records) / len(asked))

    await load.here(job, see)
    good = {record.index: record for record in records if record.outcome is Outcome.OK}
    if not good:
        raise BenchError(f"no answer to check: {records[0].message if records else 'nothing was sent'}")
    return [
        Output(task.name, good[at].text, good[at].output_ids) for at, task in enumerate(asked) if at in good
    ]


def _piece(task: Task, endpoint: ApiKind) -> str:
    return as_json_text(task.prompt if endpoint == "chat" else _text(task))


def _text(task: Task) -> str:
    return f"{task.prompt}\nAnswer:\n```python\n"
