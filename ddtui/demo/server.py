"""The demo host's sshd: sessions that run commands, and connections to the host's own ports.

Only the key that lies in the state folder opens it: whoever is in can run Python as the user who runs ddtui.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

import asyncssh

from ddtui.demo.accounts import LOGINS, USERS, User
from ddtui.demo.image import MOTD
from ddtui.demo.shell import run_command

if TYPE_CHECKING:
    from ddtui.demo.machine import Machine

MAX_SESSIONS = 10  # per connection, as OpenSSH's default
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Login(asyncssh.SSHServer):
    """One connection."""

    def __init__(self, machine: Machine, key: asyncssh.SSHKey) -> None:
        self.machine = machine
        self._key = key
        self.sessions = 0
        self.user: User = USERS["tuner"]

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn

    def begin_auth(self, username: str) -> bool:
        self.user = USERS.get(username, USERS["sglang"])
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username in LOGINS and key.public_data == self._key.public_data

    def session_requested(self) -> Session:
        if self.sessions >= MAX_SESSIONS:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, "open failed")
        self.sessions += 1
        return Session(self)

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> asyncssh.SSHTCPSession[bytes]:
        if dest_host not in LOOPBACK:
            raise asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "open failed")
        # asyncssh takes a coroutine that gives the session, though its annotation does not say so
        return _to_server(self.machine, dest_host, dest_port)  # type: ignore[return-value]


async def _to_server(machine: Machine, host: str, port: int) -> Tunnel:
    """A connection to the server, if that is where host:port leads."""
    await machine.booted.wait()
    tunnel = Tunnel()
    try:
        if not machine.serves(host, port):
            raise ConnectionRefusedError
        await asyncio.get_running_loop().create_unix_connection(
            lambda: tunnel.far, str(machine.server_socket)
        )
    except OSError:
        raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, "Connection refused") from None
    return tunnel


class Far(asyncio.Protocol):
    """The server's end of a tunnel."""

    def __init__(self, tunnel: Tunnel) -> None:
        self._tunnel = tunnel
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if self._tunnel.channel is None:
            transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        if self._tunnel.channel:
            self._tunnel.channel.write(data)

    def eof_received(self) -> bool:
        if self._tunnel.channel:
            self._tunnel.channel.write_eof()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        if self._tunnel.channel:
            self._tunnel.channel.close()

    def pause_writing(self) -> None:
        if self._tunnel.channel:
            self._tunnel.channel.pause_reading()

    def resume_writing(self) -> None:
        if self._tunnel.channel:
            self._tunnel.channel.resume_reading()


class Tunnel(asyncssh.SSHTCPSession[bytes]):
    """The client's end of a connection to the server's port."""

    def __init__(self) -> None:
        self.channel: asyncssh.SSHTCPChannel[bytes] | None = None
        self.far = Far(self)

    def connection_made(self, chan: asyncssh.SSHTCPChannel[bytes]) -> None:
        self.channel = chan

    def session_started(self) -> None:
        if self.far.transport:
            self.far.transport.resume_reading()

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        if self.far.transport:
            self.far.transport.write(data)

    def eof_received(self) -> bool:
        if self.far.transport and not self.far.transport.is_closing():
            self.far.transport.write_eof()
        return True

    def pause_writing(self) -> None:
        if self.far.transport:
            self.far.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.far.transport:
            self.far.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.far.transport:
            self.far.transport.abort()


class Session(asyncssh.SSHServerSession[bytes]):
    """One session: stdin, stdout and stderr of a command."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._command = ""
        self._stdin: deque[bytes] = deque()
        self._stdin_ended = False
        self._stdin_changed = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._task: asyncio.Task[None] | None = None
        self._channel: asyncssh.SSHServerChannel[bytes]

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan

    def pty_requested(self, term_type: str, term_size: object, term_modes: object) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._command = command
        return True

    def shell_requested(self) -> bool:
        return True

    def session_started(self) -> None:
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        user = self._login.user
        code = 255
        try:
            await self._login.machine.booted.wait()
            if user.greets:
                self.out(f"Welcome to the cluster, {user.name}\n".encode())
                self.err(b"quota: 93% used\n")
            if self._command:
                code = await run_command(self._login.machine, user, self._command, self)
            else:
                self.out(MOTD.replace("\n", "\r\n").encode())
                self.out(b"It has no interactive shell: give a command.\r\n")
                code = 1
            self._channel.exit(code)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # a fault of the demo host: say so where it can be seen
            self.err(f"demo host: {type(error).__name__}: {error}\n".encode())
            self._channel.exit(255)

    # -- what a program uses --------------------------------------------------------------------------------

    async def read(self) -> bytes:
        while not self._stdin:
            if self._stdin_ended:
                return b""
            self._stdin_changed.clear()
            await self._stdin_changed.wait()
        return self._stdin.popleft()

    def out(self, data: bytes) -> None:
        if data and not self._channel.is_closing():
            self._channel.write(data)

    def err(self, data: bytes) -> None:
        if data and not self._channel.is_closing():
            self._channel.write_stderr(data)

    async def drain(self) -> None:
        await self._writable.wait()

    # -- what the connection tells --------------------------------------------------------------------------

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        self._stdin.append(data)
        self._stdin_changed.set()

    def eof_received(self) -> bool:
        self._stdin_ended = True
        self._stdin_changed.set()
        return True

    def signal_received(self, signal: str) -> None:
        if self._task and not self._task.done():
            self._task.cancel()
            self._channel.exit_with_signal(signal)

    def break_received(self, msec: int) -> bool:
        self.signal_received("INT")
        return True

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._login.sessions -= 1
        self._stdin_ended = True
        self._stdin_changed.set()
        self._writable.set()
        if self._task and not self._task.done():
            self._task.cancel()


async def listen(
    machine: Machine, host_key: asyncssh.SSHKey, user_key: asyncssh.SSHKey, port: int = 0
) -> asyncssh.SSHAcceptor:
    """An SSH server on loopback that leads to the machine."""
    return await asyncssh.listen(
        "127.0.0.1",
        port,
        server_factory=lambda: Login(machine, user_key),
        server_host_keys=[host_key],
        encoding=None,
        kex_algs=["curve25519-sha256"],
        compression_algs=["none"],
        x11_forwarding=False,
        agent_forwarding=False,
        line_editor=False,
        keepalive_interval=0,
        login_timeout=120,
        gss_host=None,
        allow_scp=False,
        server_version="OpenSSH_9.2p1-ddtui-demo",
    )
