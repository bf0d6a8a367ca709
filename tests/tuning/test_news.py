"""What moved on the host is news where somebody else did it, and none where ddtui itself did."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from console.fakes import make_profile

from ddtui.host.base import Link, LinkState
from ddtui.tuning import layers
from ddtui.tuning.model import Layer
from ddtui.tuning.watch import Watch

FILE = "/etc/systemd/system/sglang.service.d/zzz-ddtui.conf"


def survey(stamp: float) -> Any:
    return SimpleNamespace(
        stamps={FILE: stamp},
        changed_at={FILE: stamp},
        status=None,
        server=SimpleNamespace(value=None),
    )


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    async def look(ctx: object, before: object) -> tuple[Any, frozenset[Layer]]:
        return survey(2.0), frozenset({Layer.UNIT})

    monkeypatch.setattr(layers, "look", look)
    link = Link(LinkState.CONNECTED, "root@ct200:22")
    made = Watch(SimpleNamespace(host=SimpleNamespace(link=link), profile=make_profile(), read_only=None))  # type: ignore[arg-type]

    async def read_again(only: object, *, whole: bool) -> None: ...

    monkeypatch.setattr(made, "_survey", read_again)
    return made


async def test_a_file_that_somebody_else_changed_is_news(watch: Watch) -> None:
    await watch._glance(survey(1.0))
    (notice,) = watch.state.notices
    assert notice.endswith(f"{FILE} was changed")


async def test_a_file_that_ddtui_itself_changes_is_no_news(watch: Watch) -> None:
    with watch.at_work():
        await watch._glance(survey(1.0))
    assert watch.state.notices == ()


async def test_a_look_that_begins_before_and_ends_after_our_change_brings_no_news(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = layers.look

    async def slowly(ctx: object, before: object) -> Any:
        with watch.at_work():  # a whole change, while the host answers
            pass
        return await looked(ctx, before)  # type: ignore[arg-type]

    monkeypatch.setattr(layers, "look", slowly)
    await watch._glance(survey(1.0))
    assert watch.state.notices == ()
