"""The terminal of a console in a browser: textual-serve's pipe, and the end of the console when that ends.

Textual's own web driver goes on without input when its server is gone, for ever.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from contextlib import suppress
from functools import partial
from typing import Any

from textual import messages
from textual.app import App
from textual.drivers.web_driver import WebDriver
from textual.geometry import Size

END_SECONDS = 8.0  # for the console to end by itself once its server is gone
LARGEST = 1000  # columns or rows that a browser may ask for


class ServedDriver(WebDriver):
    """Ends the console when its input ends, which it does however the server ended: SIGKILL too."""

    def __init__(
        self,
        app: App[Any],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._write = partial(self._forgiving)

    def _forgiving(self, data: bytes) -> int:
        """Write to the server, whole; to nowhere once it is gone."""
        left = memoryview(data)
        with suppress(OSError):
            while left:
                left = left[os.write(self.fileno, left) :]
        return len(data)

    def run_input_thread(self) -> None:
        super().run_input_thread()
        if self.exit_event.is_set():
            return
        last = threading.Timer(END_SECONDS, end_group)
        last.daemon = True
        last.start()
        with suppress(RuntimeError):  # the loop has ended
            asyncio.run_coroutine_threadsafe(self._app._post_message(messages.ExitApp()), loop=self._loop)

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        if packet_type == "resize":
            width, height = payload.get("width"), payload.get("height")
            if not isinstance(width, int) or not isinstance(height, int):
                return
            size = Size(max(1, min(width, LARGEST)), max(1, min(height, LARGEST)))
            payload = {**payload, "width": size.width, "height": size.height}
        super().on_meta(packet_type, payload)


def end_group() -> None:
    """End this process and all that it started."""
    if sys.platform != "win32" and os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
