"""The process tree: a launcher (HTTP, everything that is computed) and children that stand there as
SGLang's do.

The real server has a scheduler process per GPU and a detokenizer, whose command line is only a title. Here
they wait; when one is killed, the launcher says so and ends, and when the launcher ends, they end.
"""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import sys
import threading
from contextlib import suppress
from pathlib import Path


def set_title(title: str) -> None:
    """What ps shows for this process, as setproctitle does it: over the arguments, NULs behind (Linux)."""
    with suppress(OSError, ValueError, IndexError, AttributeError):
        fields = (
            Path("/proc/self/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        )
        start, end = int(fields[45]), int(fields[46])  # arg_start, arg_end: fields 48 and 49 of proc(5)
        if start and end > start:
            ctypes.memmove(start, title.encode()[: end - start - 1].ljust(end - start, b"\0"), end - start)
        ctypes.CDLL(None).prctl(15, title.encode()[:15], 0, 0, 0)  # PR_SET_NAME


class Children:
    """The scheduler and detokenizer processes. Fork them before any thread or event loop exists."""

    def __init__(self, tp_size: int) -> None:
        titles = (
            [f"sglang::scheduler_TP{rank}" for rank in range(tp_size)]
            if tp_size > 1
            else ["sglang::scheduler"]
        )
        names = [f"scheduler_{rank}" for rank in range(tp_size)]
        self._lifeline, self._held = os.pipe()
        self.pids = {
            self._start(title): name
            for title, name in zip([*titles, "sglang::detokenizer"], [*names, "detokenizer"])
        }
        os.close(self._lifeline)

    def _start(self, title: str) -> int:
        pid = os.fork()
        if pid:
            return pid
        os.close(self._held)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        set_title(title)
        with suppress(OSError):
            os.read(self._lifeline, 1)  # ends with the launcher, which holds the other end
        os._exit(0)

    def dead(self) -> tuple[str, int, int] | None:
        """Name, pid and exit code (negative: the signal) of a child that ended, or None."""
        for pid, name in list(self.pids.items()):
            with suppress(ChildProcessError):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    del self.pids[pid]
                    return (
                        name,
                        pid,
                        -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status),
                    )
        return None

    def kill(self) -> None:
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def kill_process_tree(children: Children) -> None:
    """How SGLang ends, also after a clean stop: it kills its children, and itself last."""
    children.kill()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def end_with_stdin() -> None:
    """End when the other side of stdin's pipe ends; a terminal, a file or /dev/null means nothing."""
    with suppress(OSError, ValueError):
        mode = os.fstat(0).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            threading.Thread(target=_wait_for_eof, daemon=True).start()


def _wait_for_eof() -> None:
    with suppress(OSError):
        while os.read(0, 4096):
            pass
    os.kill(os.getpid(), signal.SIGKILL)
