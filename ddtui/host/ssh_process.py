"""A process and a TCP connection on the host, as asyncssh carries them."""

from __future__ import annotations

import asyncio
import signal
import socket
from contextlib import suppress

import asyncssh

from ddtui.host.base import LinkLost

_CHUNK = 65536


def acknowledge(connection: asyncssh.SSHClientConnection) -> None:
    """Have the kernel acknowledge at once what has come in.

    sshd sends without TCP_NODELAY to a session that has no terminal, so that each of its small packets waits
    for our acknowledgement of the one before, which the kernel holds back for 40 ms: four fifths of the
    time of a command on a quick link, and a blur on the arrival times of streamed tokens.
    """
    option = getattr(socket, "TCP_QUICKACK", None)  # Linux only
    transport_socket = connection.get_extra_info("socket")
    if option is not None and transport_socket is not None:
        with suppress(OSError):
            transport_socket.setsockopt(socket.IPPROTO_TCP, option, 1)


class SshProcess:
    """A command in a session channel. The channel's end without an exit status means that the link broke."""

    def __init__(
        self, process: asyncssh.SSHClientProcess[bytes], connection: asyncssh.SSHClientConnection
    ) -> None:
        self._process = process
        self._connection = connection
        self._over = False
        acknowledge(connection)

    async def read(self) -> bytes:
        return await self._read(self._process.stdout)

    async def read_error(self) -> bytes:
        return await self._read(self._process.stderr)

    async def _read(self, stream: asyncssh.SSHReader[bytes]) -> bytes:
        try:
            data = await stream.read(_CHUNK)
        except (asyncssh.Error, OSError):
            return b""  # the link broke: exit_code() tells
        acknowledge(self._connection)
        return data

    async def write(self, data: bytes) -> None:
        with suppress(asyncssh.Error, OSError):  # it ended without reading all, or the link broke
            self._process.stdin.write(data)
            await self._process.stdin.drain()

    def write_eof(self) -> None:
        with suppress(asyncssh.Error, OSError):
            self._process.stdin.write_eof()

    async def exit_code(self) -> int | None:
        with suppress(asyncssh.Error, OSError):
            await self._process.wait_closed()
        self._over = True
        if self._process.exit_signal is not None:
            name = self._process.exit_signal[0]
            return 128 + getattr(signal, f"SIG{name}", 0)
        status = self._process.exit_status
        return None if status is None or status < 0 else status

    async def end(self) -> None:
        """SIGTERM, then SIGKILL, then close the channel: closing alone leaves a silent process running."""
        if self._over:
            return
        for send in (self._process.terminate, self._process.kill):
            with suppress(asyncssh.Error, OSError):
                send()
            if await self._closed(1.0):
                return
        with suppress(asyncssh.Error, OSError):
            self._process.close()
        await self._closed(1.0)

    async def _closed(self, seconds: float) -> bool:
        """Wait for the channel's end, throwing away what still comes."""
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(self._drain(self._process.stdout), self._drain(self._process.stderr))
                await self._process.wait_closed()
        except TimeoutError:
            return False
        except (asyncssh.Error, OSError):
            return True
        return True

    async def _drain(self, stream: asyncssh.SSHReader[bytes]) -> None:
        while await self._read(stream):
            pass


class SshConnection:
    """A TCP connection from the host onward, in a direct-tcpip channel."""

    def __init__(
        self,
        reader: asyncssh.SSHReader[bytes],
        writer: asyncssh.SSHWriter[bytes],
        connection: asyncssh.SSHClientConnection,
    ) -> None:
        self._reader, self._writer, self._connection = reader, writer, connection
        acknowledge(connection)

    async def read(self, n: int) -> bytes:
        try:
            data = await self._reader.read(n)
        except (asyncssh.Error, OSError) as error:
            raise LinkLost("the link broke in the middle of a connection") from error
        acknowledge(self._connection)
        return data

    async def write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except (asyncssh.Error, OSError) as error:
            raise LinkLost("the link broke in the middle of a connection") from error

    async def close(self) -> None:
        with suppress(asyncssh.Error, OSError, TimeoutError):
            self._writer.close()
            async with asyncio.timeout(1):
                await self._writer.wait_closed()
