"""One conversation with a process: what it reads, what it prints, what it asks, until it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from ddtui.host.base import HostError

OUTPUT_LIMIT = 64 * 1024 * 1024  # bytes of one command's output


class Process(Protocol):
    """A command that runs on the host."""

    async def read(self) -> bytes:
        """Some of its stdout; b"" at the end."""
        ...

    async def read_error(self) -> bytes:
        """Some of its stderr; b"" at the end."""
        ...

    async def write(self, data: bytes) -> None:
        """Give it stdin."""
        ...

    def write_eof(self) -> None: ...

    async def exit_code(self) -> int | None:
        """Wait for its end. 128 + N for signal N; None if the link broke before it was known."""
        ...

    async def end(self) -> None:
        """End it if it still runs, on the host too. Never raises, takes a few seconds at most."""
        ...


@dataclass(frozen=True, slots=True)
class Prompt:
    """What to answer when `mark` shows up on stderr (or on the terminal)."""

    mark: bytes
    answer: bytes


class WrongAnswer(Exception):
    """The prompt came a second time."""


async def converse(
    process: Process, marker: str, stdin: bytes, *, prompt: Prompt | None = None, terminal: bool = False
) -> tuple[int | None, bytes, bytes]:
    """Feed the process and collect what it prints: (exit code or None if the link broke, stdout, stderr).

    Stdin goes out at once; with a prompt, after its answer; on a terminal, after the marker. Raises
    WrongAnswer if the prompt comes again, HostError if it prints more than `OUTPUT_LIMIT`.
    """
    out, err = bytearray(), bytearray()
    watched = out if terminal else err
    started, asked = asyncio.Event(), asyncio.Event()

    def look() -> None:
        if not started.is_set() and marker.encode() + b"\n" in out:
            started.set()
        if prompt and (count := watched.count(prompt.mark)):
            asked.set()
            if count > 1:
                raise WrongAnswer

    async def talk() -> None:
        if terminal:
            await started.wait()
            await process.write(stdin)
        if prompt:
            await asked.wait()
            await process.write(prompt.answer)
        if not terminal:
            await feed(process, stdin)

    try:
        async with asyncio.TaskGroup() as group:
            talking = group.create_task(talk())
            outs = group.create_task(_collect(process.read, out, look))
            errs = group.create_task(_collect(process.read_error, err, look))
            await asyncio.wait({outs, errs})
            talking.cancel()
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return await process.exit_code(), bytes(out), bytes(err)


async def feed(process: Process, stdin: bytes, pulse: float | None = None) -> None:
    """Give it all of its stdin, and the end; with `pulse` an empty line now and then in its place."""
    if stdin:
        await process.write(stdin)
    while pulse is not None:
        await asyncio.sleep(pulse)
        await process.write(b"\n")
    process.write_eof()


async def keep_tail(
    read: Callable[[], Coroutine[Any, Any, bytes]], into: bytearray, keep: int = 65536
) -> None:
    """Read to the end; of much, only the start and the newest part are kept."""
    while data := await read():
        into += data
        if len(into) > 2 * keep:
            del into[keep // 2 : len(into) - keep // 2]


async def _collect(
    read: Callable[[], Coroutine[Any, Any, bytes]], into: bytearray, look: Callable[[], None]
) -> None:
    while data := await read():
        if len(into) + len(data) > OUTPUT_LIMIT:
            mib = OUTPUT_LIMIT // (1024 * 1024)
            raise HostError(f"a command printed more than {mib} MiB; that is not kept")
        into += data
        look()
