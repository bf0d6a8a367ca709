"""The interface to a host, the same over SSH and on this machine.

ddtui runs plain commands only: argv lists of standard programs, readable in the command log and expressible
in sudoers. `Host` is the one door to them.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from ddtui import redact, sanitize


class HostError(Exception):
    """Something about the host failed. `str()` is one clear sentence; `hint` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Unreachable(HostError):
    """No connection: name, network, port, or the host is down."""


class NotAuthenticated(HostError):
    """The host was reached and did not let us in."""


class HostKeyRefused(HostError):
    """The host's key is unknown and not accepted, changed, or revoked."""


class LinkLost(HostError):
    """The connection broke while a command ran; whether it took effect is not known."""


class ConfigError(HostError):
    """A file on this machine that says how to connect (ssh_config, known_hosts, a key) cannot be used."""


class NotPermitted(HostError):
    """The host refused for want of rights (sudo, polkit, file mode), or ddtui is read-only."""


class CommandFailed(HostError):
    """A command that had to succeed did not."""


class LinkState(StrEnum):
    CONNECTING = "connecting"
    CONNECTED = "connected"
    LOST = "lost"
    RETRYING = "retrying"
    REFUSED = "refused"  # authentication or host key: no automatic retry
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Link:
    """The state of the connection at one moment."""

    state: LinkState
    target: str  # user@host:port, or "local"
    rtt_ms: float | None = None  # median of the last few round trips; None before the first
    since: float = field(default_factory=time.time)  # unix time of the last change of state
    attempt: int = 0  # reconnection attempts so far
    retry_at: float | None = None  # unix time of the next attempt
    message: str = ""  # why, in a sentence


@dataclass(frozen=True, slots=True)
class Command:
    """One command for the host.

    `sudo`: run as root by the way that the host grants (root already, `sudo -n`, or with a password).
    `secret`: do not show stdin or output in the command log.
    """

    argv: tuple[str, ...]
    sudo: bool = False
    stdin: bytes | None = None
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Completed:
    """What a command did. Output is bytes, as the host sent it."""

    argv: tuple[str, ...]
    exit_code: int  # 127: no such program
    stdout: bytes
    stderr: bytes
    seconds: float

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def out(self) -> str:
        return self.stdout.decode("utf-8", "replace")

    @property
    def err(self) -> str:
        return self.stderr.decode("utf-8", "replace")

    @property
    def last_words(self) -> str:
        """The last line that a failed command said, redacted and safe to show; else its exit code."""
        lines = [line for line in self.err.splitlines() if line.strip()]
        return sanitize.line(redact.redact(lines[-1])) if lines else f"exit code {self.exit_code}"


@dataclass(frozen=True, slots=True)
class LoggedCommand:
    """One line of the command log; argv is redacted."""

    at: float
    argv: tuple[str, ...]
    sudo: bool
    exit_code: int | None  # None: the link was lost, or it was stopped
    seconds: float  # of a command in a batch: of the whole batch, which took one round trip


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where this machine reaches a TCP port of the host: a Unix socket (over the link) or host and port."""

    uds: str | None
    host: str
    port: int

    @property
    def base_url(self) -> str:
        return f"http://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class HostKey:
    """A host key that is not in known_hosts yet."""

    host: str
    port: int
    algorithm: str
    fingerprint: str  # SHA256:…
    note: str = ""  # what else a person should know before trusting it


class Asker(Protocol):
    """Who answers when the host wants something only a person knows. None or False: refused."""

    async def secret(self, prompt: str, *, purpose: str) -> str | None:
        """A password or passphrase. `purpose` is one of: password, passphrase, sudo, otp."""
        ...

    async def trust(self, key: HostKey) -> bool:
        """Whether to trust and remember this unknown host key."""
        ...


class NobodyToAsk:
    """Refuses every question: for scripts and tests."""

    async def secret(self, prompt: str, *, purpose: str) -> str | None:
        return None

    async def trust(self, key: HostKey) -> bool:
        return False


class Host(Protocol):
    """A host that can run commands, stream output and open TCP connections.

    All methods raise `LinkLost` if the connection breaks meanwhile and `Unreachable` if there is none.
    """

    name: str  # the profile's host, for display

    @property
    def link(self) -> Link: ...

    def on_link(self, callback: Callable[[Link], None]) -> Callable[[], None]:
        """Call back at every change of the link. Returns the function that ends it."""
        ...

    def on_command(self, callback: Callable[[LoggedCommand], None]) -> Callable[[], None]:
        """Call back after every command that was run."""
        ...

    async def connect(self) -> None:
        """Connect, and from then on reconnect by itself with back-off; called while it waits, it tries now.

        Raises Unreachable, NotAuthenticated, HostKeyRefused, NotPermitted (the account runs no commands) or
        ConfigError if this attempt fails.
        """
        ...

    async def connected(self) -> None:
        """Return as soon as the link is up; raise if it is refused or closed."""
        ...

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | None = None,
        sudo: bool = False,
        timeout: float = 30.0,
        secret: bool = False,
    ) -> Completed:
        """Run one command to its end. A non-zero exit is returned, not raised.

        After `timeout` seconds it is ended on the host and TimeoutError raised. With `sudo`: NotPermitted if
        the host grants no root rights for it; how they are had is found out, see sudo.py.
        """
        ...

    async def batch(self, commands: Sequence[Command], *, timeout: float = 30.0) -> list[Completed]:
        """Run several commands, one after another, in one round trip. None of them may have stdin."""
        ...

    def follow(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | None = None,
        pulse: float | None = None,
        sudo: bool = False,
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Run a command that keeps talking; yields its stdout line by line, without the newline.

        `stdin` is what it reads, then the end; None: nothing. With `pulse`: in place of the end an empty line
        every so many seconds, by which it knows that somebody is there. With `sudo`: where sudo asks for
        no password.

        The command is ended, on the host too, when the context is left. At most three run at a time. Raises
        LinkLost from the iterator if the link breaks, CommandFailed with its stderr if the command ends by
        itself with a failure.
        """
        ...

    async def open_connection(self, host: str, port: int) -> Connection:
        """A TCP connection from the host to host:port (as the host resolves it).

        Raises ConnectionRefusedError if nothing answers there, NotPermitted if sshd allows no forwarding.
        """
        ...

    async def endpoint(self, port: int, host: str = "127.0.0.1") -> Endpoint:
        """A local address that leads to host:port as seen from the host, until close() and over reconnects.

        Where nothing listens there, or the link is down, its connections end at once without an answer;
        `open_connection` says why.
        """
        ...

    async def close(self) -> None: ...


class Connection(Protocol):
    """A byte stream to a TCP port of the host."""

    async def read(self, n: int) -> bytes:
        """Up to n bytes; b"" at the end."""
        ...

    async def write(self, data: bytes) -> None: ...

    async def close(self) -> None: ...
