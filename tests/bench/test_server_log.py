"""The server's own Decode batch lines, set beside what the client measured."""

from __future__ import annotations

import pytest

from ddtui.bench import server_log


def line(rate: float, accept: float | None = 3.5, rank: str = "") -> str:
    said = f"accept len: {accept:.2f}, accept rate: 0.17, " if accept is not None else ""
    return (
        f"[2026-12-01 02:55:04{rank}] Decode batch, #running-req: 8, #token: 4773, token usage: 0.00, {said}"
        f"cuda graph: True, gen throughput (token/s): {rate:.2f}, #queue-req: 0"
    )


def lines(*rates: float, every: float = 1.0, rank: str = "") -> list[tuple[float, str]]:
    return [(at * every if at else 0.01, line(rate, rank=rank)) for at, rate in enumerate(rates)]


def test_only_decode_lines_count() -> None:
    said = [
        (0.0, line(900.0)),
        (1.0, '[2026-12-01 02:55:04] INFO: 127.0.0.1 - "GET /Decode batch HTTP/1.1" 200 OK'),
        (2.0, "[2026-12-01 02:55:05] Prefill batch, #new-seq: 1, #new-token: 512"),
        (3.0, line(950.0, None)),
    ]
    found = server_log.decodes(said)
    assert [(one.at, one.rate, one.accept) for one in found] == [(0.0, 900.0, 3.5), (3.0, 950.0, None)]


def test_the_first_line_of_the_window_tells_of_before_and_is_left_out() -> None:
    logged = server_log.summary(server_log.decodes(lines(9, 9, 10.0, 100, 100, 100, 100, 9)), 2.0, 6.5)
    assert logged is not None and (logged.rate, logged.rate_error, logged.lines) == (100.0, 0.0, 4)
    assert logged.accept == 3.5


def test_a_line_weighs_by_the_time_that_it_tells_of() -> None:
    said = [(0.0, line(1)), (1.0, line(100)), (4.0, line(20)), (5.0, line(100)), (6.0, line(100))]
    logged = server_log.summary(server_log.decodes(said), 0.0, 10.0)
    assert logged is not None and logged.rate == pytest.approx((3 * 100 + 3 * 20) / 6)
    assert logged.rate_error > 0


def test_ranks_of_data_parallelism_add_up() -> None:
    said = [*lines(*[100.0] * 6, rank=" DP0 TP0"), *lines(*[50.0] * 6, rank=" DP1 TP0")]
    logged = server_log.summary(server_log.decodes(said), 0.0, 10.0)
    assert logged is not None and logged.rate == 150.0 and logged.lines == 10


def test_few_lines_are_no_figure() -> None:
    assert server_log.summary(server_log.decodes(lines(1, 2, 3, 4)), 0.0, 10.0) is None
    assert server_log.summary([], 0.0, 10.0) is None


def test_lines_that_know_whole_seconds_only_are_spread_over_them() -> None:
    """SGLang's own time stamps, in a log file: three lines a second, none of them at a time of its own."""
    said = [(at, line(rate)) for at in range(20, 30) for rate in (90.0, 100.0, 110.0)]
    exact = server_log.summary(server_log.decodes(said), 20.0, 30.0)
    assert exact is not None and exact.rate == pytest.approx(100.0, rel=0.01) and exact.lines == 29
    drained = [*said, *[(30.0, line(1.0))] * 3]
    shifted = [(at + 0.7251, text) for at, text in drained]  # the host's clock is not ours
    logged = server_log.summary(server_log.decodes(shifted), 20.9, 31.2)
    assert logged is not None and logged.rate == pytest.approx(100.0, rel=0.01), (
        "no line of a second that is cut"
    )
    assert logged.lines == 3 * 9 - 1
