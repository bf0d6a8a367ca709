"""The demo host, in the test's own process (quick) or in a process of its own (as users have it)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from ddtui.demo.machine import UNIT, Machine


@pytest_asyncio.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    """A host whose service is not started at boot: tests put their own in its place."""
    machine = Machine.assemble(tmp_path / "host")
    machine.files.remove(f"/etc/systemd/system/multi-user.target.wants/{UNIT}")
    machine.boot()
    yield machine
    await machine.shut_down()
