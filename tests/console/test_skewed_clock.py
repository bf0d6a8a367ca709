"""A host whose clock is off: how long something has been so, and where in the journal it is, are still right."""

from __future__ import annotations

import pytest
from console.fakes import NOW, FakeSession, make_profile, make_view
from console.harness import console
from tuning import surveys

from ddtui.host.base import Link, LinkState
from ddtui.session import JournalLine
from ddtui.tuning.watch import WatchState
from ddtui.view import View
from ddtui.viewing import tune_view
from ddtui.widgets.status_strip import strip

LINK = Link(LinkState.CONNECTED, "root@ct200:22", 3.0, since=NOW)
HOUR = 3600.0


def active(*, ahead: float | None) -> str:
    """The status strip of a service that became active two minutes ago, by a clock that is so far ahead."""
    entered = NOW - 120 + (ahead or 0.0)
    status = surveys.status(active_enter=entered, state_change=entered)
    state = WatchState(LINK, status=status, status_at=NOW, ahead=ahead)
    return strip(View(make_profile(), tune_view(state, LINK, make_profile())), 160, NOW).plain


@pytest.mark.parametrize("ahead", [0.0, 2 * HOUR, -2 * HOUR, 40 * 365 * 24 * HOUR])
def test_how_long_a_service_is_active_is_told_by_the_clock_of_its_host(ahead: float) -> None:
    assert "active 2 min" in active(ahead=ahead)


def test_before_that_clock_is_known_no_time_is_claimed() -> None:
    assert "active   " in active(ahead=None)
    assert "min" not in active(ahead=None)


async def test_a_marker_and_a_jump_in_the_journal_go_by_the_clock_of_the_host() -> None:
    there = NOW + 2 * HOUR
    session = FakeSession(view=make_view(ahead=2 * HOUR))
    async with console(session) as desk:
        store, view = desk.app.desk.store, desk.tune.journal.view
        session.lines.put_nowait([JournalLine(there - 600 + n, f"line {n}") for n in range(601)])
        await desk.until(lambda: view.count == 601)
        desk.app.desk.mark("burst")
        assert store.times[-1] == there
        assert "── burst ── here " in store.texts[-1]
        view.focus()
        await desk.press("at")
        await desk.type("-5m")
        await desk.press("enter")
        await desk.until(lambda: view.cursor is not None)
        assert view.cursor is not None
        assert store.texts[view.cursor] == "line 300"
