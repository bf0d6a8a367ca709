"""Text from the host is data: markup, escapes, control and bidi characters are shown inert by every widget."""

from __future__ import annotations

from dataclasses import replace

import pytest
from console.fakes import NOW, STARTING, VERDICTS, FakeSession, make_burst, make_plan, make_view
from console.harness import Desk, console

from ddtui.bench.model import BurstState
from ddtui.host.base import HostError, HostKey, Link, LinkState
from ddtui.screens.commands import CommandLog
from ddtui.screens.dialogs import Problem, Secret, Trust
from ddtui.screens.help import Help
from ddtui.screens.knob import KnobDialog
from ddtui.screens.review import Review
from ddtui.session import JournalLine
from ddtui.tuning.model import Evidence, KnobRow, Layer, Op, Phase, Turn
from ddtui.view import DrafterView, Fact, FlagRow, ServerView

MARKUP = ["[/usr/bin/x]", "[red]", "[b", "[@click=app.quit]x[/]", "[link=http://x]y", "\\[x", "]"]
CONTROL = [
    "\x1b]52;c;AAAA\x07",
    "\x1b]0;title\x07",
    "\x1b[2J",
    "\x9b31m",
    "a\x00b",
    "\u202eevil\u202c",
    "\x07",
    "\r\n",
]
WIDE = ["表" * 90, "👩‍💻" * 30, "e\u0301" * 90, "x" * 5000]


def inert(desk: Desk) -> str:
    """The screen's text, which holds nothing that could act on a terminal."""
    text = desk.text()
    for line in text.split("\n"):
        for character in line:
            code = ord(character)
            assert code >= 0x20 and not 0x7F <= code <= 0x9F, repr(line)
            assert character not in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", repr(line)
    return text


@pytest.mark.parametrize("text", MARKUP + WIDE)
async def test_every_pane_shows_the_words_of_the_host_as_they_are(text: str) -> None:
    evidence = Evidence(Layer.DRAFTER, text, text)
    verdict = replace(VERDICTS[0], title=text, summary=text, evidence=(evidence,), value=text, settle=text)
    view = make_view(
        drafter=DrafterView(text, text, (Fact(text, text, text),), None, NOW),
        server=ServerView(text, text, 1, 1),
        knobs=(KnobRow("budget", "--x", text, text, text),),
        verdicts=(verdict, replace(verdict, subject="other")),
        others=(text,),
    )
    service = replace(
        view.service, unit=text, problem=text, warnings=(text,), flags=(FlagRow(text, text, text),)
    )
    session = FakeSession(view=replace(view, service=service))
    session.earlier = [replace(make_burst("b1", 1), state=BurstState.FAILED, text=text, id=text)]
    async with console(session, (200, 60)) as desk:
        session.lines.put_nowait([JournalLine(NOW, text)])
        await desk.until(lambda: desk.tune.journal.view.count == 1)
        await desk.pilot.pause()
        shown = inert(desk)
        assert text[:4] in shown
        await desk.press("2")
        await desk.until(lambda: text[:3] in inert(desk))
        await desk.press("3")
        await desk.pilot.pause()
        inert(desk)


@pytest.mark.parametrize("text", MARKUP + CONTROL + WIDE)
async def test_the_journal_shows_any_line_inert(text: str) -> None:
    async with console() as desk:
        desk.session.lines.put_nowait([JournalLine(NOW, f"before {text} after")])
        await desk.until(lambda: desk.tune.journal.view.count == 1)
        await desk.pilot.pause()
        inert(desk)
        await desk.press("slash")
        await desk.type("after")
        await desk.pilot.pause()
        inert(desk)


@pytest.mark.parametrize("text", MARKUP + WIDE)
async def test_every_dialog_shows_it_too(text: str) -> None:
    session = FakeSession()
    async with console(session) as desk:
        session.ran(text, text)
        knob = session.profile.knobs[0]
        plan = make_plan(
            (Turn(text, Op.SET, text),), problems=(text,), warnings=(text,), interrupts=text, diff=f"+{text}"
        )
        for dialog in (
            CommandLog(desk.app.desk),
            Problem(text, text, text),
            Secret(text, "password"),
            Trust(HostKey(text, 22, text, text)),
            Review(plan, text, title=text),
            KnobDialog(desk.app.desk.view, knob, KnobRow("budget", "--x", text, text, text)),
            Help(text, []),
        ):
            desk.app.push_screen(dialog)
            await desk.until(lambda dialog=dialog: dialog.is_mounted and desk.app.screen is dialog)
            await desk.pilot.pause()
            inert(desk)
            dialog.dismiss(None)
            await desk.until(lambda dialog=dialog: desk.app.screen is not dialog)


@pytest.mark.parametrize("text", MARKUP + WIDE)
async def test_a_change_and_a_notice_of_any_text_are_shown_inert(text: str) -> None:
    session = FakeSession()
    async with console(session) as desk:
        desk.app.desk.turn(Turn("window", Op.SET, "2048"))
        await desk.press("a")
        await desk.dialog(Review)
        await desk.press("y")
        session.progress.put_nowait(replace(STARTING, text=text))
        await desk.until(lambda: desk.app.desk.view.changing)
        await desk.pilot.pause()
        inert(desk)
        session.progress.put_nowait(
            replace(
                STARTING, phase=Phase.STRANDED, failure=text, evidence=(text,), advice=text, way_back=(text,)
            )
        )
        session.progress.put_nowait(None)
        await desk.until(lambda: not desk.app.desk.view.changing)
        session.show(
            notices=(text,),
            link=Link(LinkState.RETRYING, "x", since=NOW, retry_at=NOW + 3, message=text),
        )
        await desk.pilot.pause()
        inert(desk)


@pytest.mark.parametrize("text", MARKUP)
async def test_a_refusal_of_any_text_is_shown_as_it_is(text: str) -> None:
    session = FakeSession()
    session.connect_error = HostError(text, text)
    async with console(session, wait=False) as desk:
        await desk.until(lambda: text in desk.text())
        inert(desk)
