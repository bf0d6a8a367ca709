"""How the operator hears of a finished burst, a failed start, a lost link: as the settings say."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import pytest
from console.fakes import FakeSession, journal, make_burst, make_view
from console.harness import Desk, console, make_app, until

from ddtui import alerts, terminal
from ddtui.desk import Event
from ddtui.host.base import LinkState
from ddtui.settings import Notify, Settings, When
from ddtui.tuning.model import Phase, Progress


def heard(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What reaches the terminal besides the screen: bells and desktop notifications."""
    got: list[str] = []
    monkeypatch.setattr(desk.app, "bell", lambda: got.append("bell"))
    assert desk.app._driver is not None
    write = desk.app._driver.write

    def written(data: str) -> None:
        if "\x1b]9;" in data:
            got.append(data)
        write(data)

    monkeypatch.setattr(desk.app._driver, "write", written)
    return got


def lose(session: FakeSession) -> None:
    session.show(link=replace(make_view().link, state=LinkState.LOST, message="keepalive lost"))


def told(desk: Desk) -> list[str]:
    return [notice.title for notice in desk.app._notifications]


async def test_by_default_a_lost_link_has_a_toast_and_a_bell(monkeypatch: pytest.MonkeyPatch) -> None:
    async with console() as desk:
        got = heard(desk, monkeypatch)
        lose(desk.session)
        await desk.until(lambda: got and "link lost" in told(desk))
        assert got == ["bell"]


async def test_a_finished_burst_is_a_desktop_notification_where_that_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wish = Settings(notify=Notify(toast=When.NEVER, bell=When.NEVER, osc9=When.ALL))
    monkeypatch.delenv("TMUX", raising=False)
    async with console(settings=wish) as desk:
        got = heard(desk, monkeypatch)
        await desk.press("x")
        await desk.until(lambda: type(desk.app.screen).__name__ == "BurstDialog")
        await desk.press("enter")
        desk.session.bursts.put_nowait(make_burst("b1", 7))
        desk.session.bursts.put_nowait(None)
        await desk.until(lambda: got)
        (one,) = got
        assert one.startswith("\x1b]9;ddtui ct200: burst: done: 6 points") and one.endswith("\x07")
        assert told(desk) == []


async def test_a_failed_start_rings_where_problems_do(monkeypatch: pytest.MonkeyPatch) -> None:
    async with console() as desk:
        got = heard(desk, monkeypatch)

        async def steps():  # type: ignore[no-untyped-def]
            yield Progress(Phase.FAILED, "", failure="out of memory while capturing graphs")

        desk.app.spawn("change", desk.app.desk.change("restart", "", steps()))
        await desk.until(lambda: got and "restart" in told(desk))
        assert got == ["bell"]


def event(severity: str) -> Event:
    return Event(severity, "burst", "done", 0.0, alert=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("when", "severity", "wanted"),
    [
        (When.ALL, "information", True), (When.PROBLEMS, "information", False), (When.PROBLEMS, "warning", True),
        (When.PROBLEMS, "error", True), (When.NEVER, "error", False),
    ],
)  # fmt: skip
def test_problems_are_warnings_and_errors(when: When, severity: str, wanted: bool) -> None:
    assert alerts.wanted(when, event(severity)) is wanted


def test_a_notification_carries_no_control_sequence_of_the_host() -> None:
    sent = alerts.osc9("a\x1b]52;c;aGk=\x07b\nc", {})
    assert sent.count("\x1b") == 1 and sent.count("\x07") == 1 and "\n" not in sent


def test_tmux_is_asked_to_pass_it_on() -> None:
    assert alerts.osc9("x", {"TMUX": "/tmp/tmux-0/default,1,0"}) == "\x1bPtmux;\x1b\x1b]9;x\x07\x1b\\"


def test_screen_is_handed_it_in_chunks_that_it_passes_on() -> None:
    sent = terminal.clipboard("x" * 600, {"STY": "1.pts-0"})
    chunks = sent.removeprefix("\x1bP").removesuffix("\x1b\\").split("\x1b\\\x1bP")
    assert max(map(len, chunks)) <= 240
    assert "".join(chunks) == f"\x1b]52;c;{b64encode(b'x' * 600).decode()}\x07"


async def test_what_is_copied_in_tmux_is_in_its_buffer_whatever_tmux_does_with_osc_52(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmux").write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n[ "$2" = -w ] && exit 1\ncat > {tmp_path}/buffer\n'
    )
    (tmp_path / "tmux").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    await terminal.to_program("a\nb", {})
    assert not (tmp_path / "asked").exists()
    await terminal.to_program("a\nb", {"TMUX": "/tmp/tmux-0/default,1,0"})
    assert (tmp_path / "asked").read_text() == "load-buffer -w -\nload-buffer -\n"  # an old tmux
    assert (tmp_path / "buffer").read_text() == "a\nb"


@pytest.mark.parametrize("keys", [("2",), ("right_square_bracket", "z")], ids=["logs", "zoomed"])
async def test_a_toast_leaves_the_newest_lines_of_the_journal_free(keys: tuple[str, ...]) -> None:
    session = FakeSession()
    session.lines.put_nowait(journal())
    app = make_app(session)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.current_mode.startswith("tune") and app.desk.view.tune.surveyed)
        await pilot.press(*keys)
        app.notify("a burst is running; X stops it", title="burst", markup=False)
        lines: list[str] = []

        def there() -> bool:
            lines[:] = [strip.text for strip in app.screen._compositor.render_strips()]
            return any("X stops it" in line for line in lines)

        await until(pilot, there)
        journal_lines = [line for line in lines if "Decode batch" in line]
        assert journal_lines and all(
            "stops it" not in line and "burst  " not in line for line in journal_lines[-10:]
        )
        assert "tok/s" in lines[2] and "queue" in lines[2]


def test_the_terminal_of_macos_which_knows_no_osc_52_gets_copies_by_its_own_program() -> None:
    assert terminal.copiers({"TERM_PROGRAM": "Apple_Terminal"}) == (("pbcopy",),)
    assert terminal.copiers({"TERM_PROGRAM": "iTerm.app"}) == ()
    assert terminal.copiers({"TERM_PROGRAM": "Apple_Terminal", "TMUX": "x"})[0][0] == "tmux"
