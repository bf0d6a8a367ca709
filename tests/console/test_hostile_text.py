"""Text from the host is data: markup, escapes, control and bidi characters are shown inert by every widget."""

from __future__ import annotations

from dataclasses import replace

from console.fakes import NOW, STARTING, VERDICTS, FakeSession, make_burst, make_plan, make_profile, make_view
from console.harness import Desk, console

from ddtui.bench.model import BurstState
from ddtui.host.base import HostError, HostKey, Link, LinkState
from ddtui.profile import Knob
from ddtui.screens.commands import CommandLog
from ddtui.screens.dialogs import Problem, Secret, Trust
from ddtui.screens.help import Help
from ddtui.screens.knob import KnobDialog
from ddtui.screens.review import Review
from ddtui.session import JournalLine
from ddtui.tuning.model import Evidence, KnobRow, Layer, Op, Phase, Turn
from ddtui.view import DrafterView, Fact, FlagRow, ServerView

MARKUP = ("[/usr/bin/x]", "[red]", "[b", "[@click=app.quit]x[/]", "[link=http://x]y", "\\[x", "]")
CONTROL = (
    "\x1b]52;c;AAAA\x07",
    "\x1b]0;title\x07",
    "\x1b[2J",
    "\x9b31m",
    "a\x00b",
    "\u202eevil\u202c",
    "\x07",
    "\r\n",
)
WIDE = ("表" * 90, "👩‍💻" * 30, "e\u0301" * 90, "x" * 5000)
SHOWN = (
    *MARKUP,
    *WIDE,
)  # the journal takes CONTROL too; elsewhere text has been made inert at the host's door


def inert(desk: Desk) -> str:
    """The screen's text, which holds nothing that could act on a terminal."""
    text = desk.text()
    for line in text.split("\n"):
        for character in line:
            code = ord(character)
            assert code >= 0x20 and not 0x7F <= code <= 0x9F, repr(line)
            assert character not in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", repr(line)
    return text


async def test_every_pane_shows_the_words_of_the_host_as_they_are() -> None:
    knobs = tuple(Knob(name=f"k{i}", flag=f"--k{i}") for i, _ in enumerate(SHOWN))
    verdicts = tuple(
        replace(
            VERDICTS[0],
            subject=f"s{i}",
            title=text,
            summary=text,
            evidence=(Evidence(Layer.DRAFTER, text, text),),
            value=text,
            settle=text,
        )
        for i, text in enumerate(SHOWN)
    )
    view = make_view(
        drafter=DrafterView(MARKUP[0], MARKUP[1], tuple(Fact(t, t, t) for t in SHOWN), None, NOW),
        server=ServerView(MARKUP[2], MARKUP[3], 1, 1),
        knobs=tuple(KnobRow(f"k{i}", text, text, text, text) for i, text in enumerate(SHOWN)),
        verdicts=verdicts,
        others=MARKUP,
    )
    flags = tuple(FlagRow(text, text, f"{text}2") for text in SHOWN)
    service = replace(view.service, unit=MARKUP[0], problem=MARKUP[1], warnings=SHOWN[:4], flags=flags)
    session = FakeSession(make_profile(knobs=knobs), replace(view, service=service))
    session.earlier = [
        replace(make_burst("b1", i), state=BurstState.FAILED, text=text, id=text)
        for i, text in enumerate(SHOWN)
    ]
    async with console(session, (200, 100)) as desk:
        session.lines.put_nowait([JournalLine(NOW, text) for text in SHOWN])
        await desk.until(lambda: desk.tune.journal.view.count == len(SHOWN))
        await desk.pilot.pause()
        shown = inert(desk)
        for text in MARKUP:
            assert text in shown
        await desk.press("2")
        await desk.until(lambda: all(text in inert(desk) for text in MARKUP))
        await desk.press("3")
        for _ in SHOWN:
            await desk.press("j")
            inert(desk)
        await desk.pilot.resize_terminal(80, 24)
        await desk.pilot.pause()
        inert(desk)


async def test_the_journal_shows_any_line_inert() -> None:
    texts = (*MARKUP, *CONTROL, *WIDE)
    async with console() as desk:
        desk.session.lines.put_nowait([JournalLine(NOW, f"before {text} after") for text in texts])
        await desk.until(lambda: desk.tune.journal.view.count == len(texts))
        await desk.pilot.pause()
        inert(desk)
        await desk.press("slash")
        await desk.type("after")
        await desk.press("enter", "W")
        await desk.pilot.pause()
        inert(desk)
        await desk.press("W", "l", "l")
        await desk.pilot.pause()
        inert(desk)


async def test_every_dialog_shows_it_too() -> None:
    session = FakeSession()
    async with console(session) as desk:
        knob = session.profile.knobs[0]
        for text in (*MARKUP[:5], "表👩‍💻e\u0301" * 40):
            session.ran(text, text)
            plan = make_plan(
                (Turn(text, Op.SET, text),),
                problems=(text,),
                warnings=(text,),
                interrupts=text,
                diff=f"+{text}",
            )
            for dialog in (
                CommandLog(desk.app.desk),
                Problem(text, text, text),
                Secret(text, "password"),
                Trust(HostKey(text, 22, text, text)),
                Review(plan, text, title=text),
                KnobDialog(desk.app.desk.view, knob, KnobRow("budget", "--x", text, text, text)),
                Help(text, [], {}),
            ):
                await desk.app.push_screen(dialog)
                await desk.pilot.pause()
                assert text[:2] in inert(desk)
                await dialog.dismiss(None)


async def test_a_change_and_a_notice_of_any_text_are_shown_inert() -> None:
    session = FakeSession()
    async with console(session) as desk:
        for text in (*MARKUP[:3], "表👩‍💻e\u0301" * 40):
            desk.app.desk.turn(Turn("window", Op.SET, "2048"))
            await desk.press("a")
            await desk.dialog(Review)
            await desk.press("y")
            session.progress.put_nowait(replace(STARTING, text=text))
            await desk.until(lambda: desk.app.desk.view.changing)
            await desk.pilot.pause()
            inert(desk)
            failed = replace(STARTING, phase=Phase.STRANDED, failure=text, evidence=(text,), advice=text)
            session.progress.put_nowait(replace(failed, way_back=(text,)))
            session.progress.put_nowait(None)
            await desk.until(lambda: not desk.app.desk.view.changing)
            await desk.pilot.pause()
            assert text[:2] in inert(desk)
        link = Link(LinkState.RETRYING, "x", since=NOW, retry_at=NOW + 3, message=SHOWN[0])
        session.show(notices=SHOWN, link=link)
        await desk.pilot.pause()
        inert(desk)


async def test_a_refusal_of_any_text_is_shown_as_it_is() -> None:
    session = FakeSession()
    session.connect_error = HostError(MARKUP[0], MARKUP[1])
    async with console(session, wait=False) as desk:
        await desk.until(lambda: MARKUP[0] in desk.text() and MARKUP[1] in desk.text())
        for text in MARKUP:
            session.connect_error = HostError(text, text)
            await desk.press("r")
            await desk.until(lambda text=text: text in inert(desk))
