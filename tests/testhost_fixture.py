"""The real test host as a fixture: Debian with its own systemd, journald and sshd (see tests/testhost)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

RIG = Path(__file__).parent / "testhost/testhost.py"


@dataclass
class TestHost:
    """A booted host. `info` is what `testhost.py up` printed."""

    __test__ = False
    name: str
    info: dict[str, Any]

    def _rig(self, *words: str, **options: Any) -> subprocess.CompletedProcess[Any]:
        return subprocess.run([sys.executable, str(RIG), "--name", self.name, *words], **options)

    def exec(
        self, *argv: str, stdin: bytes | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command as root on the host, past ssh: the test's own look."""
        return self._rig("exec", "--", *argv, input=stdin, capture_output=True, check=check, timeout=60)

    def ctl(self, *words: str) -> dict[str, Any]:
        """Order a fault: `net down`, `net drop`, `net up`, `delay 50`, `reset`, `crash`, … (README.md)."""
        done = self._rig("ctl", *words, capture_output=True, check=True, timeout=60)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def wait_ssh(self, boots: int = 0) -> None:
        self._rig(
            "wait-ssh", "--boots", str(boots), "--timeout", "40", check=True, capture_output=True, timeout=60
        )
        self.info = json.loads(self._rig("info", check=True, capture_output=True).stdout)


def why_not() -> str | None:
    """Why this machine cannot boot the test host, or None."""
    if sys.platform != "linux":
        return f"the test host needs Linux; this is {sys.platform}"
    if os.geteuid() != 0:
        return "the test host needs root (sudo make test)"
    missing = [tool for tool in ("ip", "tc", "nsenter", "ssh-keygen", "mmdebstrap") if not shutil.which(tool)]
    if missing:
        return f"the test host needs {', '.join(missing)}: run `make test`, which installs them"
    return None


_failure: list[str] = []


def boot(name: str) -> Iterator[TestHost]:
    """Boot a fresh host of that name; it ends with the iterator. Where it cannot: skips; fails under CI."""
    reason = why_not() or (_failure[0] if _failure else None)
    if reason is None:
        up = subprocess.run(
            [sys.executable, str(RIG), "--name", name, "up", "--ready"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=400,
        )
        if up.returncode:
            reason = up.stderr.strip() or f"testhost.py up ended with status {up.returncode}"
            _failure.append(reason)
    if reason is not None:
        if os.environ.get("CI"):
            pytest.fail(f"REAL TEST HOST NOT BOOTED, and under CI it must: {reason}", pytrace=False)
        pytest.skip(f"REAL TEST HOST NOT BOOTED: {reason}")
    try:
        yield TestHost(name, json.loads(up.stdout))
    finally:
        subprocess.run([sys.executable, str(RIG), "--name", name, "down"], capture_output=True, timeout=60)
