"""Every screen in four sizes and three themes: SVGs, packed (`gunzip -c FILE.svgz` shows one).

After a wanted change: `pytest tests/console/test_every_look.py --snapshot-update`. A look that has changed is
written beside the test's temporary files, by name, and the failure says where.
"""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path

import pytest
from console.fakes import FakeSession, journal, make_burst
from console.harness import make_app, until
from console.histories import make_past
from console.test_snapshots import drawn
from textual.pilot import Pilot

from ddtui.screens.tune import TuneScreen

LOOKS = Path(__file__).parent / "__looks__"
SIZES = [(80, 24), (120, 36), (160, 45), (200, 60)]
THEMES = ["ddtui-dark", "ddtui-light", "ddtui-contrast"]

# how each screen is reached from the tune screen, and the class that then shows
SCREENS: dict[str, tuple[str, str]] = {
    "tune": ("", "TuneScreen"),
    "logs": ("2", "LogsScreen"),
    "bursts": ("3", "BurstsScreen"),
    "compare": ("4", "CompareScreen"),
    "sweep": ("5", "SweepScreen"),
    "history": ("6", "HistoryScreen"),
    "commands": ("C", "CommandLog"),
    "help": ("question_mark", "Help"),
    "knob": ("b", "KnobDialog"),
    "flag": ("f", "FlagDialog"),
    "burst": ("x", "BurstDialog"),
    "palette": ("ctrl+p", "CommandPalette"),
}


async def still(pilot: Pilot[int]) -> str:
    """The screen once nothing moves any more: the same twice, with everything that runs let run between."""
    before, same = "", 0
    async with asyncio.timeout(30):
        while same < 4:
            await drawn(pilot)
            now = pilot.app.export_screenshot(title="ddtui")
            same = same + 1 if now == before else 0
            before = now
            await asyncio.sleep(0.05)
    return before


@pytest.mark.parametrize("name", SCREENS)
async def test_every_screen_in_every_size_and_theme(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    key, shows = SCREENS[name]
    session = FakeSession()
    session.earlier = [make_burst("b7", 7, 1.15), make_burst("b6", 6)]
    session.lines.put_nowait(journal())
    session.past = make_past(tmp_path)
    app = make_app(session)
    app.animation_level = "none"
    looks: dict[str, str] = {}
    async with app.run_test(size=SIZES[0]) as pilot:
        await until(pilot, lambda: isinstance(app.screen, TuneScreen) and app.screen._composed)
        await until(
            pilot, lambda: app.desk.view.tune.surveyed and len(app.desk.view.bursts) >= 2 and app.desk.store
        )
        if key:
            await pilot.press(key)
        await until(pilot, lambda: type(app.screen).__name__ == shows and app.screen.is_mounted)
        await still(pilot)
        for theme in THEMES:
            app.theme = theme
            app.refresh_css(animate=False)
            for width, height in SIZES:
                await pilot.resize_terminal(width, height)
                looks[f"{name}-{theme.removeprefix('ddtui-')}-{width}x{height}"] = await still(pilot)
    assert changed(looks, tmp_path, update=request.config.option.update_snapshots) == []


def changed(looks: dict[str, str], folder: Path, *, update: bool) -> list[str]:
    """The looks that are not as they were, where they lie now."""
    found = []
    for name, svg in looks.items():
        kept = LOOKS / f"{name}.svgz"
        if update:
            kept.parent.mkdir(exist_ok=True)
            kept.write_bytes(gzip.compress(svg.encode(), 9, mtime=0))
        elif not kept.exists() or gzip.decompress(kept.read_bytes()).decode() != svg:
            (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
            found.append(str(folder / f"{name}.svg"))
    return found


def test_every_kept_look_is_of_a_screen_that_is_there() -> None:
    names = {
        f"{name}-{theme.removeprefix('ddtui-')}-{width}x{height}.svgz"
        for name in SCREENS
        for theme in THEMES
        for width, height in SIZES
    }
    assert {path.name for path in LOOKS.iterdir()} == names
