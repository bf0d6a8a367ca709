"""Start the demo host's process and give the profile that leads to it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ddtui import locations, profile

READY_SECONDS = 30.0
ATTACH_SECONDS = 10.0
END_SECONDS = 6.0
IN_USE = 75


@dataclass(frozen=True, slots=True)
class Access:
    """What leads to a running demo host: the JSON line that its process prints."""

    host: str
    port: int
    user: str
    identity_file: Path
    known_hosts: Path
    unit: str
    users: tuple[str, ...]  # root, tuner, limited, asker, noisy: one key for all
    asker_password: str  # what sudo wants from the user `asker`
    root: Path  # the folder on this machine that holds the host's files
    pid: int  # of the demo host's process


@dataclass(frozen=True, slots=True)
class DemoHost:
    """A running demo host. `attached`: it was already running for another ddtui, and goes on for both."""

    profile: profile.Profile
    access: Access
    attached: bool = False


class DemoError(Exception):
    """The demo host could not be started: one sentence."""


class Starting:
    """A demo host on its way up: what takes time meanwhile can be done before `ready`. End it with `end`."""

    def __init__(self, *, keep: bool = False, delay_ms: float = 0.0) -> None:
        self._temporary = None if keep else Path(tempfile.mkdtemp(prefix="ddtui-demo-state-"))
        self._state = self._temporary or locations.state_dir() / "demo"
        self._delay = delay_ms
        self._holding: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None
        self._attached = self._attach() if keep else None
        if self._attached is None:
            self._spawn()

    def ready(self) -> DemoHost:
        """Wait until it can be reached. Raises DemoError."""
        line = self._attached or self._first_line()
        access = _access(line)
        shipped = profile.load("demo")
        connection = shipped.connection.model_copy(
            update={
                "host": access.host,
                "port": access.port,
                "user": access.user,
                "identity_file": access.identity_file,
                "known_hosts": access.known_hosts,
                "config": Path(os.devnull),
            }
        )
        return DemoHost(shipped.model_copy(update={"connection": connection}), access, self._process is None)

    def end(self) -> None:
        """End it, unless another ddtui still uses it. Never raises."""
        if self._holding:
            self._holding.close()
        process = self._process
        if process is not None:
            with suppress(OSError):
                assert process.stdin is not None and process.stdout is not None
                process.stdin.close()  # the process ends when nobody needs it
                process.stdout.close()
            if self._temporary:
                try:
                    process.wait(END_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            else:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.5 if self._others() else END_SECONDS)
        if self._log:
            self._log.close()
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _spawn(self) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 -- closed in end()
        command = [
            sys.executable,
            "-m",
            "ddtui.demo",
            "--state",
            str(self._state),
            "--delay",
            str(self._delay),
        ]
        self._process = subprocess.Popen(
            [*command, *(["--temporary"] if self._temporary else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,  # a Ctrl-C in the terminal is for the console, not for its host
        )

    def _first_line(self) -> bytes:
        """The JSON line; if another process turned out to run the host, its line."""
        process = self._process
        assert process is not None and process.stdout is not None
        line = _read_line(process.stdout.fileno(), READY_SECONDS)
        if line:
            return line
        code = process.poll() if line is None else process.wait()
        if code == IN_USE:
            until = time.monotonic() + ATTACH_SECONDS
            while time.monotonic() < until:
                attached = self._attach()
                if attached:
                    self._process = None
                    return attached
                time.sleep(0.05)
            raise DemoError(
                f"A demo host is running on {self._state}, and it does not answer: "
                "end that ddtui, then try again."
            )
        if code is None:
            process.kill()
            raise DemoError(f"The demo host was not ready after {READY_SECONDS:.0f} s.")
        raise DemoError(f"The demo host ended with status {code}: {self._said()}")

    def _said(self) -> str:
        if not self._log:
            return "it said nothing"
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def _attach(self) -> bytes | None:
        """The line of a host that already runs on the kept folder; attached until `end`."""
        try:
            control = json.loads((self._state / "running.json").read_text())["control"]
            holding = socket.socket(socket.AF_UNIX)
            holding.settimeout(ATTACH_SECONDS)
            try:
                holding.connect(control)
                line = holding.makefile("rb").readline()
            except OSError:
                holding.close()
                return None
        except (OSError, ValueError, KeyError):
            return None
        if not line:
            holding.close()
            return None
        self._holding = holding
        return line

    def _others(self) -> bool:
        """Whether the host goes on, for others."""
        return (self._state / "running.json").exists()


@contextmanager
def start(*, keep: bool = False, delay_ms: float = 0.0) -> Iterator[DemoHost]:
    """A running demo host, ended when the context is left.

    `keep`: its files live on under ddtui's state folder, so that the next start finds them as after a reboot;
    if such a host runs already, this attaches to it. Otherwise all is in a temporary folder and removed.
    `delay_ms`: latency each way. Raises DemoError, ProfileError.
    """
    starting = Starting(keep=keep, delay_ms=delay_ms)
    try:
        yield starting.ready()
    finally:
        starting.end()


def _access(line: bytes) -> Access:
    told: dict[str, Any] = json.loads(line)
    return Access(
        host=told["host"],
        port=told["port"],
        user=told["user"],
        identity_file=Path(told["identity_file"]),
        known_hosts=Path(told["known_hosts"]),
        unit=told["unit"],
        users=tuple(told["users"]),
        asker_password=told["asker_password"],
        root=Path(told["root"]),
        pid=told["pid"],
    )


def _read_line(number: int, seconds: float) -> bytes | None:
    """A line from a pipe; b"" at its end, None if it takes too long."""
    import select

    line, until = b"", time.monotonic() + seconds
    while not line.endswith(b"\n"):
        left = until - time.monotonic()
        if left <= 0 or not select.select([number], [], [], left)[0]:
            return None
        piece = os.read(number, 65536)
        if not piece:
            return b""
        line += piece
    return line
