"""A history as a week of tuning leaves it: for the screens that look back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from console.fakes import NOW, make_point

from ddtui.bench import experiment, kept, ranking
from ddtui.bench.compare import Run
from ddtui.bench.experiment import ExperimentPlan, Order, Trial, TrialState
from ddtui.bench.model import Burst, BurstSpec, BurstState, Cell
from ddtui.past import Past
from ddtui.store import sweeps
from ddtui.store.history import History
from ddtui.store.model import Setting
from ddtui.tuning.experiments import Doing, ExperimentState, Outcome

HOST, UNIT = "ct200", "sglang-k26-ddtree.service"
CELLS = tuple(Cell(c, context) for context in (512, 8192) for c in (1, 8, 32))
# budget, topk, window: how fast one stream is, tokens per step
SETTINGS: tuple[tuple[dict[str, str | None], float, float], ...] = (
    ({"budget": "8", "topk": "4", "window": None}, 1.0, 4.1),
    ({"budget": "4", "topk": "4", "window": None}, 0.86, 3.1),
    ({"budget": "16", "topk": "4", "window": None}, 1.12, 4.9),
    ({"budget": "32", "topk": "4", "window": None}, 1.09, 5.0),
    ({"budget": "16", "topk": "1", "window": None}, 0.81, 3.0),
    ({"budget": "16", "topk": "4", "window": "2048"}, 1.31, 5.3),
)


def setting(knobs: Mapping[str, str | None], **changes: str) -> Setting:
    flags = {
        "model_path": "/data/models/Kimi-K2.6",
        "tp_size": 8,
        "speculative_algorithm": "DDTREE",
        "attention_backend": "triton",
        "api_key": "sk-very-secret",
    }
    given = {
        "engine": "0.5.11 (/opt/sglang)",
        "target": "/data/models/Kimi-K2.6",
        "drafter": "Kimi-K2.6-DFlash 9f3c",
        "gpu": "8 x NVIDIA B200, driver 580.95",
        **changes,
    }
    return Setting(dict(knobs), flags, **given)


def burst_of(step: int, lift: float, accept: float, *, id: str = "", at: float = NOW) -> Burst:
    """All cells; the higher the load, the less is gained."""
    points = tuple(
        replace(
            make_point(
                cell,
                110 * cell.concurrency**0.72 * (1 + (lift - 1) / cell.concurrency**0.3)
                * (1.0 if cell.context == 512 else 0.84 + (0.1 if lift > 1.2 else 0.0)),
                accept * (1.0 if cell.context == 512 else 0.8),
            ),
            prompts="p",
            started_at=at,
        )
        for cell in CELLS
    )  # fmt: skip
    return Burst(
        id or f"20260528-0{step}0000-ab{step:02}", step, BurstSpec(CELLS), BurstState.DONE, points=points,
        fraction=1.0, started_at=at,
    )  # fmt: skip


def fill(history: History) -> None:
    """Six steps of one host, a change each, notes, a sweep that was stopped and one that is done."""
    for number, (knobs, lift, accept) in enumerate(SETTINGS, 1):
        at = NOW - 86_400 + 3600 * number
        verdicts = [{"title": f"budget {knobs['budget']}", "status": "in force", "evidence": []}]
        step = history.step(HOST, UNIT, setting(knobs), verdicts=verdicts, at=at)
        history.save_burst(HOST, UNIT, kept.to_plain(burst_of(number, lift, accept, at=at + 600)))
        record = {
            "id": f"20260527-{number:02}0000-cd{number:02}",
            "at": at,
            "phase": "verified",
            "result": "in force",
            "who": "ana@laptop:4711",
            "why": "",
            "turns": [{"knob": "budget", "op": "set", "value": knobs["budget"]}],
            "argv_before": ["--speculative-ddtree-budget", "2"],
            "argv_after": ["--speculative-ddtree-budget", knobs["budget"]],
            "seconds_to_ready": 271.0,
        }
        history.save_change(HOST, UNIT, record, step=step.number)
        if number == 1:
            history.add_note("step", str(step.id), "baseline")
        if number == 4:
            history.add_note("step", str(step.id), "no faster than 16: step time grows")
    with history.writing() as db:
        db.execute("UPDATE notes SET at = ?", (NOW - 7200,))
    other = history.step("ct201", UNIT, setting(SETTINGS[0][0], gpu="8 x NVIDIA H200"), at=NOW - 90_000)
    history.save_burst("ct201", UNIT, kept.to_plain(burst_of(other.number, 0.7, 4.0, id="other-host")))
    for id, state, done in (("20260527-120000-ee01", "done", 3), ("20260528-080000-ee02", "stopped", 2)):
        plan = ExperimentPlan(
            tuple(experiment.setting(knobs) for knobs, _, _ in SETTINGS[:3]), CELLS, Order.GRID, why="budget"
        )
        more = (
            {"outcome": "best throughput over 6 cells: budget 16"}
            if state == "done"
            else {"problem": "link lost"}
        )
        kept_plan = {"plan": experiment.plan_to_plain(plan), "marks": {}, **more}
        sweeps.save(history, HOST, UNIT, id, kept_plan, state=state, at=NOW - 3600)
        for number in range(done):
            trial = Trial(number, plan.settings[number], "grid", state=TrialState.MEASURED, step=number + 1)
            sweeps.save_trial(history, id, number, experiment.trial_to_plain(trial))


def make_past(folder: Path) -> Past:
    """The past over such a history."""
    history = History.open(folder / "history.sqlite")
    fill(history)
    return Past(history, HOST, UNIT)


PLAN = ExperimentPlan(
    tuple(experiment.setting({"budget": b, "topk": t}) for b in ("4", "8", "16") for t in ("1", "4")), CELLS
)


def trial(number: int, lift: float, **changes: object) -> Trial:
    """A trial that measured every cell."""
    burst = burst_of(number + 1, lift, 4.0)
    runs = {point.cell: Run(burst.id, point, 256, 0.0, "generate") for point in burst.points}
    made = Trial(
        number, PLAN.settings[number], "grid", state=TrialState.MEASURED, step=number + 1, ready_seconds=271.0,
        bursts=(burst.id,), cells=CELLS, runs=runs,
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def running_sweep() -> ExperimentState:
    """Three trials are over, one of them failed; the fourth is being measured."""
    failed = Trial(
        2, PLAN.settings[2], "grid", state=TrialState.FAILED, text="the server ran out of memory", step=None
    )
    now = Trial(3, PLAN.settings[3], "grid", state=TrialState.MEASURING, step=4)
    burst = replace(
        burst_of(4, 1.0, 4.0),
        points=(),
        state=BurstState.RUNNING,
        cell=CELLS[2],
        fraction=0.4,
        eta_seconds=31.0,
    )
    return ExperimentState(
        "20260528-090000-aa01", PLAN, (trial(0, 0.8), trial(1, 1.1), failed, now),
        {HOST: Doing(HOST, now, burst=burst)}, expected=6, eta_seconds=840.0,
    )  # fmt: skip


def ended_sweep() -> ExperimentState:
    """The same at its end, ranked."""
    trials = tuple(trial(number, lift) for number, lift in enumerate((0.8, 1.1, 0.85, 1.2, 0.9, 1.25)))
    ranked = ranking.rank(trials)
    assert ranked.best is not None
    outcome = Outcome(
        ranked.text,
        ranked.best.setting,
        f"{experiment.name(ranked.best.setting)} is in force (step 6)",
        ranked,
    )
    return ExperimentState("20260528-090000-aa01", PLAN, trials, {}, 6, state="done", outcome=outcome)
