"""The output check while it runs and when it is done: whether what is generated is right, not only fast."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from ddtui.burst_words import first_of
from ddtui.desk import said
from ddtui.screens.base import Dialog
from ddtui.widgets.progress_bar import bar
from ddtui.widgets.words_view import Words

if TYPE_CHECKING:
    from ddtui.bench.quality import Quality

Tell = Callable[[str, float], None]


class OutputCheck(Dialog[None]):
    """Runs it on opening; escape stops it, and closes it once it is done."""

    BINDINGS: ClassVar[list[BindingType]] = [("q,enter", "close_done", "close")]
    DEFAULT_CSS = """
    OutputCheck {
        & > .box { width: 84; }
        #check-bar { margin: 1 0; }
        #check-words { margin-bottom: 1; }
    }
    """

    def __init__(self, check: Callable[[Tell], Awaitable[Quality]]) -> None:
        super().__init__()
        self._check = check
        self._done = False
        self._part, self._began = 0.0, time.monotonic()

    def compose(self) -> ComposeResult:
        with Vertical(classes="box") as box:
            box.border_title = Content("Output check")
            box.border_subtitle = Content("esc stop")
            yield Words(id="check-bar")
            yield Words(id="check-words")

    def on_mount(self) -> None:
        self._tell("asking the server", 0.0)
        self.set_interval(0.5, self._draw)
        self.run_worker(self._run(), exclusive=True, exit_on_error=False)

    def _tell(self, text: str, part: float) -> None:
        self._part = part
        self.query_one("#check-words", Words).show(Content(text))
        self._draw()

    def _draw(self) -> None:
        """The bar, with what is left by how fast it went so far."""
        if self._done:
            return
        passed, words = time.monotonic() - self._began, self.query_one("#check-bar", Words)
        left = passed / self._part * (1 - self._part) if self._part > 0.02 else None
        words.show(bar(max(20, words.size.width), self._part, left))

    async def _run(self) -> None:
        try:
            found = await self._check(self._tell)
        except Exception as error:
            self._end(Content.assemble(("✗ ", "$error"), said(error)))
        else:
            self._end(result(found))

    def _end(self, words: Content) -> None:
        self._done = True
        self.query_one("#check-bar", Words).display = False
        self.query_one("#check-words", Words).show(words)
        self.query_one(".box", Vertical).border_subtitle = Content("esc close")

    def action_close_done(self) -> None:
        if self._done:
            self.dismiss(None)


def result(found: Quality) -> Content:
    """The judgement in words, red where the output is wrong."""
    glyph, colour = ("✗", "$error") if found.wrong else ("✓", "$success")
    if found.verdict == "unknown":
        glyph, colour = "?", "$warning"
    lines = [
        Content.assemble((f"{glyph} {found.verdict}", f"bold {colour}")),
        Content(found.text),
        Content.assemble(
            (f"compared with step {found.reference}" if found.reference is not None else "", "$muted")
        ),
    ]
    if found.failed_tasks:
        lines.append(Content.assemble(("tests fail in: ", "$muted"), first_of(found.failed_tasks, 8)))
    if found.sandbox:
        lines.append(Content.assemble(("sandbox: ", "$muted"), found.sandbox))
    if found.simulated:
        lines.append(Content.assemble(("SIMULATED", "$warning")))
    return Content("\n").join(line for line in lines if line.plain)
