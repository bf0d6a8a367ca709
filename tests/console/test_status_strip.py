"""The strip at the top: what a change that is over says, and what one that runs says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from console.fakes import NOW, make_profile, make_view

from ddtui.host.base import Link, LinkState
from ddtui.tuning.model import Phase, Progress
from ddtui.view import ChangeView, Decode, View
from ddtui.widgets.status_strip import strip
from ddtui.words import time_of_day


def shown(phase: Phase, fraction: float | None) -> str:
    change = ChangeView("apply", "window 2048", Progress(phase, "", fraction))
    view = replace(View(make_profile(), make_view()), change=change)
    return strip(view, 160, NOW).plain


def test_a_change_that_runs_says_where_it_is_and_how_far() -> None:
    assert "↻ starting 40%" in shown(Phase.STARTING, 0.4)
    assert "↻ draining" in shown(Phase.DRAINING, None)


@pytest.mark.parametrize(
    ("phase", "text"),
    [
        (Phase.VERIFIED, "✓ verified"),
        (Phase.UNVERIFIED, "! applied, not all in force"),
        (Phase.ROLLED_BACK, "↶ rolled back"),
        (Phase.FAILED, "✗ failed"),
        (Phase.STRANDED, "✗ failed and not rolled back"),
    ],
)
def test_a_change_that_is_over_has_an_outcome_and_no_share(phase: Phase, text: str) -> None:
    line = shown(phase, 1.0)
    assert text in line
    assert "%" not in line and "↻" not in line


def test_the_load_is_the_one_that_the_journal_shows_while_that_is_younger() -> None:
    view = View(make_profile(), make_view())
    assert "3 running" in strip(view, 200, NOW).plain
    assert "8 running +2 queued" in strip(view, 200, NOW, Decode(NOW, running=8, queued=2)).plain
    assert "3 running" in strip(view, 200, NOW, Decode(NOW, running=8, whole=False)).plain


def test_without_a_link_it_says_when_things_were_so_and_no_load() -> None:
    lost = Link(LinkState.RETRYING, "root@ct200:22", since=NOW, retry_at=NOW + 3)
    view = View(make_profile(), make_view(link=lost))
    read_at = view.tune.service.read_at
    assert read_at is not None
    line = strip(view, 200, NOW + 600).plain
    assert f"active at {time_of_day(read_at)}" in line
    assert "running" not in line and " min" not in line


def test_the_first_reading_has_a_bar_by_the_length_of_the_way() -> None:
    link = Link(LinkState.CONNECTED, "root@ct200:22", rtt_ms=250.0, since=NOW)
    view = View(make_profile(), make_view(link=link, surveyed=False))
    assert "reading every layer ▓▓▓" in strip(view, 200, NOW + 1).plain
    assert " 25%  eta 0:03" in strip(view, 200, NOW + 1).plain
    assert " 95%  0:09" in strip(view, 200, NOW + 9).plain
    assert "reading" not in strip(View(make_profile(), make_view()), 200, NOW).plain


def test_who_is_logged_in_is_said_by_name() -> None:
    people = ("ann from 10.0.0.5", "ann from 10.0.0.6", "bob", "cy", "di")
    view = View(make_profile(), make_view(people=people))
    assert "also here: ann, bob, cy +1" in strip(view, 200, NOW).plain
    assert "also here" not in strip(View(make_profile(), make_view()), 200, NOW).plain
