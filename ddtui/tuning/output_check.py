"""The output check of the setting in force: done, compared with a reference step, kept in the history."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ddtui import locations
from ddtui.bench import check_output
from ddtui.bench.quality import Output, Quality
from ddtui.bench.target import BenchError, Target
from ddtui.engine.api import Api, ApiError
from ddtui.store.history import History
from ddtui.store.model import Step
from ddtui.store.outputs import WRONG

OF = "check"  # how its results are told from those of bursts
SPECULATION = "speculative_algorithm"


@dataclass(frozen=True, slots=True)
class Reference:
    """Outputs that another step gave before."""

    step: int | None  # None: a server that is known by its URL alone has no steps
    outputs: tuple[Output, ...]
    tests: Mapping[str, bool] | None = None  # by task, whether its tests passed; None: they were not run


async def check(
    target: Target,
    history: History | None,
    host: str,
    unit: str,
    step: Step | None,
    *,
    reference: int | None = None,
    run_tests: bool = True,
    on_progress: Callable[[str, float], None] | None = None,
) -> Quality:
    """Check, and keep result and outputs. `reference`: a step's number; None: the one that fits best.

    Raises BenchError where no answer comes or the step that was named has no outputs, HistoryError.
    """
    chosen: Reference | None = None
    model = target_of(step) or await _served(target)
    if history is not None:
        chosen = await asyncio.to_thread(find, history, host, unit, step, reference, model)
    if reference is not None and chosen is None:
        raise BenchError(
            f"step {reference} has no outputs to compare with: put it in force and check its output first"
        )
    judged, outputs = await check_output.check(
        target,
        reference=chosen.outputs if chosen else (),
        reference_step=chosen.step if chosen else None,
        reference_tests=chosen.tests if chosen else None,
        run_tests=run_tests,
        on_progress=on_progress,
    )
    if history is not None:
        await asyncio.to_thread(_keep, history, host, unit, step, judged, outputs, model)
    return judged


async def _served(target: Target) -> str:
    """The model that the server names; "" where it does not tell."""
    api = Api(target.endpoint, target.api_key)
    try:
        return (await api.model_info()).model_path or ""
    except (ApiError, TimeoutError):
        return ""
    finally:
        await api.close()


def find(
    history: History,
    host: str,
    unit: str,
    step: Step | None,
    reference: int | None = None,
    model: str = "",
) -> Reference | None:
    """The outputs to compare with: of the step that was named; else of one without speculative decoding,
    which is the truth by definition; else of the oldest one that was right. Without a step (a URL alone): the
    oldest of the same `model` there.
    """
    wanted = target_of(step) or model
    kept = [
        one
        for one in history.quality(host, unit)
        if one.get("of") == OF
        and one.get("outputs")
        and (one.get("step") is not None or (step is None and reference is None))
    ]
    if reference is not None:
        kept = [one for one in kept if one["step"] == reference]
    else:
        kept = [one for one in kept if _right(one, wanted) and (step is None or one["step"] != step.number)]
        plainly = [one for one in kept if one.get("step") is not None and not one.get("speculation")]
        kept = plainly or kept[-1:]
    for one in kept:
        outputs = _read(Path(str(one["outputs"])))
        if outputs:
            failed = set(one.get("failed_tasks") or ())
            tests = {o.prompt: o.prompt not in failed for o in outputs} if one.get("tests_run") else None
            return Reference(one["step"], outputs, tests)
    return None


def has_reference(history: History, host: str, unit: str, target: str) -> bool:
    """Whether any outputs of this target model are kept to compare with."""
    return any(one.get("of") == OF and _right(one, target) for one in history.quality(host, unit))


def _right(result: Mapping[str, Any], target: str) -> bool:
    """A result of this model that others may be compared with."""
    return result["verdict"] not in WRONG and result.get("target") == target


def target_of(step: Step | None) -> str:
    return step.setting.target if step else ""


def _keep(
    history: History,
    host: str,
    unit: str,
    step: Step | None,
    judged: Quality,
    outputs: list[Output],
    model: str,
) -> None:
    folder = locations.data_dir() / "checks"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(3)}.jsonl"
    lines = (json.dumps({"prompt": o.prompt, "text": o.text, "ids": o.ids}) for o in outputs)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    history.save_quality(host, unit, step.number if step else None, plain(judged, step, path, model))


def plain(judged: Quality, step: Step | None, outputs: Path, model: str = "") -> Mapping[str, Any]:
    """The result as the history holds it."""
    return {
        **asdict(judged),
        "verdict": judged.verdict.value,
        "of": OF,
        "step": step.number if step else None,
        "target": target_of(step) or model,
        "speculation": step.setting.flags.get(SPECULATION) if step else None,
        "outputs": str(outputs),
    }


def _read(path: Path) -> tuple[Output, ...]:
    """The outputs of a check; () where the file is gone or broken."""
    try:
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        return tuple(Output(str(row["prompt"]), str(row["text"]), tuple(row["ids"])) for row in rows)
    except (OSError, ValueError, KeyError, TypeError):
        return ()
