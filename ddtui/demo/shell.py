"""The login shell of the demo host: takes what ddtui sends through sshd, and single commands by hand."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from ddtui.demo.accounts import User
from ddtui.demo.commands.program import Streams
from ddtui.host.shell import Script, decode

if TYPE_CHECKING:
    from ddtui.demo.machine import Machine

# how dash names the place in ddtui's two forms, in "ddtui: PLACE: x: not found"
PLACE_SINGLE, PLACE_IN_BATCH = "2: exec", "9: eval"
REFUSED = ("sudo: a password is required", "authentication is required", "have a tty")


class _NoInput:
    """The streams of a command of a batch: no stdin; what sudo says on stderr is held, to be looked at."""

    def __init__(self, streams: Streams, hold_errors: bool) -> None:
        self._streams = streams
        self._held: bytearray | None = bytearray() if hold_errors else None

    async def read(self) -> bytes:
        return b""

    def out(self, data: bytes) -> None:
        self._streams.out(data)

    def err(self, data: bytes) -> None:
        if self._held is None:
            self._streams.err(data)
        else:
            self._held += data

    async def drain(self) -> None:
        await self._streams.drain()

    def release(self) -> str:
        """Pass on what was held, as `printf '%s\\n' "$e"` does, and return it."""
        if not self._held:
            return ""
        text = bytes(self._held).rstrip(b"\n")
        if text:
            self._streams.err(text + b"\n")
        return text.decode(errors="replace")


async def run_command(machine: Machine, user: User, command: str, streams: Streams) -> int:
    """Run what came as the command of an SSH session; its exit code."""
    try:
        script = decode(command)
    except ValueError:
        return await _by_hand(machine, user, command, streams)
    mark = script.marker.encode() + b"\n"
    streams.out(mark)
    streams.err(mark)
    if script.single:
        return await machine.run(machine.call(user, script.commands[0], streams, PLACE_SINGLE))
    return await _batch(machine, user, script, streams)


async def _batch(machine: Machine, user: User, script: Script, streams: Streams) -> int:
    mark = script.marker.encode()
    for argv in script.commands:
        held = _NoInput(streams, hold_errors=argv[0] == "sudo")
        code = await machine.run(machine.call(user, argv, held, PLACE_IN_BATCH))
        said = held.release()
        streams.out(b"\n%s %d\n" % (mark, code))
        streams.err(b"\n%s\n" % mark)
        await streams.drain()
        if code == 1 and any(words in said for words in REFUSED):
            break
    return 0


async def _by_hand(machine: Machine, user: User, command: str, streams: Streams) -> int:
    """One command with its arguments; a shell's own language is not spoken here."""
    try:
        argv = tuple(shlex.split(command))
    except ValueError as error:
        streams.err(f"sh: 1: Syntax error: {error}\n".encode())
        return 2
    if not argv or any(c in command for c in "|&;<>()$`\n"):
        streams.err(b"demo host: only single commands with plain arguments are run here\n")
        return 2
    return await machine.run(machine.call(user, argv, streams))
