"""What the journal of one start proves about the settings in force."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ddtui import redact
from ddtui.engine.log import Kind, LogLine, parse_all


@dataclass(frozen=True, slots=True)
class Quoted:
    """A fact and the line it stands in."""

    line: str  # as written, secrets redacted
    time: str | None
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JournalEvidence:
    """None: the line is not in this start (or the journal has lost it)."""

    server_args: Mapping[str, Any] | None  # from the server_args line, secrets redacted
    draft_runner: Quoted | None  # the only line that proves a window
    draft_window: int | None  # by the draft runner line; None with a line there: no window in force
    compact_cache: bool | None
    block_size: int | None
    draft_backend: str | None
    ddtree: Quoted | None  # fields: block_size, tree_budget, max_tree_nodes, … as its code writes them
    kv_pools: tuple[Quoted, ...]  # of the first rank that wrote one: target first, then drafter
    backends: tuple[Quoted, ...]
    overrides: tuple[Quoted, ...]  # an argument was overridden, or has no effect
    limits: Quoted | None  # max_total_num_tokens, max_running_requests, context_len, …
    graph_sizes: tuple[int, ...] | None  # batch sizes of the target's captured decode graphs
    http_up: Quoted | None
    ready: Quoted | None

    def overridden(self, argument: str) -> Quoted | None:
        """The line that says that this argument (by its field name) was changed or has no effect."""
        return next((line for line in self.overrides if line.fields.get("argument") == argument), None)


def of_start(lines: Iterable[str]) -> JournalEvidence:
    """Read the lines of one start (never those of an older one)."""
    first: dict[Kind, LogLine] = {}
    overrides: dict[str, LogLine] = {}
    backends: dict[str, LogLine] = {}
    pools: list[LogLine] = []
    sizes: tuple[int, ...] | None = None
    ddtree: list[LogLine] = []
    for line in parse_all(lines):
        first.setdefault(line.kind, line)
        if line.kind is Kind.OVERRIDE:
            overrides.setdefault(line.text, line)
        elif line.kind is Kind.BACKEND:
            backends.setdefault(line.text, line)
        elif line.kind is Kind.KV_POOL and (not pools or pools[0].rank == line.rank):
            pools.append(line)
        elif line.kind is Kind.DDTREE_WORKER:
            ddtree.append(line)
        elif sizes is None:
            sizes = _batch_sizes(line)
    runner = first.get(Kind.DRAFT_RUNNER)
    said = runner.fields if runner else {}
    arguments = first.get(Kind.ARGUMENTS)
    return JournalEvidence(
        server_args=server_arguments(arguments.text) if arguments else None,
        draft_runner=_quote(runner),
        draft_window=_whole(said.get("draft_window_size")),
        compact_cache=said.get("compact_cache") if isinstance(said.get("compact_cache"), bool) else None,
        block_size=_whole(said.get("block_size")),
        draft_backend=said.get("attention_backend"),
        ddtree=_quote(next((line for line in ddtree if line.text.startswith("Initialized")), None)),
        kv_pools=_quotes(pools),
        backends=_quotes(backends.values()),
        overrides=_quotes(overrides.values()),
        limits=_quote(first.get(Kind.LIMITS)),
        graph_sizes=sizes,
        http_up=_quote(first.get(Kind.HTTP_UP)),
        ready=_quote(first.get(Kind.READY)),
    )


def _batch_sizes(line: LogLine) -> tuple[int, ...] | None:
    """Captured batch sizes: a line of their own up to 0.5.13, later in the target's begin or end line."""
    if line.kind is Kind.GRAPH_SIZES and " bs " in line.text:
        found = line.fields.get("sizes")
    elif line.kind in (Kind.GRAPH_BEGIN, Kind.GRAPH_END) and "draft" not in str(line.fields.get("what")):
        found = line.fields.get("bs")
    else:
        return None
    return tuple(n for n in found if isinstance(n, int)) if isinstance(found, list) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _quote(line: LogLine | None) -> Quoted | None:
    return Quoted(redact.redact(line.raw.strip()), line.time, line.fields) if line else None


def _quotes(lines: Iterable[LogLine]) -> tuple[Quoted, ...]:
    return tuple(quoted for quoted in map(_quote, lines) if quoted)


def server_arguments(text: str) -> dict[str, Any]:
    """The fields of a `server_args=ServerArgs(a=1, b='x', …)` line, secrets redacted.

    Values that are no Python literals (enums, objects) stay as text; of a cut off line, what is whole.
    """
    start = text.find("(")
    if start < 0:
        return {}
    values: dict[str, Any] = {}
    for item in _split_top(text[start + 1 :]):
        name, equals, written = item.partition("=")
        name = name.strip()
        if equals and name.isidentifier():
            values[name] = _literal(name, written.strip())
    return values


def _literal(name: str, written: str) -> Any:
    try:
        value = ast.literal_eval(written)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = written
    if isinstance(value, str):
        return redact.value(name, value)
    if isinstance(value, (list, tuple)):
        return [redact.value(name, item) if isinstance(item, str) else item for item in value]
    return value


_OPEN, _CLOSE = "([{<", ")]}>"


def _split_top(text: str) -> Iterable[str]:
    """Split at the commas outside of quotes and brackets, up to the closing bracket."""
    depth, quote, start, index = 0, "", 0, 0
    while index < len(text):
        char = text[index]
        if quote:
            if char == "\\":
                index += 1
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            if depth == 0:
                yield text[start:index]
                return
            depth -= 1
        elif char == "," and depth == 0:
            yield text[start:index]
            start = index + 1
        index += 1
