"""The app around the screens: connecting, its questions, modes, help, palette, command log, themes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from console.fakes import FakeSession, make_profile, make_view
from console.harness import console, make_app

from ddtui import locations, settings
from ddtui.actions.action import Action, Needs
from ddtui.actions.table import ACTIONS
from ddtui.desk import Desk as DeskOf
from ddtui.host.base import HostKey, HostKeyRefused, NotAuthenticated
from ddtui.profile import Profile
from ddtui.screens.commands import CommandLog
from ddtui.screens.connect import ConnectScreen
from ddtui.screens.dialogs import Secret, Trust
from ddtui.screens.first_run import FirstRun
from ddtui.screens.help import Help
from ddtui.screens.logs import LogsScreen
from ddtui.screens.pick import Offer, PickScreen
from ddtui.screens.tune import TuneScreen

KEY = HostKey("ct200", 22, "ssh-ed25519", "SHA256:8dNfzZ0P1b0o2y8kQ4tq0c4iY6wQbKq1Vn3m4X5y6z7")


async def test_while_connecting_it_says_what_is_being_done() -> None:
    session = FakeSession()
    session.gate = asyncio.Event()
    async with console(session, wait=False) as desk:
        await desk.until(lambda: "connect" in session.calls)
        text = desk.text()
        assert "sglang-k26-ddtree.service" in text and "ct200" in text
        session.gate.set()
        await desk.back_at(TuneScreen)


async def test_an_unknown_host_key_is_shown_with_its_fingerprint_and_refused_by_default() -> None:
    session = FakeSession()
    session.key = KEY
    async with console(session, wait=False) as desk:
        dialog = await desk.dialog(Trust)
        assert KEY.fingerprint in desk.text()
        assert dialog.focused is not None and dialog.focused.id == "no"
        await desk.press("enter")
        await desk.until(lambda: session.answers == [False])


async def test_trusting_takes_its_own_key() -> None:
    session = FakeSession()
    session.key = KEY
    async with console(session, wait=False) as desk:
        await desk.dialog(Trust)
        await desk.press("y")
        await desk.until(lambda: session.answers == [True])


async def test_a_password_is_asked_for_and_never_shown() -> None:
    session = FakeSession()
    session.secret = ("root@ct200's password:", "password")
    async with console(session, wait=False) as desk:
        await desk.dialog(Secret)
        await desk.type("hunter2")
        assert "root@ct200's password:" in desk.text() and "hunter2" not in desk.text()
        await desk.press("enter")
        await desk.until(lambda: session.answers == ["hunter2"])


async def test_giving_up_on_a_secret_answers_none() -> None:
    session = FakeSession()
    session.secret = ("Passphrase for key", "passphrase")
    async with console(session, wait=False) as desk:
        await desk.dialog(Secret)
        await desk.press("escape")
        await desk.until(lambda: session.answers == [None])


@pytest.mark.parametrize(
    "error",
    [
        HostKeyRefused("the key of ct200 has changed", "compare it with the host, then remove the old line"),
        NotAuthenticated("ct200 accepts none of the keys", "add yours to authorized_keys"),
    ],
)
async def test_a_refused_connection_is_explained_and_can_be_tried_again(error: Exception) -> None:
    session = FakeSession()
    session.connect_error = error
    async with console(session, wait=False) as desk:
        await desk.until(lambda: str(error) in desk.text())
        await desk.until(lambda: error.hint in desk.text())  # type: ignore[attr-defined]
        session.connect_error = None
        await desk.press("r")
        await desk.back_at(TuneScreen)
        assert session.calls.count("connect") == 2


async def test_number_keys_change_the_screen_and_the_state_of_each_is_kept() -> None:
    async with console() as desk:
        await desk.press("2")
        await desk.back_at(LogsScreen)
        logs = desk.app.screen
        await desk.press("slash")
        await desk.type("decode")
        await desk.press("enter", "3")
        await desk.until(lambda: "Bursts" in desk.text())
        await desk.press("1")
        await desk.back_at(TuneScreen)
        await desk.press("2")
        await desk.back_at(LogsScreen)
        assert desk.app.screen is logs
        assert "decode" in desk.text()


async def test_help_lists_every_key_of_the_screen() -> None:
    async with console(size=(120, 100)) as desk:
        await desk.press("question_mark")
        await desk.dialog(Help)
        text = desk.text()
        for action in desk.tune.actions_here():
            assert action.label in text, action.id
        await desk.press("escape")
        await desk.back_at(TuneScreen)


async def test_the_palette_finds_an_action_by_name_and_does_it() -> None:
    async with console() as desk:
        await desk.press("ctrl+p")
        await desk.until(lambda: type(desk.app.screen).__name__ == "CommandPalette")
        await desk.type("bursts")
        await desk.until(lambda: "go to: bursts   3" in desk.text())
        await desk.press("enter", "enter")
        await desk.until(lambda: type(desk.app.screen).__name__ == "BurstsScreen")


async def test_the_palette_says_why_something_cannot_be_done_now() -> None:
    async with console(FakeSession(view=make_view(read_only="no sudo rights"))) as desk:
        await desk.press("ctrl+p")
        await desk.until(lambda: type(desk.app.screen).__name__ == "CommandPalette")
        await desk.type("restart")
        await desk.until(lambda: "not now: read-only: no sudo rights" in desk.text())


async def test_the_command_log_shows_what_ran_with_exit_code_and_time_and_copies_it() -> None:
    session = FakeSession()
    async with console(session) as desk:
        session.ran("systemctl", "show", "x y.service")
        session.ran("cat", "--", "/nowhere", code=1)
        await desk.press("C")
        await desk.dialog(CommandLog)
        text = desk.text()
        assert "systemctl show 'x y.service'" in text and "12 ms" in text
        await desk.press("k", "y")
        await desk.until(lambda: desk.app.clipboard == "systemctl show 'x y.service'")


async def test_a_worker_that_fails_is_never_lost() -> None:
    async with console() as desk:

        async def boom() -> None:
            raise RuntimeError("a fault of our own")

        desk.app.spawn("test", boom())
        await desk.until(lambda: any(event.text == "a fault of our own" for event in desk.app.desk.events))
        assert desk.app.is_running


async def test_a_journal_that_breaks_is_told_and_followed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ddtui.desk.AGAIN", 0.0)
    session = FakeSession()
    follow, broken = session.journal, []

    async def once_broken():  # type: ignore[no-untyped-def]
        if not broken:
            broken.append(True)
            raise RuntimeError("journalctl ended")
        async for lines in follow():
            yield lines

    session.journal = once_broken  # type: ignore[method-assign]
    async with console(session) as desk:
        await desk.until(lambda: broken)
        session.lines.put_nowait([])
        await desk.until(lambda: session.lines.empty())
        assert any("journalctl ended" in text for text in desk.app.desk.store.texts)


async def test_without_a_profile_one_is_picked() -> None:
    session = FakeSession()
    offers = [
        Offer("broken", "", problem="broken.yaml, line 3: …"),
        Offer("ct200", "ct200", "the owner's host"),
    ]
    loaded: list[str] = []

    def load(name: str) -> Profile:
        loaded.append(name)
        return session.profile

    app = make_app(session)
    from ddtui.app import DdtuiApp

    app = DdtuiApp(None, open_session=lambda profile: session, offers=offers, load_profile=load)
    async with app.run_test(size=(100, 30)) as pilot:
        from console.harness import until

        assert isinstance(app.screen, PickScreen)
        await pilot.press("enter")  # the broken one is told, not opened
        await pilot.pause()
        assert loaded == []
        await pilot.press("j", "enter")
        await until(pilot, lambda: isinstance(app.screen, TuneScreen))
        assert loaded == ["ct200"]


async def test_any_theme_of_textual_can_be_used() -> None:
    async with console() as desk:
        for name in ("ddtui-light", "nord", "gruvbox", "textual-ansi", "ddtui-dark"):
            if name in desk.app.available_themes:
                desk.app.theme = name
                await desk.pilot.pause()
                assert "Service" in desk.text()


async def test_a_users_keymap_moves_a_key_in_footer_help_and_palette() -> None:
    async with console(keymap={"burst": "Z"}) as desk:
        await desk.pilot.pause()
        assert "Z burst" in desk.text()
        await desk.press("question_mark")
        await desk.dialog(Help)
        await desk.press("space", "space", "space", "space", "space")
        await desk.until(lambda: "Z  burst " in desk.text())
        await desk.press("escape", "ctrl+p")
        await desk.until(lambda: "burst: burst   Z" in desk.text())
        await desk.press("escape", "escape")
        await desk.back_at(TuneScreen)
        await desk.press("Z")
        await desk.until(lambda: type(desk.app.screen).__name__ == "BurstDialog")


def test_a_keymap_that_overlaps_is_refused() -> None:
    with pytest.raises(ValueError, match="taken by both"):
        make_app(FakeSession(), keymap={"restart": "u"})


async def test_a_key_taken_from_a_knob_is_said_and_the_action_has_it() -> None:
    async with console(keymap={"flag": "b"}) as desk:
        assert desk.told() == "'b' is taken by both 'flag' and the knob 'budget': the knob has none"
        assert "b budget" not in desk.text()
        await desk.press("b")
        await desk.until(lambda: type(desk.app.screen).__name__ == "FlagDialog")


async def test_the_connect_screen_is_the_first_that_is_painted() -> None:
    session = FakeSession(make_profile())
    session.gate = asyncio.Event()
    async with console(session, wait=False) as desk:
        assert isinstance(desk.app.screen, ConnectScreen)


async def test_a_theme_that_is_chosen_is_there_next_time() -> None:
    async with console() as desk:
        await desk.press("T")
        await desk.until(lambda: type(desk.app.screen).__name__ == "CommandPalette")
        await desk.type("ddtui-light")
        await desk.press("enter")
        await desk.until(lambda: desk.app.theme == "ddtui-light" and settings.path().exists())
    assert settings.load({}).theme == "ddtui-light"


CLOSED = "read-only in a browser"


@pytest.mark.parametrize("action", [action for action in ACTIONS if Needs.DISK in action.needs], ids=str)
def test_what_writes_on_this_machine_is_refused_where_its_disk_is_closed(action: Action) -> None:
    desk = DeskOf(make_profile())
    desk.disk_closed = CLOSED
    desk.view = replace(desk.view, tune=make_view())
    assert desk.why_not(action) == CLOSED


async def test_a_console_whose_machine_is_closed_to_it_writes_nothing_by_any_way() -> None:
    async with console(disk_closed=CLOSED) as desk:
        for action in ACTIONS:
            if Needs.DISK in action.needs:
                await desk.app.run_action(action.call)
                desk.app.act(action.id)
        await desk.pilot.pause()
        assert set(desk.told().splitlines()) == {CLOSED}
        assert desk.session.calls == ["connect"] and isinstance(desk.app.screen, TuneScreen)
        await desk.press("2", "S")
        await desk.pilot.pause()
        assert "save as" not in desk.text()
        desk.app.choose_theme("nord")
        desk.app.desk.memory.use("decode")
        assert await desk.app.ask(FirstRun()) is None
        await desk.pilot.pause()
        assert desk.app.theme == "nord"
    assert not settings.path().exists() and not locations.state_dir().exists()


async def test_a_host_key_is_not_remembered_where_the_disk_is_closed() -> None:
    session = FakeSession()
    session.key = KEY
    async with console(session, disk_closed=CLOSED, wait=False) as desk:
        await desk.until(lambda: session.answers == [False])
        assert CLOSED in desk.told()


async def test_the_journal_can_be_read_before_the_first_reading_of_the_layers_is_over() -> None:
    session = FakeSession(view=make_view(surveyed=False))
    session.gate = asyncio.Event()
    async with console(session, wait=False) as desk:
        await desk.until(lambda: "connect" in session.calls)
        await desk.press("2")
        assert isinstance(desk.app.screen, ConnectScreen)
        session.gate.set()
        await desk.back_at(TuneScreen)
        await desk.press("4", "2")
        await desk.back_at(LogsScreen)
