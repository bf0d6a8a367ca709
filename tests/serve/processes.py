"""Whether a process of this machine still runs."""

from __future__ import annotations

import asyncio
from pathlib import Path


def alive(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def gone(number: int) -> None:
    async with asyncio.timeout(30):
        while alive(number):  # noqa: ASYNC110 -- a process, not a task of this loop
            await asyncio.sleep(0.02)
