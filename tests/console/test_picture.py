"""The README's picture: exported by the app itself from the live demo host, never drawn.

`make screenshots` runs this with DDTUI_SCREENSHOTS set to docs/, and the picture there is the one it took.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from ddtui.app import DdtuiApp
from ddtui.demo import launch
from ddtui.session import open_session

FINDING = "ignores&#160;it"


async def test_the_first_screen_on_the_demo_host_shows_the_finding(tmp_path: Path) -> None:
    folder = Path(os.environ.get("DDTUI_SCREENSHOTS") or tmp_path)
    with launch.start() as demo:
        app = DdtuiApp(demo.profile, open_session=open_session)
        async with app.run_test(size=(160, 45)) as pilot:
            async with asyncio.timeout(60):
                while FINDING not in (svg := app.export_screenshot(title="ddtui demo")):
                    await pilot.pause(0.3)
            await pilot.pause(1.0)
            svg = app.export_screenshot(title="ddtui demo")
    (folder / "tune.svg").write_text(svg, encoding="utf-8")
    for text in ("SIMULATED", "budget", "2048", "Journal", FINDING):
        assert text in svg
