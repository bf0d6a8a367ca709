"""The service's process on this machine: the SGLang stand-in under this Python."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from ddtui.demo.filesystem import Filesystem
from ddtui.demo.processes import Process

Output: TypeAlias = Callable[[str, bool], None]  # text, and whether it is a whole line (or a piece of one)


class Spawned(Protocol):
    """A running process of the host."""

    def signal(self, number: int) -> None: ...

    def signal_child(self, comm: str, number: int) -> None:
        """Send a signal to the child of that (cut) name, where this machine can tell its children apart."""
        ...

    async def ended(self) -> int:
        """Its exit code, or minus the signal; all its output has been handed on by then."""
        ...


Spawn: TypeAlias = Callable[[Process, Output], Awaitable[Spawned]]

LINE_MAX = 48 * 1024  # journald cuts longer lines
CUSTOMERS_PER_MINUTE = "24"  # so that the journal is alive; they step aside for everybody else


@dataclass
class RealProcess:
    """A process of this machine."""

    child: asyncio.subprocess.Process
    reading: asyncio.Task[None]

    def signal(self, number: int) -> None:
        try:
            self.child.send_signal(number)
        except ProcessLookupError:
            pass

    def signal_child(self, comm: str, number: int) -> None:
        try:
            children = Path(f"/proc/{self.child.pid}/task/{self.child.pid}/children").read_text().split()
            for pid in children:
                if Path(f"/proc/{pid}/comm").read_text().strip() == comm:
                    os.kill(int(pid), number)
                    return
        except OSError:
            return

    async def ended(self) -> int:
        code = await self.child.wait()
        try:
            await asyncio.wait_for(asyncio.shield(self.reading), 2.0)
        except TimeoutError:  # a grandchild holds the pipe
            self.reading.cancel()
        return code


@dataclass(frozen=True)
class Standin:
    """Runs the host's Python programs. `socket` is where the server's port leads to."""

    files: Filesystem
    socket: Path
    at_once: Callable[[], bool]  # whether loading takes no time: at boot

    async def spawn(self, process: Process, output: Output) -> Spawned:
        """Start it. Raises OSError."""
        self.socket.unlink(missing_ok=True)
        child = await asyncio.create_subprocess_exec(
            *(os.fsencode(word) for word in (sys.executable, "-S", *process.argv[1:])),
            stdin=asyncio.subprocess.PIPE,  # its end tells the process that the host is gone
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=self.files.real_path(self.files.resolve(process.cwd)),
            env=self.environment(process),
            start_new_session=True,
        )
        assert child.stdout is not None
        return RealProcess(child, asyncio.ensure_future(read_output(child.stdout, output)))

    def environment(self, process: Process) -> dict[str, str]:
        """The process's own environment with what this machine needs to run it."""
        return {
            **{
                k: v
                for k, v in os.environ.items()
                if k in ("PATH", "TMPDIR", "DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH")
                or k.startswith("SGLANG_STANDIN_")  # whoever starts the demo may want it faster, or failing
            },
            **{k: v for k, v in process.environment.items() if k not in ("PATH", "HOME", "SHELL")},
            **guest_python(self.files, process.environment.get("PYTHONPATH", "")),
            "TZ": "UTC",
            "SGLANG_STANDIN_ROOT": str(self.files.root),
            "SGLANG_STANDIN_UDS": str(self.socket),
            "SGLANG_STANDIN_TRAFFIC": CUSTOMERS_PER_MINUTE,
            **({"SGLANG_STANDIN_LOAD_SECONDS": "0"} if self.at_once() else {}),
        }


def guest_python(files: Filesystem, pythonpath: str) -> dict[str, str]:
    """PYTHONPATH of the host, as this machine finds it."""
    folders = []
    for folder in pythonpath.split(":"):
        if folder.startswith("/"):
            try:
                folders.append(str(files.real_path(files.resolve(folder))))
            except OSError:
                continue
    return {"PYTHONPATH": os.pathsep.join(folders), "PYTHONUNBUFFERED": "1"}


async def read_output(stream: asyncio.StreamReader, output: Output) -> None:
    """Hand on whole lines as journald would see them, and the pieces of a progress bar as they come."""
    pending = b""
    while data := await stream.read(65536):
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            _hand_on(line, output)
        while len(pending) > LINE_MAX:
            _hand_on(pending[:LINE_MAX], output)
            pending = pending[LINE_MAX:]
        if pending:
            piece = pending.rstrip(b"\r").rpartition(b"\r")[2]
            output(os.fsdecode(piece), False)
    if pending:
        _hand_on(pending, output)


def _hand_on(line: bytes, output: Output) -> None:
    for part in line.split(b"\0"):  # a NUL ends a line for journald
        output(part.decode("utf-8", "surrogateescape"), True)
