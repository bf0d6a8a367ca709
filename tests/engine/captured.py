"""The real SGLang 0.5.11's files, as the tests read them."""

from __future__ import annotations

from pathlib import Path

CAPTURES = Path(__file__).parents[1] / "captures" / "sglang-0.5.11"
LOGS = tuple(sorted(path.stem for path in (CAPTURES / "logs").glob("*.log")))
GOOD = tuple(name for name in LOGS if name.startswith("start_"))


def log(name: str) -> list[str]:
    """The lines of a log as they came: progress bars with their carriage returns."""
    return (CAPTURES / "logs" / f"{name}.log").read_bytes().decode().split("\n")


def body(name: str) -> bytes:
    """The body of a captured HTTP answer, its chunked framing taken off."""
    head, _, rest = (CAPTURES / "http" / f"{name}.raw").read_bytes().partition(b"\r\n\r\n")
    if b"chunked" not in head.lower():
        return rest
    whole = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        count = int(size, 16)
        if count == 0:
            break
        whole += rest[:count]
        rest = rest[count + 2 :]
    return whole
