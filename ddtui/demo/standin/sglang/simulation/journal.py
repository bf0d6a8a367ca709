"""Log lines in SGLang's form: `[YYYY-MM-DD HH:MM:SS TP0] text`; the main process has no rank.

Logger lines, tracebacks and progress bars go to stderr, uvicorn's access lines to stdout.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TextIO

_WITH_MILLISECONDS = bool(os.environ.get("SGLANG_LOG_MS"))


def stamp() -> str:
    now = time.time()
    text = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
    return f"{text}.{int(now * 1000) % 1000:03d}" if _WITH_MILLISECONDS else text


def write(text: str, stream: TextIO | None = None) -> None:
    """Write raw text at once. A reader that went away is no reason to die."""
    out = stream or sys.stderr
    try:
        out.write(text)
        out.flush()
    except (BrokenPipeError, ValueError):
        pass


def log(text: str) -> None:
    """A line of the main process."""
    write(f"[{stamp()}] {text}\n")


def access(client: str, request_line: str, status: int, phrase: str) -> None:
    """uvicorn's line for one request."""
    write(f'[{stamp()}] INFO:     {client} - "{request_line}" {status} {phrase}\n', sys.stdout)


class Ranks:
    """Lines of the scheduler processes. With one GPU they carry no rank, as in the real server."""

    def __init__(self, tp_size: int, dp_size: int = 1) -> None:
        self.names = [f" TP{rank}" for rank in range(tp_size)] if tp_size > 1 else [""]
        if dp_size > 1:
            self.names = [f" DP0{name}" for name in self.names]

    def first(self, text: str) -> None:
        """A line that rank 0 alone prints."""
        write(f"[{stamp()}{self.names[0]}] {text}\n")

    def every(self, text: str) -> None:
        """A line that every rank prints."""
        write("".join(f"[{stamp()}{name}] {text}\n" for name in self.names))
