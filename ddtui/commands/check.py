"""`ddtui check PROFILE`: every layer, and the verdicts."""

from __future__ import annotations

import argparse
import textwrap
import time
from collections.abc import Iterator

from ddtui import layer_words
from ddtui.commands.opened import tuning, wait
from ddtui.commands.output import emit
from ddtui.commands.status_line import Waiting
from ddtui.layer_words import LayerWords
from ddtui.tuning import survey as surveys
from ddtui.tuning import verdicts
from ddtui.tuning.model import KnobRow, Layer, Verdict
from ddtui.tuning.survey import Survey
from ddtui.words import STATUS_LOOK


def run(args: argparse.Namespace) -> int:
    return wait(_run(args))


async def _run(args: argparse.Namespace) -> int:
    async with tuning(args) as ctx:
        began = time.monotonic()
        async with Waiting("reading every layer", surveys.usual_seconds(ctx.host.link)):
            survey = await surveys.read(ctx)
        seconds = time.monotonic() - began
        judged = verdicts.judge(survey, ctx.profile)
        rows = surveys.knob_rows(survey, ctx)
    report = {
        "profile": ctx.profile.name,
        "host": ctx.host.link.target,
        "unit": ctx.unit,
        "simulated": ctx.profile.simulated,
        "at": survey.at,
        "seconds": round(seconds, 3),
        "round_trips": survey.round_trips,
        "layers": {words.layer: _layer(words) for words in layer_words.layers(survey)},
        "knobs": rows,
        "verdicts": judged,
    }
    emit(args.json, "check", report, _lines(ctx.profile.name, survey, rows, judged, ctx.profile.simulated))
    return status(survey, judged)


def status(survey: Survey, judged: tuple[Verdict, ...]) -> int:
    """The exit code. Without the unit there may be no verdict at all, which is not "all as asked"."""
    return 0 if survey.unit.value is not None and all(verdict.fine for verdict in judged) else 1


def _layer(words: LayerWords) -> dict[str, object]:
    facts = [{"label": label, "text": text} for label, text in words.facts]
    return {
        "read": words.problem is None,
        "problem": words.problem,
        "read_at": words.read_at,
        "facts": facts,
    }


def _lines(
    name: str, survey: Survey, rows: tuple[KnobRow, ...], judged: tuple[Verdict, ...], simulated: bool
) -> Iterator[str]:
    status = survey.status
    state = f"  {status.active_state} ({status.sub_state})" if status else ""
    yield f"{name}{'  SIMULATED' if simulated else ''}{state}"
    yield ""
    cells: list[tuple[str, ...]] = [("knob", "in unit", "running", "server", "default")]
    cells += [(r.name, *(v or "–" for v in (r.in_unit, r.running, r.server, r.default))) for r in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(5)]
    for row in cells:
        line = f"  {row[0]:<{widths[0]}}"
        yield line + "".join(f"  {value:>{width}}" for value, width in zip(row[1:], widths[1:], strict=True))
    for verdict in judged:
        yield ""
        yield f"{STATUS_LOOK[verdict.status][0]} {verdict.title}: {verdict.status.value}"
        yield from textwrap.wrap(verdict.summary, 100, initial_indent="  ", subsequent_indent="  ")
        width = max((len(line.layer.value) for line in verdict.evidence), default=0)
        for one in verdict.evidence:
            source = f"  [{one.source}]" if one.source else ""
            yield f"    {one.layer.value:<{width}}  {one.text}{source}"
        if verdict.settle:
            yield f"    to settle it: {verdict.settle}"
        for action in verdict.next:
            yield f"    next: {action.label}"
    yield ""
    yield "Layers, each as it was read now:"
    for words in layer_words.layers(survey):
        yield ""
        failed = words.problem and words.layer is not Layer.MEASURED  # no burst yet is no failure
        why = f": {words.problem}" if words.problem else ""
        yield f"  {'✗ ' if failed else ''}{words.layer.value}{why}"
        yield from (f"    {line}" for line in words.lines())
