"""What any host must let ddtui change, the demo host and the real one alike."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from contract_help import all_files, ready

from ddtui.host.base import Host
from ddtui.tuning import change, plan, rollback, verdicts
from ddtui.tuning import survey as surveys
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Phase, Progress, Status


async def follow(progress: AsyncIterator[Progress]) -> list[Progress]:
    return [one async for one in progress]


async def apply(ctx: Tuning, *sets: str, unsets: tuple[str, ...] = ()) -> list[Progress]:
    made = await plan.make(ctx, await surveys.read(ctx), plan.parse_turns(ctx, sets, unsets))
    assert made.problems == ()
    return await follow(change.apply(ctx, made))


async def running(ctx: Tuning) -> dict[str, str | None]:
    return {row.name: row.running for row in surveys.knob_rows(await surveys.read(ctx), ctx)}


async def test_turning_the_window_puts_it_in_force_and_rolling_back_takes_it_away(tuning: Tuning) -> None:
    await ready(tuning)
    before = await all_files(tuning)
    phases = await apply(tuning, "window=2048")
    assert phases[-1].phase is Phase.VERIFIED, phases[-1]
    judged = {v.subject: v for v in verdicts.judge(await surveys.read(tuning), tuning.profile)}
    assert judged["window.flag"].status is Status.IN_FORCE
    assert judged["window.layers"].status is Status.NOT_IN_FORCE
    phases = await follow(rollback.rollback(tuning))
    assert phases[-1].phase is Phase.VERIFIED, phases[-1]
    assert (await running(tuning))["window"] is None
    assert await all_files(tuning) == before


async def test_the_progress_of_a_start_never_goes_back(tuning: Tuning) -> None:
    await ready(tuning)
    phases = await apply(tuning, "budget=12")
    fractions = [one.fraction for one in phases if one.phase is Phase.STARTING and one.fraction is not None]
    assert fractions == sorted(fractions)
    assert len(set(fractions)) >= 5
    await follow(rollback.rollback(tuning))


async def test_a_start_that_fails_is_explained_and_rolled_back(tuning: Tuning) -> None:
    await ready(tuning)
    before = await all_files(tuning)
    settings = await running(tuning)
    made = await plan.make(
        tuning, await surveys.read(tuning), plan.parse_turns(tuning, ["--mem-fraction-static=0.9995"], [])
    )
    phases = await follow(change.apply(tuning, made))
    assert phases[-1].phase is Phase.ROLLED_BACK, phases[-1]
    assert phases[-1].failure and "memory" in phases[-1].failure.lower()
    assert phases[-1].evidence
    assert await all_files(tuning) == before
    assert await running(tuning) == settings


async def test_a_flag_that_the_installed_sglang_refuses_never_reaches_the_host(tuning: Tuning) -> None:
    await ready(tuning)
    made = await plan.make(tuning, await surveys.read(tuning), plan.parse_turns(tuning, ["window=2"], []))
    assert any("window" in problem for problem in made.problems), made
    made = await plan.make(
        tuning, await surveys.read(tuning), plan.parse_turns(tuning, ["--nosuch-flag=1"], [])
    )
    assert any("--nosuch-flag" in problem for problem in made.problems), made


async def test_a_plan_that_was_overtaken_by_a_change_by_hand_is_refused(tuning: Tuning, host: Host) -> None:
    await ready(tuning)
    made = await plan.make(tuning, await surveys.read(tuning), plan.parse_turns(tuning, ["budget=16"], []))
    drop_in = f"/etc/systemd/system/{tuning.unit}.d/10-by-hand.conf"
    await host.run(["mkdir", "-p", "--", f"/etc/systemd/system/{tuning.unit}.d"], sudo=True)
    done = await host.run(["tee", "--", drop_in], stdin=b"[Service]\nEnvironment=BY_HAND=1\n", sudo=True)
    assert done.ok
    with pytest.raises(plan.StalePlan, match=r"10-by-hand\.conf"):
        await follow(change.apply(tuning, made))
    await host.run(["rm", "-f", "--", drop_in], sudo=True)
    await host.run(["systemctl", "daemon-reload"], sudo=True)
