"""The strip at the top: what a change that is over says, and what one that runs says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from console.fakes import NOW, make_profile, make_view

from ddtui.tuning.model import Phase, Progress
from ddtui.view import ChangeView, View
from ddtui.widgets.status_strip import strip


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
