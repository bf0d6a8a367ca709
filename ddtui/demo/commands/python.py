"""python3 on the demo host: this machine's Python, run for real, with the host's paths and ports."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from ddtui.demo.commands.program import Call
from ddtui.demo.process import guest_python

GUEST = Path(__file__).resolve().parent.parent / "guest.py"


async def python(call: Call) -> int:
    words = call.argv[1:]
    if words[:1] in (("-V",), ("--version",)):
        call.out(f"Python {sys.version.split()[0]}\n")
        return 0
    machine = call.machine
    names = machine.path_names()
    real = [_to_real(word, names) for word in words]
    child = await asyncio.create_subprocess_exec(
        *(os.fsencode(word) for word in (sys.executable, "-S", str(GUEST), *real)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=machine.files.real_path(call.cwd) if machine.files.exists(call.cwd) else machine.files.root,
        env={
            **{
                k: v
                for k, v in os.environ.items()
                if k in ("PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
            },
            **guest_python(machine.files, ""),
            "DDTUI_GUEST_PYTHON": machine.program_path(call.argv[0]) or call.argv[0],
            "DDTUI_GUEST_PORTS": await machine.guest_ports(),
            "DDTUI_GUEST_OLD": os.pathsep.join(str(folder) for folder in machine.files.mounts.values()),
            "TZ": "UTC",
        },
        start_new_session=True,
    )
    assert child.stdin and child.stdout and child.stderr
    machine.guests[child.pid] = (child, call.user)

    async def feed(stdin: asyncio.StreamWriter) -> None:
        try:
            while data := await call.streams.read():
                stdin.write(data)
                await stdin.drain()
            stdin.close()
        except (BrokenPipeError, ConnectionResetError):
            pass

    async def pass_on(stream: asyncio.StreamReader, error: bool) -> None:
        pending = b""
        while data := await stream.read(65536):
            *lines, pending = (pending + data).split(b"\n")
            whole = b"".join(line + b"\n" for line in lines)
            (call.streams.err if error else call.streams.out)(_to_virtual(whole, names))
            await call.streams.drain()
        (call.streams.err if error else call.streams.out)(_to_virtual(pending, names))

    feeding = asyncio.ensure_future(feed(child.stdin))
    try:
        await asyncio.gather(pass_on(child.stdout, False), pass_on(child.stderr, True))
        code = await child.wait()
    finally:
        feeding.cancel()
        machine.guests.pop(child.pid, None)
        if child.returncode is None:
            child.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(child.wait(), 5.0)
            except TimeoutError:
                child.kill()
    return code if code >= 0 else 128 - code


def _to_real(word: str, names: list[tuple[str, str]]) -> str:
    """A word with the host's absolute paths as this machine knows them, also in lists with `:` or `,`."""
    for real, virtual in sorted(names, key=lambda pair: -len(pair[1])):
        if word == virtual or word.startswith(virtual + "/"):
            return real + word[len(virtual) :]
    for separator in (os.pathsep, ","):
        if separator in word and word.startswith("/"):
            return separator.join(_to_real(part, names) for part in word.split(separator))
    return word


def _to_virtual(data: bytes, names: list[tuple[str, str]]) -> bytes:
    for real, virtual in names:
        data = data.replace(os.fsencode(real), os.fsencode(virtual))
    return data
