"""What the output checks of steps found, and which steps are wrong: fast and wrong never wins."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ddtui.store.history import History

WRONG = ("garbage", "different")  # verdicts, as `bench.quality.Verdict` names them


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """The newest result of one kind of check: the whole one ("check"), or what bursts wrote ("burst")."""

    of: str
    verdict: str
    text: str
    tests_passed: int | None = None
    tests_run: int | None = None

    @property
    def wrong(self) -> bool:
        return self.verdict in WRONG


def newest(results: Iterable[Mapping[str, Any]]) -> tuple[OutputCheck, ...]:
    """Of each kind the newest, of results that come newest first. A burst that shows no garbage does not
    clear a step whose whole check failed.
    """
    found: dict[str, OutputCheck] = {}
    for one in results:
        kind = str(one.get("of") or "check")
        if kind not in found:
            verdict = str(one.get("verdict") or "unknown")
            found[kind] = OutputCheck(
                kind, verdict, str(one.get("text") or verdict), one.get("tests_passed"), one.get("tests_run")
            )
    return tuple(found.values())


def why_wrong(results: Iterable[Mapping[str, Any]]) -> str:
    """Why the output of a step is wrong, of its results, newest first; "" where it is not known to be."""
    return next((one.text for one in newest(results) if one.wrong), "")


def wrong_steps(history: History, host: str | None = None, unit: str | None = None) -> dict[int, str]:
    """Why the output of steps is wrong, by the steps' row ids; the others are not in it. Raises
    HistoryError.
    """
    conditions = [(" AND h.name = ?", host), (" AND h.unit = ?", unit)]
    rows = history.read(
        "SELECT s.id, q.result FROM quality q JOIN hosts h ON h.id = q.host"
        " JOIN steps s ON s.host = q.host AND s.number = q.step WHERE 1"
        + "".join(text for text, value in conditions if value is not None)
        + " ORDER BY q.at DESC, q.id DESC",
        [value for _, value in conditions if value is not None],
    )
    by_step: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_step.setdefault(row["id"], []).append(json.loads(row["result"]))
    told = {step: why_wrong(results) for step, results in by_step.items()}
    return {step: why for step, why in told.items() if why}
