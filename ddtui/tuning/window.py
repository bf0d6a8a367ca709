"""The drafter's window: two questions, answered apart. Pure.

`layers`: are the drafter's own sliding layers honoured? That is a matter of the drafter's config and of the
code that is installed; nothing in the journal or in the server's answer speaks of it.
`flag`: does the engine's window flag limit draft attention? It acts on every draft layer, full ones too, and
the draft runner's line in the journal proves it. It saves attention time; the draft KV pool stays as large.
"""

from __future__ import annotations

from typing import Protocol

from ddtui.engine.drafter import DrafterConfig, Family
from ddtui.profile import Profile
from ddtui.tuning import said
from ddtui.tuning.grounds import (
    RESTART,
    START,
    clock,
    drafter_moved,
    engine_moved,
    name_of,
    not_running,
    open_log,
    pending,
    settle,
)
from ddtui.tuning.model import Evidence, Layer, NextAction, Status, Verdict
from ddtui.tuning.said import Said
from ddtui.tuning.survey import Survey


class Judge(Protocol):
    """Makes the verdict of one question from its status and words."""

    def __call__(
        self, status: Status, summary: str, settle: str | None = None, *next: NextAction
    ) -> Verdict: ...


LAYERS, FLAG = "window.layers", "window.flag"
LAYERS_TITLE = "draft window: the drafter's own sliding layers"
FLAG_TITLE = "draft window: the engine's flag"
BURSTS = "a burst at a context below the window and one far above it"


def layers(survey: Survey, profile: Profile) -> Verdict | None:
    """Are the drafter's own sliding layers honoured? None: no drafter is used, or it has no window."""
    if not _drafts(survey):
        return None
    drafter, engine = survey.drafter.value, survey.engine.value
    wanted = _wanted(drafter) if drafter else None
    if drafter is not None and wanted is None:
        return None
    lines = [_drafter_line(survey), _engine_line(survey), *_flag_lines(survey, profile), *_measured(survey)]
    value = str(wanted) if wanted is not None else None

    def verdict(status: Status, summary: str, settle: str | None = None, *next: NextAction) -> Verdict:
        return Verdict(LAYERS, LAYERS_TITLE, status, value, summary, tuple(lines), settle, next)

    if (stopped := not_running(survey)) is not None:
        return verdict(Status.NOT_IN_FORCE, stopped, None, START)
    if drafter is None:
        return verdict(
            Status.UNKNOWN,
            f"the drafter's config could not be read: {survey.drafter.problem or 'not read'}",
            "the drafter's config.json",
        )
    if not drafter.slides_validly:
        return verdict(Status.NOT_IN_FORCE, f"no layer slides by the config: {drafter.why}")
    if engine is None:
        return verdict(
            Status.UNKNOWN,
            f"{_layers(drafter)}; whether the installed SGLang looks at that could not be read",
            "reading srt/models/dflash.py of the SGLang that the service imports",
        )
    if drafter.family is not Family.DFLASH:
        return verdict(
            Status.UNKNOWN,
            f"{_layers(drafter)}; whether SGLang honours that for {drafter.family} drafters is not known",
            BURSTS,
            _burst(drafter),
        )
    if not engine.honours_config_window:
        covered = _in_force_by_flag(survey, profile)
        if covered is not None:
            return verdict(
                Status.NOT_IN_FORCE,
                f"{name_of(survey)} ignores them; the flag limits every draft layer to {covered} instead",
            )
        return verdict(
            Status.NOT_IN_FORCE,
            f"the config says {wanted} on {_count(drafter)}, and {name_of(survey)} ignores it",
            None,
            *_turn(survey, profile, str(wanted)),
            _burst(drafter),
        )
    moved = engine_moved(survey) or drafter_moved(survey)
    if moved is not None:
        return verdict(Status.RESTART_PENDING, moved, None, RESTART)
    return verdict(
        Status.IN_FORCE,
        f"{name_of(survey)} honours it on {_count(drafter)}, not on the full ones; proof is code and config",
    )


def flag(survey: Survey, profile: Profile) -> Verdict | None:
    """Does the engine's window flag limit draft attention? None: no drafter is in use."""
    if not _drafts(survey):
        return None
    name = flag_name(survey, profile)
    unit, process = said.by_unit(survey, name), said.by_process(survey, name)
    server = said.by_server(survey, name)
    engine, journal = survey.engine.value, survey.journal.value
    runner = _runner_line(survey)
    ignored = [
        Evidence(Layer.JOURNAL, quoted.line, clock(quoted.time), survey.journal.read_at)
        for quoted in (journal.overrides if journal else ())
        if "window" in quoted.line and "no effect" in quoted.line
    ]
    lines = [
        *([_drafter_line(survey)] if survey.drafter.value else []),
        _engine_flag_line(survey, name),
        *(word.evidence for word in (unit, process, server) if word.text),
        runner,
        *ignored,
        *_measured(survey),
    ]
    wants = unit.value if unit.value is not None else process.value

    def verdict(status: Status, summary: str, settle: str | None = None, *next: NextAction) -> Verdict:
        return Verdict(FLAG, FLAG_TITLE, status, wants, summary, tuple(lines), settle, next)

    if (stopped := not_running(survey)) is not None:
        return verdict(Status.NOT_IN_FORCE, stopped, None, START)
    exists = engine.flags.window_flag is not None if engine and engine.flags.flags else None
    if exists is False and process.value is None:
        return verdict(Status.NOT_IN_FORCE, f"{name_of(survey)} has no flag for the draft window")
    if (waiting := pending(survey, name, unit, process)) is not None:
        status, summary, action = waiting
        return verdict(status, summary, None, action)
    runs = process if process.known else unit
    if not runs.known:
        if journal and journal.draft_window is not None and journal.compact_cache:
            wants = str(journal.draft_window)
            return verdict(
                Status.IN_FORCE, f"{wants} tokens on every draft layer, by the draft runner's line"
            )
        return verdict(Status.UNKNOWN, "neither unit nor process could be read for it", settle(survey))
    if runs.value is None:
        return _without(survey, profile, verdict)
    wants = runs.value
    if engine is not None and engine.has_dflash and not engine.has_compact_cache:
        return verdict(
            Status.NOT_IN_FORCE, f"{wants} is given; the installed draft worker has no compact cache to limit"
        )
    if journal is None or journal.draft_runner is None:
        return _unproven(survey, wants, server, ignored, verdict)
    seen = said.as_text(journal.draft_window)
    if seen is None or not journal.compact_cache:
        return verdict(
            Status.NOT_IN_FORCE,
            f"{wants} is given, and the draft runner's line of this start says draft_window_size={seen}, "
            f"compact_cache={journal.compact_cache}",
            None,
            open_log(runner),
        )
    if not said.same(seen, wants):
        return verdict(
            Status.CONFLICTING,
            f"{wants} is given, and the draft runner's line of this start says {seen}",
            None,
            open_log(runner),
        )
    if server.known and server.value is not None and not said.same(server.value, wants):
        return verdict(Status.CONFLICTING, f"{wants} is given, and the server answers {server.value}")
    despite = "; the warning that it has no effect is wrong here" if ignored else ""
    return verdict(
        Status.IN_FORCE,
        f"{wants} tokens on every draft layer, the full ones too; the draft KV pool stays as it is{despite}",
    )


def _without(survey: Survey, profile: Profile, verdict: Judge) -> Verdict:
    """The flag is not given: nothing limits every layer, whatever config and code make of the others."""
    journal, drafter, engine = survey.journal.value, survey.drafter.value, survey.engine.value
    if journal and journal.draft_window is not None and journal.compact_cache:
        return verdict(
            Status.CONFLICTING,
            f"no window is given, and the draft runner's line of this start says {journal.draft_window}",
            None,
            open_log(_runner_line(survey)),
        )
    wanted = _wanted(drafter) if drafter else None
    honoured = bool(engine and engine.honours_config_window and drafter and drafter.slides_validly)
    if wanted is None:
        return verdict(Status.NOT_IN_FORCE, "the flag is not given: every draft layer sees the whole context")
    if honoured:
        return verdict(
            Status.NOT_IN_FORCE,
            f"the flag is not given: only the config's sliding layers are limited, to {wanted}",
        )
    return verdict(
        Status.NOT_IN_FORCE,
        "the flag is not given: every draft layer sees the whole context",
        None,
        *_turn(survey, profile, str(wanted)),
    )


def _unproven(survey: Survey, wants: str, server: Said, ignored: list[Evidence], verdict: Judge) -> Verdict:
    """The flag is given, and the draft runner's line, which alone would prove it, is not there."""
    algorithm = _algorithm(survey) or "this algorithm"
    if ignored:
        return verdict(
            Status.NOT_IN_FORCE,
            f"{wants} is given, and the engine says that it has no effect with {algorithm}",
            None,
            open_log(ignored[0]),
        )
    if survey.journal.value is None:
        return verdict(
            Status.UNKNOWN,
            f"{wants} is given; the journal of this start, where the proof stands, could not be read",
            survey.journal.problem or "the journal of this start",
        )
    family = survey.drafter.value.family if survey.drafter.value else None
    if family in (Family.EAGLE, Family.EAGLE3, Family.MTP):
        return verdict(
            Status.UNKNOWN,
            f"{wants} is given; {algorithm} leaves no proof, and drafters with MLA ignore it without a word",
            BURSTS,
            *([_burst(survey.drafter.value)] if survey.drafter.value else []),
        )
    return verdict(
        Status.UNKNOWN,
        f"{wants} is given; this start has no draft runner line, so it is unproven",
        "the line 'Initialized DFLASH draft runner.' of a start: restart, or " + BURSTS,
    )


# lines of evidence


def _drafter_line(survey: Survey) -> Evidence:
    drafter, at = survey.drafter.value, survey.drafter.read_at
    if drafter is None:
        return Evidence(Layer.DRAFTER, survey.drafter.problem or "not read", "", at)
    wanted = _wanted(drafter)
    if wanted is None:
        return Evidence(Layer.DRAFTER, "no layer slides and no window is set", drafter.path, at)
    text = f"sliding_window {drafter.sliding_window}, {_layers(drafter)}"
    if not drafter.slides_validly:
        text += f"; {drafter.why}"
    return Evidence(Layer.DRAFTER, text, drafter.path, at)


def _engine_line(survey: Survey) -> Evidence:
    engine, at = survey.engine.value, survey.engine.read_at
    if engine is None:
        return Evidence(Layer.ENGINE, survey.engine.problem or "not read", "", at)
    source = f"{engine.location}/srt/models/dflash.py"
    if not engine.has_dflash:
        return Evidence(Layer.ENGINE, f"{name_of(survey)} has no DFlash draft model", engine.location, at)
    if engine.honours_config_window:
        return Evidence(Layer.ENGINE, f"{name_of(survey)} reads layer_types and sliding_window", source, at)
    missing = "layer_types" if not engine.reads_layer_types else "sliding_window"
    return Evidence(Layer.ENGINE, f"{name_of(survey)} never looks at {missing}", source, at)


def _engine_flag_line(survey: Survey, name: str) -> Evidence:
    engine, at = survey.engine.value, survey.engine.read_at
    if engine is None:
        return Evidence(Layer.ENGINE, survey.engine.problem or "not read", "", at)
    known = engine.flags.find(name)
    if known is None:
        return Evidence(Layer.ENGINE, f"{name_of(survey)} has no {name}", engine.location, at)
    cache = "has a compact draft cache" if engine.has_compact_cache else "has no compact draft cache"
    return Evidence(
        Layer.ENGINE, f"{name_of(survey)} has {known.name} and {cache}", known.source or engine.location, at
    )


def _runner_line(survey: Survey) -> Evidence:
    journal, at = survey.journal.value, survey.journal.read_at
    if journal is None:
        return Evidence(Layer.JOURNAL, survey.journal.problem or "not read", "", at)
    if journal.draft_runner is None:
        return Evidence(Layer.JOURNAL, "this start has no draft runner line", "", at)
    return Evidence(Layer.JOURNAL, journal.draft_runner.line, clock(journal.draft_runner.time), at)


def _flag_lines(survey: Survey, profile: Profile) -> list[Evidence]:
    """What is said of the flag, as evidence on the layers: nothing else limits them either."""
    name = flag_name(survey, profile)
    words = [said.by_unit(survey, name), said.by_process(survey, name), said.by_server(survey, name)]
    return [*(word.evidence for word in words if word.text), _runner_line(survey)]


def _measured(survey: Survey) -> list[Evidence]:
    measured = survey.measured.value
    if measured is None:
        return []
    return [Evidence(Layer.MEASURED, text, "bursts", survey.measured.read_at) for text in measured.text]


# facts


def flag_name(survey: Survey, profile: Profile) -> str:
    """The window flag as the installed SGLang spells it; the profile's spelling if that is not known."""
    known = said.table(survey).window_flag
    if known:
        return known
    for knob in profile.knobs:
        if knob.flag and said.is_window(knob.flag):
            return knob.flag
    return "--speculative-dflash-draft-window-size"


def _algorithm(survey: Survey) -> str | None:
    """The speculative algorithm in use, from whatever layer says it."""
    name = "--speculative-algorithm"
    for word in (said.by_process(survey, name), said.by_server(survey, name), said.by_unit(survey, name)):
        if word.known and word.value:
            return word.value.upper()
    return None


def _drafts(survey: Survey) -> bool:
    """Whether a drafter with a config is in use, as far as is known."""
    if survey.drafter.value is not None:
        return True
    return (_algorithm(survey) or "NGRAM") not in ("NGRAM", "NONE")


def _wanted(drafter: DrafterConfig) -> int | None:
    """The window that the config asks for, honoured or not. None: it asks for none."""
    if drafter.window is not None:
        return drafter.window
    slides = drafter.layer_types is not None and "sliding_attention" in drafter.layer_types
    return drafter.sliding_window if slides or drafter.use_sliding_window else None


def _count(drafter: DrafterConfig) -> str:
    total = len(drafter.layers) or drafter.num_hidden_layers or 0
    return f"{drafter.sliding_layers} of {total} layers"


def _layers(drafter: DrafterConfig) -> str:
    return f"{_count(drafter)} slide by the config"


def _in_force_by_flag(survey: Survey, profile: Profile) -> str | None:
    """The window that the flag brings into force, if it does."""
    verdict = flag(survey, profile)
    return verdict.value if verdict and verdict.status is Status.IN_FORCE else None


def _turn(survey: Survey, profile: Profile, value: str) -> list[NextAction]:
    """Turn the window on, where the engine has a flag for it."""
    if said.table(survey).flags and said.table(survey).window_flag is None:
        return []
    name = flag_name(survey, profile)
    for knob in profile.knobs:
        if knob.flag and said.is_window(knob.flag):
            name = knob.name
    return [NextAction("turn", f"set the window to {value}", {"knob": name, "value": value})]


def _burst(drafter: DrafterConfig | None) -> NextAction:
    window = (_wanted(drafter) if drafter else None) or 2048
    contexts = f"{max(window // 4, 128)},{window * 8}"
    return NextAction("burst", "measure below and far above the window", {"context": contexts})
