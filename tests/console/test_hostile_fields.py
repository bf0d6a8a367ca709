"""Every field that comes from the host, hostile: what the rooms give is made inert at the console's door, and
every screen that shows it shows it so, even where it came another way (an old history, an import).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from console.fakes import NOW, STARTING, FakeSession, make_burst, make_profile, make_view
from console.harness import console
from console.histories import HOST, UNIT, burst_of, running_sweep
from console.test_hostile_text import inert
from tuning import surveys

from ddtui.bench import kept
from ddtui.host.base import Link, LinkState, LoggedCommand
from ddtui.past import Past
from ddtui.plain import Line
from ddtui.session import JournalLine
from ddtui.store.history import History
from ddtui.store.model import Setting
from ddtui.tuning import survey as tuning_surveys
from ddtui.tuning import verdicts
from ddtui.tuning.lock import LockState
from ddtui.tuning.model import Phase
from ddtui.tuning.watch import WatchState
from ddtui.view import ChangeView
from ddtui.viewing import tune_view

T = TypeVar("T")
HOSTILE = (
    "[/usr/bin/x][red]\x1b]52;c;QQ==\x07\x1b[2J\x9b31m\x00\u202eevil\u202c表👩‍💻[b\r\n[@click=app.quit]y"
)
# words that decide how a thing is drawn, and are ddtui's own
OWN = {"subject", "state", "kind", "action", "op", "phase", "whole", "order", "active", "unit_state"}


def poisoned(value: T, text: str = HOSTILE) -> T:
    """The same thing with this text in each of its fields that holds text."""
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return text  # type: ignore[return-value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: poisoned(getattr(value, field.name), text)
            for field in dataclasses.fields(value)
            if field.init and field.name not in OWN
        }
        return replace(value, **fields)  # type: ignore[type-var]
    if isinstance(value, tuple):
        return tuple(poisoned(one, text) for one in value)  # type: ignore[return-value]
    if isinstance(value, Mapping):
        return {
            poisoned(key, f"{text}{i}"): poisoned(one, text) for i, (key, one) in enumerate(value.items())
        }  # type: ignore[return-value]
    return value


def texts(value: object) -> list[str]:
    """Every text in a thing."""
    if isinstance(value, Enum):
        return []
    if isinstance(value, str):
        return [value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [text for field in dataclasses.fields(value) for text in texts(getattr(value, field.name))]
    if isinstance(value, Mapping):
        return [text for pair in value.items() for one in pair for text in texts(one)]
    if isinstance(value, (tuple, list, frozenset, set)):
        return [text for one in value for text in texts(one)]
    return []


def hostile_view() -> Any:
    view = make_view(
        others=("x",), stale_lock="x", notices=("x",), cut="x", read_only="x", gpus_unknown="x", people=("x",)
    )
    bad = poisoned(view)
    return replace(
        bad, knobs=tuple(replace(row, name=own.name) for row, own in zip(bad.knobs, view.knobs, strict=True))
    )


async def walk(desk: Any) -> None:
    """Every screen and every list that shows something of the host."""
    for key in ("2", "3", "4", "5", "6", "1"):
        await desk.press(key, "right_square_bracket", "j", "right_square_bracket", "j")
        await desk.pilot.pause()
        inert(desk)
    for key in ("L", "C", "question_mark", "e", "f", "x", "H"):
        before = desk.app.screen
        await desk.press(key)
        await desk.pilot.pause()
        inert(desk)
        if desk.app.screen is not before:
            await desk.press("escape")
            await desk.pilot.pause()


async def test_every_field_of_what_is_known_is_shown_inert_on_every_screen(tmp_path: Path) -> None:
    view = hostile_view()
    session = FakeSession(make_profile(), view)
    history = History.open(tmp_path / "history.sqlite")
    setting = Setting({"budget": HOSTILE}, {HOSTILE: HOSTILE}, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    for _ in range(2):
        step = history.step(HOST, UNIT, replace(setting, drafter=f"{_}{HOSTILE}"))
        burst = poisoned(burst_of(step.number, 1.0, 4.0, id=f"b{_}"))
        history.save_burst(HOST, UNIT, {**kept.to_plain(burst), "id": f"b{_}"})
        history.add_note("step", str(step.id), HOSTILE)
        history.save_change(
            HOST, UNIT, {"id": f"c{_}", "phase": HOSTILE, "result": HOSTILE, "at": 5.0}, step=1
        )
    session.past = Past(history, HOST, UNIT)
    session.earlier = [poisoned(make_burst("b1", 7))]
    async with console(session, (160, 45)) as desk:
        session.lines.put_nowait([JournalLine(NOW, HOSTILE), JournalLine(NOW, HOSTILE, 3)])
        session._on_command(LoggedCommand(NOW, (HOSTILE, HOSTILE), False, 1, 0.1))
        desk.app.desk.publish(replace(desk.app.desk.view, experiment=poisoned(running_sweep())))
        failed = replace(
            STARTING, phase=Phase.STRANDED, failure="x", evidence=("x",), advice="x", way_back=("x",)
        )
        change = ChangeView("apply", HOSTILE, poisoned(replace(failed, verdicts=view.verdicts)), done=True)
        desk.app.desk.publish(replace(desk.app.desk.view, change=change))
        link = Link(LinkState.RETRYING, HOSTILE, since=NOW, retry_at=NOW + 3, message=HOSTILE)
        session.show(link=link)
        for severity in ("information", "error"):
            desk.app.desk.tell(severity, HOSTILE, HOSTILE)
        await walk(desk)
        await desk.pilot.resize_terminal(80, 24)
        await desk.pilot.pause()
        inert(desk)


def hostile_state() -> WatchState:
    """A whole look at a host, with hostile text in each field of each layer."""
    survey = poisoned(
        surveys.survey(
            [*surveys.BASE, "--speculative-ddtree-budget", "8"],
            engine=surveys.installation("0.5.11"),
            log=["draft_window_size=2048"],
            server=surveys.server_info({"speculative_ddtree_budget": 8}),
            config=surveys.captured_drafter(),
        )
    )
    judged = verdicts.judge(survey, surveys.PROFILE)
    ctx: Any = type("Context", (), {"profile": surveys.PROFILE})
    return WatchState(
        Link(LinkState.CONNECTED, HOSTILE, message=HOSTILE),
        survey,
        judged,
        tuning_surveys.knob_rows(survey, ctx),
        survey.status,
        NOW,
        lock=LockState("x", HOSTILE, "x", HOSTILE, 1.0, 1.0, stale=False, ours=False),
        problem=HOSTILE,
    )


def test_the_console_s_door_lets_no_hostile_text_in() -> None:
    view = tune_view(hostile_state(), Link(LinkState.CONNECTED, "x"), surveys.PROFILE)
    assert [text for text in texts(view) if not text.replace("\u200d", "").isprintable()] == []


def test_a_plain_line_is_inert() -> None:
    line = Line("journal", HOSTILE).at(NOW)
    assert line.replace("\u200d", "").isprintable() and "[/usr/bin/x][red]" in line
