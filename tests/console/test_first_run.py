"""The first run: no profile, and in a minute there is one. Against the demo host, found through ~/.ssh/config."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from console.fakes import FakeSession
from console.harness import until
from textual.pilot import Pilot
from textual.widgets import Input, Static

from ddtui import profile
from ddtui.app import DdtuiApp
from ddtui.demo import launch
from ddtui.demo.launch import Access
from ddtui.screens.first_run import FirstRun
from ddtui.screens.pick import PickScreen
from ddtui.screens.tune import TuneScreen


@pytest.fixture(scope="module")
def access() -> Iterator[Access]:
    with launch.start() as demo:
        yield demo.access


@pytest.fixture
def named(access: Access) -> None:
    """The demo host as `gpu-1` of the operator's ssh_config."""
    folder = Path(os.environ["HOME"]) / ".ssh"
    folder.mkdir(mode=0o700)
    (folder / "config").write_text(
        f"Host gpu-1\n HostName {access.host}\n Port {access.port}\n User {access.user}\n"
        f" IdentityFile {access.identity_file}\n UserKnownHostsFile {access.known_hosts}\n"
    )


@asynccontextmanager
async def first_run() -> AsyncIterator[tuple[DdtuiApp, Pilot[int]]]:
    app = DdtuiApp(None, open_session=lambda made: FakeSession(made), load_profile=profile.load)
    async with app.run_test(size=(110, 40)) as pilot:
        assert isinstance(app.screen, PickScreen)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, FirstRun) and app.screen.is_mounted)
        await pilot.pause()
        yield app, pilot


def shown(app: DdtuiApp) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def type_in(pilot: Pilot[int], field: str, text: str) -> None:
    box = pilot.app.screen.query_one(field, Input)
    box.value = text
    box.focus()
    await until(pilot, lambda: box.has_focus)
    await pilot.press("enter")


async def test_it_asks_for_the_host_and_finds_tries_saves_and_connects_by_itself(named: None) -> None:
    async with first_run() as (app, pilot):
        await type_in(pilot, "#host", "gpu-1")
        await until(pilot, lambda: app.screen.has_class("-tested"))
        await pilot.pause()
        text = shown(app)
        assert "sglang-k26-ddtree.service" in text and "/opt/models/Kimi-K2.6-DFlash" in text
        assert "port 30000" in text and "budget, topk, window" in text and "SGLang 0.5.11 answers" in text
        await type_in(pilot, "#name", "big-one")
        await until(pilot, lambda: isinstance(app.screen, TuneScreen))
        made = profile.load("big-one")
        assert made.connection.host == "gpu-1" and made.service.unit == "sglang-k26-ddtree.service"
        assert app.desk.view.profile == made and not made.production


async def test_it_can_be_marked_production_and_never_overwrites(named: None) -> None:
    folder = profile.folders()[0]
    folder.mkdir(parents=True)
    (folder / "taken.yaml").write_text("mine\n")
    async with first_run() as (app, pilot):
        await type_in(pilot, "#host", "gpu-1")
        await until(pilot, lambda: app.screen.has_class("-tested"))
        app.screen.query_one("#production").focus()
        await pilot.press("space")
        await type_in(pilot, "#name", "taken")
        fault = app.screen.query_one("#fault", Static)  # how it wraps depends on the folder's name
        await until(pilot, lambda: "taken.yaml exists already" in str(fault.render()))
        assert (folder / "taken.yaml").read_text() == "mine\n"
        await type_in(pilot, "#name", "prod")
        await until(pilot, lambda: isinstance(app.screen, TuneScreen))
        assert profile.load("prod").production
        assert "PROD" in shown(app)


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("", "is no host; write gpu-1"),
        ("a b", "is no host"),
        ("127.0.0.1:1", "127.0.0.1"),
        ("x:99999", "is no host"),
    ],
)
async def test_a_host_that_cannot_be_looked_at_is_explained_and_asked_again(host: str, said: str) -> None:
    async with first_run() as (app, pilot):
        await type_in(pilot, "#host", host)
        await until(pilot, lambda: app.screen.query_one("#fault").has_class("-shown"))
        await pilot.pause()
        assert said in shown(app)
        assert app.screen.query_one("#host", Input).has_focus


async def test_of_several_units_the_operator_chooses_and_one_that_does_not_run_is_said_to(
    named: None, access: Access
) -> None:
    first = next(access.root.rglob("sglang-k26-ddtree.service"))
    other = first.with_name("sglang-other.service")
    other.write_text(first.read_text().replace("30000", "30001"))
    try:
        async with first_run() as (app, pilot):
            await type_in(pilot, "#host", "gpu-1")
            await until(pilot, lambda: "2 found" in shown(app))
            assert not app.screen.has_class("-tested")
            await pilot.press("down", "enter")
            await until(pilot, lambda: app.screen.has_class("-tested"))
            text = shown(app)
            assert "/sglang-other.service" in text and "no server process runs under the unit" in text
            await type_in(pilot, "#name", "other")
            await until(pilot, lambda: not isinstance(app.screen, FirstRun))
        assert profile.load("other").service.unit == "sglang-other.service"
    finally:
        other.unlink()


async def test_a_host_without_sglang_is_named_as_such(named: None, access: Access) -> None:
    unit = next(access.root.rglob("sglang-k26-ddtree.service"))
    hidden = unit.rename(access.root / "hidden")
    try:
        async with first_run() as (app, pilot):
            await type_in(pilot, "#host", "gpu-1")
            await until(pilot, lambda: "nothing found" in shown(app))
            assert "is it the right host and account?" in shown(app)
            assert app.screen.query_one("#host", Input).has_focus
    finally:
        hidden.rename(unit)


async def test_a_host_that_takes_none_of_the_keys_says_so_and_what_to_do(named: None) -> None:
    config = Path(os.environ["HOME"]) / ".ssh/config"
    config.write_text(config.read_text().replace("IdentityFile", "IdentitiesOnly yes\n #"))
    async with first_run() as (app, pilot):
        await type_in(pilot, "#host", "gpu-1")
        await until(pilot, lambda: "there is no key to offer" in shown(app))
        assert "ssh-add" in shown(app)


async def test_escape_goes_back_step_by_step_and_leaves_nothing_behind(named: None) -> None:
    async with first_run() as (app, pilot):
        await type_in(pilot, "#host", "gpu-1")
        await until(pilot, lambda: app.screen.has_class("-tested"))
        await pilot.press("escape")
        await until(pilot, lambda: not app.screen.has_class("-tested"))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, PickScreen))
        assert not list(profile.folders()[0].glob("*"))
