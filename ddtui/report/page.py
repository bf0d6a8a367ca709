"""A report as Markdown, and as one HTML file with its charts inside that asks nothing of the network."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from html import escape

from ddtui import __version__
from ddtui.bench.compare import length
from ddtui.bench.model import Estimate
from ddtui.report import figures, svg
from ddtui.report.collect import Entry, Report, flags
from ddtui.store.model import Step

COLUMNS = (
    ("output_rate", "tok/s"),
    ("per_user_rate", "tok/s per user"),
    ("ttft_ms", "TTFT ms"),
    ("tpot_ms", "TPOT ms"),
    ("step_ms", "step ms"),
    ("accept_length", "accept length"),
)
LABEL = "SIMULATED: these numbers come from a model, nothing was measured on a real server."


def markdown(report: Report) -> str:
    """The report as Markdown."""
    return "\n".join(_markdown(report)) + "\n"


def _markdown(report: Report) -> Iterator[str]:
    yield f"# {_plain(report.title)}"
    yield ""
    yield f"{time.strftime('%Y-%m-%d %H:%M %Z', time.localtime(report.at))}, ddtui {__version__}"
    if report.simulated:
        yield ""
        yield f"**{LABEL}**"
    if report.sentences:
        yield ""
        yield from (f"- {_plain(text)}" for text in report.sentences)
    yield ""
    yield "## Results"
    yield ""
    head = ["step", *report.knobs, "C", "context", "workload", *(label for _, label in COLUMNS), "n", ""]
    yield from _table(head, [_cells(report, entry) for entry in report.entries])
    yield ""
    yield "Values with their 95 % interval by bootstrap over prompts; n is the number of requests."
    if report.advice:
        yield ""
        yield "## What to try next"
        for advice in report.advice:
            yield ""
            yield f"- {_plain(advice.text)}"
            yield from (f"  - {_plain(line)}" for line in advice.evidence)
    if report.warnings:
        yield ""
        yield "## Warnings"
        yield ""
        yield from (f"- {_plain(text)}" for text in report.warnings)
    yield ""
    yield "## Provenance"
    for step in report.steps:
        yield ""
        simulated = " (SIMULATED)" if step.simulated else ""
        yield f"### step {step.number} of {_plain(step.host)}, {_plain(step.unit)}{simulated}"
        yield ""
        for label, text in origins(step):
            yield f"- {label}: {_plain(text)}"
        for verdict in step.verdicts:
            yield f"- {_plain(str(verdict.get('title')))}: {_plain(str(verdict.get('status')))}"
        for check in report.checks.get(step.id, ()):
            yield f"- output{' **WRONG**' if check.wrong else ''}: {_plain(check.text)}"
        words = " ".join(f"{name}={json.dumps(value, default=str)}" for name, value in flags(step).items())
        yield f"- flags: `{words.replace('`', '')}`"
    yield ""
    yield "Measured by:"
    yield ""
    yield from (f"    {command}" for command in report.commands)


def html(report: Report) -> str:
    """The report as one file."""
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{escape(report.title)}</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(_html(report))
        + "\n</body></html>\n"
    )


def _html(report: Report) -> Iterator[str]:
    yield f"<h1>{escape(report.title)}</h1>"
    yield f"<p>{time.strftime('%Y-%m-%d %H:%M %Z', time.localtime(report.at))}, ddtui {__version__}</p>"
    if report.simulated:
        yield f'<p class="simulated">{LABEL}</p>'
    for text in report.sentences:
        yield f"<p>{escape(text)}</p>"
    for figure in figures.all_of(report):
        yield f"<figure><figcaption>{escape(figure.title)}</figcaption>{svg.draw(figure)}</figure>"
    if any(dot.marked for figure in figures.all_of(report) for line in figure.lines for dot in line.dots):
        yield '<p class="note">Ringed: on the front; no other is at least as good in both.</p>'
    yield "<h2>Results</h2><div class='wide'><table><thead><tr>"
    head = ["step", *report.knobs, "C", "context", "workload", *(label for _, label in COLUMNS), "n", ""]
    yield "".join(f"<th>{escape(word)}</th>" for word in head) + "</tr></thead><tbody>"
    for entry in report.entries:
        yield "<tr>" + "".join(f"<td>{escape(word)}</td>" for word in _cells(report, entry)) + "</tr>"
    yield "</tbody></table></div>"
    yield '<p class="note">Values with their 95 % interval by bootstrap over prompts; n: requests.</p>'
    if report.advice:
        yield "<h2>What to try next</h2><ul>"
        for advice in report.advice:
            lines = "".join(f"<li>{escape(line)}</li>" for line in advice.evidence)
            yield f"<li>{escape(advice.text)}<ul>{lines}</ul></li>"
        yield "</ul>"
    if report.warnings:
        yield "<h2>Warnings</h2><ul>" + "".join(f"<li>{escape(t)}</li>" for t in report.warnings) + "</ul>"
    yield "<h2>Provenance</h2>"
    for step in report.steps:
        name = f"step {step.number} of {escape(step.host)}, {escape(step.unit)}"
        yield f"<details><summary>{name}</summary><ul>"
        for label, text in origins(step):
            yield f"<li>{label}: {escape(text)}</li>"
        for verdict in step.verdicts:
            yield f"<li>{escape(str(verdict.get('title')))}: {escape(str(verdict.get('status')))}</li>"
        for check in report.checks.get(step.id, ()):
            style = ' class="wrong"' if check.wrong else ""
            yield f"<li{style}>output{' WRONG' if check.wrong else ''}: {escape(check.text)}</li>"
        words = "\n".join(f"{name} = {json.dumps(value, default=str)}" for name, value in flags(step).items())
        yield f"</ul><pre>{escape(words)}</pre></details>"
    yield "<p>Measured by:</p><pre>" + escape("\n".join(report.commands)) + "</pre>"


def _cells(report: Report, entry: Entry) -> list[str]:
    point, knobs = entry.point, entry.step.setting.knobs
    values = ["off" if knobs.get(name) is None else str(knobs[name]) for name in report.knobs]
    doubts = [*point.marks, *(["preview"] if point.preview else [])]
    return [
        str(entry.step.number),
        *values,
        str(point.cell.concurrency),
        length(point.cell.context),
        point.cell.workload.rpartition("/")[2],
        *(estimate(getattr(point, name)) for name, _ in COLUMNS),
        str(point.ok),
        "; ".join(doubts),
    ]


def origins(step: Step) -> list[tuple[str, str]]:
    """Versions and identities of a step, as far as they are known."""
    setting = step.setting
    known = [
        ("SGLang", setting.engine),
        ("model", setting.target),
        ("drafter", setting.drafter),
        ("GPU", setting.gpu),
    ]
    return [(label, text) for label, text in known if text]


def estimate(one: Estimate | None) -> str:
    """912 [880, 940]; a dash where it is not known."""
    if one is None:
        return "–"
    digits = 0 if abs(one.value) >= 100 else 1 if abs(one.value) >= 10 else 2
    return f"{one.value:,.{digits}f} [{one.low:,.{digits}f}, {one.high:,.{digits}f}]"


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(map(_plain, head)) + " |"
    yield "|" + " --- |" * len(head)
    for row in rows:
        yield "| " + " | ".join(map(_plain, row)) + " |"


def _plain(text: str) -> str:
    """Text in which nothing is Markdown or HTML."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text.replace("\n", " "))


_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --dim: #888; --front: #000 }
@media (prefers-color-scheme: dark) { :root { --front: #fff } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
.simulated { border: 2px solid #d55e00; padding: .4rem .8rem; font-weight: 600 }
.note { color: var(--dim); font-size: .9em } .wrong { color: #d0312d; font-weight: 600 }
figure { margin: 1.5rem 0; max-width: 46rem } figcaption { font-weight: 600; margin-bottom: .3rem }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; fill: currentColor }
svg .grid { stroke: var(--line) } svg .small { font-size: 11px }
svg .front { fill: none; stroke: var(--front); stroke-width: 1.5 }
.wide { overflow-x: auto } table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem; text-align: right; white-space: nowrap }
th { text-align: right; font-weight: 600 } pre { overflow-x: auto; white-space: pre-wrap; font-size: .85em }
"""
