"""The checks as they are acted on: every step that a check offers works by its key and by the mouse, and every layer
can be read whole.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from console.fakes import NOW, VERDICTS, FakeSession
from console.harness import Desk, console
from textual.widgets import Input

from ddtui.screens.burst import BurstDialog
from ddtui.screens.dialogs import Confirm
from ddtui.screens.layers import LayersDialog
from ddtui.screens.text import TextDialog
from ddtui.screens.tune import TuneScreen
from ddtui.tuning.model import Evidence, Layer, NextAction, Status, Verdict
from ddtui.view import LayerView
from ddtui.widgets.checks_pane import CheckList, ages

TURN = NextAction("turn", "set the window to 2048", {"knob": "window", "value": "2048"})
BURST = NextAction("burst", "measure below and far above the window", {"context": "512,16384"})
RESTART = NextAction("restart", "restart the service")
LOG = NextAction("open-log", "open the line in the journal", {"line": "Initialized DFLASH draft runner"})
UNIT = NextAction("open-unit", "look at the unit", {"file": "/etc/systemd/system/x.service"})


def offering(*steps: NextAction) -> Verdict:
    return replace(
        VERDICTS[0],
        status=Status.NOT_IN_FORCE,
        summary="it is not in force",
        evidence=(Evidence(Layer.UNIT, "the flag is not given", "/etc/systemd/system/x.service:7"),),
        next=steps,
    )


def session_with(*steps: NextAction) -> FakeSession:
    session = FakeSession()
    session.show(verdicts=(offering(*steps),))
    return session


async def arrived(desk: Desk, step: NextAction) -> None:
    """Until what the step is for has come about."""
    match step.action:
        case "turn":
            await desk.until(lambda: "window" in desk.app.desk.view.turns)
            assert desk.app.desk.view.turns["window"].value == "2048"
        case "burst":
            dialog = await desk.dialog(BurstDialog)
            assert dialog.query_one("#context", Input).value == "512,16k"
        case "restart":
            await desk.dialog(Confirm)
        case _:
            await desk.dialog(TextDialog)


STEPS = [(TURN, BURST), (RESTART, LOG), (UNIT,)]
CASES = [(steps, at) for steps in STEPS for at in range(len(steps))]
NAMES = [f"{steps[at].action} as step {at + 1}" for steps, at in CASES]


@pytest.mark.parametrize(("steps", "at"), CASES, ids=NAMES)
async def test_each_step_of_a_check_is_taken_by_the_key_that_stands_before_it(
    steps: tuple[NextAction, ...], at: int
) -> None:
    async with console(session_with(*steps)) as desk:
        checks = desk.tune.query_one(CheckList)
        checks.focus()
        await desk.until(lambda: checks.has_focus and checks.highlighted == 0)
        (line,) = [line for line in desk.text().splitlines() if steps[at].label[:20] in line]
        key = line[: line.index(steps[at].label[:20])].split()[-1]
        await desk.press("enter" if key == "↵" else key)
        await arrived(desk, steps[at])


@pytest.mark.parametrize(("steps", "at"), CASES, ids=NAMES)
async def test_each_step_of_a_check_is_taken_by_a_click_on_it(steps: tuple[NextAction, ...], at: int) -> None:
    async with console(session_with(*steps)) as desk:
        lines = desk.text().splitlines()
        (y,) = [n for n, line in enumerate(lines) if steps[at].label[:20] in line]
        await desk.pilot.click(offset=(lines[y].index(steps[at].label[:20]) + 2, y))
        await arrived(desk, steps[at])


async def test_a_click_on_a_checks_evidence_takes_no_step() -> None:
    async with console(session_with(TURN)) as desk:
        lines = desk.text().splitlines()
        (y,) = [n for n, line in enumerate(lines) if "the flag is not given" in line]
        await desk.pilot.click(offset=(lines[y].index("the flag") + 2, y))
        await desk.until(lambda: desk.tune.query_one(CheckList).has_focus)
        assert isinstance(desk.app.screen, TuneScreen) and not desk.app.desk.view.turns


async def test_a_check_without_another_step_says_so() -> None:
    async with console(session_with(TURN)) as desk:
        desk.tune.query_one(CheckList).focus()
        await desk.press("n")
        await desk.until(lambda: "offers no other step" in desk.told())


async def test_the_footer_names_the_keys_of_the_checks_where_they_answer() -> None:
    async with console(session_with(TURN, BURST), (200, 60)) as desk:
        desk.tune.query_one(CheckList).focus()
        await desk.until(lambda: "↵ do what it says" in desk.text().splitlines()[-1])
        foot = desk.text().splitlines()[-1]
        assert "a review & apply" in foot and "↵ review" not in foot  # enter is the check's own here
        assert "n other step" in foot and "o open evidence" in foot


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_every_layer_is_read_whole_with_its_age_and_its_own_failure(size: tuple[int, int]) -> None:
    session = FakeSession()
    session.show(
        layers=(
            LayerView("drafter config", NOW - 3, None, ("config             /opt/d/config.json",)),
            LayerView("server", NOW - 65, "the server wants an API key: set api_key_env in the profile"),
            LayerView("measured", NOW - 3, "no burst of this setting yet"),
        )
    )
    async with console(session, size) as desk:
        await desk.press("L")
        await desk.dialog(LayersDialog)
        text = desk.text()
        assert "drafter config   read just now" in text and "/opt/d/config.json" in text
        assert "✗ server   read 1 min ago" in text and "set api_key_env in the profile" in text
        assert "✗ measured" not in text and "no burst of this setting yet" in text
        session.show(layers=(LayerView("unit", NOW, None, ("unit  x.service",)),))
        await desk.until(lambda: "unit   read just now" in desk.text())
        await desk.press("r")
        await desk.until(lambda: "refresh" in session.calls)
        await desk.press("escape")
        await desk.back_at(TuneScreen)


async def test_a_click_on_the_ages_opens_the_layers() -> None:
    session = FakeSession()
    session.show(layers=(LayerView("unit", NOW - 3, None, ("unit               x.service",)),))
    async with console(session) as desk:
        await desk.pilot.click("#layer-ages", offset=(3, 0))
        await desk.dialog(LayersDialog)


def test_where_there_is_little_room_the_span_of_ages_is_said() -> None:
    layers = (
        LayerView("engine", NOW - 125),
        LayerView("unit", NOW - 3),
        LayerView("journal", NOW, "may not be read"),
    )
    assert ages(layers, NOW, brief=True).plain == (
        "layers read just now to 2 min ago; ✗ journal: may not be read"
    )
    assert ages(layers[:1], NOW, brief=True).plain == "layers read 2 min ago"
