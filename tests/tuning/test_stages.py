"""The stages of a change are those that its supervisor takes: nothing is shown as done that never was."""

from __future__ import annotations

import pytest

from ddtui.host.supervisors import Supervisor, of
from ddtui.profile import Commands, Compose, Service
from ddtui.tuning.model import Phase, Progress
from ddtui.tuning.stages import STAGES, stages
from ddtui.view import ChangeView
from ddtui.widgets.change_panel import panel

SYSTEMD = of(Service(unit="sglang.service"))
COMMANDS = of(
    Service(
        unit="by-script",
        commands=Commands(start=("/x/start",), stop=("/x/stop",), pid=("cat", "/x/pid"), log="/x/log"),
    )
)
COMPOSE = of(Service(unit="sglang", compose=Compose(file="/srv/compose.yaml", service="sglang")))
WITHOUT_RELOAD = ("write", "check", "drain", "stop", "start", "verify")


def shown(supervisor: Supervisor, phase: Phase, *, writes: bool = True) -> str:
    progress = Progress(phase, "at it", stages=stages(supervisor, writes=writes))
    return panel(ChangeView("apply", "window 2048", progress), 160).plain.splitlines()[1]


def test_only_systemd_reloads() -> None:
    assert stages(SYSTEMD, writes=True) == tuple(STAGES)
    assert stages(COMMANDS, writes=True) == WITHOUT_RELOAD
    assert stages(COMPOSE, writes=True) == WITHOUT_RELOAD


def test_a_restart_writes_nothing() -> None:
    assert stages(COMMANDS, writes=False) == WITHOUT_RELOAD[1:]


@pytest.mark.parametrize("supervisor", [COMMANDS, COMPOSE])
def test_no_tick_stands_at_a_reload_that_there_is_not(supervisor: Supervisor) -> None:
    assert shown(supervisor, Phase.STARTING).startswith("✓write ✓check ✓drain ✓stop ●start ○verify")
    assert shown(SYSTEMD, Phase.STARTING).startswith("✓write ✓reload ✓check ✓drain ✓stop ●start ○verify")


def test_what_is_to_come_has_no_tick() -> None:
    assert shown(SYSTEMD, Phase.LOCKING, writes=False).startswith("○reload ○check")
    assert shown(SYSTEMD, Phase.CHECKING).startswith("✓write ✓reload ●check ○drain")


def test_a_change_that_goes_back_ticks_nothing_and_before_anything_is_known_there_are_no_stages() -> None:
    assert shown(SYSTEMD, Phase.ROLLING_BACK).startswith("write reload check")
    assert "write" not in panel(ChangeView("apply", "window", Progress(Phase.PLANNED, "starting")), 160).plain
