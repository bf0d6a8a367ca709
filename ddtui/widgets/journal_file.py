"""Lines of the journal in a file of the operator's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ddtui.redact import redact


def save(
    path: Path, rows: Sequence[tuple[float, str]], go_on: Callable[[float], bool] = lambda part: True
) -> int:
    """Write lines (unix time, text) with their UTC time, secrets redacted. Gives how many there are.

    `go_on` is told now and then how much is done; its no ends it, and nothing of the file is left.
    Raises FileExistsError: nothing is written over; and OSError.
    """
    with path.open("x", encoding="utf-8") as file:
        for number, (at, text) in enumerate(rows):
            if number % 1000 == 0 and not go_on(number / len(rows)):
                break
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
            file.write(f"{stamp} {redact(text)}\n")
        else:
            return len(rows)
    path.unlink()
    return 0
