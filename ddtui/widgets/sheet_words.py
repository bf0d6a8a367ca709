"""One thing of the history whole: a step, a burst, a change, a sweep. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from textual.content import Content

from ddtui.bench import experiment
from ddtui.bench.experiment import Trial, TrialState
from ddtui.past import BurstSheet, ChangeSheet, Sheet, StepSheet, SweepSheet
from ddtui.report import collect
from ddtui.store import outputs
from ddtui.store.model import Note
from ddtui.widgets.cells import cut, cut_value
from ddtui.widgets.point_words import point_lines, point_table
from ddtui.widgets.row_words import flat, when
from ddtui.words import plural

LABEL = 7  # cells: drafter
TRIAL_LOOK = {
    TrialState.MEASURED: ("✓", "$success"),
    TrialState.FAILED: ("✗", "$error"),
    TrialState.NOT_IN_FORCE: ("≠", "$error"),
    TrialState.REFUSED: ("–", "$muted"),
    TrialState.APPLYING: ("↻", "$warning"),
    TrialState.MEASURING: ("▶", "$primary"),
}


def words(sheet: Sheet, width: int) -> Content:
    """The sheet in `width` cells."""
    match sheet:
        case StepSheet():
            lines = _step(sheet, width)
        case BurstSheet():
            lines = _burst(sheet, width)
        case ChangeSheet():
            lines = _change(sheet, width)
        case SweepSheet():
            lines = _sweep(sheet, width)
    return Content("\n").join(lines)


def title(sheet: Sheet) -> str:
    match sheet:
        case StepSheet():
            return f"Step {sheet.step.number}"
        case BurstSheet():
            return f"Burst {sheet.burst.id}"
        case ChangeSheet():
            return f"Change {sheet.row.id}"
        case SweepSheet():
            return f"Sweep {sheet.row.id}"


def _step(sheet: StepSheet, width: int) -> Iterator[Content]:
    step, setting = sheet.step, sheet.step.setting
    knobs = ", ".join(f"{name} {'off' if v is None else v or 'on'}" for name, v in setting.knobs.items())
    yield Content.assemble((knobs, "bold"), ("   SIMULATED" if step.simulated else "", "bold $accent"))
    yield from _notes(sheet.notes)
    yield _fact("host", f"{step.host}, {step.unit}", width)
    yield _fact("first", when(step.at), width)
    for label, text in (
        ("SGLang", setting.engine), ("model", setting.target), ("drafter", setting.drafter),
        ("GPU", setting.gpu),
    ):  # fmt: skip
        if text:
            yield _fact(label, text, width)
    for check in outputs.newest(sheet.quality):
        said = f"WRONG: {check.text}" if check.wrong else check.text
        yield _fact("output", said, width, "bold $error" if check.wrong else "")
    for verdict in step.verdicts:
        status = str(verdict.get("status"))
        style = "$success" if status == "in force" else "$warning"
        head = cut(f"{verdict.get('title')}:", width - len(status) - 1)
        yield Content.assemble((f"{head} ", "$muted"), (status, style))
    if sheet.points:
        yield Content("")
        yield Content.styled("newest of every cell", "$muted")
        yield from point_table(sheet.points, width)
    if sheet.bursts:
        yield Content("")
        for row in sheet.bursts:
            note = f"  {flat(row.note)}" if row.note else ""
            text = f"{when(row.at)}  {row.state}, {plural(row.cells, 'cell')}{note}  {row.id}"
            yield Content.styled(cut(text, width), "$muted")
    if flags := collect.flags(step):
        yield Content("")
        yield Content.styled(f"all flags ({len(flags)})", "$muted")
        for name, value in flags.items():
            flag = name if name.startswith("-") else f"--{name.replace('_', '-')}"
            yield Content.assemble((f"{flag} ", "$muted"), cut(str(value), max(4, width - len(flag) - 1)))


def _burst(sheet: BurstSheet, width: int) -> Iterator[Content]:
    burst = sheet.burst
    step = f"step {burst.step}" if burst.step is not None else "no step"
    yield Content.assemble(
        (step, "bold"), (f"  {when(burst.started_at)}  {burst.state}", "$muted"),
        ("   SIMULATED" if burst.simulated else "", "bold $accent"),
    )  # fmt: skip
    yield from _notes(sheet.notes)
    if sheet.note:
        yield Content.styled(cut(flat(sheet.note), width), "$muted")
    spec = burst.spec
    load = f"output {spec.output}, temperature {spec.temperature:g}, load at {spec.at}, {spec.endpoint}"
    yield _fact("load", load, width)
    yield Content("")
    yield point_lines(burst, width)


def _change(sheet: ChangeSheet, width: int) -> Iterator[Content]:
    row, record = sheet.row, sheet.row.record
    yield Content.styled(", ".join(row.turns) or "restart", "bold")
    yield from _notes(sheet.notes)
    yield _fact("when", when(row.at), width)
    yield _fact("how it ended", f"{row.phase}: {flat(row.result)}" if row.result else row.phase, width)
    if row.step is not None:
        yield _fact("led to", f"step {row.step}", width)
    for label, key in (("who", "who"), ("why", "why")):
        if record.get(key):
            yield _fact(label, str(record[key]), width)
    seconds = record.get("seconds_to_ready")
    if seconds:
        yield _fact("ready after", f"{seconds:.0f} s", width)
    for trace in record.get("files", ()):
        if isinstance(trace, dict) and trace.get("path"):
            yield _fact("file", str(trace["path"]), width)
    before, after = _options(record.get("argv_before") or ()), _options(record.get("argv_after") or ())
    gone = [word for word in before if word not in after]
    new = [word for word in after if word not in before]
    if gone or new:
        yield Content("")
        yield from (Content.styled(cut(f"- {word}", width), "$error") for word in gone)
        yield from (Content.styled(cut(f"+ {word}", width), "$success") for word in new)


def _options(argv: Sequence[str]) -> list[str]:
    """A command line with each option and its values as one."""
    found: list[str] = []
    for word in argv:
        if found and found[-1].startswith("-") and not str(word).startswith("-"):
            found[-1] += f" {word}"
        else:
            found.append(str(word))
    return found


def _sweep(sheet: SweepSheet, width: int) -> Iterator[Content]:
    row, plan = sheet.row, sheet.plan
    yield Content.assemble((f"{row.order}  {row.state}", "bold"), (f"  {when(row.at)}", "$muted"))
    if row.why:
        yield _fact("why", flat(row.why), width)
    if row.outcome:
        yield Content(flat(row.outcome))
    if sheet.left:
        yield Content.styled(flat(sheet.left), "$muted")
    yield _fact("size", f"{len(plan.settings)} settings × {plural(len(plan.cells), 'cell')}", width)
    yield Content("")
    for trial in sheet.trials:
        yield trial_line(trial, width)
    for one, why in plan.skipped:
        yield Content.styled(cut(f"– {experiment.name(one)}: {why}", width), "$muted")


def trial_line(trial: Trial, width: int) -> Content:
    """A trial on one line, without what it measured."""
    glyph, colour = TRIAL_LOOK[trial.state]
    step = f"step {trial.step}" if trial.step is not None else ""
    words = f"{experiment.name(trial.setting)}  {trial.stage}  {step}"
    why = f"  {trial.state}: {flat(trial.text)}" if trial.text else ""
    return Content.assemble(
        (f"{glyph} ", f"bold {colour}"), (f"{trial.number + 1:>3} ", "$muted"), cut(words + why, width - 6)
    )


def _notes(notes: Sequence[Note]) -> Iterator[Content]:
    for one in notes:
        yield Content.assemble(("“" + flat(one.text) + "”", "$warning"), (f"  {when(one.at)}", "$muted"))


def _fact(label: str, text: str, width: int, style: str = "") -> Content:
    room = max(4, width - max(LABEL, len(label)) - 2)
    return Content.assemble((f"{label:<{LABEL}}  ", "$muted"), (cut_value(text, room), style))
