"""An SSH server on loopback, for log-ins of every kind. Commands run in /bin/sh on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

from ddtui.profile import Connection


@dataclass
class Door:
    """Who may come in, and what happened."""

    keys: list[asyncssh.SSHKey] = field(default_factory=list)
    password: str | None = None
    challenge: dict[str, str] = field(default_factory=dict)  # prompt → answer, keyboard-interactive
    offered: list[str] = field(default_factory=list)  # fingerprints
    passwords: list[str] = field(default_factory=list)
    connections: list[asyncssh.SSHServerConnection] = field(default_factory=list)
    banner: str = ""
    forwards: bool = True
    max_tries: int = 1000


class _Server(asyncssh.SSHServer):
    def __init__(self, door: Door) -> None:
        self._door = door
        self._tries = 0

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._door.connections.append(conn)
        self._connection = conn

    def begin_auth(self, username: str) -> bool:
        if self._door.banner:
            self._connection.send_auth_banner(self._door.banner)
        return True

    def _failed(self) -> None:
        self._tries += 1
        if self._tries >= self._door.max_tries:
            raise asyncssh.DisconnectError(
                asyncssh.DISC_NO_MORE_AUTH_METHODS_AVAILABLE, "Too many authentication failures"
            )

    def public_key_auth_supported(self) -> bool:
        return bool(self._door.keys)

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        self._door.offered.append(key.get_fingerprint())
        if key.public_data in [known.public_data for known in self._door.keys]:
            return True
        self._failed()
        return False

    def password_auth_supported(self) -> bool:
        return self._door.password is not None

    def validate_password(self, username: str, password: str) -> bool:
        self._door.passwords.append(password)
        return password == self._door.password

    def kbdint_auth_supported(self) -> bool:
        return bool(self._door.challenge)

    def get_kbdint_challenge(self, username: str, lang: str, submethods: str) -> Any:
        return "", "", "", [(prompt, False) for prompt in self._door.challenge]

    def validate_kbdint_response(self, username: str, responses: Sequence[str]) -> bool:
        return list(responses) == list(self._door.challenge.values())

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        return self._door.forwards


async def _run(process: asyncssh.SSHServerProcess[bytes]) -> None:
    child = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", process.command or ""),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await child.communicate(await process.stdin.read())
    process.stdout.write(out)
    process.stderr.write(err)
    process.exit(child.returncode or 0)


@dataclass
class Loopback:
    door: Door
    port: int
    host_key: asyncssh.SSHKey
    known_hosts: Path

    def connection(self, **settings: Any) -> Connection:
        """Settings that lead here, with the host key known. `known_hosts` and others can be replaced."""
        default = {"host": "127.0.0.1", "port": self.port, "user": "tuner", "known_hosts": self.known_hosts}
        return Connection(**{**default, **settings})

    def cut(self) -> None:
        """End every connection, without a word."""
        for connection in self.door.connections:
            connection.abort()
        self.door.connections.clear()


@asynccontextmanager
async def loopback(
    tmp_path: Path, door: Door, *, host_key: asyncssh.SSHKey | None = None, port: int = 0
) -> AsyncIterator[Loopback]:
    """A server on a port of its own; its key is in `known_hosts` below tmp_path."""
    key = host_key or asyncssh.generate_private_key("ssh-ed25519")
    server = await asyncssh.listen(
        "127.0.0.1",
        port,
        server_factory=lambda: _Server(door),
        server_host_keys=[key],
        process_factory=_run,
        encoding=None,
        config=None,
    )
    port = server.get_port()
    known = tmp_path / f"known_hosts-{port}"
    known.write_text(f"[127.0.0.1]:{port} {key.export_public_key().decode()}")
    here = Loopback(door, port, key, known)
    try:
        yield here
    finally:
        here.cut()
        server.close()
        await server.wait_closed()
