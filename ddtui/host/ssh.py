"""A host over SSH: one connection that carries everything, and makes itself anew when it breaks.

The link is a small state machine, published as frozen `Link` snapshots:

    CLOSED → CONNECTING → CONNECTED → LOST → RETRYING ⇄ CONNECTING → CONNECTED …
                        ↘ REFUSED (host key, login, account: a person has to act; connect() tries again)

Command at each log-in: `id -u` (whether we are root, and whether the account runs commands at all).
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

import asyncssh

from ddtui.host import ssh_config
from ddtui.host.base import (
    Asker,
    Command,
    ConfigError,
    Connection,
    Endpoint,
    HostError,
    HostKeyRefused,
    Link,
    LinkState,
    NotAuthenticated,
    NotPermitted,
    Unreachable,
)
from ddtui.host.commands import CommandHost
from ddtui.host.converse import Process
from ddtui.host.forward import Forward
from ddtui.host.hop import Opener
from ddtui.host.login import Login, Memory
from ddtui.host.ssh_config import Route
from ddtui.host.ssh_failure import link_lost
from ddtui.host.ssh_process import SshConnection, SshProcess
from ddtui.profile import Connection as Settings

FIRST_RETRY, LAST_RETRY = 0.5, 30.0  # seconds, doubling
MEASURE_EVERY = 3.0  # seconds between measured round trips
KEY_RETRIES = 5  # refused log-ins in a row that a reconnect bears: a host that boots may not know us yet
SESSION_PATIENCE = 10.0  # seconds to wait for sshd to have a session free

T = TypeVar("T")


class SshHost(CommandHost):
    """`Host` over SSH."""

    def __init__(self, settings: Settings, asker: Asker) -> None:
        super().__init__(settings.host, asker)
        self._settings = settings
        self._memory = Memory()
        self._opener = Opener(asker, self._memory, self._tell, self._on_lost)
        self._link = Link(LinkState.CLOSED, settings.host)
        self._changed = asyncio.Event()  # set and replaced at every change of the link
        self._refusal: HostError | None = None
        self._chain: list[asyncssh.SSHClientConnection] = []  # the hops, the host last
        self._logins: set[Login] = set()
        self._broken = asyncio.Event()
        self._retry_now = asyncio.Event()
        self._connecting = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None
        self._forwards: dict[tuple[str, int], tuple[Forward, Endpoint]] = {}
        self._trips: deque[float] = deque(maxlen=5)
        self.route: Route | None = (
            None  # known after connect(); what of ssh_config has no effect stands there
        )

    # -- the link -----------------------------------------------------------------------------------------
    @property
    def link(self) -> Link:
        return self._link

    async def connect(self) -> None:
        async with self._connecting:
            if self._link.state is LinkState.CONNECTED:
                return
            if self._keeper and not self._keeper.done():
                await self._try_now()
                return
            self._set(LinkState.CONNECTING, attempt=0)
            try:
                await self._establish()
            except BaseException as error:
                self._fail(error)
                raise
            self._set(LinkState.CONNECTED)
            self._keeper = self._spawn(self._keep())

    async def connected(self) -> None:
        while self._link.state is not LinkState.CONNECTED:
            if self._link.state is LinkState.REFUSED and self._refusal:
                raise self._refusal
            if self._link.state is LinkState.CLOSED:
                raise Unreachable(f"the connection to {self.name} is closed")
            if self._link.state is LinkState.LOST and (self._keeper is None or self._keeper.done()):
                raise self._refusal or Unreachable(f"there is no connection to {self.name}")
            await self._changed.wait()

    async def close(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper:
            keeper.cancel()
            await asyncio.wait({keeper}, timeout=5)
        for forward, _ in self._forwards.values():
            await forward.close()
        self._forwards.clear()
        await self._drop()
        await self._finish()
        self._set(LinkState.CLOSED)

    async def _try_now(self) -> None:
        """While the keeper waits for its next attempt: make it now, and wait for how it ends."""
        attempt = self._link.attempt
        self._retry_now.set()
        while self._link.state is not LinkState.CONNECTED:
            if self._link.state is LinkState.RETRYING and self._link.attempt > attempt:
                raise self._refusal or Unreachable(self._link.message)
            if self._link.state in (LinkState.REFUSED, LinkState.CLOSED):
                raise self._refusal or Unreachable(self._link.message)
            await self._changed.wait()

    async def _keep(self) -> None:
        """Watch the link; when it breaks, make it anew."""
        try:
            while True:
                measuring = self._spawn(self._measure())
                try:
                    await self._broken.wait()
                finally:
                    measuring.cancel()
                await self._drop()
                if not await self._reconnect():
                    return
        except Exception as error:  # a fault of ours must not leave the link looking alive
            self._fail(error)
            raise

    async def _reconnect(self) -> bool:
        """Attempts until one succeeds; False when a person has to act."""
        refused = 0
        attempt = 0
        message = self._link.message
        while True:
            pause = min(LAST_RETRY, FIRST_RETRY * 2**attempt) * random.uniform(0.6, 1.0)
            attempt += 1
            self._set(LinkState.RETRYING, attempt=attempt, retry_at=time.time() + pause, message=message)
            self._retry_now.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._retry_now.wait(), pause)
            self._set(LinkState.CONNECTING, attempt=attempt, message=message)
            try:
                await self._establish()
            except (HostKeyRefused, ConfigError, NotPermitted) as error:
                self._fail(error)
                return False
            except NotAuthenticated as error:
                refused += 1
                if refused >= KEY_RETRIES or not self._memory.accepted:
                    self._fail(error)
                    return False
                self._refusal, message = error, str(error)
            except (HostError, TimeoutError) as error:
                self._refusal, message = _as_host_error(error), str(error)
            else:
                self._set(LinkState.CONNECTED)
                return True

    def _fail(self, error: BaseException) -> None:
        """Publish why there is no link."""
        if isinstance(error, (NotAuthenticated, HostKeyRefused, ConfigError, NotPermitted)):
            self._refusal = error
            self._set(LinkState.REFUSED, message=str(error))
        else:
            self._refusal = _as_host_error(error) if isinstance(error, Exception) else None
            self._set(LinkState.LOST, message=str(error) or "the attempt was given up")

    def _set(
        self, state: LinkState, *, attempt: int = 0, retry_at: float | None = None, message: str = ""
    ) -> None:
        target = self.route.target if self.route else self._link.target
        self._publish(Link(state, target, None, time.time(), attempt, retry_at, message))

    def _publish(self, link: Link) -> None:
        self._link = link
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        for callback in list(self._link_callbacks):
            callback(link)

    def _tell(self, message: str) -> None:
        self._publish(replace(self._link, message=message))

    def _on_lost(self, login: Login, error: Exception | None) -> None:
        """Called by asyncssh, in the same breath as everything on that connection fails."""
        if login not in self._logins:
            return
        self._logins.discard(login)
        if self._link.state is LinkState.CONNECTED:
            self._set(LinkState.LOST, message=link_lost(error))
        self._broken.set()

    # -- making it ----------------------------------------------------------------------------------------
    async def _establish(self) -> None:
        """Connect to every hop in turn, log in, and see that commands run. Raises HostError."""
        self.route = ssh_config.resolve(self._settings)
        self._broken = asyncio.Event()
        self._trips.clear()
        try:
            for hop in self.route.hops:
                connection, login = await self._opener.open(hop, self._chain[-1] if self._chain else None)
                self._chain.append(connection)
                self._logins.add(login)
            who = await self._run_plain(
                Command(("id", "-u")), timeout=max(10.0, self._settings.connect_timeout)
            )
        except TimeoutError as error:
            await self._drop()
            raise Unreachable(f"{self.name} let us in and then ran no command: {error}") from None
        except BaseException:
            await self._drop()
            raise
        self._is_root = who.out.strip() == "0"
        if self._broken.is_set():
            await self._drop()
            raise Unreachable(f"{self.name} ended the connection right after the log-in")

    async def _drop(self) -> None:
        """Close every hop, the host first."""
        chain, self._chain = self._chain, []
        self._logins.clear()  # from here on their end is no news
        for connection in reversed(chain):
            connection.close()
            try:
                async with asyncio.timeout(1):
                    await connection.wait_closed()
            except (TimeoutError, OSError, asyncssh.Error):
                connection.abort()

    # -- measuring ----------------------------------------------------------------------------------------
    async def _measure(self) -> None:
        """Keep the round-trip time. Takes no channel: a request that every SSH server answers, with a no."""
        connection = self._chain[-1]
        while True:
            began = time.monotonic()
            asked = asyncio.create_task(_round_trip(connection))
            try:
                done, _ = await asyncio.wait({asked}, timeout=2 * MEASURE_EVERY)
                while not done:
                    waited = time.monotonic() - began
                    self._publish(replace(self._link, rtt_ms=None, message=f"no answer for {waited:.0f} s"))
                    done, _ = await asyncio.wait({asked}, timeout=1)
            finally:
                asked.cancel()
            self._trips.append((time.monotonic() - began) * 1000)
            if self._link.state is LinkState.CONNECTED:
                rtt = _steady(self._link.rtt_ms, statistics.median(self._trips))
                self._publish(replace(self._link, rtt_ms=rtt, message=""))
            await asyncio.sleep(MEASURE_EVERY)

    # -- channels -----------------------------------------------------------------------------------------
    async def _open(self, command: str, *, terminal: bool = False) -> Process:
        async def create(connection: asyncssh.SSHClientConnection) -> asyncssh.SSHClientProcess[bytes]:
            return await connection.create_process(
                command, encoding=None, request_pty="force" if terminal else False, term_type="dumb"
            )

        loop = asyncio.get_running_loop()
        end = loop.time() + SESSION_PATIENCE
        while True:
            try:
                process = await self._channel(create, lambda process: process.close())
                return SshProcess(process, self._chain[-1])
            except asyncssh.ChannelOpenError as error:
                if loop.time() > end:
                    raise HostError(
                        f"sshd on {self.name} opens no more sessions: {error.reason}",
                        "MaxSessions in sshd_config is too low for ddtui; it needs 8, and 10 is the default.",
                    ) from None
                await asyncio.sleep(0.2)

    async def open_connection(self, host: str, port: int) -> Connection:
        async def create(
            connection: asyncssh.SSHClientConnection,
        ) -> tuple[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]]:
            return await connection.open_connection(host, port)

        try:
            reader, writer = await self._channel(create, lambda pair: pair[1].close())
        except asyncssh.ChannelOpenError as error:
            if error.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
                raise NotPermitted(
                    f"sshd on {self.name} forwards no connection to {host}:{port}",
                    "AllowTcpForwarding in sshd_config, or permitopen of the key, has to allow it.",
                ) from None
            raise ConnectionRefusedError(f"nothing answers at {host}:{port} on {self.name}") from None
        return SshConnection(reader, writer, self._chain[-1])

    async def endpoint(self, port: int, host: str = "127.0.0.1") -> Endpoint:
        if (host, port) not in self._forwards:
            forward = Forward(lambda: self.open_connection(host, port))
            self._forwards[host, port] = forward, Endpoint(await forward.start(), host, port)
        return self._forwards[host, port][1]

    async def _channel(
        self,
        create: Callable[[asyncssh.SSHClientConnection], Awaitable[T]],
        undo: Callable[[T], None],
    ) -> T:
        """A new channel on the link. Raises Unreachable if there is none, ChannelOpenError if it is refused.

        A channel that opens after the caller was cancelled is closed again, so that none is left behind.
        """
        if not self._chain or self._broken.is_set():
            raise self._no_link()
        opening = asyncio.ensure_future(create(self._chain[-1]))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(lambda done: undo(done.result()) if _came_out(done) else None)
            raise
        except (asyncssh.Error, OSError) as error:
            if isinstance(error, asyncssh.ChannelOpenError) and not self._broken.is_set():
                raise
            raise self._no_link() from None

    def _no_link(self) -> Unreachable:
        why = f": {self._link.message}" if self._link.message else ""
        return Unreachable(f"there is no connection to {self.name} now ({self._link.state}{why})")


async def _round_trip(connection: asyncssh.SSHClientConnection) -> None:
    # asyncssh's own keepalive; it has no public name for one
    await connection._make_global_request(b"keepalive@openssh.com")


def _steady(before: float | None, now: float) -> float:
    """A round-trip time (ms) that differs by what nobody would notice is no news."""
    return before if before is not None and abs(now - before) < max(1.0, before / 10) else now


def _came_out(done: asyncio.Future[T]) -> bool:
    return not done.cancelled() and done.exception() is None


def _as_host_error(error: BaseException) -> HostError:
    return error if isinstance(error, HostError) else Unreachable(str(error) or type(error).__name__)
