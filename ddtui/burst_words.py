"""Short sentences about a burst that commands and console share: where its load runs, what the server counts.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from ddtui.bench.metrics import EXACT
from ddtui.bench.model import Place, Point, ServerSide
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
    """How what a user waits for is spread, in ms; the gap between chunks and the time per token are two views
    of one stream.
    """
    parts = [
        f"{label} {'/'.join(map(number, (spread.mean, spread.median, spread.p90, spread.p95, spread.p99)))}"
        for name, label in SPREADS
        if (spread := point.spreads.get(name)) is not None
    ]
    return f"mean/p50/p90/p95/p99 ms: {' · '.join(parts)}" if parts else ""


POSITIONS = 8  # of the draft that are told


def accept_said(point: Point) -> str:
    """How the accept length is known, its spread over the requests, the rate of each position, and what the
    server does not tell.
    """
    parts, unknown = [], []
    if point.accept_length is not None and point.accept_how:
        spread = point.spreads.get("accept")
        over = (
            f", p50/p90/p99 of requests {number(spread.median)}/{number(spread.p90)}/{number(spread.p99)}"
            if spread is not None
            else ""
        )
        parts.append(f"accept by {point.accept_how}{over}")
    if point.accept_rates:
        rates = " ".join(f"{100 * rate:.0f}" for rate in point.accept_rates[:POSITIONS])
        parts.append(f"accepted at 1, 2, …: {rates} %")
    elif point.accept_how in EXACT:
        unknown.append("acceptance by position")
    elif point.accept_how or point.accept_length is None:
        unknown.append("verify steps and accepted drafts")
    if point.tpot_how == "n - 1":
        unknown.append("the first chunk's tokens")
    if not point.cache_told:
        unknown.append("cache hits")
    if unknown and point.ok:
        parts.append(f"not told: {', '.join(unknown)}")
    return " · ".join(parts)


def first_of(names: Sequence[str], most: int) -> str:
    """The first few names, and how many there are beyond."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def beside_said(point: Point) -> str:
    """What stands beside the headline: the rates of the whole run, and the server's own figures."""
    server, parts = point.server or ServerSide(), []
    if point.output_rate_whole is not None:
        total = f", {number(point.total_rate)} with prompts" if point.total_rate is not None else ""
        parts.append(f"whole run {number(point.output_rate_whole)} tok/s{total}")
    if server.log_rate is not None:
        accept = f", accept {number(server.log_accept)}" if server.log_accept is not None else ""
        parts.append(f"server's log {number(server.log_rate)}{accept} ({server.log_lines} lines)")
    counted = [number(server.output_rate)] if server.output_rate is not None else []
    if server.accept_length is not None:
        counted.append(f"accept {number(server.accept_length)} ({server.accept_how})")
    if counted:
        parts.append(f"server counts {', '.join(counted)}")
    return " · ".join(parts)
