"""What things cost, counted and not timed: paints and not lines, nothing heavy before the first paint."""

from __future__ import annotations

import subprocess
import sys

import pytest
from console.fakes import NOW
from console.harness import console
from textual.content import Content

from ddtui.screens.tune import TuneScreen
from ddtui.session import JournalLine
from ddtui.widgets.journal_view import JournalView
from ddtui.widgets.words_view import Words


async def test_the_journal_draws_what_is_visible_and_not_what_came(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = 0
    draw = JournalView._line

    def counted(self: JournalView, *arguments: int) -> object:
        nonlocal drawn
        drawn += 1
        return draw(self, *arguments)

    monkeypatch.setattr(JournalView, "_line", counted)
    async with console() as desk:
        view = desk.tune.journal.view
        for part in range(20):
            desk.session.lines.put_nowait([JournalLine(NOW, f"line {part * 5000 + i}") for i in range(5000)])
        await desk.until(lambda: view.count == 100_000)
        await desk.pilot.pause()
        assert drawn < 40 * view.size.height


async def test_a_hidden_screen_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with console() as desk:
        await desk.press("3")
        await desk.until(lambda: type(desk.app.screen).__name__ == "BurstsScreen")
        (tune,) = next(stack for mode, stack in desk.app._screen_stacks.items() if mode.startswith("tune"))
        view = tune.query_one(JournalView)
        version = view._version
        desk.session.lines.put_nowait([JournalLine(NOW, "while it is hidden")])
        await desk.until(lambda: desk.app.desk.store.texts[-1:] == ["while it is hidden"])
        view.sync()
        assert view._version == version
        await desk.press("1")
        await desk.until(lambda: view.count == 1)


async def test_words_that_keep_their_height_lay_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    laid_out = 0
    lay_out = TuneScreen._refresh_layout

    def counted(self: TuneScreen, *arguments: object, **named: object) -> None:
        nonlocal laid_out
        laid_out += 1
        lay_out(self, *arguments, **named)  # type: ignore[arg-type]

    async with console() as desk:
        words = desk.tune.query_one("#layer-ages", Words)
        height = words.size.height
        monkeypatch.setattr(TuneScreen, "_refresh_layout", counted)
        for text in ("unit 9 s ago", "unit 10 s ago"):
            words.show(Content("\n".join([text] * height)))
            await desk.until(lambda text=text: text in desk.text())  # type: ignore[misc]
        assert laid_out == 0
        words.show(Content("\n".join(["unit 10 s ago"] * (height + 2))))
        await desk.until(lambda: words.size.height == height + 2)


def test_nothing_heavy_is_loaded_before_the_first_paint() -> None:
    code = "import sys, ddtui.app, ddtui.session; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"asyncssh", "httpx", "plotext", "numpy", "sqlite3", "cryptography"}
