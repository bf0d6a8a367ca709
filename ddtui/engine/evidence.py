"""What the journal of one start proves about the settings in force."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Quoted:
    """A fact and the line it stands in."""

    line: str
    time: str | None
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JournalEvidence:
    server_args: Mapping[str, Any] | None  # parsed from the server_args line, secrets redacted
    draft_runner: Quoted | None
    draft_window: int | None
    compact_cache: bool | None  # None: no draft runner line in this start
    block_size: int | None
    draft_backend: str | None
    ddtree: Quoted | None  # fields: block_size, tree_budget, max_tree_nodes, …
    kv_pools: tuple[Quoted, ...]  # target first, then the drafter
    backends: tuple[Quoted, ...]
    overrides: tuple[Quoted, ...]  # an argument was overridden, or has no effect
    limits: Quoted | None  # max_total_num_tokens, max_running_requests, context_len, …
    graph_sizes: tuple[int, ...] | None  # batch sizes of the target's captured graphs
    ready: Quoted | None


def of_start(lines: Iterable[str]) -> JournalEvidence:
    """Read the lines of one start (never those of an older one)."""
    raise NotImplementedError
