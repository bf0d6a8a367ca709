"""One console in a browser's tab: a process of its own, which ends with the tab and with the server."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

QUIT_SECONDS = 6.0  # for a console to close its link and end
TERM_SECONDS = 2.0


class ServedConsole(AppService):
    """A console that is run by its argument list, without a shell, in a session of its own."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        write_bytes: Callable[[bytes], Awaitable[None]],
        write_str: Callable[[str], Awaitable[None]],
        close: Callable[[], Awaitable[None]],
        download_manager: DownloadManager,
    ) -> None:
        super().__init__(
            "", write_bytes=write_bytes, write_str=write_str, close=close, download_manager=download_manager
        )
        self._argv = tuple(argv)
        self._stopping = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        environment = super()._build_environment(width, height)
        environment["TEXTUAL_DRIVER"] = "ddtui.serve.driver:ServedDriver"
        return environment

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        self._process = process = await asyncio.create_subprocess_exec(
            *self._argv,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self._build_environment(width, height),
            start_new_session=True,  # a Ctrl-C in the terminal is for the server, which then ends this
        )
        self._stdin = process.stdin
        return process

    async def run(self) -> None:
        try:
            await super().run()
        finally:  # also when it ended without a word
            with suppress(ConnectionError, RuntimeError):
                await self.remote_close()

    async def on_data(self, payload: bytes) -> None:
        with suppress(ConnectionError, RuntimeError):  # the tab is gone: the console's last words go nowhere
            await super().on_data(payload)

    async def on_meta(self, data: bytes) -> None:
        with suppress(ConnectionError, RuntimeError):
            await super().on_meta(data)

    async def stop(self) -> None:
        """End the process: by asking, by SIGTERM, by SIGKILL, each after its time. Safe to call twice."""
        async with self._stopping:
            process, task = self._process, self._task
            if process is None or task is None:
                return
            self._task = None
            await self._download_manager.cancel_app_downloads(app_service_id=self.app_service_id)
            with suppress(TimeoutError):
                async with asyncio.timeout(QUIT_SECONDS):
                    await self.send_meta({"type": "quit"})
                    await process.wait()
            if process.returncode is None:
                _signal(process, signal.SIGTERM)
                with suppress(TimeoutError):
                    async with asyncio.timeout(TERM_SECONDS):
                        await process.wait()
            if process.returncode is None:
                _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
                await process.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _signal(process: Process, number: int) -> None:
    """Send a signal to the process and to all that it started."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.send_signal(number)
        else:
            os.killpg(process.pid, number)
