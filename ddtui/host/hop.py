"""Opening the connection to one SSH server on the way: network, host key, log-in.

The traps of asyncssh's defaults are closed here: no config file is read behind our back, host keys are
decided by `known_hosts`, keys offered by `Login`, and nothing (agent, terminal, environment) is passed on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import asyncssh

from ddtui.host import known_hosts
from ddtui.host.base import Asker, HostKey
from ddtui.host.known_hosts import Answer, Entry, KnownHosts, Marker
from ddtui.host.login import Keys, Login, Memory, keys
from ddtui.host.ssh_config import Hop
from ddtui.host.ssh_failure import (
    certificate_refused,
    explain,
    host_key_refused,
    login_refused,
    too_many_failures,
)

AT_ONCE = 5  # keys per connection: sshd's MaxAuthTries is 6, and a password may still have to follow
CONNECTIONS = 6  # per log-in: enough for 25 keys, and few enough not to be punished for
PATIENCE = 120.0  # seconds for a person to answer; sshd's LoginGraceTime


@dataclass(frozen=True, slots=True)
class Opener:
    """What opening a hop needs besides the hop."""

    asker: Asker
    memory: Memory
    tell: Callable[[str], None]  # what a person has to do now, beside answering questions
    lost: Callable[[Login, Exception | None], None]

    async def open(
        self, hop: Hop, tunnel: asyncssh.SSHClientConnection | None
    ) -> tuple[asyncssh.SSHClientConnection, Login]:
        """A connection that is logged in. Raises HostError."""
        found = await keys(hop, self.asker, self.memory)
        try:
            return await self._log_in(hop, tunnel, found)
        finally:
            found.close()

    async def _log_in(
        self, hop: Hop, tunnel: asyncssh.SSHClientConnection | None, found: Keys
    ) -> tuple[asyncssh.SSHClientConnection, Login]:
        known = known_hosts.look_up(hop.host, hop.port, hop.known_hosts, alias=hop.host_key_alias)
        at, some = 0, AT_ONCE
        offered: list[str] = []
        for attempt in range(CONNECTIONS):
            left = len(found.pairs) - at - some
            passwords = left <= 0 or attempt == CONNECTIONS - 1
            offers = found.pairs[at : at + some]
            login = Login(
                hop,
                known,
                offers,
                self.asker,
                self.memory,
                passwords=passwords,
                tell=self.tell,
                lost=self.lost,
            )
            try:
                return await self._attempt(hop, tunnel, known, login), login
            except asyncssh.HostKeyNotVerifiable as error:
                if login.presented is None:
                    raise certificate_refused(hop, error) from error
                known = await self._trust(hop, known, login, login.presented)
            except asyncssh.PermissionDenied as error:
                offered += login.offered
                if passwords:
                    raise login_refused(hop, offered, found.skipped, login) from error
                at += some
            except (asyncssh.Error, OSError, ValueError, TimeoutError) as error:
                if not too_many_failures(error) or login.asked_password or len(login.offered) < 2:
                    raise explain(error, hop, login) from error
                offered += login.offered[:-1]  # the last one was not looked at any more
                at, some = at + len(login.offered) - 1, len(login.offered) - 1
        raise login_refused(hop, offered, found.skipped, None)

    async def _attempt(
        self, hop: Hop, tunnel: asyncssh.SSHClientConnection | None, known: KnownHosts, login: Login
    ) -> asyncssh.SSHClientConnection:
        """One connection. `connect_timeout` is for the network; in the log-in a person may take time."""
        # asyncssh decides about certificates; plain keys all come to `Login`, which asks `known` about each
        trusted: tuple[list[asyncssh.SSHKey], ...] = (
            [],
            known.authorities,
            known.revoked if known.authorities else [],
        )
        settings = {"server_host_key_algs": known.algorithms(), **hop.settings}
        connecting = asyncio.ensure_future(
            asyncssh.connect(
                hop.host,
                hop.port,
                username=hop.user,
                client_factory=lambda: login,
                tunnel=tunnel,
                proxy_command=hop.proxy_command if tunnel is None else None,
                known_hosts=trusted,
                host_key_alias=hop.host_key_alias,
                config=None,
                client_keys=None,  # `Login` offers them
                agent_path=None,
                agent_forwarding=False,
                request_pty=False,
                x509_trusted_certs=None,
                login_timeout=PATIENCE,
                keepalive_interval=hop.keepalive,
                keepalive_count_max=hop.keepalive_count,
                **settings,
            )
        )
        reached = asyncio.create_task(login.authenticating.wait())
        try:
            await asyncio.wait(
                {connecting, reached}, timeout=hop.connect_timeout, return_when=asyncio.FIRST_COMPLETED
            )
            if not connecting.done() and not reached.done():
                raise TimeoutError
            return await connecting
        finally:
            reached.cancel()
            if not connecting.done():
                connecting.cancel()
                await asyncio.wait({connecting}, timeout=2)

    async def _trust(self, hop: Hop, known: KnownHosts, login: Login, key: asyncssh.SSHKey) -> KnownHosts:
        """Ask a person about an unknown key. Gives what is known afterwards; raises HostKeyRefused."""
        if login.answer in (Answer.CHANGED, Answer.REVOKED):
            raise host_key_refused(hop, known, login.answer, key)
        notes: list[str] = []
        if login.answer is Answer.OTHER_TYPE:
            others = ", ".join(sorted({entry.algorithm for entry in known.of(Marker.NONE)}))
            notes.append(
                f"A key of another type is known for this host ({others}), which it does not present now."
                " Make sure that it was set up anew."
            )
        if not known.files:
            notes.append("It cannot be remembered: ssh_config names no known_hosts file.")
        shown = HostKey(hop.host, hop.port, key.get_algorithm(), key.get_fingerprint(), " ".join(notes))
        if not await self.asker.trust(shown):
            raise host_key_refused(hop, known, login.answer, key)
        known_hosts.remember(known, key)
        return replace(known, entries=(*known.entries, Entry("trusted just now", Marker.NONE, key)))
