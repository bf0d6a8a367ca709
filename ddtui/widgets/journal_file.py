"""Lines of the journal in a file of the operator's."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from ddtui.redact import redact


def save(path: Path, rows: Iterable[tuple[float, str]]) -> int:
    """Write lines (unix time, text) with their UTC time, secrets redacted. Gives how many there are.

    Raises FileExistsError: nothing is written over; and OSError.
    """
    count = 0
    with path.open("x", encoding="utf-8") as file:
        for at, text in rows:
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
            file.write(f"{stamp} {redact(text)}\n")
            count += 1
    return count
