"""A stand-in server in a process of its own, for tests: started, listened to, asked, ended."""

from __future__ import annotations

import http.client
import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent.parent
STANDIN = TESTS.parent / "ddtui/demo/standin"
CAPTURES = TESTS / "captures/sglang-0.5.11"
KIMI, KIMI_DRAFTER = STANDIN / "models/Kimi-K2.6", STANDIN / "models/Kimi-K2.6-DFlash"
TINY, TINY_DRAFTER = CAPTURES / "models/target", CAPTURES / "models/drafter"
READY = "The server is fired up and ready to roll!"
PATIENCE = 60.0  # seconds after which a wait has failed; nothing waits this long when all is well


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The JSON of every event of a stream; [DONE] is checked and left out."""
        parts = [part for part in self.body.split(b"\n\n") if part]
        assert all(part.startswith(b"data: ") for part in parts)
        assert parts[-1] == b"data: [DONE]"
        return [json.loads(part[6:]) for part in parts[:-1]]


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("127.0.0.1:30000", timeout=PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self._path)


class StandIn:
    def __init__(self, process: subprocess.Popen[bytes], uds: Path) -> None:
        self.process, self.uds = process, uds
        self.raw = bytearray()
        self.lines: list[str] = []
        self._fresh: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.raw += line
            self._fresh.put(line.decode("utf-8").rstrip("\n"))
        self._fresh.put(None)

    def wait_for(self, text: str) -> str:
        """The first line, from the start of the log on, that contains `text`."""
        for line in self.lines:
            if text in line:
                return line
        while True:
            fresh = self._fresh.get(timeout=PATIENCE)
            if fresh is None:
                self._fresh.put(None)
                raise AssertionError(f"the stand-in ended before {text!r}:\n" + "\n".join(self.lines[-30:]))
            self.lines.append(fresh)
            if text in fresh:
                return fresh

    def wait_for_end(self) -> int:
        """The exit code, with every line read. Negative: the signal."""
        code = self.process.wait(PATIENCE)
        while (line := self._fresh.get(timeout=PATIENCE)) is not None:
            self.lines.append(line)
        self._fresh.put(None)
        return code

    @property
    def log(self) -> str:
        return "\n".join(self.lines)

    def connect(self) -> http.client.HTTPConnection:
        return _UnixConnection(str(self.uds))

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        connection = self.connect()
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, data, {"content-type": "application/json", **(headers or {})})
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        return self.ask("GET", path)

    def post(self, path: str, body: Any = None) -> Answer:
        return self.ask("POST", path, body)

    def generate(
        self, prompt: str | Sequence[int], *, stream: bool = False, rid: str | None = None, **sampling: Any
    ) -> Answer:
        body: dict[str, Any] = {"text": prompt} if isinstance(prompt, str) else {"input_ids": list(prompt)}
        body["sampling_params"] = {"temperature": 0, **sampling}
        if rid is not None:
            body["rid"] = rid
        return self.post("/generate", {**body, "stream": stream})

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def child(self, title: str) -> int:
        """Pid of the child process with that title (Linux)."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in children:
            if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode() == title:
                return int(pid)
        raise AssertionError(f"no child {title}")


@contextmanager
def stand_in(
    folder: Path,
    *flags: str,
    model: Path = TINY,
    drafter: Path | None = TINY_DRAFTER,
    environment: Mapping[str, str] | None = None,
    ready: bool = True,
) -> Iterator[StandIn]:
    """A stand-in on a Unix socket in `folder`, without waits of its own; killed at the end."""
    uds = folder / "server.sock"
    argv = [sys.executable, "-S", "-m", "sglang.launch_server", "--model-path", str(model), *flags]
    if drafter is not None:
        argv += ["--speculative-draft-model-path", str(drafter)]
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("SGL")},
            "PYTHONPATH": str(STANDIN),
            "SGLANG_STANDIN_LOAD_SECONDS": "0",
            "SGLANG_STANDIN_HEALTH_SECONDS": "0.02",
            "SGLANG_STANDIN_SPEED": "20",
            "SGLANG_STANDIN_SEED": "1",
            "SGLANG_STANDIN_UDS": str(uds),
            **(environment or {}),
        },
    )
    server = StandIn(process, uds)
    try:
        if ready:
            server.wait_for(READY)
        yield server
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        server._reader.join(PATIENCE)
        process.stdout.close()


DFLASH = ("--speculative-algorithm", "DFLASH", "--enable-metrics")
DDTREE = ("--speculative-algorithm", "DDTREE", "--enable-metrics")


def capture(name: str) -> bytes:
    return (CAPTURES / name).read_bytes()


def captured_answer(name: str) -> Answer:
    """A captured response: its head, and its body without the chunk framing."""
    head, _, body = capture(f"http/{name}.raw").partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
    if headers.get("transfer-encoding") == "chunked":
        whole, at = b"", 0
        while True:
            end = body.index(b"\r\n", at)
            size = int(body[at:end], 16)
            whole += body[end + 2 : end + 2 + size]
            at = end + 2 + size + 2
            if size == 0:
                break
        body = whole
    return Answer(int(lines[0].split()[1]), headers, body)


def log_text(name: str) -> str:
    return capture(f"logs/{name}.log").decode("utf-8")


def wording(line: str) -> str:
    """A log line without what differs from run to run: time, numbers, paths, the lists of sizes."""
    line = re.sub(r"^\[[^\]]*\] ", "[] ", line.rsplit("\r", 1)[-1])
    line = re.sub(r"\[\d+(, \d+)*\]", "[N]", line)
    line = re.sub(r"(/[\w.-]+)+/(target|drafter)\b", "PATH", line)
    line = re.sub(r"127\.0\.0\.1:\d+ - ", "CLIENT - ", line)
    return re.sub(r"-?\d+(\.\d+)?", "N", line)
