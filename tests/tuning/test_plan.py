"""Plans on the demo host: what is refused before anything is touched, and what a plan says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
import quick_demo
from contract_help import ready

from ddtui.host.base import NobodyToAsk
from ddtui.host.open import open_host
from ddtui.profile import Profile
from ddtui.tuning import plan
from ddtui.tuning import survey as surveys
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import Op, Plan, Turn


@pytest.fixture(scope="module")
def demo() -> Iterator[Profile]:
    with quick_demo.start() as host:
        yield host.profile


@pytest_asyncio.fixture
async def ctx(demo: Profile) -> AsyncIterator[Tuning]:
    host = open_host(demo.connection, NobodyToAsk())
    await host.connect()
    made = Tuning(demo, host)
    await ready(made)
    yield made
    await host.close()


async def made(ctx: Tuning, *sets: str, unsets: tuple[str, ...] = ()) -> Plan:
    return await plan.make(ctx, await surveys.read(ctx), plan.parse_turns(ctx, sets, unsets))


async def test_a_plan_says_what_it_changes_runs_and_interrupts(ctx: Tuning) -> None:
    found = await made(ctx, "budget=16")
    assert found.problems == ()
    (edit,) = found.edits
    assert edit.ours
    assert edit.path in found.diff
    assert "--speculative-ddtree-budget 16" in found.diff
    assert found.argv_after[found.argv_after.index("--speculative-ddtree-budget") + 1] == "16"
    assert "running request" in found.interrupts
    words = [" ".join(command) for command in found.commands]
    order = [
        f"tee -- {edit.path}.ddtui-new",
        f"mv -T -- {edit.path}.ddtui-new {edit.path}",
        f"systemd-analyze verify {ctx.unit}",
        "systemctl daemon-reload",
        f"systemctl reset-failed {ctx.unit}",
        f"systemctl restart --no-block {ctx.unit}",
    ]
    places = [next(i for i, text in enumerate(words) if text.endswith(wanted)) for wanted in order]
    assert places == sorted(places)


async def test_a_plan_changes_nothing(ctx: Tuning) -> None:
    before = (await surveys.read(ctx)).service
    await made(ctx, "budget=16", "window=2048", unsets=("topk",))
    after = (await surveys.read(ctx)).service
    assert before is not None
    assert after is not None
    assert after.tree.known_files() == before.tree.known_files()
    assert after.status.invocation_id == before.status.invocation_id


@pytest.mark.parametrize(
    ("word", "refusal"),
    [
        ("budget=0", "at least 1"),
        ("budget=many", "whole number"),
        ("budget", "needs a value"),
        ("window=2", "window"),
        ("--no-such-flag=1", "no --no-such-flag"),
        ("--tp-size=two", "invalid"),
        ("budget=8", "already says that"),
        ("--speculative-algorithm=BOGUS", "BOGUS"),
    ],
)
async def test_what_cannot_be_is_a_problem_of_the_plan(ctx: Tuning, word: str, refusal: str) -> None:
    found = await made(ctx, word)
    assert any(refusal in problem for problem in found.problems), found.problems


async def test_several_turns_make_one_file_and_one_restart(ctx: Tuning) -> None:
    found = await made(ctx, "budget=16", "window=2048", unsets=("topk",))
    assert len(found.edits) == 1
    assert sum("restart" in command for command in found.commands) == 1
    assert "--speculative-ddtree-topk-cap" not in found.argv_after


async def test_the_flag_is_written_as_the_installed_engine_spells_it(ctx: Tuning) -> None:
    found = await made(ctx, "--speculative-draft-window-size=2048")
    assert "--speculative-dflash-draft-window-size" in found.argv_after


def test_turns_are_read_from_words() -> None:
    ctx = Tuning(_profile(), host=None)  # type: ignore[arg-type]
    assert plan.parse_turns(ctx, ["budget=16", "--a=b=c", "--enable-metrics"], ["topk"]) == (
        Turn("budget", Op.SET, "16"),
        Turn("--a", Op.SET, "b=c"),
        Turn("--enable-metrics", Op.SET, None),
        Turn("topk", Op.UNSET),
    )


@pytest.mark.parametrize(
    ("sets", "unsets", "words"),
    [
        (["badget=16"], [], "no knob 'badget'"),
        (["budget=16", "budget=8"], [], "turned twice"),
        (["budget=16"], ["budget"], "turned twice"),
    ],
)
def test_turns_that_make_no_sense_are_refused(sets: list[str], unsets: list[str], words: str) -> None:
    ctx = Tuning(_profile(), host=None)  # type: ignore[arg-type]
    with pytest.raises(plan.PlanError, match=words):
        plan.parse_turns(ctx, sets, unsets)


async def test_nothing_to_change_is_no_plan(ctx: Tuning) -> None:
    with pytest.raises(plan.PlanError, match="nothing to change"):
        await plan.make(ctx, await surveys.read(ctx), ())


async def test_a_unit_that_is_not_there_gives_no_plan(ctx: Tuning) -> None:
    from dataclasses import replace

    service = ctx.profile.service.model_copy(update={"unit": "nosuch.service"})
    lost = replace(ctx, profile=ctx.profile.model_copy(update={"service": service}))
    with pytest.raises(plan.PlanError, match="cannot be read"):
        await made(lost, "budget=16")


def _profile() -> Profile:
    from tuning.surveys import PROFILE

    return PROFILE
