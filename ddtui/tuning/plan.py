"""Knobs → plan: the exact diff and commands, what it interrupts, and what must not move before its apply."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from ddtui.engine import rules
from ddtui.engine.api import ApiError
from ddtui.engine.flags import FlagTable
from ddtui.engine.installation import Installation
from ddtui.engine.rules import Severity
from ddtui.host import files
from ddtui.host.base import HostError, LinkLost, Unreachable
from ddtui.host.service import ServiceReading
from ddtui.host.supervisors import restart_orders
from ddtui.host.unit.change import UnitChange
from ddtui.host.unit.read import UnitReading
from ddtui.profile import Knob, KnobKind
from ddtui.sanitize import sanitize
from ddtui.store.model import HistoryError
from ddtui.tuning import diff, layers, lock, outlook, place, record, said, verdicts
from ddtui.tuning import survey as surveys
from ddtui.tuning.context import Tuning
from ddtui.tuning.model import FileEdit, Fingerprint, Layer, Op, Plan, Turn
from ddtui.tuning.survey import Survey


class PlanError(HostError):
    """No plan can be made, or this one cannot be applied: one sentence."""


class StalePlan(HostError):
    """Something moved since the plan was shown: one sentence that says what."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A turn with the knob behind it, and the flag (or variable) as it is to be written."""

    turn: Turn
    knob: Knob
    target: str


async def make(ctx: Tuning, survey: Survey, turns: Sequence[Turn], why: str = "") -> Plan:
    """The plan for these turns. Changes nothing. Raises PlanError, HostError.

    A plan with `problems` is shown and cannot be applied. A drop-in of ours that has gone stale is made
    anew with it; that is a plan even without turns.
    """
    service, unit = changeable(survey)
    if not turns and unit.stale is None:
        raise PlanError("there is nothing to change: no knob was turned")
    table = said.table(survey)
    wishes, problems = read_wishes(ctx, survey, turns)
    words = [(wish.target, str(wish.turn.op), wish.turn.value) for wish in wishes]
    change = await outlook.of_turns(ctx.host, service, words, table or None)
    problems += change.problems
    edits = tuple(FileEdit(e.path, e.before, e.after, e.ours, e.like) for e in change.edits)
    argv_before = unit.launch_argv or ()
    argv_after = change.launch_argv_after or argv_before
    warnings = [sanitize(note) for note in change.notes]
    if unit.stale:
        warnings.append(f"{unit.stale}: this plan makes it anew")
    if unit.unit is None and any(edit.ours for edit in edits):
        problems.append(
            "the flags stand in the profile's own command, which ddtui does not change: put them into a"
            " script or a config file on the host that it starts"
        )
    warnings += [f"{ctx.supervisor.name}: {what}" for what in ctx.supervisor.lacks]
    if not edits and not problems:
        problems.append(_nothing(survey))
    found = checked(ctx, survey, argv_before, argv_after, change)
    problems += [problem for problem in found[0] if problem not in problems]
    warnings += found[1]
    return await complete(
        ctx,
        survey,
        turns=tuple(turns),
        edits=edits,
        argv_before=argv_before,
        argv_after=argv_after,
        exec_start_after=change.exec_start_after or (),
        problems=problems,
        warnings=warnings,
        why=why,
    )


async def complete(
    ctx: Tuning,
    survey: Survey,
    *,
    turns: tuple[Turn, ...],
    edits: tuple[FileEdit, ...],
    argv_before: tuple[str, ...],
    argv_after: tuple[str, ...],
    exec_start_after: tuple[tuple[str, ...], ...],
    problems: list[str],
    warnings: list[str],
    why: str,
    restores: str | None = None,
) -> Plan:
    """A plan with what every plan says: diff, commands, interruption, earlier starts, what must not move."""
    service, _ = changeable(survey)
    (interrupts, _), standing, run = await asyncio.gather(
        _interrupts(ctx, survey), _in_the_way(ctx), commands(ctx, edits)
    )
    problems += standing[0]
    warnings += standing[1]
    if ctx.read_only:
        warnings.append(f"ddtui is read-only here: {ctx.read_only}")
    return Plan(
        unit=ctx.unit,
        turns=turns,
        edits=edits,
        argv_before=argv_before,
        argv_after=argv_after,
        commands=run,
        diff=diff.of(edits),
        fingerprint=fingerprint(service, survey.engine.value, settled=survey.server.value is not None),
        interrupts=interrupts,
        last_starts=last_starts(ctx),
        problems=tuple(dict.fromkeys(problems)),
        warnings=tuple(dict.fromkeys(warnings)),
        why=why,
        exec_start_after=exec_start_after,
        restores=restores,
    )


def parse_turns(ctx: Tuning, sets: Sequence[str], unsets: Sequence[str]) -> tuple[Turn, ...]:
    """Turns from words: `budget=16`, `--mem-fraction-static=0.85`, `--enable-metrics`; unsets by name.

    Raises PlanError for a knob that the profile does not have, and for one turned twice.
    """
    turns = []
    for word in sets:
        name, equals, value = word.partition("=")
        turns.append(Turn(name.strip(), Op.SET, value if equals else None))
    turns += [Turn(word.strip(), Op.UNSET) for word in unsets]
    for turn in turns:
        _knob(ctx, turn.knob)
    names = [turn.knob for turn in turns]
    for name in names:
        if names.count(name) > 1:
            raise PlanError(f"{name} is turned twice")
    return tuple(turns)


async def check_fresh(ctx: Tuning, plan: Plan) -> None:
    """Raises StalePlan if a file, the running invocation or the engine moved since the plan was made."""
    survey = await surveys.read(ctx, only={Layer.UNIT, Layer.PROCESS, Layer.ENGINE})
    service, _ = changeable(survey)
    now, then = fingerprint(service, survey.engine.value, settled=True), plan.fingerprint
    for path in sorted({*now.files, *then.files}):
        before, after = then.files.get(path, ""), now.files.get(path, "")
        if before != after:
            what = "is new" if not before else "is gone" if not after else "was changed"
            raise StalePlan(f"the plan is stale: {path} {what} since it was made", "plan anew")
    if then.invocation not in (now.invocation, ""):
        raise StalePlan("the plan is stale: the service was started anew since it was made", "plan anew")
    if now.engine != then.engine:
        raise StalePlan(
            f"the plan is stale: the installed SGLang is another one now ({now.engine})", "plan anew"
        )


def changeable(survey: Survey) -> tuple[ServiceReading, UnitReading]:
    """The service and its unit, if ddtui can change it. Raises PlanError."""
    service, unit = survey.service, survey.unit.value
    if service is None or unit is None:
        raise PlanError(f"the unit cannot be read: {survey.unit.problem or 'not read yet'}")
    if unit.engine is None:
        raise PlanError("no launch command of SGLang was found in the unit", "ddtui leaves it alone")
    if unit.engine != "sglang":
        raise PlanError(f"the unit runs {unit.engine}, not SGLang", "ddtui leaves it alone")
    return service, unit


def read_wishes(ctx: Tuning, survey: Survey, turns: Sequence[Turn]) -> tuple[list[Wish], list[str]]:
    """The turns with their knobs, and what is wrong with them. Raises PlanError for an unknown knob."""
    table, wishes, problems = said.table(survey), [], []
    for turn in turns:
        knob = _knob(ctx, turn.knob)
        target = knob.env or ""
        if knob.flag:
            spelled = table.accepted(knob.flag)
            if spelled is None and table.find(knob.flag) is not None:
                spelled = table.canonical(knob.flag)
            target = spelled or knob.flag
            if spelled is None and turn.op is Op.SET and table.complete:
                engine = survey.engine.value
                version = f" {engine.version}" if engine and engine.version else ""
                problems.append(f"the installed SGLang{version} has no {knob.flag}")
        wish = Wish(turn, knob, target)
        if (problem := _value_problem(wish, table)) is not None:
            problems.append(problem)
        wishes.append(wish)
    return wishes, problems


def _knob(ctx: Tuning, name: str) -> Knob:
    try:
        return verdicts.knob_of(ctx.profile, name)
    except KeyError:
        known = ", ".join(knob.name for knob in ctx.profile.knobs)
        raise PlanError(
            f"there is no knob {name!r}",
            f"the profile has {known}; any other flag is named with its two dashes",
        ) from None


def _value_problem(wish: Wish, table: FlagTable) -> str | None:
    """What is wrong with the value by the profile: kind and bounds. SGLang's own parser is asked apart."""
    knob, value = wish.knob, wish.turn.value
    if wish.turn.op is Op.UNSET:
        return None
    flag = table.find(wish.target)
    if value is None:
        if knob.env or knob.kind in (KnobKind.INT, KnobKind.FLOAT) or (flag and not flag.switch):
            return f"{knob.name} needs a value, such as {knob.name}={_example(knob)}"
        return None
    if "\0" in value:
        return f"the value of {knob.name} holds a NUL byte, which no command line can carry"
    if knob.kind not in (KnobKind.INT, KnobKind.FLOAT):
        return None
    try:
        number = int(value) if knob.kind is KnobKind.INT else float(value)
    except ValueError:
        kind = "a whole number" if knob.kind is KnobKind.INT else "a number"
        return f"{knob.name} must be {kind}, not {sanitize(value)!r}"
    if knob.min is not None and number < knob.min:
        return f"{knob.name} must be at least {knob.min:g} by the profile, not {value}"
    if knob.max is not None and number > knob.max:
        return f"{knob.name} must be at most {knob.max:g} by the profile, not {value}"
    return None


def _example(knob: Knob) -> str:
    return str(knob.presets[0]) if knob.presets else "8"


def _nothing(survey: Survey) -> str:
    """Why a plan without edits is none."""
    if survey.restart_pending or survey.reload_pending:
        return "the unit already says that, and the running server does not: restart it"
    return "nothing would change: the unit already says that"


def checked(
    ctx: Tuning,
    survey: Survey,
    before: tuple[str, ...],
    after: tuple[str, ...],
    change: UnitChange | None = None,
) -> tuple[list[str], list[str]]:
    """Problems and warnings of the new command line, by the installed SGLang's own parser and rules.

    What the running server's own command line breaks as well is no reason to refuse: it runs, so the rule is
    not as ddtui knows it, and it is a warning.
    """
    table, engine = said.table(survey), survey.engine.value
    if engine is None or not table:
        why = survey.engine.problem or "no flags were found"
        return [], [f"not checked against the installed SGLang: {why}"]
    old = set(table.validate(before))
    problems = [f"SGLang would refuse it: {text}" for text in table.validate(after) if text not in old]
    warnings: list[str] = []
    runs = survey.status is not None and survey.status.active_state == "active"
    known = {p.sentence for p in _broken(ctx, survey, engine, before)} if runs else set()
    for problem in _broken(ctx, survey, engine, after):
        if problem.severity is Severity.ERROR and problem.sentence not in known:
            problems.append(f"SGLang would refuse it: {problem.sentence}")
        elif problem.sentence not in known:
            warnings.append(problem.sentence)
    return problems, warnings


def _broken(
    ctx: Tuning, survey: Survey, engine: Installation, argv: tuple[str, ...]
) -> tuple[rules.Problem, ...]:
    unit, journal = survey.unit.value, survey.journal.value
    graphs = journal.graph_sizes if journal else None
    return rules.check(
        engine.flags.resolve(argv),
        engine,
        drafter=survey.drafter.value,
        env=unit.environment if unit else None,
        concurrency=max(ctx.profile.bench.concurrency, default=None),
        captured_batch=max(graphs) if graphs else None,
        running=survey.server.value.arguments if survey.server.value else None,
    )


def fingerprint(service: ServiceReading, engine: Installation | None, *, settled: bool) -> Fingerprint:
    """What must not move between plan and apply. `settled`: the server answers, so its invocation is to stay.

    A server that dies and is started by systemd again and again has another one at every look.
    """
    known = service.tree.known_files()
    rests_on = service.unit.files if service.unit else ()
    files = {
        path: hashlib.sha256(content).hexdigest()
        for path in rests_on
        if (content := known.get(path)) is not None
    }
    name = f"{engine.version} in {engine.location}, {engine.digest[:12]}" if engine else ""
    status = service.status
    looping = status.sub_state == "auto-restart" or (status.n_restarts > 0 and not settled)
    return Fingerprint(files, "" if looping else status.invocation_id, name)


async def commands(ctx: Tuning, edits: Sequence[FileEdit]) -> tuple[tuple[str, ...], ...]:
    """What an apply runs, in order. Reading, watching and the record are left out."""
    root = await files.take_root(ctx.host, [edit.path for edit in edits])
    sudo = ("sudo",) if ctx.root else ()
    supervisor = ctx.supervisor
    lines: list[tuple[str, ...]] = []
    for edit in edits:
        rights = ("sudo",) if root[edit.path] else ()
        folder = edit.path.rpartition("/")[0]
        if edit.after is None:
            emptied = [("rm", "-d", "--", folder)] if edit.ours else []
            lines += [(*rights, *argv) for argv in (*files.remove_argvs(edit.path), *emptied)]
            continue
        lines += [(*rights, "mkdir", "-p", "--", folder)] if edit.ours else []
        like = edit.path if edit.before is not None else edit.like
        writes = await files.would_write(ctx.host, edit.path, like, sudo=root[edit.path])
        lines += [(*rights, *argv) for argv in writes]
    if supervisor.verify:
        lines.append(supervisor.verify)
    reload = (supervisor.reload,) if supervisor.reload else ()
    lines += [(*sudo, *argv) for argv in (*reload, *restart_orders(supervisor))]
    return tuple(lines)


def last_starts(ctx: Tuning) -> tuple[float, ...]:
    """Seconds to ready of the last starts, newest first."""
    if ctx.history is None:
        return ()
    try:
        starts = ctx.history.last_starts(ctx.host.name, ctx.unit)
    except HistoryError:
        return ()
    return tuple(start.seconds for start in starts if start.seconds is not None)


async def _interrupts(ctx: Tuning, survey: Survey) -> tuple[str, int | None]:
    """What a restart would interrupt, by the server's own numbers; and how many requests run."""
    if survey.status is not None and not survey.status.running:
        return "nothing: the service is not running", 0
    try:
        async with await layers.open_api(ctx, survey) as api:
            loads = await api.loads()
    except (LinkLost, Unreachable):
        raise
    except (ApiError, HostError, TimeoutError) as error:
        return f"not known: {sanitize(str(error)) or 'the server did not answer in time'}", None
    if loads.running is None:
        return "not known: the server does not say how many requests run", None
    queued = f", {loads.waiting} queued" if loads.waiting is not None else ""
    return f"{loads.running} running request{'' if loads.running == 1 else 's'}{queued}", loads.running


async def _in_the_way(ctx: Tuning) -> tuple[list[str], list[str]]:
    """What stands in the way of an apply: a change that was cut (a problem), somebody's lock (a warning)."""
    where = await place.find(ctx)
    if not where.exists:
        return [], []
    records, held = await asyncio.gather(record.read(ctx, where), lock.look(ctx))
    problems, warnings = [], []
    if held is not None and not held.ours:
        warnings.append(str(lock.Locked(held)))
    elif (cut := record.unfinished(records)) is not None:
        problems.append(
            f"the change {cut.id} by {cut.who} was cut while {cut.phase.value}: finish it or undo it first"
        )
    return problems, warnings


def describe(turns: Sequence[Turn]) -> str:
    """Turns in a few words: "budget 16, without window"."""
    words = []
    for turn in turns:
        if turn.op is Op.UNSET:
            words.append(f"without {turn.knob}")
        else:
            words.append(f"{turn.knob} {turn.value}" if turn.value is not None else turn.knob)
    return ", ".join(words) or "restart"
