"""A start of SGLang as a progress that never goes back, from its log lines, in both known orders.

Up to 0.5.13 the target goes through weights, KV pool and CUDA graphs before the drafter begins; from 0.5.14
on both load their weights first, then come both pools, then all graphs. So the bar adds up what is done, in
whatever order it comes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ddtui.engine.log import Kind, LogLine


class Phase(StrEnum):
    """Where a start is. The order of the drafter's phases among the target's depends on the version."""

    LAUNCHING = "launching"
    ARGUMENTS = "arguments parsed"
    DISTRIBUTED = "joining the GPUs"
    TARGET_WEIGHTS = "target weights"
    TARGET_POOL = "target KV pool"
    TARGET_GRAPHS = "target CUDA graphs"
    DRAFT_WEIGHTS = "draft weights"
    DRAFT_POOL = "draft KV pool"
    DRAFT_GRAPHS = "draft CUDA graphs"
    SCHEDULER = "scheduler up"
    WARM_UP = "warm-up request"
    READY = "ready"


# Shares of the bar, for a model that takes minutes to load; an ETA comes from earlier starts, not from these.
SHARES: Mapping[Phase, float] = {
    Phase.LAUNCHING: 0.04,
    Phase.ARGUMENTS: 0.06,
    Phase.DISTRIBUTED: 0.03,
    Phase.TARGET_WEIGHTS: 0.43,
    Phase.TARGET_POOL: 0.03,
    Phase.TARGET_GRAPHS: 0.20,
    Phase.DRAFT_WEIGHTS: 0.05,
    Phase.DRAFT_POOL: 0.02,
    Phase.DRAFT_GRAPHS: 0.05,
    Phase.SCHEDULER: 0.02,
    Phase.WARM_UP: 0.07,
}
DRAFT = (Phase.DRAFT_WEIGHTS, Phase.DRAFT_POOL, Phase.DRAFT_GRAPHS)
BEFORE_SCHEDULER = tuple(phase for phase in SHARES if phase not in (Phase.SCHEDULER, Phase.WARM_UP))
READY_LINE = 0.99  # the log says ready; only the health endpoint makes it 1


@dataclass(frozen=True, slots=True)
class Start:
    """What is known of a start so far. `see` gives the next one; nothing is changed in place."""

    phase: Phase = Phase.LAUNCHING
    fraction: float = 0.0  # 0..1, never back
    text: str = "starting the process"
    drafter: bool = True  # whether a drafter is expected
    http_up: bool = False  # the port answers; that is not ready
    ready_line_seen: bool = False
    draft_runner_seen: bool = False
    entered: Mapping[Phase, float] = field(default_factory=lambda: {Phase.LAUNCHING: 0.0})  # seconds
    parts: Mapping[Phase, float] = field(default_factory=dict)  # how far each phase is, 0..1
    leader: str | None = None  # the rank whose begin and end lines count

    def see(self, line: LogLine, at: float | None = None) -> Start:
        """The start after this line. `at`: seconds since the start, for the phase timings."""
        step = _STEPS.get(line.kind)
        return step(self, line, at) if step else _special(self, line)

    def loaded(self, share: float) -> Start:
        """What another source says of the weights being loaded (bytes read, GPU memory), 0..1.

        The journal shows a progress bar only when it has ended.
        """
        if self.phase not in (Phase.TARGET_WEIGHTS, Phase.DRAFT_WEIGHTS):
            return self
        share = min(max(share, 0.0), 0.99)
        return _advance(self, self.phase, share, f"loading {self.phase}, about {share:.0%}", None)

    def ready(self, at: float | None = None) -> Start:
        """The health endpoint answered 200: the start is over."""
        done = dict.fromkeys(SHARES, 1.0)
        entered = dict(self.entered)
        if at is not None:
            entered.setdefault(Phase.READY, at)
        return replace(
            self, phase=Phase.READY, fraction=1.0, text="ready", http_up=True, parts=done, entered=entered
        )

    def timings(self) -> dict[Phase, float]:
        """When each phase was entered, in seconds since the start: to keep for the next start's `eta`."""
        return dict(self.entered)

    def eta(self, elapsed: float, earlier: Mapping[Phase, float]) -> float | None:
        """Seconds to ready, by an earlier start's `timings`. None: that start never got ready."""
        ready = earlier.get(Phase.READY)
        if ready is None:
            return None
        began = earlier.get(self.phase)
        if began is None:
            return max(ready - elapsed, 0.0)
        following = min((at for at in earlier.values() if at > began), default=ready)
        spent = elapsed - self.entered.get(self.phase, elapsed)
        left = (following - began) - spent
        part = self.parts.get(self.phase, 0.0)
        if 0.05 <= part < 1 and spent > 0:  # how far it is tells more than how long it took last time
            left = spent * (1 - part) / part
        return max(left, 0.0) + (ready - following)


def _advance(
    start: Start, phase: Phase, part: float, text: str, at: float | None, *, done: tuple[Phase, ...] = ()
) -> Start:
    """`phase` is at least `part` through, and every phase in `done` is over."""
    parts = dict(start.parts)
    for over in done:
        parts[over] = 1.0
    parts[phase] = max(parts.get(phase, 0.0), part)
    entered = dict(start.entered)
    new = phase not in entered
    if new:
        entered[phase] = at if at is not None else max(entered.values())
    moved = replace(start, parts=parts, entered=entered, text=text, phase=phase if new else start.phase)
    return replace(moved, fraction=max(start.fraction, _sum(moved)))


def _sum(start: Start) -> float:
    shares = {phase: share for phase, share in SHARES.items() if start.drafter or phase not in DRAFT}
    return (
        READY_LINE
        * sum(share * start.parts.get(phase, 0.0) for phase, share in shares.items())
        / sum(shares.values())
    )


def _is_leader(start: Start, line: LogLine) -> bool:
    return start.leader in (None, line.rank)


def _loading(start: Start) -> Phase:
    """Whose weights are loading: the target's until they are loaded."""
    return Phase.DRAFT_WEIGHTS if start.parts.get(Phase.TARGET_WEIGHTS, 0.0) >= 1 else Phase.TARGET_WEIGHTS


def _graphs(start: Start, line: LogLine) -> Phase:
    """Whose graphs are captured: from 0.5.14 on the line says it, before that the drafter's come last."""
    what = str(line.fields.get("what", "")).lower()
    if "draft" in what:
        return Phase.DRAFT_GRAPHS
    if "target" in what:
        return Phase.TARGET_GRAPHS
    if line.kind is Kind.GRAPH_STEP:  # a bar belongs to the capture that began last
        return Phase.DRAFT_GRAPHS if Phase.DRAFT_GRAPHS in start.entered else Phase.TARGET_GRAPHS
    drafter_loaded = start.parts.get(Phase.DRAFT_WEIGHTS, 0.0) >= 1
    return (
        Phase.DRAFT_GRAPHS if drafter_loaded and Phase.TARGET_GRAPHS in start.entered else Phase.TARGET_GRAPHS
    )


def _arguments(start: Start, line: LogLine, at: float | None) -> Start:
    if re.search(r"speculative_draft_model_path=None|speculative_algorithm=(?:None|'NGRAM')", line.text):
        start = replace(start, drafter=False)
    return _advance(start, Phase.ARGUMENTS, 0.3, "starting the workers", at, done=(Phase.LAUNCHING,))


def _distributed(start: Start, line: LogLine, at: float | None) -> Start:
    if not _is_leader(start, line):
        return start
    start = replace(start, leader=start.leader or line.rank)
    if Phase.TARGET_WEIGHTS in start.entered:  # the drafter's turn, in the old order
        return start
    over = (Phase.LAUNCHING, Phase.ARGUMENTS)
    text = "joining the GPUs" if line.fields.get("edge") == "begin" else "GPUs joined"
    return _advance(start, Phase.DISTRIBUTED, 0.2 if text == "joining the GPUs" else 1.0, text, at, done=over)


def _load_begin(start: Start, line: LogLine, at: float | None) -> Start:
    if not _is_leader(start, line):
        return start
    phase = _loading(start)
    over: tuple[Phase, ...] = (Phase.LAUNCHING, Phase.ARGUMENTS, Phase.DISTRIBUTED)
    if phase is Phase.DRAFT_WEIGHTS and Phase.TARGET_GRAPHS in start.entered:
        over += (Phase.TARGET_POOL, Phase.TARGET_GRAPHS)
    return _advance(start, phase, 0.01, f"loading {phase}", at, done=over)


def _load_shards(start: Start, line: LogLine, at: float | None) -> Start:
    phase = _loading(start)
    done, total = line.fields["done"], line.fields["total"] or 1
    text = f"loading {phase}, {line.fields['percent']} % ({done} of {total} shards)"
    return _advance(start, phase, min(0.99, done / total), text, at)


def _load_end(start: Start, line: LogLine, at: float | None) -> Start:
    if not _is_leader(start, line):
        return start
    phase = Phase.DRAFT_WEIGHTS if line.fields.get("drafter") else _loading(start)
    return _advance(start, phase, 1.0, f"{phase} loaded", at)


def _pool(start: Start, line: LogLine, at: float | None) -> Start:
    if line.kind is Kind.POOL_END and not _is_leader(start, line):
        return start
    first = start.parts.get(Phase.TARGET_POOL, 0.0) < 1
    phase = Phase.TARGET_POOL if first else Phase.DRAFT_POOL
    if line.kind is Kind.POOL_END:
        return _advance(start, phase, 1.0, f"{phase} allocated", at, done=(Phase.TARGET_WEIGHTS,))
    tokens = line.fields.get("tokens")
    return _advance(start, phase, 0.5, f"{phase}: {tokens:,} tokens" if tokens else phase, at)


def _graph_begin(start: Start, line: LogLine, at: float | None) -> Start:
    if not _is_leader(start, line):
        return start
    phase = _graphs(start, line)
    over = (Phase.TARGET_WEIGHTS, Phase.TARGET_POOL)
    return _advance(start, phase, 0.01, f"capturing {phase}", at, done=over)


def _graph_step(start: Start, line: LogLine, at: float | None) -> Start:
    phase = _graphs(start, line)
    done, total = line.fields["done"], line.fields["total"] or 1
    verb = "compiling" if str(line.fields.get("label", "")).startswith("Compiling") else "capturing"
    before = start.parts.get(phase, 0.0)
    floor = next((limit for limit in (0.75, 0.5) if before >= limit), 0.0)  # captures that have ended
    part = floor + (1 - floor) * 0.5 * done / total
    return _advance(start, phase, part, f"{verb} {phase}, {done} of {total}", at)


def _graph_end(start: Start, line: LogLine, at: float | None) -> Start:
    if not _is_leader(start, line):
        return start
    phase = _graphs(start, line)
    before = start.parts.get(phase, 0.0)  # there may be another capture: each takes half of what is left
    part = 0.5 if before < 0.5 else 0.75 if before < 0.75 else 0.9
    return _advance(start, phase, part, f"{phase} captured", at)


def _limits(start: Start, line: LogLine, at: float | None) -> Start:
    return _advance(start, Phase.SCHEDULER, 0.5, "starting the HTTP server", at, done=BEFORE_SCHEDULER)


def _http_up(start: Start, line: LogLine, at: float | None) -> Start:
    text = "warm-up request (HTTP answers, the server is not ready)"
    over = (*BEFORE_SCHEDULER, Phase.SCHEDULER)
    return replace(_advance(start, Phase.WARM_UP, 0.05, text, at, done=over), http_up=True)


def _prefill(start: Start, line: LogLine, at: float | None) -> Start:
    if Phase.WARM_UP not in start.entered or start.ready_line_seen:
        return start
    return _advance(start, Phase.WARM_UP, 0.5, start.text, at)


def _ready(start: Start, line: LogLine, at: float | None) -> Start:
    over = (*BEFORE_SCHEDULER, Phase.SCHEDULER, Phase.WARM_UP)
    moved = _advance(start, Phase.READY, 1.0, "the log says ready", at, done=over)
    return replace(moved, ready_line_seen=True, http_up=True)


def _draft_runner(start: Start, line: LogLine, at: float | None) -> Start:
    moved = _advance(start, Phase.DRAFT_WEIGHTS, 1.0, "draft runner up", at, done=(Phase.TARGET_WEIGHTS,))
    return replace(moved, draft_runner_seen=True)


def _special(start: Start, line: LogLine) -> Start:
    if "Disable DFLASH draft cuda graph" in line.text:
        return _advance(
            start,
            start.phase,
            start.parts.get(start.phase, 0.0),
            "no draft CUDA graphs",
            None,
            done=(Phase.DRAFT_GRAPHS,),
        )
    return start


_STEPS = {
    Kind.ARGUMENTS: _arguments,
    Kind.DISTRIBUTED: _distributed,
    Kind.LOAD_BEGIN: _load_begin,
    Kind.LOAD_SHARDS: _load_shards,
    Kind.LOAD_END: _load_end,
    Kind.KV_POOL: _pool,
    Kind.POOL_END: _pool,
    Kind.GRAPH_BEGIN: _graph_begin,
    Kind.GRAPH_STEP: _graph_step,
    Kind.GRAPH_END: _graph_end,
    Kind.DRAFT_RUNNER: _draft_runner,
    Kind.LIMITS: _limits,
    Kind.HTTP_UP: _http_up,
    Kind.PREFILL: _prefill,
    Kind.READY: _ready,
}
