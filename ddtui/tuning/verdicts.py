"""Layers → verdicts: what is in force, what is not, and the lines that say so. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ddtui import redact
from ddtui.engine.flags import Flag
from ddtui.profile import Knob, KnobKind, Profile
from ddtui.tuning import said, window
from ddtui.tuning.grounds import (
    RELOAD,
    RESTART,
    START,
    clock,
    drafter_moved,
    engine_moved,
    name_of,
    needs_reload,
    not_running,
    open_log,
    open_unit,
    pending,
    settle,
    why_other,
)
from ddtui.tuning.model import Evidence, Layer, NextAction, Op, Status, Turn, Verdict
from ddtui.tuning.said import Said
from ddtui.tuning.survey import Survey


def judge(survey: Survey, profile: Profile) -> tuple[Verdict, ...]:
    """A verdict per knob of the profile, and for the drafter's window the two questions apart.

    `window.layers` (are its own sliding layers honoured?) and `window.flag` (does its flag limit it?)
    come first, then the knobs in their order, then `drop-in` if ddtui's own no longer rests on what it
    was made from, `service` if the running process differs from the unit in anything else, and `files` if
    engine or drafter on disk are not those that the server has loaded.
    """
    knobs = [knob for knob in profile.knobs if not (knob.flag and said.is_window(knob.flag))]
    windows = [v for v in (window.layers(survey, profile), window.flag(survey, profile)) if v]
    others = [v for v in (_drop_in(survey), _service(survey, profile), _files(survey)) if v]
    return (*windows, *(_knob(survey, knob) for knob in knobs), *others)


def judge_turn(survey: Survey, profile: Profile, turn: Turn) -> Verdict:
    """Whether what a turn asked for is in force now: a knob, or any flag."""
    knob = knob_of(profile, turn.knob)
    if knob.env is not None:
        verdict = _variable(survey, knob, knob.env)
    elif knob.flag and said.is_window(knob.flag):
        if turn.op is Op.UNSET:
            return _unset(survey, knob.name, knob.flag)
        verdict = window.flag(survey, profile) or _flag(survey, knob.name, knob.flag)
    else:
        assert knob.flag is not None
        if turn.op is Op.UNSET:
            return _unset(survey, knob.name, knob.flag)
        verdict = _flag(survey, knob.name, knob.flag)
    wanted = turn.value if turn.op is Op.SET else None
    if verdict.fine and knob.flag and wanted is not None:
        runs = said.by_process(survey, knob.flag)
        if runs.known and not said.same(runs.value, wanted):
            return Verdict(
                verdict.subject,
                verdict.title,
                Status.NOT_IN_FORCE,
                wanted,
                f"{said.show(wanted)} was asked for, {said.show(runs.value)} runs",
                verdict.evidence,
            )
    return verdict


def runs_as(survey: Survey, argv: Sequence[str]) -> Verdict | None:
    """Whether the running process has these arguments, secrets masked, and no others. None: not known."""
    process, running = survey.process.value, said.resolved(survey)
    if process is None or running is None:
        return None
    wanted = said.table(survey).resolve(redact.argv(argv))
    now = said.table(survey).resolve(redact.argv(process.argv))
    lines = [
        Evidence(Layer.PROCESS, f"runs {word} {name} {said.show(said.as_text(value))}", f"pid {process.pid}")
        for word, some, others in (("with", now, wanted), ("without", wanted, now))
        for name, value in some.values.items()
        if others.values.get(name) != value
    ]
    if not lines:
        return Verdict("service", "arguments", Status.IN_FORCE, None, "the process runs with them", ())
    return Verdict(
        "service",
        "arguments",
        Status.NOT_IN_FORCE,
        None,
        f"the process runs with other arguments than planned: {lines[0].text}",
        tuple(lines),
    )


def knob_of(profile: Profile, name: str) -> Knob:
    """The profile's knob of that name, or a knob made for any other flag. Raises KeyError."""
    if name.startswith("--"):
        for knob in profile.knobs:
            if knob.flag == name:
                return knob
        return Knob.model_construct(name=name, flag=name, env=None, kind=KnobKind.TEXT)
    return profile.knob(name)


def _knob(survey: Survey, knob: Knob) -> Verdict:
    if knob.env is not None:
        return _variable(survey, knob, knob.env)
    assert knob.flag is not None
    return _flag(survey, knob.name, knob.flag)


def _flag(survey: Survey, name: str, flag: str) -> Verdict:
    """One flag across the layers."""
    unit, process = said.by_unit(survey, flag), said.by_process(survey, flag)
    server, journal = said.by_server(survey, flag), said.by_journal(survey, flag)
    engine = _engine(survey, flag)
    overrides = _overrides(survey, flag)
    proof = _proof(survey, flag)
    lines = [
        *([engine[1]] if engine[1] else []),
        *(word.evidence for word in (unit, process, server) if word.text),
        *([journal.evidence] if journal.known else []),
        *(line for _, line in proof),
        *overrides,
    ]

    def verdict(
        status: Status, value: str | None, summary: str, settle: str | None = None, *next: NextAction
    ) -> Verdict:
        return Verdict(name, name, status, value, summary, tuple(lines), settle, next)

    if (stopped := not_running(survey)) is not None:
        return verdict(Status.NOT_IN_FORCE, unit.value, stopped, None, START)
    if engine[0] is False and (unit.value is not None or process.value is None):
        summary = f"the installed SGLang has no {flag}"
        if process.value is None or (moved := engine_moved(survey)) is None:
            return verdict(Status.NOT_IN_FORCE, unit.value, summary, None, open_unit(survey))
        return verdict(
            Status.CONFLICTING,
            process.value,
            f"{moved}: it has no {flag}, so the next start fails",
            None,
            open_unit(survey),
        )
    if (waiting := pending(survey, flag, unit, process)) is not None:
        status, summary, action = waiting
        return verdict(status, unit.value, summary, None, action)
    runs = process if process.known else unit
    if not runs.known:
        return verdict(
            Status.UNKNOWN, None, f"neither unit nor process could be read for {flag}", settle(survey)
        )
    if runs.value is None:
        default = _default(server, journal, engine[2])
        what = (
            f"the engine's default {default} is in force" if default else "the engine's default is in force"
        )
        return verdict(Status.IN_FORCE, None, f"not set; {what}")
    for shown, line in proof:
        if not said.same(shown, runs.value):
            return verdict(
                Status.CONFLICTING,
                runs.value,
                f"{said.show(runs.value)} is given, and the server's own line says {shown}: {line.text}",
                None,
                open_log(line),
            )
    words = [word for word in (server, journal) if word.known]
    against = [word for word in words if not said.same(word.value, runs.value)]
    if against:
        now = said.show(against[0].value)
        if overrides:
            return verdict(
                Status.NOT_IN_FORCE,
                runs.value,
                f"{said.show(runs.value)} is given, and the engine made it {now}: {overrides[0].text}",
                None,
                open_log(overrides[0]),
            )
        return verdict(
            Status.CONFLICTING,
            runs.value,
            f"the process runs with {said.show(runs.value)}, and the {against[0].layer} says {now}",
            None,
            RESTART,
        )
    if words:
        return verdict(
            Status.IN_FORCE,
            runs.value,
            _by([*(w.layer for w in (unit, process) if w.known), *(w.layer for w in words)]),
        )
    return verdict(
        Status.UNKNOWN,
        runs.value,
        f"{said.show(runs.value)} is given to the process; nothing of the server's own confirms it yet",
        "the server's answer to /server_info, or the server_args line of this start in the journal",
    )


def _by(layers: list[Layer]) -> str:
    """In force, by which layers."""
    names = [str(layer) for layer in layers]
    return "by " + (", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0])


def _unset(survey: Survey, name: str, flag: str) -> Verdict:
    """A flag that was to be taken away: in force when the running process does not have it."""
    process = said.by_process(survey, flag)
    lines = tuple(
        w.evidence for w in (said.by_unit(survey, flag), process, said.by_server(survey, flag)) if w.text
    )
    if (stopped := not_running(survey)) is not None:
        return Verdict(name, name, Status.NOT_IN_FORCE, None, stopped, lines)
    if not process.known:
        return Verdict(
            name,
            name,
            Status.UNKNOWN,
            None,
            f"the process could not be read for {flag}",
            lines,
            settle(survey),
        )
    if process.value is None:
        return Verdict(name, name, Status.IN_FORCE, None, f"the process runs without {flag}", lines)
    return Verdict(
        name,
        name,
        Status.RESTART_PENDING,
        None,
        f"the process still runs with {flag} {said.show(process.value)}",
        lines,
        None,
        (RESTART,),
    )


def _variable(survey: Survey, knob: Knob, name: str) -> Verdict:
    """An environment variable: SGLang never repeats it, so the process's own environment is all there is."""
    unit, process = survey.unit.value, survey.process.value
    lines: list[Evidence] = []
    wanted = unit.environment.get(name, unit.env.get(name)) if unit else None
    if unit:
        text = f"{name}={wanted}" if wanted is not None else f"{name} is not set"
        lines.append(Evidence(Layer.UNIT, redact.redact(text), said.where_of(unit), survey.unit.read_at))
    if (stopped := not_running(survey)) is not None:
        return Verdict(
            knob.name, knob.name, Status.NOT_IN_FORCE, wanted, stopped, tuple(lines), None, (START,)
        )
    names = process.environment if process else None
    if process is None or names is None:
        why = survey.process.problem or "its environment is readable by its owner and root only"
        lines.append(Evidence(Layer.PROCESS, why, f"pid {process.pid}" if process else ""))
        return Verdict(
            knob.name,
            knob.name,
            Status.UNKNOWN,
            wanted,
            f"whether the running process has {name} could not be read",
            tuple(lines),
            "reading /proc/PID/environ, which takes the service's user or root",
        )
    text = f"runs with {name}" if name in names else f"runs without {name}"
    lines.append(Evidence(Layer.PROCESS, text, f"pid {process.pid}", survey.process.read_at))
    if unit is not None and ((name in names) is not (wanted is not None) or survey.restart_pending):
        status, action = (Status.RESTART_PENDING, RESTART)
        if needs_reload(survey):
            status, action = (Status.RELOAD_PENDING, RELOAD)
        summary = f"the unit says {said.show(wanted)}; {why_other(survey)}"
        return Verdict(knob.name, knob.name, status, wanted, summary, tuple(lines), None, (action,))
    if name not in names:
        return Verdict(
            knob.name, knob.name, Status.IN_FORCE, None, "not set; the engine's default", tuple(lines)
        )
    summary = "by unit and process: it has the variable and was started after the last change of the unit"
    return Verdict(knob.name, knob.name, Status.IN_FORCE, wanted, summary, tuple(lines))


def _engine(survey: Survey, flag: str) -> tuple[bool | None, Evidence | None, Flag | None]:
    """Whether the installed SGLang has the flag (None: not known), the line that says so, and the flag."""
    engine = survey.engine.value
    if engine is None:
        return None, Evidence(Layer.ENGINE, survey.engine.problem or "not read", ""), None
    if not engine.flags.flags:
        return None, Evidence(Layer.ENGINE, f"the flags of {name_of(survey)} could not be read", ""), None
    found = engine.flags.find(engine.flags.accepted(flag) or flag)
    if found is None and not engine.flags.complete:
        return None, None, None
    if found is None:
        line = Evidence(
            Layer.ENGINE, f"{name_of(survey)} has no {flag}", engine.location, survey.engine.read_at
        )
        return False, line, None
    words = f"{name_of(survey)} has {found.name}" + (" (deprecated)" if found.deprecated else "")
    return True, Evidence(Layer.ENGINE, words, found.source or engine.location, survey.engine.read_at), found


def _overrides(survey: Survey, flag: str) -> list[Evidence]:
    """Lines of this start that say that the engine changed this argument, or ignores it."""
    journal = survey.journal.value
    if journal is None:
        return []
    names = said.fields(survey, flag)
    return [
        Evidence(Layer.JOURNAL, quoted.line, clock(quoted.time), survey.journal.read_at)
        for quoted in journal.overrides
        if quoted.fields.get("argument") in names or flag in quoted.line
    ]


def _proof(survey: Survey, flag: str) -> list[tuple[str, Evidence]]:
    """What the DDTree worker's own line says of the tree budget."""
    journal = survey.journal.value
    if journal is None or journal.ddtree is None or not flag.endswith(("-ddtree-budget", "-tree-budget")):
        return []
    budget = said.as_text(journal.ddtree.fields.get("tree_budget"))
    if budget is None:
        return []
    quoted = journal.ddtree
    return [(budget, Evidence(Layer.JOURNAL, quoted.line, clock(quoted.time), survey.journal.read_at))]


def _default(server: Said, journal: Said, flag: Flag | None) -> str | None:
    """What the engine takes when the flag is absent, by the server itself or by the source."""
    for word in (server, journal):
        if word.known and word.value is not None:
            return said.show(word.value)
    if flag and flag.default_known and flag.default is not None:
        return said.show(said.as_text(flag.default))
    return None


def _drop_in(survey: Survey) -> Verdict | None:
    """Whether ddtui's own drop-in hides what was changed below it since it was made."""
    unit = survey.unit.value
    if unit is None or unit.stale is None:
        return None
    line = Evidence(Layer.UNIT, unit.stale, said.where_of(unit), survey.unit.read_at)
    anew = NextAction("rebase", "make ddtui's drop-in anew from the unit as it is now")
    return Verdict("drop-in", "ddtui's drop-in", Status.CONFLICTING, None, unit.stale, (line,), None, (anew,))


def _files(survey: Survey) -> Verdict | None:
    """Whether the server has loaded the engine and the drafter's config that are on disk now."""
    if not_running(survey) is not None:
        return None
    lines: list[Evidence] = []
    engine, info, process = survey.engine.value, survey.server.value, survey.process.value
    if (moved := engine_moved(survey)) is not None and engine is not None:
        lines.append(Evidence(Layer.ENGINE, moved, engine.location, survey.engine.read_at))
        if info is not None and info.version:
            says = Evidence(
                Layer.SERVER, f"version = {info.version}", "GET /server_info", survey.server.read_at
            )
            lines.append(says)
    if (changed := drafter_moved(survey)) is not None and survey.drafter.value is not None:
        lines.append(Evidence(Layer.DRAFTER, changed, survey.drafter.value.path, survey.drafter.read_at))
    if not lines:
        return None
    if process is not None:
        lines.append(
            Evidence(Layer.PROCESS, "was started before", f"pid {process.pid}", survey.process.read_at)
        )
    summary = "; ".join(text for text in (moved, changed) if text)
    return Verdict(
        "files",
        "engine and drafter on disk",
        Status.RESTART_PENDING,
        None,
        summary,
        tuple(lines),
        None,
        (RESTART,),
    )


def _service(survey: Survey, profile: Profile) -> Verdict | None:
    """Whether the running process differs from the unit in flags that no knob stands for."""
    unit, running = survey.unit.value, said.resolved(survey)
    if unit is None or running is None or survey.process.value is None or not_running(survey) is not None:
        return None
    flags = said.table(survey)
    knobs = [knob.flag for knob in profile.knobs if knob.flag]
    names = [flags.canonical(name) for name in (*said.flags_of(unit), *running.values)]
    lines: list[Evidence] = []
    for name in dict.fromkeys(names):
        if name == "--config" or any(said.same_flag(flags, name, knob) for knob in knobs):
            continue
        a, b = said.by_unit(survey, name), said.by_process(survey, name)
        if a.known and b.known and not said.same(a.value, b.value):
            lines += [a.evidence, b.evidence]
    if not lines:
        return None
    differing = len(lines) // 2
    what = f"{differing} other flag{'s' if differing > 1 else ''}"
    reload = needs_reload(survey)
    return Verdict(
        "service",
        "other flags",
        Status.RELOAD_PENDING if reload else Status.RESTART_PENDING,
        None,
        f"the running process differs from the unit in {what}",
        tuple(lines),
        None,
        (RELOAD if reload else RESTART,),
    )
