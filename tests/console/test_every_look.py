"""Every screen in four sizes and three themes: SVGs, packed (`gunzip -c FILE.svgz` shows one).

After a wanted change: `pytest tests/console/test_every_look.py --snapshot-update`. A look that has changed is
written beside the test's temporary files, by name, and the failure says where.
"""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path

import pytest
from console.fakes import NOW, FakeSession, journal, make_burst, make_view
from console.harness import make_app, until
from console.histories import make_past
from console.test_snapshots import drawn
from textual._compositor import LayoutUpdate
from textual.app import App
from textual.pilot import Pilot

from ddtui.bench.quality import Quality, Verdict
from ddtui.host.base import Unreachable
from ddtui.screens.pick import Offer
from ddtui.screens.tune import TuneScreen
from ddtui.view import LayerView

LOOKS = Path(__file__).parent / "__looks__"
SIZES = [(80, 24), (120, 36), (160, 45), (200, 60)]
THEMES = ["ddtui-dark", "ddtui-light", "ddtui-contrast"]

LAYERS = (
    LayerView(
        "drafter config",
        NOW - 12,
        None,
        (
            "config             /data/models/Kimi-K2.6-DFlash/config.json",
            "kind               DFLASH, qwen3 (DFlashDraftModel)",
            "layers             6: 5 sliding, 1 full",
            "sliding_window     2048",
            "rope               theta 1e+06, yarn ×64 on 4096",
        ),
    ),
    LayerView("engine", NOW - 12, None, ("version            0.5.11", "window flag        none")),
    LayerView("server", NOW - 65, "the server wants an API key: set api_key_env in the profile"),
    LayerView("journal", None, "not read yet"),
    LayerView("measured", NOW - 12, "no burst of this setting yet"),
)
OFFERS = (
    Offer("ct200", "ct200", "Kimi K2.6 with a DFlash drafter and DDTree"),
    Offer("ct201", "ct201", "the same, in production"),
    Offer("broken", "", problem="broken.yaml:3: connection.host: is missing"),
)

# by which keys each screen is reached from the tune screen, and the class that then shows
SCREENS: dict[str, tuple[str, str]] = {
    "connect": ("", "ConnectScreen"),  # where connecting failed
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
    "layers": ("L", "LayersDialog"),
    "hosts": ("H", "HostsDialog"),
    "first-run": ("H end enter", "FirstRun"),
    "ab": ("plus A", "ABDialog"),
    "output": ("O y", "OutputCheck"),  # when it is done
}


async def still(pilot: Pilot[int]) -> str:
    """The screen once nothing moves any more: the same twice, with everything that runs let run between."""
    before, same = None, 0
    async with asyncio.timeout(30):
        while same < 4:
            await drawn(pilot)
            now = shown(pilot.app)
            same = same + 1 if now == before else 0
            before = now
            await asyncio.sleep(0.02)
    return pilot.app.export_screenshot(title="ddtui")


def shown(app: App[int]) -> object:
    """What `export_screenshot` would draw, in a tenth of its time."""
    drawing = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    assert isinstance(drawing, LayoutUpdate)
    return [list(line) for line in drawing.strips]


@pytest.mark.parametrize("name", SCREENS)
async def test_every_screen_in_every_size_and_theme(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    keys, shows = SCREENS[name]
    session = FakeSession()
    session.earlier = [make_burst("b7", 7, 1.15), make_burst("b6", 6)]
    session.lines.put_nowait(journal())
    session.past = make_past(tmp_path)
    if name == "layers":
        session.view = make_view(layers=LAYERS)
    if name == "connect":
        session.connect_error = Unreachable(
            "ct200 port 22: connection refused", hint="is sshd running there?"
        )
    session.checks.put_nowait(
        Quality(Verdict.DIFFERENT, "9 of 45 outputs differ", 45, 6, failed_tasks=("slugs", "intervals"))
    )
    app = make_app(session, find_offers=lambda: OFFERS)
    app.animation_level = "none"
    looks: dict[str, str] = {}
    async with app.run_test(size=SIZES[0]) as pilot:
        if shows != "ConnectScreen":
            await until(pilot, lambda: isinstance(app.screen, TuneScreen) and app.screen._composed)
            await until(
                pilot,
                lambda: app.desk.view.tune.surveyed and len(app.desk.view.bursts) >= 2 and app.desk.store,
            )
        for key in keys.split():
            before = app.screen
            await pilot.press(key)
            if len(keys.split()) > 1 and key not in ("plus", "end"):
                await until(pilot, lambda: app.screen is not before and app.screen.is_mounted)  # noqa: B023
                await drawn(pilot)
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
