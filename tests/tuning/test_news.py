"""What moved on the host is news where somebody else did it, and none where ddtui itself did."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from console.fakes import make_profile

from ddtui.host.base import Completed, Link, LinkState
from ddtui.tuning import layers, verdicts
from ddtui.tuning import survey as surveys
from ddtui.tuning.model import Layer, Reading
from ddtui.tuning.survey import Survey
from ddtui.tuning.watch import PENDING_EVERY, Watch

FILE = "/etc/systemd/system/sglang.service.d/zzz-ddtui.conf"
DRAFTER = "/opt/models/drafter/config.json"


class Disk:
    """The times of the host's files, and what is read of the drafter."""

    def __init__(self) -> None:
        self.times = {FILE: 1.0, DRAFTER: 1.0}
        self.window = 2048

    def survey(self) -> Survey:
        unit: Any = SimpleNamespace(files=(FILE,), unit="sglang.service", scope="system", fragment=None)
        service: Any = SimpleNamespace(changed_at={})
        return Survey(
            0.0,
            unit=Reading(Layer.UNIT, unit),
            drafter=Reading(Layer.DRAFTER, self.window),  # type: ignore[arg-type]
            service=service,
            stamps=dict(self.times),
        )


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def watch(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """A watch that has read the host once."""

    async def look(ctx: object, before: Survey) -> tuple[Survey, frozenset[Layer]]:
        changed = before.stamps != disk.times
        return replace(before, stamps=dict(disk.times)), frozenset({Layer.UNIT} if changed else ())

    async def read(ctx: object, before: Survey | None, only: object) -> Survey:
        fresh = disk.survey()
        return fresh if before is None else replace(before, drafter=fresh.drafter)

    monkeypatch.setattr(layers, "look", look)
    monkeypatch.setattr(surveys, "read", read)
    monkeypatch.setattr(surveys, "knob_rows", lambda *given: ())
    monkeypatch.setattr(verdicts, "judge", lambda *given: ())
    link = Link(LinkState.CONNECTED, "root@ct200:22")
    host = SimpleNamespace(link=link)
    made = Watch(SimpleNamespace(host=host, profile=make_profile(), read_only=None))  # type: ignore[arg-type]
    made._publish(survey=disk.survey())
    return made


def window(watch: Watch) -> object:
    assert watch.state.survey is not None
    return watch.state.survey.drafter.value


async def glance(watch: Watch) -> None:
    assert watch.state.survey is not None
    await watch._glance(watch.state.survey)


async def test_a_file_that_somebody_else_changed_is_news(watch: Watch, disk: Disk) -> None:
    disk.times[FILE] = 2.0
    await glance(watch)
    await glance(watch)
    (notice,) = watch.state.notices
    assert notice.endswith(f"{FILE} was changed")


async def test_a_file_that_ddtui_itself_changes_is_no_news(watch: Watch, disk: Disk) -> None:
    disk.times[FILE] = 2.0
    with watch.at_work():
        await glance(watch)
    assert watch.state.notices == ()


async def test_a_look_that_begins_before_and_ends_after_our_change_brings_no_news(
    watch: Watch, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = layers.look

    async def slowly(ctx: object, before: object) -> Any:
        with watch.at_work():  # a whole change, while the host answers
            disk.times[FILE] = 2.0
        return await looked(ctx, before)  # type: ignore[arg-type]

    monkeypatch.setattr(layers, "look", slowly)
    await glance(watch)
    assert watch.state.notices == ()


def test_after_our_change_the_host_is_asked_at_once_whether_it_was_cut(watch: Watch) -> None:
    watch._pending_at = time.monotonic()
    with watch.at_work():
        pass
    assert watch._wake.is_set() and time.monotonic() - watch._pending_at > PENDING_EVERY


@pytest.mark.parametrize("seen_by", ["a look", "the reading of everything"])
async def test_a_drafter_that_changes_while_ddtui_is_at_work_is_read_and_is_news(
    watch: Watch, disk: Disk, seen_by: str
) -> None:
    with watch.at_work():
        disk.times.update({FILE: 2.0, DRAFTER: 2.0})
        disk.window = 1024
        if seen_by == "a look":
            await glance(watch)
        await watch.refresh()
    assert window(watch) == 1024
    (notice,) = watch.state.notices
    assert notice.endswith(f"{DRAFTER} was changed")


async def test_a_file_that_changes_while_it_is_read_is_read_again_at_the_next_look(
    watch: Watch, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = surveys.read

    async def and_then_it_changes(*given: Any) -> Survey:
        found = await read(*given)
        disk.times[DRAFTER], disk.window = 3.0, 512
        return found

    disk.times[DRAFTER], disk.window = 2.0, 1024
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(surveys, "read", and_then_it_changes)
        await glance(watch)
    assert window(watch) == 1024
    await glance(watch)
    assert window(watch) == 512


async def test_what_was_read_meanwhile_is_not_overwritten_by_a_look_that_began_before(
    watch: Watch, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, go_on, looked = asyncio.Event(), asyncio.Event(), layers.look

    async def slowly(ctx: object, before: object) -> Any:
        found = await looked(ctx, before)  # type: ignore[arg-type]
        looking.set()
        await go_on.wait()
        return found

    async def nothing() -> None: ...

    monkeypatch.setattr(layers, "look", slowly)
    watch._place, watch._rights_known, watch._pending_at = object(), True, float("inf")  # type: ignore[assignment]
    for other in ("_read_clock", "_read_lock", "_read_loads", "_read_gpus", "_read_people"):
        monkeypatch.setattr(watch, other, nothing)
    async with asyncio.TaskGroup() as group:  # a look that fails ends the wait
        group.create_task(watch._one_look())
        await looking.wait()
        disk.times[DRAFTER], disk.window = 2.0, 1024
        group.create_task(watch.refresh())
        await asyncio.sleep(0)
        go_on.set()
    assert window(watch) == 1024


async def test_the_time_of_a_drafter_is_asked_for_before_its_text() -> None:
    asked: list[str] = []

    class Host:
        async def batch(self, commands: Any, **how: object) -> list[Completed]:
            asked.extend(command.argv[0] for command in commands)
            return [Completed(command.argv, 1, b"", b"no", 0.0) for command in commands]

    ctx: Any = SimpleNamespace(host=Host(), profile=SimpleNamespace(drafter="/opt/d"))
    await layers.read_drafter(ctx, Survey(0.0))
    assert asked == ["stat", "cat"]
