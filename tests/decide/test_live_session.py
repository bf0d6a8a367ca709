"""A sweep through the console's own session, on the live demo host."""

from __future__ import annotations

import asyncio
from pathlib import Path

import quick_demo

from ddtui.bench import grid
from ddtui.bench.experiment import ExperimentPlan
from ddtui.host.base import NobodyToAsk
from ddtui.live import LiveSession
from ddtui.store.history import History
from ddtui.store.listing import SweepRow
from ddtui.tuning.experiments import ExperimentState


def test_a_sweep_from_the_console_is_stopped_gone_on_with_and_found_in_the_past(tmp_path: Path) -> None:
    with quick_demo.start(SPEED="4") as demo:
        asyncio.run(_sweep(LiveSession(demo.profile, history=History.open(tmp_path / "h.sqlite"))))


async def _sweep(session: LiveSession) -> None:
    await session.connect(NobodyToAsk())
    watch = asyncio.create_task(session.watch())
    try:
        wanted = ExperimentPlan(
            grid.expand({"budget": ("8", "16"), "topk": ("4", "900")}),
            grid.cells((1,), (512,), "code"),
            output=4,
            requests=32,
            max_seconds=15,
            finish="first",
        )
        made = await session.forecast(wanted)
        assert (made.trials, made.restarts) == (2, 2)  # the first is in force; and back at the end
        assert len(made.plan.skipped) == 2 and "at most 64" in made.plan.skipped[0][1]

        states = session.experiment(made.plan)
        last: ExperimentState | None = None
        async for last in states:
            if last.done == 1:
                break
        await states.aclose()  # type: ignore[attr-defined]
        assert last is not None
        past = session.past
        assert past is not None
        (row,) = await past.rows("sweeps")
        assert isinstance(row, SweepRow) and row.state == "stopped" and row.id == last.id
        measured = last.trials[0]

        last = [state async for state in session.experiment(row.id)][-1]
        assert last.state == "done", last.problem
        assert [trial.state for trial in last.trials] == ["measured", "measured"]
        assert last.outcome is not None and last.outcome.left == ()
        assert last.trials[0].bursts == measured.bursts  # what was measured was not measured again
        a, b = await past.newest_pair()
        assert a is not None and b is not None
        found = await past.compare(a, b)
        assert found.simulated and found.outputs.compared == found.outputs.equal > 0
    finally:
        watch.cancel()
        await session.close()
