"""`Host.endpoint`: a Unix socket on this machine whose connections lead to a TCP port as seen from the host.

Each connection opens a channel of its own on the link that is there at that moment, so the socket outlives
reconnects. It lies in a folder that only this user can enter. Where the port does not answer, or the link is
down, the connection is closed at once; `Host.open_connection` says why.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from ddtui.host.base import Connection, HostError

_CHUNK = 65536
_PATH_LIMIT = 100  # bytes of a socket's path: 104 on macOS, 108 on Linux


class Forward:
    """One forwarded port."""

    def __init__(self, open_connection: Callable[[], Awaitable[Connection]]) -> None:
        self._open_connection = open_connection
        self._folder: Path | None = None
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Listen; gives the socket's path."""
        self._folder = _private_folder()
        path = str(self._folder / "s")
        self._server = await asyncio.start_unix_server(self._accept, path)
        return path

    async def close(self) -> None:
        """End the socket and every connection through it."""
        if self._server:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._carry(reader, writer)
        except asyncio.CancelledError:  # ours, from close(): the stream's own callback cannot bear it (3.11)
            writer.close()
        finally:
            self._tasks.discard(task)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far = await self._open_connection()
        except (HostError, OSError, TimeoutError):
            writer.close()
            return
        try:
            await _pipe(reader, writer, far)
        finally:
            writer.close()
            with suppress(HostError, OSError):
                await far.close()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, far: Connection) -> None:
    """Carry bytes both ways until either side ends."""

    async def outward() -> None:
        with suppress(HostError, OSError):
            while data := await reader.read(_CHUNK):
                await far.write(data)

    async def inward() -> None:
        with suppress(HostError, OSError):
            while data := await far.read(_CHUNK):
                writer.write(data)
                await writer.drain()

    tasks = {asyncio.create_task(outward()), asyncio.create_task(inward())}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _private_folder() -> Path:
    """A new folder of mode 0700 with a path short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="ddtui-"))
    if len(str(folder).encode()) + 2 > _PATH_LIMIT:  # macOS's TMPDIR is long
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="ddtui-", dir="/tmp"))
    return folder
