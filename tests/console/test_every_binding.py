"""Every key of the action table, pressed on the screen where it answers, reaches its action. Driven from the table:
an action that no screen binds fails here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from console.fakes import FakeSession, journal, make_burst
from console.harness import console
from console.histories import make_past
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widget import Widget

from ddtui.actions.action import Where
from ddtui.actions.table import ACTIONS, BY_ID
from ddtui.host.base import Unreachable

MODES = ["1", "2", "3", "4", "5", "6"]


def home(app: Any, screen: Screen[Any], action: str, key: str) -> DOMNode | None:
    """The node that binds this key to this action."""
    for node in (*screen.query("*"), screen, app):
        bound = node._bindings.key_to_bindings.get(key, ())
        if any(binding.id == action for binding in bound) and (
            not isinstance(node, Widget) or node.is_attached
        ):
            return node
    return None


async def reaches(desk: Any, screen: Screen[Any], node: DOMNode, action: str, key: str) -> bool:
    """Whether the key, pressed where the node has the focus, calls the action on it."""
    called: list[str] = []
    method = f"action_{BY_ID[action].call}"
    if node not in (screen, desk.app):
        parts = [node, *node.query("*")]
        target = next(
            (one for one in parts if isinstance(one, Widget) and one.focusable and one.display), None
        )
        if target is None:
            return False
        target.focus()
        await desk.pilot.pause()
    kept = node.__dict__.get(method)
    setattr(node, method, lambda *given: called.append(action))
    try:
        await desk.pilot.press(key)
    finally:
        if kept is None:
            delattr(node, method)
    return bool(called)


async def test_every_key_of_every_action_reaches_it(tmp_path: Path) -> None:
    session = FakeSession()
    session.earlier = [make_burst("b7", 7), make_burst("b6", 6)]
    session.lines.put_nowait(journal())
    session.past = make_past(tmp_path)
    left = {
        (action.id, key)
        for action in ACTIONS
        if action.where is not Where.CONNECT
        for key in action.key_names
    }
    async with console(session, (200, 60)) as desk:
        app = desk.app
        await desk.until(lambda: len(app.desk.view.bursts) >= 2 and len(app.desk.store))
        for mode in MODES:
            await desk.press("f12")  # bound to nothing: a pause
            app.screen.set_focus(None)
            await desk.press(mode)
            await desk.pilot.pause()
            screen = app.screen
            for action, key in sorted(left):
                node = home(app, screen, action, key)
                if node is not None and await reaches(desk, screen, node, action, key):
                    left.discard((action, key))
    assert sorted(left) == []


CONNECT = [
    (action.id, key) for action in ACTIONS if action.where is Where.CONNECT for key in action.key_names
]


@pytest.mark.parametrize(("action", "key"), CONNECT)
async def test_every_key_of_the_connect_screen_reaches_its_action(action: str, key: str) -> None:
    session = FakeSession()
    session.connect_error = Unreachable("ct200 does not answer")
    async with console(session, wait=False) as desk:
        await desk.until(lambda: "connect" in session.calls and desk.app.screen.failure is not None)
        screen = desk.app.screen
        node = home(desk.app, screen, action, key)
        assert node is not None and await reaches(desk, screen, node, action, key)
