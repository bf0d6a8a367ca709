"""Short sentences about a burst that commands and console share: where its load runs, what the server counts.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from ddtui.bench.model import Place, Point
from ddtui.words import number

SLOW = 20.0  # ms of round trip from which on it shows in a TTFT of a few hundred ms


def load_place(at: Place, rtt_ms: float | None) -> str:
    """Where the load runs, and the link's round trip where it matters."""
    if at == "host":
        return "on the host, by the service's Python"
    return "here" + (f", through the link of {number(rtt_ms)} ms" if rtt_ms is not None else "")


def link_warning(at: Place, rtt_ms: float | None) -> str:
    """Why the load should rather run on the host; "" where the link is short."""
    if at == "host" or rtt_ms is None or rtt_ms < SLOW:
        return ""
    return f"{number(rtt_ms)} ms are in every TTFT and the link's jitter in the gaps: run it on the host"


SPREADS = (("ttft_ms", "TTFT"), ("step_ms", "step gap"), ("itl_ms", "per token"), ("e2e_ms", "E2E"))


def spread_said(point: Point) -> str:
    """Median, p90 and p99 in ms of what a user waits for, and the rates of the whole run; the gap between
    chunks and the time per token are two views of one stream.
    """
    parts = [
        f"{label} {number(spread.median)}/{number(spread.p90)}/{number(spread.p99)}"
        for name, label in SPREADS
        if (spread := point.spreads.get(name)) is not None
    ]
    if not parts:
        return ""
    whole = f"; whole run {number(point.output_rate_whole)} tok/s" if point.output_rate_whole else ""
    total = f", {number(point.total_rate)} with prompts" if point.total_rate else ""
    return f"p50/p90/p99 ms: {', '.join(parts)}{whole}{total}"


def first_of(names: Sequence[str], most: int) -> str:
    """The first few names, and how many there are beyond."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def server_said(point: Point) -> str:
    """The server's own figures beside the client's; "" where it tells none."""
    server = point.server
    if server is None:
        return ""
    parts = []
    if server.log_rate is not None:
        accept = f", accept {number(server.log_accept)}" if server.log_accept is not None else ""
        parts.append(f"{number(server.log_rate)} tok/s{accept} in {server.log_lines} lines of its log")
    if server.output_rate is not None:
        whole = number(point.output_rate_whole) if point.output_rate_whole is not None else "–"
        parts.append(f"{number(server.output_rate)} tok/s by its counters (whole run: {whole})")
    if server.accept_length is not None:
        parts.append(f"accept {number(server.accept_length)} ({server.accept_how})")
    return f"the server: {'; '.join(parts)}" if parts else ""
