"""From request records to a point: what was measured, by which definition, and what makes it doubtful.
Pure.

Definitions:
- TTFT: from sending to the first chunk with a token. E2E: to the last one.
- TPOT: (last - first) / (n - n1), n and n1 by the server's own counts; n1 = 1 where it is unknown.
- Two views of a stream that are never mixed: the step gap (between chunks) and the per-token ITL (gap /
  tokens).
- Output rate: tokens that arrived in the steady window, over its length. The window begins when the first
  wave (as many requests as run at once) is over, and ends when a slot finds nothing more to send.
- Accept length: tokens committed per verify step, the bonus token included, the prefill's token not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ddtui.bench import statistics
from ddtui.bench.model import Cell, Estimate, GpuUse, Outcome, Place, Point, RequestRecord, ServerSide, Spread

LEAST_PROMPTS = 32
LEAST_WAVES = 5
FAILURES = 0.02
LAG = 0.10  # of the step gap
DISAGREE = 0.03
EXACT = ("histogram", "accepted drafts / verify steps")
CONTEXT = 0.05  # by which prompts may miss the length that was asked
CACHED = 0.02, 16  # of the prompt's tokens, and tokens: a chat template's head is no hit


@dataclass(frozen=True, slots=True)
class Run:
    """One cell's run so far."""

    cell: Cell
    started_at: float  # unix time
    seconds: float
    records: Sequence[RequestRecord]
    unfilled: float | None  # when the first slot found nothing more to send, on the worker's clock
    lag_p99_ms: float | None
    output: int  # tokens asked for per request
    final: bool
    place: Place = "here"
    prompts: str = ""
    server: ServerSide | None = None
    others: str = ""  # what says that other clients were there
    gpus: tuple[GpuUse, ...] = ()
    gpus_unknown: str = ""


def least_samples(concurrency: int) -> int:
    """How many requests a result needs after the first wave."""
    return max(LEAST_PROMPTS, LEAST_WAVES * concurrency)


def point(run: Run) -> Point:
    """The cell's point."""
    good, failed = measured(run)
    window = steady_window(run)
    whole = _whole_rate(run.records)
    tpot = statistics.mean([1e3 * value for value in map(tpot_seconds, good) if value is not None])
    accept_how, accept = accept_length(good)
    made = Point(
        cell=run.cell,
        started_at=run.started_at,
        seconds=run.seconds,
        ok=len(good),
        failed=len(failed),
        output_rate=_output_rate(run, good, window),
        output_rate_whole=whole,
        per_user_rate=statistics.inverse(tpot, 1e3) if tpot else None,
        ttft_ms=statistics.median([1e3 * (r.first - r.sent) for r in good if r.first is not None]),
        tpot_ms=tpot,
        step_ms=statistics.ratio(*_sums((1e3 * sum(r.step_gaps), len(r.step_gaps)) for r in good)),
        accept_length=accept,
        e2e_ms=statistics.median([1e3 * (r.last - r.sent) for r in good if r.last is not None]),
        client_lag_p99_ms=run.lag_p99_ms,
        cached_tokens=sum(record.cached_tokens or 0 for record in good),
        final=run.final,
        preview=len(good) < least_samples(run.cell.concurrency),
        accept_how=accept_how,
        accept_rates=accept_rates(good),
        tpot_how="" if tpot is None else ("n - n1" if all(r.first_tokens for r in good) else "n - 1"),
        total_rate=_total_rate(run.records, window),
        window_seconds=window[1] - window[0] if window else None,
        spreads=_spreads(good),
        outcomes=dict(Counter(record.outcome.value for record in (*good, *failed))),
        messages=tuple(text for text, _ in Counter(r.message for r in failed if r.message).most_common(3)),
        prompt_tokens=_mean(record.prompt_tokens for record in good),
        output_tokens=_mean(record.output_tokens for record in good),
        server=run.server,
        place=run.place,
        prompts=run.prompts,
        gpus=run.gpus,
        gpus_unknown=run.gpus_unknown,
        cache_told=not good or any(record.cached_tokens is not None for record in good),
    )
    return replace(made, marks=marks(run, made, good))


def measured(run: Run) -> tuple[list[RequestRecord], list[RequestRecord]]:
    """The requests that count, and those that failed: neither the first wave, nor those that ended while the
    load drained (they had the server to themselves), nor those that were cut short by ddtui."""
    after = [record for record in run.records if not record.warm_up]
    steady = steady_window(run) is not None
    good = [
        record
        for record in after
        if record.outcome is Outcome.OK
        and not (
            steady and record.ended is not None and run.unfilled is not None and record.ended > run.unfilled
        )
    ]
    failed = [
        record
        for record in after
        if record.outcome is not Outcome.OK
        and not (record.outcome is Outcome.ABORTED and record.message == "cancelled")
    ]
    return good, failed


def steady_window(run: Run) -> tuple[float, float] | None:
    """Begin and end on the worker's clock; None if the load was never steady."""
    first_wave = [record.ended for record in run.records if record.warm_up and record.ended is not None]
    if len(first_wave) < run.cell.concurrency or run.unfilled is None:
        return None
    begin = max(first_wave)
    inside = [r for r in run.records if r.ended is not None and begin < r.ended <= run.unfilled]
    if run.unfilled <= begin or len(inside) < run.cell.concurrency:
        return None
    return begin, run.unfilled


def tpot_seconds(record: RequestRecord) -> float | None:
    """Time per output token after the first chunk's; None if the tokens are not known."""
    if record.first is None or record.last is None or record.output_tokens is None:
        return None
    after = record.output_tokens - (record.first_tokens or 1)
    return (record.last - record.first) / after if after > 0 else None


def committed(record: RequestRecord) -> tuple[str, float, float] | None:
    """How it is known, tokens committed by verify steps, and the number of verify steps."""
    if record.accept_histogram and sum(record.accept_histogram):
        steps = sum(record.accept_histogram)
        drafts = sum(depth * count for depth, count in enumerate(record.accept_histogram))
        return "histogram", steps + drafts, steps
    if record.verify_steps and record.accepted_drafts is not None:
        return (
            "accepted drafts / verify steps",
            record.verify_steps + record.accepted_drafts,
            record.verify_steps,
        )
    if record.verify_steps and record.output_tokens:
        return "tokens / verify steps", record.output_tokens, record.verify_steps
    if record.step_tokens:
        return "tokens / chunk", sum(record.step_tokens), len(record.step_tokens)
    return None


def accept_length(records: Sequence[RequestRecord]) -> tuple[str, Estimate | None]:
    """How it is known, and the verify-weighted accept length."""
    known = [made for made in map(committed, records) if made is not None]
    if not known:
        return "", None
    how = Counter(made[0] for made in known).most_common(1)[0][0]
    same = [made for made in known if made[0] == how]
    return how, statistics.ratio([made[1] for made in same], [made[2] for made in same])


def accept_rates(records: Sequence[RequestRecord]) -> tuple[float, ...]:
    """The part of verify steps that accepted d drafts or more, for d = 1, 2, …; () without histograms."""
    totals: Counter[int] = Counter()
    for record in records:
        totals.update(dict(enumerate(record.accept_histogram or ())))
    steps = sum(totals.values())
    if not steps:
        return ()
    deepest = max(depth for depth, count in totals.items() if count)
    return tuple(
        sum(count for depth, count in totals.items() if depth >= least) / steps
        for least in range(1, deepest + 1)
    )


def marks(run: Run, made: Point, good: Sequence[RequestRecord]) -> tuple[str, ...]:
    """What makes this point doubtful; a point with marks wins no comparison."""
    found = []
    judged = made.ok + made.failed
    if made.failed > FAILURES * judged:
        found.append(f"failures {100 * made.failed / judged:.0f} %")
    if run.final and not made.ok:
        found.append("nothing measured")
    hits = [r for r in good if (r.cached_tokens or 0) > max(CACHED[1], CACHED[0] * (r.prompt_tokens or 0))]
    if hits:
        found.append(f"cache hits in {len(hits)} of {len(good)}")
    if run.others:
        found.append(f"other traffic: {run.others}")
    gap = made.spreads.get("step_ms")
    if made.client_lag_p99_ms is not None and gap and made.client_lag_p99_ms > LAG * gap.median:
        found.append(f"client-limited: {made.client_lag_p99_ms:.1f} ms late in steps of {gap.median:.1f} ms")
    if run.final and made.ok and made.window_seconds is None:
        found.append("no steady window")
    if run.final and made.ok and made.output_tokens is None:
        found.append("token counts unknown")
    if made.prompt_tokens and abs(made.prompt_tokens / run.cell.context - 1) > CONTEXT:
        found.append(f"prompts of {made.prompt_tokens:.0f} tokens in place of {run.cell.context}")
    short = [r for r in good if r.output_tokens is not None and r.output_tokens < run.output]
    if len(short) > FAILURES * len(good):
        found.append(f"{len(short)} of {len(good)} answers shorter than asked")
    ordered = sorted((r for r in good if r.step_gaps), key=lambda r: r.sent)
    steps = [sum(r.step_gaps) / len(r.step_gaps) for r in ordered]
    change = statistics.drift([r.sent for r in ordered], steps)
    if change is not None:
        found.append(f"drift {100 * change:+.0f} % in step time")
    apart = statistics.two_modes(steps)
    if apart is not None:
        found.append(f"two modes, step times a factor {apart:.2f} apart")
    return (*found, *_disagreements(made))


def _disagreements(made: Point) -> list[str]:
    found: list[str] = []
    server = made.server
    if server is None or not made.final:
        return found
    # an average since the flush lags by up to 40 steps: shown, but no proof of a disagreement
    counted = server.accept_length if server.accept_how == "verify counter" else None
    exact = made.accept_length.value if made.accept_length and made.accept_how in EXACT else None
    for name, theirs, ours in (
        ("output rate", server.output_rate, made.output_rate_whole),
        ("accept length", counted, exact),
    ):
        if theirs and ours and abs(theirs / ours - 1) > DISAGREE:
            found.append(f"server's {name} {theirs:.4g}, ours {ours:.4g}")
    return found + _log_disagrees(made, server, exact)


def _log_disagrees(made: Point, server: ServerSide, exact: float | None) -> list[str]:
    """The same of the server's log. Its lines scatter: what may be chance is no disagreement."""
    found = []
    theirs, length = server.log_rate, made.output_tokens
    if theirs and made.output_rate and length and length > 1:
        ours = made.output_rate.value * (length - 1) / length  # a prefill's token is in no decode line
        chance = DISAGREE + 2 * server.log_rate_error / theirs
        # what a request's last verify steps have too many is in the log, and in no answer
        extra = 2 * (server.log_accept or 0) / length
        if not -chance <= theirs / ours - 1 <= chance + extra:
            found.append(f"decode rate in the server's log {theirs:.4g}, ours {ours:.4g}")
    theirs = server.log_accept
    if theirs and exact and abs(theirs / exact - 1) > DISAGREE + 2 * server.log_accept_error / theirs:
        found.append(f"accept length in the server's log {theirs:.4g}, ours {exact:.4g}")
    return found


def tokens_by_arrival(record: RequestRecord) -> list[tuple[float, float]]:
    """(when, tokens) of every chunk. Spread evenly where the server counted only the whole."""
    if record.first is None or not record.output_tokens:
        return []
    times = [record.first]
    for gap in record.step_gaps:
        times.append(times[-1] + gap)
    if record.first_tokens is not None and len(record.step_tokens) == len(record.step_gaps):
        return list(zip(times, (record.first_tokens, *record.step_tokens), strict=True))
    return [(at, record.output_tokens / len(times)) for at in times]


def _output_rate(
    run: Run, good: Sequence[RequestRecord], window: tuple[float, float] | None
) -> Estimate | None:
    counted = [r for r in good if r.output_tokens is not None and r.ended is not None]
    slot = statistics.ratio(*_sums((r.output_tokens or 0, (r.ended or r.sent) - r.sent) for r in counted))
    if slot is None:
        return None
    if not run.final or window is None:  # an estimate: as many slots as run at once, each at this rate
        return statistics.scaled(slot, slot.value * run.cell.concurrency)
    begin, end = window
    tokens = sum(n for r in run.records for at, n in tokens_by_arrival(r) if begin < at <= end)
    return statistics.scaled(slot, tokens / (end - begin))


def _whole_rate(records: Sequence[RequestRecord]) -> float | None:
    tokens = sum(record.output_tokens or 0 for record in records)
    ends = [record.ended for record in records if record.ended is not None]
    if not ends or not tokens:
        return None
    wall = max(ends) - min(record.sent for record in records)
    return tokens / wall if wall > 0 else None


def _total_rate(records: Sequence[RequestRecord], window: tuple[float, float] | None) -> float | None:
    """Prompt tokens count when their first output token comes."""
    if window is None:
        return None
    begin, end = window
    tokens = 0.0
    for record in records:
        tokens += sum(n for at, n in tokens_by_arrival(record) if begin < at <= end)
        if record.first is not None and begin < record.first <= end:
            tokens += record.prompt_tokens or 0
    return tokens / (end - begin)


def _spreads(good: Sequence[RequestRecord]) -> Mapping[str, Spread]:
    per_token = [
        1e3 * gap / tokens
        for r in good
        if len(r.step_tokens) == len(r.step_gaps)
        for gap, tokens in zip(r.step_gaps, r.step_tokens, strict=True)
        if tokens
        for _ in range(tokens)
    ]
    lengths = [made[1] / made[2] for made in map(committed, good) if made is not None]
    found = {
        "ttft_ms": statistics.spread([1e3 * (r.first - r.sent) for r in good if r.first is not None]),
        "tpot_ms": statistics.spread([1e3 * value for value in map(tpot_seconds, good) if value is not None]),
        "step_ms": statistics.spread([1e3 * gap for r in good for gap in r.step_gaps]),
        "itl_ms": statistics.spread(per_token),
        "e2e_ms": statistics.spread([1e3 * (r.last - r.sent) for r in good if r.last is not None]),
        "accept": statistics.spread(lengths),
    }
    return {name: value for name, value in found.items() if value is not None}


def _sums(pairs: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    above, below = [], []
    for one, other in pairs:
        above.append(float(one))
        below.append(float(other))
    return above, below


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
