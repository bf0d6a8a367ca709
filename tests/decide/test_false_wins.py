"""The protocol holds what it promises (the full table: benchmarks/false_wins.py)."""

from __future__ import annotations

import pytest
from decide.benchmark import load

false_wins = load("false_wins")
SEEDS = 120


@pytest.mark.parametrize("runs", [3, 10])
def test_a_restart_alone_rarely_wins(runs: int) -> None:
    """At 2 % restart SD the floor brings a third of false wins down to one in twenty."""
    assert false_wins.wins(false_wins.Case(0.02, runs), SEEDS) <= 0.10
    assert false_wins.wins(false_wins.Case(0.02, runs, floor=False), SEEDS) >= 0.20


def test_a_true_five_percent_is_mostly_found_by_abba() -> None:
    assert false_wins.wins(false_wins.Case(0.01, 5, restarts=2, effect=0.05), SEEDS) >= 0.75
