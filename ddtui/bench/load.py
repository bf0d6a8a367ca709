"""Starts the worker, here or on the host, and passes on what it tells.

On the host it is `PYTHON -c 'import sys; …; exec(sys.stdin.readline())'` with everything on stdin: nothing is
written there, and nothing is left. Here it is the same, so that both places run the same bytes. To cancel on
the host: `kill -TERM -- PID`. A link that is lost may leave the worker's pipes open for as long as TCP waits:
so its stdin gets a pulse, and without it the worker ends by itself.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from importlib import resources
from typing import Any

from ddtui.bench.target import BenchError
from ddtui.host.base import Host, HostError

MODULES = ("http_stream", "answer", "exchange", "worker")  # in the order in which they import each other
SILENCE = 20.0  # s without a word from a worker that ticks twice a second
END = 6.0  # s for a cancelled worker to report what had come
PULSE = 2.0  # s between two signs of life to a worker on the host
PATIENCE = 12.0  # s without one after which it ends

Told = dict[str, Any]
Sink = Callable[[Told], None]

# what is the working directory's stays out of it, and no byte code is left
READ = (
    "import sys; sys.dont_write_bytecode = True; sys.path[:] = filter(None, sys.path); "
    "exec(sys.stdin.readline())"
)
_BOOT = """\
import base64, json, sys, types, zlib
def _take(packed): return zlib.decompress(base64.b64decode(packed)).decode()
for _name, _text in {modules!r}.items():
    _module = sys.modules[_name] = types.ModuleType(_name)
    exec(compile(_take(_text), _name, "exec"), _module.__dict__)
sys.modules["ddtui.bench.worker"].run(json.loads(_take("{job}")))
"""


def cores() -> int:
    """How many processes can run at once here: more of them would only wait for each other."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def bundle(job: Told) -> bytes:
    """The worker, what it imports and its job, as one line of Python."""
    folder = resources.files("ddtui.bench")
    modules = {f"ddtui.bench.{name}": _pack((folder / f"{name}.py").read_bytes()) for name in MODULES}
    boot = _BOOT.format(modules=modules, job=_pack(json.dumps(job).encode()))
    return f"exec({boot!r})\n".encode()


def _pack(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 6)).decode()


async def here(job: Told, sink: Sink) -> None:
    """Run the worker in a process on this machine until its end; `sink` gets each of its messages.

    Cancelled: the worker aborts what is in flight and reports it, then the process is gone. Raises BenchError
    when it fails or falls silent.
    """
    script = await asyncio.to_thread(bundle, job)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-c",
        READ,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 30,
        start_new_session=True,
    )
    assert process.stdin and process.stdout and process.stderr
    complaints = asyncio.ensure_future(process.stderr.read())

    async def stop() -> None:
        with suppress(ProcessLookupError):
            process.terminate()

    try:
        with suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(script)
            await process.stdin.drain()
        process.stdin.close()
        if not await _pass_on(_lines(process.stdout), sink, stop):
            raise BenchError(f"the load process ended early: {_last_line(await complaints)}")
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        complaints.cancel()


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while line := await stream.readline():
        yield line


async def on_host(host: Host, python: str, job: Told, sink: Sink) -> None:
    """Run the worker on the host by that Python until its end; else as `here`. Raises HostError as well."""
    script = await asyncio.to_thread(bundle, {**job, "patience": PATIENCE})
    pid = 0

    def see(message: Told) -> None:
        nonlocal pid
        pid = message["pid"] if message["kind"] == "hello" else pid
        sink(message)

    async def stop() -> None:
        if pid:
            with suppress(HostError, TimeoutError):
                await host.run(["kill", "-TERM", "--", str(pid)], timeout=END)

    async with host.follow([python, "-c", READ], stdin=script, pulse=PULSE) as lines:
        if not await _pass_on(lines, see, stop):
            raise BenchError(f"the load process on {host.name} ended early")


async def _pass_on(lines: AsyncIterator[bytes], sink: Sink, stop: Callable[[], Awaitable[None]]) -> bool:
    """Pass on all messages up to `end`; False if it never came. Cancelled: stop the worker, then the rest."""
    reading = asyncio.ensure_future(_read(lines, sink))
    try:
        return await asyncio.shield(reading)
    except asyncio.CancelledError:
        await stop()
        await asyncio.wait([reading], timeout=END)
        raise
    finally:
        if not reading.done():
            reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _read(lines: AsyncIterator[bytes], sink: Sink) -> bool:
    while True:
        try:
            async with asyncio.timeout(SILENCE):
                line = await anext(lines)
        except StopAsyncIteration:
            return False
        except TimeoutError:
            raise BenchError(f"the load process has said nothing for {SILENCE:.0f} s") from None
        message: Told = json.loads(line)
        sink(message)
        if message["kind"] == "end":
            return True


def _last_line(complaints: bytes) -> str:
    lines = complaints.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "without a word"
