"""Runs a burst: prompts, load in processes of its own, points as they come, raw records on disk."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from ddtui.bench.model import Burst, BurstSpec
from ddtui.bench.target import Target


def run(
    spec: BurstSpec,
    target: Target,
    *,
    burst_id: str | None = None,
    step: int | None = None,
    keep: Path | None = None,
) -> AsyncIterator[Burst]:
    """Measure; yields a snapshot at every change, the last one DONE, CANCELLED or FAILED.

    `burst_id`: None: a new one. `keep`: folder for `<burst_id>.jsonl`; None: `data_dir()/bursts`. Closing the
    iterator (aclose) cancels: running requests are aborted by rid, and what was measured is on disk. Raises
    BenchError for a spec that must not be sent at all (too many requests at once for the profile, no cells).
    """
    raise NotImplementedError
