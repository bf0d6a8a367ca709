"""The same interface on this machine, without SSH: for an engineer who is already logged in on the GPU host.

Commands take exactly the same way as over SSH (the same strings, markers and sudo rules), but /bin/sh here
runs them.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress

from ddtui.host.base import Asker, Connection, Endpoint, HostError, Link, LinkState, NotPermitted
from ddtui.host.commands import CommandHost
from ddtui.host.converse import Process


class LocalHost(CommandHost):
    """This machine as a `Host`."""

    def __init__(self, asker: Asker) -> None:
        super().__init__("local", asker)
        self._link = Link(LinkState.CLOSED, "local")

    @property
    def link(self) -> Link:
        return self._link

    async def connect(self) -> None:
        self._is_root = os.geteuid() == 0
        self._set(Link(LinkState.CONNECTED, "local", rtt_ms=0.0))

    async def connected(self) -> None:
        if self._link.state is LinkState.CLOSED:
            raise HostError("the host was closed")

    async def open_connection(self, host: str, port: int) -> Connection:
        reader, writer = await asyncio.open_connection(host, port)
        return _LocalConnection(reader, writer)

    async def endpoint(self, port: int, host: str = "127.0.0.1") -> Endpoint:
        return Endpoint(None, host, port)

    async def close(self) -> None:
        await self._finish()
        self._set(Link(LinkState.CLOSED, "local"))

    async def _open(self, command: str, *, terminal: bool = False) -> Process:
        if terminal:
            raise NotPermitted(
                "sudo on this machine insists on a terminal (requiretty), which ddtui does not give it",
                "Add `Defaults:YOU !requiretty` with visudo, or run ddtui as root.",
            )
        process = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            f"exec {command}",  # one process from here to the command, which is the one that is waited for
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # a group of its own to end, and no terminal for sudo to ask on
        )
        return _LocalProcess(process)

    def _set(self, link: Link) -> None:
        self._link = link
        for callback in list(self._link_callbacks):
            callback(link)


class _LocalProcess:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin and process.stdout and process.stderr
        self._process = process
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr

    async def read(self) -> bytes:
        return await self._stdout.read(65536)

    async def read_error(self) -> bytes:
        return await self._stderr.read(65536)

    async def write(self, data: bytes) -> None:
        with suppress(ConnectionError):  # it ended without reading all
            self._stdin.write(data)
            await self._stdin.drain()

    def write_eof(self) -> None:
        with suppress(ConnectionError, OSError):
            self._stdin.close()

    async def exit_code(self) -> int | None:
        code = await self._process.wait()
        return code if code >= 0 else 128 - code

    async def end(self) -> None:
        self.write_eof()
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if self._process.returncode is not None:
                return
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, sign)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), 2)


class _LocalConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self, n: int) -> bytes:
        return await self._reader.read(n)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError, OSError):
            await self._writer.wait_closed()
