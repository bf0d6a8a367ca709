"""tqdm's bars on stderr: each state is written over the last with a carriage return, a newline comes at
the end.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Callable

from sglang.simulation.journal import write

_EIGHTHS = " ▏▎▍▌▋▊▉█"
BAR_WIDTH = 10


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


def _blocks(fraction: float) -> str:
    eighths = int(fraction * BAR_WIDTH * 8)
    full, part = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[part] if part else "")).ljust(BAR_WIDTH)[:BAR_WIDTH]


def _state(form: str, prefix: str, done: int, total: int, seconds: float) -> str:
    rate = f"{done / seconds:5.2f}it/s" if done and seconds else "?it/s"
    left = _clock(seconds / done * (total - done)) if done and seconds else "?"
    spent = f"[{_clock(seconds)}<{left}, {rate}]"
    if form == "shards":
        return f"{prefix}: {100 * done // total:3d}% Completed | {done}/{total} {spent}\n"
    return f"{prefix}{100 * done // total:3d}%|{_blocks(done / total)}| {done}/{total} {spent}"


def shards(prefix: str, total: int, seconds: float, sleep: Callable[[float], None]) -> None:
    """The bar of a checkpoint: `PREFIX: 50% Completed | 32/64 [...]`."""
    started, lines = time.monotonic(), min(total, 64)
    write("\r" + _state("shards", prefix, 0, total, 0.0).rstrip("\n"))
    for at in range(1, lines + 1):
        sleep(seconds / lines)
        spent = max(time.monotonic() - started, 1e-3)
        write("\r" + _state("shards", prefix, at * total // lines, total, spent).rstrip("\n"))
    write("\n\n")


def items(
    name: str, described: Iterable[str], total: int, seconds: float, sleep: Callable[[float], None]
) -> None:
    """A bar over things that have names: `NAME (bs=48 avail_mem=69.26 GB):   4%|... | 1/23 [...]`."""
    started = time.monotonic()
    write("\r" + _state("bar", "", 0, total, 0.0))
    for done, text in enumerate(described):
        spent = max(time.monotonic() - started, 1e-3)
        write("\r" + _state("bar", f"{name} ({text}): ", done, total, spent if done else 0.0))
        sleep(seconds / total)
    spent = max(time.monotonic() - started, 1e-3)
    write("\r" + _state("bar", f"{name} ({text}): ", total, total, spent) + "\n")
