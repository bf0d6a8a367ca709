"""A report as Markdown, and as one HTML file with its charts inside that asks nothing of the network."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from html import escape
from importlib import resources

from ddtui import __version__
from ddtui.bench import gpu_use
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
VALUES = "Values with their 95 % interval by bootstrap over prompts; n is the number of requests."
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
    yield from _table(_head(report), [_cells(report, entry) for entry in report.entries])
    yield ""
    yield VALUES
    if held := _held(report):
        yield ""
        yield "## GPUs meanwhile"
        yield ""
        yield from _table(["step", "C", "context", "GPUs"], held)
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
        f"<title>{escape(report.title)}</title><style>{_style()}</style></head><body>\n"
        + "\n".join(_html(report))
        + "\n</body></html>\n"
    )


def _style() -> str:
    return resources.files(__package__).joinpath("page.css").read_text("utf-8")


def _html(report: Report) -> Iterator[str]:
    yield f"<header><h1>{escape(report.title)}</h1>"
    when = time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(report.at))
    yield f'<p class="note">{when}, ddtui {__version__}</p></header>'
    if report.simulated:
        yield f'<p class="simulated">{LABEL}</p>'
    if report.sentences:
        yield f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in report.sentences)}</ul>"
    drawn = figures.all_of(report)
    if drawn:
        yield '<div class="figures">'
        for figure in drawn:
            yield f"<figure><figcaption>{escape(figure.title)}</figcaption>{svg.draw(figure)}</figure>"
        yield "</div>"
        yield f'<p class="note">{_READING}</p>'
    yield "<h2>Results</h2>"
    yield from _results(report)
    if held := _held(report):
        yield "<details><summary>GPUs meanwhile</summary><div class='wide'><table class='words'>"
        yield from ("<tr>" + "".join(f"<td>{escape(word)}</td>" for word in row) + "</tr>" for row in held)
        yield "</table></div></details>"
    if report.advice:
        yield "<h2>What to try next</h2><ul>"
        for advice in report.advice:
            lines = "".join(f"<li>{escape(line)}</li>" for line in advice.evidence)
            yield f"<li>{escape(advice.text)}<ul class='note'>{lines}</ul></li>"
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
    yield "<h3>Measured by</h3><pre>" + escape("\n".join(report.commands)) + "</pre>"


def _results(report: Report) -> Iterator[str]:
    """The table; what is the same in every row is said above it, and a row that is doubted has a mark."""
    head, rows = _head(report), [_cells(report, entry) for entry in report.entries]
    same = [
        at
        for at in range(1, head.index(COLUMNS[0][1]))
        if len(rows) > 1 and len({row[at] for row in rows}) == 1
    ]
    if same:
        words = ", ".join(f"{head[at]} {rows[0][at]}" for at in same)
        yield f'<p class="note">In all of them: {escape(words)}.</p>'
    kept = [at for at in range(len(head)) if at not in same]
    yield "<div class='wide'><table><thead><tr>"
    yield "".join(f"<th>{escape(head[at])}</th>" for at in kept) + "</tr></thead>"
    for number, (entry, row) in enumerate(zip(report.entries, rows, strict=True)):
        if not number or report.entries[number - 1].step.id != entry.step.id:
            yield "</tbody><tbody>" if number else "<tbody>"
        mark = [f'<td class="mark" title="{escape(row[-1])}">{"†" if row[-1] else ""}</td>']
        yield "<tr>" + "".join([*(_cell(row[at]) for at in kept[:-1]), *mark]) + "</tr>"
    yield "</tbody></table></div>"
    doubted = " †: not to be relied on, see the warnings." if any(row[-1] for row in rows) else ""
    yield f'<p class="note">{VALUES}{doubted}</p>'


def _cell(words: str) -> str:
    """A cell; an interval stands back behind its value."""
    value, space, interval = words.partition(" [")
    if not space or not interval.endswith("]"):
        return f"<td>{escape(words)}</td>"
    return f'<td>{escape(value)} <span class="note">[{escape(interval)}</span></td>'


def _head(report: Report) -> list[str]:
    return ["step", *report.knobs, "C", "context", "workload", *(label for _, label in COLUMNS), "n", ""]


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


def _held(report: Report) -> list[list[str]]:
    """What the GPUs did while each cell was measured, where that is known."""
    return [
        [
            f"step {entry.step.number}",
            f"C={entry.point.cell.concurrency}",
            length(entry.point.cell.context),
            words,
        ]
        for entry in report.entries
        if (words := gpu_use.in_words(entry.point.gpus, entry.point.gpus_unknown))
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


_READING = (
    "Bars are 95 % intervals. Ringed: on the front, where no other to be relied on is at least as good in "
    "both. C: requests at once. A dot says its numbers under the pointer."
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
