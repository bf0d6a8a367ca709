"""What stands beside a point in words, in the console and on the command line alike."""

from __future__ import annotations

from dataclasses import replace

from decide.sides import point

from ddtui.bench.model import Cell, Estimate, ServerSide, Spread
from ddtui.burst_words import accept_said, beside_said, first_of, link_warning, load_place, spread_said

POINT = replace(point(Cell(8, 512)), output_rate_whole=904.0, total_rate=None)


def test_the_servers_figures_stand_beside_ours() -> None:
    server = ServerSide(
        output_rate=911.0,
        accept_length=4.84,
        accept_how="verify counter",
        log_rate=940.0,
        log_accept=4.87,
        log_lines=10,
    )
    assert beside_said(replace(POINT, server=server, total_rate=4210.0)) == (
        "whole run 904 tok/s, 4,210 with prompts · server's log 940, accept 4.87 (10 lines) · "
        "server counts 911, accept 4.84 (verify counter)"
    )
    assert beside_said(POINT) == "whole run 904 tok/s", "what the server does not tell is not made up"


def test_two_views_of_a_stream_are_named_apart() -> None:
    spreads = {
        "step_ms": Spread(9, 40.0, 38.0, 45.6, 50.0, 68.4),
        "itl_ms": Spread(9, 8.0, 7.7, 9.2, 10.0, 13.9),
    }
    said = spread_said(replace(POINT, spreads=spreads))
    assert said == (
        "mean/p50/p90/p95/p99 ms: step gap 40.0/38.0/45.6/50.0/68.4 · per token 8.00/7.70/9.20/10.0/13.9"
    )
    assert spread_said(replace(POINT, spreads={})) == ""


def test_how_the_accept_length_is_known_is_said_and_what_is_not_told() -> None:
    length = Estimate(4.7, 4.6, 4.8, 48)
    spreads = {"accept": Spread(48, 4.7, 4.65, 5.4, 5.6, 5.9)}
    whole = replace(POINT, accept_length=length, accept_how="histogram", spreads=spreads)
    whole = replace(whole, accept_rates=(0.82, 0.645, 0.5), tpot_how="n - n1")
    assert accept_said(whole) == (
        "accept by histogram, p50/p90/p99 of requests 4.65/5.40/5.90 · accepted at 1, 2, …: 82 64 50 %"
    )
    dflash = replace(whole, accept_how="accepted drafts / verify steps", accept_rates=())
    assert accept_said(dflash).endswith(" · not told: acceptance by position")
    openai = replace(dflash, accept_how="tokens / chunk", tpot_how="n - 1", cache_told=False)
    assert accept_said(openai).endswith(
        "not told: verify steps and accepted drafts, the first chunk's tokens, cache hits"
    )
    assert accept_said(replace(POINT, accept_length=length)) == "", "of an old burst it is not known how"
    assert accept_said(POINT) == "not told: verify steps and accepted drafts"


def test_a_long_link_is_warned_of_only_where_it_is_in_the_way() -> None:
    assert (
        load_place("here", 11.2) == "here, through the link of 11.2 ms" and load_place("here", None) == "here"
    )
    assert "every TTFT" in link_warning("here", 84.0)
    assert link_warning("here", 4.0) == link_warning("host", 84.0) == link_warning("here", None) == ""


def test_a_long_list_is_cut_with_what_is_left_out() -> None:
    assert first_of(["a", "b", "c"], 2) == "a, b and 1 more" and first_of(["a"], 2) == "a"
