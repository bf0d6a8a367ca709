"""The life of the demo host's process: lock, boot, listen, wait for the end, shut down."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import sys
from pathlib import Path
from typing import IO

from ddtui.demo.machine import UNIT, Machine

IN_USE = 75  # exit code: another process runs a host on this folder


def run(state: Path, *, fresh: bool, delay: float, port: int) -> int:
    """Run until the end; exit code."""
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = (state / "lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"a demo host already runs on {state}", file=sys.stderr)
        return IN_USE
    asyncio.run(_live(state, fresh, delay, port))
    return 0


async def _live(state: Path, fresh: bool, delay: float, port: int) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, over.set)
    machine = Machine.assemble(state, fresh=fresh)
    try:
        machine.boot()
        await asyncio.sleep(0)  # the service's process starts now, while what follows is imported
        await asyncio.sleep(0)
        attached = Attachments(machine.run_dir / "control", over)
        access = await _listen(machine, state, delay, port, attached)
        line = json.dumps(access)
        await attached.open(line)
        (state / "running.json").write_text(json.dumps({**access, "control": str(attached.path)}))
        os.write(1, line.encode() + b"\n")
        attached.hold(sys.stdin)
        await over.wait()
    finally:
        (state / "running.json").unlink(missing_ok=True)
        await machine.shut_down()


async def _listen(
    machine: Machine, state: Path, delay: float, port: int, attached: Attachments
) -> dict[str, object]:
    import asyncssh

    from ddtui.demo import server
    from ddtui.demo.accounts import ASKER_PASSWORD, LOGINS

    keys = {}
    for name in ("host_key", "id_ed25519"):
        path = state / name
        if not path.exists():
            asyncssh.generate_private_key("ssh-ed25519", name).write_private_key(str(path))
            path.chmod(0o600)
        keys[name] = asyncssh.read_private_key(str(path))
    acceptor = await server.listen(machine, keys["host_key"], keys["id_ed25519"], 0 if delay else port)
    reached = acceptor.get_port()
    if delay:
        from ddtui.demo.slow import slow_link

        reached = await slow_link(reached, delay, port)
    public = keys["host_key"].export_public_key().decode().split()
    known_hosts = state / "known_hosts"
    known_hosts.write_text(f"[127.0.0.1]:{reached} {public[0]} {public[1]}\n")
    return {
        "host": "127.0.0.1",
        "port": reached,
        "user": "tuner",
        "identity_file": str(state / "id_ed25519"),
        "known_hosts": str(known_hosts),
        "unit": UNIT,
        "users": list(LOGINS),
        "asker_password": ASKER_PASSWORD,
        "root": str(machine.files.root),
        "pid": os.getpid(),
    }


class Attachments:
    """Who needs this host: whoever started it, by its stdin, and others by connections to a Unix socket."""

    def __init__(self, path: Path, over: asyncio.Event) -> None:
        self.path = path
        self._over = over
        self._holders = 0
        self._line = b""
        self._server: asyncio.Server | None = None

    async def open(self, line: str) -> None:
        """Let others attach; each gets the line."""
        self._line = line.encode() + b"\n"
        self._server = await asyncio.start_unix_server(self._attach, str(self.path))

    async def _attach(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._holders += 1
        try:
            writer.write(self._line)
            await writer.drain()
            await reader.read()  # until the other side goes
        except ConnectionError:
            pass
        finally:
            writer.close()
            self._release()

    def hold(self, stdin: IO[str]) -> None:
        """Live until stdin has ended."""
        self._holders += 1
        loop = asyncio.get_running_loop()
        number = stdin.fileno()

        def readable() -> None:
            try:
                ended = not os.read(number, 4096)
            except OSError:
                ended = True
            if ended:
                loop.remove_reader(number)
                self._release()

        try:
            loop.add_reader(number, readable)
        except (PermissionError, OSError):  # a file: it has ended already
            self._release()

    def _release(self) -> None:
        self._holders -= 1
        if self._holders <= 0:
            self._over.set()
