"""Runs code that a model wrote: no network, no files but a throw-away folder, limits on time and memory.

By bubblewrap where it is there and works, else by `unshare` (util-linux) and `sandbox_child.py`. Where
neither works (macOS, or a kernel that forbids user namespaces) there is no sandbox, and nothing is run.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SECONDS = 10  # of CPU time; twice as much by the clock
MEMORY = 512 << 20
SHOWN = ("/usr", "/bin", "/lib", "/lib32", "/lib64")
KILLED = "unshare: sigprocmask unblock failed"  # what some versions say when the program was killed
SAID = 2000  # characters of a program's last words that are kept


@dataclass(frozen=True, slots=True)
class Ran:
    """What a program did."""

    passed: bool  # it came to its end
    said: str  # the end of what it printed, or why it was stopped


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A way to run a program alone."""

    name: str  # "bubblewrap", "unshare"
    _command: Callable[[Path, Path, int, int], Sequence[str]]

    def run(self, program: str, *, seconds: int = SECONDS, memory: int = MEMORY) -> Ran:
        """Run a Python program to its end. Blocks; never raises for what the program does."""
        token = secrets.token_hex(16)
        with tempfile.TemporaryDirectory(prefix="ddtui-sandbox-") as folder:
            work, root = Path(folder, "work"), Path(folder, "root")
            work.mkdir()
            root.mkdir()
            end = f"\nopen('/work/passed', 'w').write({token!r})\n"
            (work / "program.py").write_text(program + end, "utf-8")
            with open(Path(folder, "said"), "w+b") as said:
                stopped = self._wait(self._command(root, work, seconds, memory), said.fileno(), 2 * seconds)
                said.seek(max(0, said.seek(0, os.SEEK_END) - 4 * SAID))
                words = said.read().decode("utf-8", "replace")[-SAID:].strip()
            mark = work / "passed"
            passed = mark.is_file() and not mark.is_symlink() and mark.read_bytes() == token.encode()
        if words.startswith(KILLED):
            stopped = "stopped: too long, or too much memory"
        return Ran(passed, stopped or words)

    def _wait(self, command: Sequence[str], said: int, limit: float) -> str:
        """Why the program was stopped; "" if it ended by itself."""
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            cwd="/",
            env={"PATH": os.environ.get("PATH", "/usr/bin:/bin")},
            start_new_session=True,
        )
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            return f"stopped after {limit:.0f} s"
        finally:
            process.kill()  # with it everything in its process namespace
            process.wait()
        return "" if process.returncode >= 0 else "stopped: too long, or too much memory"


@cache
def find() -> Sandbox | None:
    """The sandbox of this machine, tried out; None: there is none."""
    if not sys.platform.startswith("linux"):
        return None
    for program, sandbox in (
        ("bwrap", Sandbox("bubblewrap", _bubblewrap)),
        ("unshare", Sandbox("unshare", _unshare)),
    ):
        if shutil.which(program) and sandbox.run("print('alone')").passed:
            return sandbox
    return None


def _shown() -> list[str]:
    """Folders that a Python program needs; one inside of another comes with it."""
    folders = [*SHOWN, sys.base_prefix]
    return [
        folder
        for folder in dict.fromkeys(folders)
        if Path(folder).exists() and not any(folder.startswith(f"{other}/") for other in folders)
    ]


def _python() -> str:
    """The interpreter itself, not a virtual environment's link to it."""
    return os.path.realpath(sys.executable)


def _unshare(root: Path, work: Path, seconds: int, memory: int) -> list[str]:
    child = str(Path(__file__).with_name("sandbox_child.py"))
    unshare = ["unshare", "--user", "--map-root-user", "--mount", "--net", "--pid", "--ipc", "--uts"]
    python = [_python(), "-I", "-S", child]
    return [
        *unshare,
        "--fork",
        "--kill-child",
        *python,
        str(root),
        str(work),
        str(seconds),
        str(memory),
        *_shown(),
    ]


def _bubblewrap(root: Path, work: Path, seconds: int, memory: int) -> list[str]:
    words = [
        "bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
        "--cap-drop",
        "ALL",
    ]
    for folder in _shown():
        if Path(folder).is_symlink():
            words += ["--symlink", str(Path(folder).readlink()), folder]
        else:
            words += ["--ro-bind", folder, folder]
    words += ["--bind", str(work), "/work", "--chdir", "/work", "--"]
    limits = ["prlimit", f"--cpu={seconds}", f"--as={memory}", "--fsize=1048576", "--nofile=64", "--core=0"]
    return [*words, *limits, _python(), "-I", "-S", "/work/program.py"]
