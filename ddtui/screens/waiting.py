"""A wait that takes longer than a moment: what it is for, a bar, an estimate by the last time, a way out.

In a box of its own, or in the place where its result will stand.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from ddtui.screens.base import Dialog
from ddtui.widgets.progress_bar import bar
from ddtui.widgets.words_view import Words

if TYPE_CHECKING:
    from ddtui.screens.flows import Asks

T = TypeVar("T")
SOON = 0.5  # seconds before a wait is shown at all
MOST = 0.95  # of the bar, while it is not over


class Stopped(Exception):
    """The operator did not want to wait."""


class Waiting(Dialog[bool]):
    """True: stop waiting."""

    BINDINGS: ClassVar = [("escape", "stop", "stop")]

    def __init__(
        self, what: str, usual: float | None, began: float, part: Callable[[], float | None] = lambda: None
    ) -> None:
        super().__init__()
        self._what, self._usual, self._began, self._part = what, usual, began, part

    def compose(self) -> ComposeResult:
        with Vertical(classes="box") as box:
            box.border_title = Content(self._what)
            box.border_subtitle = Content("esc stop")
            yield Words(id="how-far")

    def on_mount(self) -> None:
        self.set_interval(0.2, self._draw)
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        passed = time.monotonic() - self._began
        words = self.query_one("#how-far", Words)
        part, width = self._part(), max(20, words.size.width)
        usual = passed / part if part else self._usual
        words.show(how_far(width, passed, usual))

    def action_stop(self) -> None:
        self.dismiss(True)


def how_far(width: int, passed: float, usual: float | None) -> Content:
    """The bar of a wait: by what it took the last time, else only how long it has been."""
    if usual is None or usual <= 0:
        return bar(width, None, elapsed=passed)
    left = usual - passed
    return bar(width, min(MOST, passed / usual), left if left > 0 else None, elapsed=passed)


class Patience:
    """Waits on behalf of one operator, and remembers how long each kind took."""

    def __init__(self, ask: Asks) -> None:
        self._ask = ask
        self._took: dict[str, float] = {}

    async def _asked(self, dialog: Waiting) -> bool | None:
        return await self._ask(dialog)

    async def wait(self, what: str, work: Awaitable[T], part: Callable[[], float | None] = lambda: None) -> T:
        """The result of the work. After a moment it is shown that it runs, and can be stopped.

        `part`: how much of it is done, where that is known. Raises what the work raises, and Stopped.
        """
        began = time.monotonic()
        task = asyncio.ensure_future(work)
        shown: asyncio.Future[bool | None] | None = None
        try:
            await asyncio.wait({task}, timeout=SOON)
            if not task.done():
                dialog = Waiting(what, self._took.get(what), began, part)
                shown = asyncio.ensure_future(self._asked(dialog))
                await asyncio.wait({task, shown}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Stopped
        finally:
            over = {one for one in (shown, task) if one is not None and not one.done()}
            for one in over:
                one.cancel()
            if over:  # the box is gone before what comes next is shown
                await asyncio.wait(over)
        self._took[what] = time.monotonic() - began
        return task.result()


class InPlace:
    """A wait that is shown where its result will stand; `stop` ends it."""

    def __init__(self, show: Callable[[Content], None], width: Callable[[], int]) -> None:
        self._show, self._width = show, width
        self._took: float | None = None  # the last time
        self._task: asyncio.Future[Any] | None = None

    @property
    def busy(self) -> bool:
        return self._task is not None

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def wait(self, what: str, work: Awaitable[T]) -> T:
        """The result of the work. Raises what it raises, and Stopped."""
        began = time.monotonic()
        task = asyncio.ensure_future(work)
        self._task = task
        try:
            self._show(Content.styled(f"{what} …", "$muted"))
            await asyncio.wait({task}, timeout=SOON)
            while not task.done():
                line = how_far(max(20, self._width()), time.monotonic() - began, self._took)
                self._show(Content("\n").join([Content.styled(f"{what} …   esc stops", "$muted"), line]))
                await asyncio.wait({task}, timeout=0.2)
            if task.cancelled():
                raise Stopped
        finally:
            if not task.done():
                task.cancel()
            if self._task is task:
                self._task = None
        self._took = time.monotonic() - began
        return task.result()
