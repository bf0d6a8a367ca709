"""What the tests of the demo host share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from ddtui.demo.accounts import ROOT, USERS, User
from ddtui.demo.filesystem import Filesystem
from ddtui.demo.machine import Machine
from ddtui.demo.shell import run_command
from ddtui.host import shell

UNIT = "sglang-k26-ddtree.service"
LIGHT = """\
[Unit]
Description=a light service

[Service]
ExecStart=/usr/bin/python3 -c "{code}"
{more}
"""


@dataclass
class Recorded:
    """Streams that a test fills and reads."""

    stdin: list[bytes] = field(default_factory=list)
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self) -> bytes:
        return self.stdin.pop(0) if self.stdin else b""

    def out(self, data: bytes) -> None:
        self.stdout += data
        self.changed.set()

    def err(self, data: bytes) -> None:
        self.stderr += data

    async def drain(self) -> None:
        await asyncio.sleep(0)

    async def lines(self, count: int) -> list[str]:
        """Wait until so many lines have come."""
        async with asyncio.timeout(20):
            while self.stdout.count(b"\n") < count:
                self.changed.clear()
                await self.changed.wait()
        return self.stdout.decode().splitlines()


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


async def run(machine: Machine, *argv: str, stdin: bytes = b"", user: str | User = "tuner") -> Done:
    """Run one command on the host as ddtui does, and take it apart again."""
    script = shell.Script(shell.new_marker(), (argv,), single=True)
    streams = Recorded([stdin] if stdin else [])
    who = USERS[user] if isinstance(user, str) else user
    async with asyncio.timeout(30):
        code = await run_command(machine, who, shell.encode(script), streams)
    out = shell.after_marker(script.marker, bytes(streams.stdout))
    err = shell.after_marker(script.marker, bytes(streams.stderr))
    assert out is not None and err is not None
    return Done(code, out.decode(errors="replace"), err.decode(errors="replace"))


async def batch(machine: Machine, *argvs: tuple[str, ...], user: str = "tuner") -> list[Done]:
    """Run several commands in one round trip, as ddtui does."""
    script = shell.Script(shell.new_marker(), argvs, single=False)
    streams = Recorded()
    await run_command(machine, USERS[user], shell.encode(script), streams)
    done = shell.split_outputs(script.marker, bytes(streams.stdout), bytes(streams.stderr))
    return [Done(code, out.decode(), err.decode()) for code, out, err in done]


def bare_files(folder: Path) -> Filesystem:
    """An empty disk."""
    (folder / "root").mkdir(parents=True)
    return Filesystem(folder / "root", folder / "metadata.json")


async def show(machine: Machine, *names: str, unit: str = UNIT) -> dict[str, str]:
    """Properties of a unit."""
    done = await run(machine, "systemctl", "show", unit, "-p", ",".join(names), "--no-pager")
    return dict(line.split("=", 1) for line in done.out.splitlines())


def install(machine: Machine, code: str, more: str = "", unit: str = UNIT) -> None:
    """Put a light unit in the place of SGLang's, and load it."""
    text = LIGHT.format(code=code.replace('"', '\\"'), more=more)
    machine.files.write(f"/etc/systemd/system/{unit}", text.encode(), user=ROOT)
    machine.systemd.reload()


async def until(machine: Machine, wanted: dict[str, str], unit: str = UNIT) -> dict[str, str]:
    """Wait until the unit's properties are these."""
    async with asyncio.timeout(30):
        while True:
            now = await show(machine, *wanted, unit=unit)
            if now == wanted:
                return now
            await asyncio.sleep(0.01)
