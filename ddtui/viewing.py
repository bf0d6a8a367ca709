"""From what the tuning room knows to what the console shows. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from ddtui import layer_words
from ddtui.engine.drafter import DrafterConfig
from ddtui.host.base import Link
from ddtui.profile import Profile
from ddtui.sanitize import sanitize
from ddtui.tuning import said
from ddtui.tuning.lock import LockState
from ddtui.tuning.model import Reading
from ddtui.tuning.survey import Survey
from ddtui.tuning.watch import WatchState
from ddtui.view import DrafterView, Fact, FlagRow, LayerView, ServerView, ServiceView, TuneView
from ddtui.words import duration

T = TypeVar("T")


class _Kept(Generic[T]):
    """What was made of a survey last, kept while what it rests on is the same: most looks find it so."""

    def __init__(self, rests_on: Callable[[Survey], tuple[object, ...]], make: Callable[[Survey], T]) -> None:
        self._rests_on, self._make = rests_on, make
        self._last: tuple[tuple[object, ...], T] | None = None

    def __call__(self, survey: Survey) -> T:
        now = self._rests_on(survey)
        last = self._last
        if last is None or any(one is not other for one, other in zip(last[0], now, strict=True)):
            last = self._last = (now, self._make(survey))
        return last[1]


def tune_view(state: WatchState, link: Link, profile: Profile, trouble: tuple[str, ...] = ()) -> TuneView:
    """Everything that is known, for the screen."""
    survey = state.survey
    stale = state.locked_by_other is not None and state.lock is not None and state.lock.stale
    others = (sanitize(state.locked_by_other),) if state.locked_by_other and not stale else ()
    read_only = state.read_only or (others[0] if others else None)
    return TuneView(
        link=link,
        ahead=state.ahead or 0.0,
        drafter=drafter_view(survey.drafter) if survey is not None else DrafterView(),
        service=service_view(state),
        server=server_view(state),
        knobs=state.knobs,
        verdicts=state.verdicts,
        layers=_layer_views(survey) if survey is not None else (),
        known_flags=_known_flags(survey) if survey is not None else (),
        step=state.step,
        read_only=read_only,
        simulated=state.simulated,
        others=others,
        stale_lock=sanitize(stale_words(state.lock)) if stale and state.lock is not None else None,
        notices=(*trouble, *state.notices),
        cut=sanitize(state.pending.text) if state.pending is not None else None,
        gpus=state.gpus,
        gpus_unknown=state.gpus_unknown,
        people=state.people,
        surveyed=survey is not None,
    )


def layer_views(survey: Survey) -> tuple[LayerView, ...]:
    """What every layer said, for the view of the layers."""
    return tuple(
        LayerView(words.layer.value, words.read_at, words.problem, tuple(words.lines()))
        for words in layer_words.layers(survey)
    )


def stale_words(lock: LockState) -> str:
    """Whose lock was left behind."""
    return f"{lock.owner} held the lock for {lock.purpose!r} and has not renewed it for {duration(lock.age)}"


def drafter_view(reading: Reading[DrafterConfig]) -> DrafterView:
    """The drafter's pane: first what decides about the window."""
    config = reading.value
    if config is None:
        return DrafterView(problem=reading.problem, read_at=reading.read_at)
    sliding, full = config.sliding_layers, config.full_layers
    layer_types = (
        f"{sliding} sliding, {full} full"
        if config.layers
        else (None if config.layer_types is None else "empty")
    )
    rope = config.rope
    stretched = f"{rope.kind} ×{rope.factor:g}" if rope.factor and rope.kind != "default" else ""
    window = _text(config.sliding_window)
    facts = (
        Fact("family", config.family.value, config.model_type),
        Fact("layers", _text(config.num_hidden_layers)),
        Fact("block_size", _text(config.block_size)),
        Fact("sliding_window", window if window is not None else "not set"),
        Fact("layer_types", layer_types if config.layer_types is not None else "not set"),
        Fact("use_sliding_window", _yes(config.use_sliding_window)),
        Fact("max_position", _text(config.max_position_embeddings), stretched),
        Fact("heads", _heads(config)),
        Fact("target layers", _list(config.target_layer_ids)),
        Fact("vocabulary", _text(config.vocab_size)),
        Fact("dtype", config.dtype),
        *(Fact("!", warning, warn=True) for warning in config.warnings),
    )
    folder = config.path.removesuffix("/config.json").rstrip("/")
    name = folder.rsplit("/", 1)[-1] or folder
    return DrafterView(
        sanitize(name), sanitize(config.path), tuple(map(_clean, facts)), None, reading.read_at
    )


def _clean(fact: Fact) -> Fact:
    return Fact(
        fact.label, sanitize(fact.value) if fact.value is not None else None, sanitize(fact.note), fact.warn
    )


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)


def _yes(value: bool | None) -> str:
    return "not set" if value is None else ("true" if value else "false")


def _heads(config: DrafterConfig) -> str | None:
    if config.num_attention_heads is None:
        return None
    grouped = f", {config.num_key_value_heads} KV" if config.num_key_value_heads is not None else ""
    return f"{config.num_attention_heads}{grouped}"


def _list(values: tuple[int, ...] | None) -> str:
    return "not set" if values is None else ", ".join(map(str, values))


def service_view(state: WatchState) -> ServiceView:
    """The unit, its process and its flags."""
    survey, status = state.survey, state.status
    if status is None:
        return ServiceView(problem=state.problem)
    warnings: list[str] = []
    problem = state.problem
    flags: tuple[FlagRow, ...] = ()
    process = None
    if survey is not None:
        warnings += [text for text in (survey.reload_pending, survey.restart_pending) if text]
        unit = survey.unit.value
        if unit is not None:
            warnings += [*unit.problems, *([unit.stale] if unit.stale else [])]
        problem = problem or survey.unit.problem
        flags = _flag_rows(survey)
        process = survey.process.value
    if status.load_state not in ("loaded", ""):
        problem = problem or f"systemd says {status.load_state}: {status.load_error or status.unit}"
    there = status.active_enter if status.active_state == "active" else status.state_change
    since = there - state.ahead if there is not None and state.ahead is not None else None
    return ServiceView(
        unit=sanitize(status.unit),
        active=sanitize(status.active_state),
        sub=sanitize(status.sub_state),
        since=since,
        pid=process.pid if process is not None and status.running else (status.main_pid or None),
        restarts=status.n_restarts,
        problem=sanitize(problem) if problem else None,
        warnings=tuple(sanitize(text) for text in dict.fromkeys(warnings)),
        flags=flags,
        read_at=state.status_at,
    )


def flag_rows(survey: Survey) -> tuple[FlagRow, ...]:
    """Every flag that the unit gives or the process runs with, each in the order of the unit's command."""
    table = said.table(survey)
    unit = survey.unit.value
    in_unit = dict(said.flags_of(unit)) if unit is not None else {}
    running = said.resolved(survey)
    values = dict(running.values) if running is not None else {}
    rows: list[FlagRow] = []
    left = dict(values)
    for name, value in in_unit.items():
        found = said.given(left, table, name)
        if found is not None:
            left.pop(found[0])
        source = unit.flag_sources.get(name) if unit is not None else None
        where = f"{source.file}:{source.line}" if source is not None else ""
        known = table.find(name)
        rows.append(
            FlagRow(
                sanitize(name),
                _shown(name, value),
                _shown(name, found[1]) if found is not None else None,
                sanitize(where),
                sanitize(known.help) if known is not None else "",
            )
        )
    rows += [FlagRow(sanitize(name), None, _shown(name, value)) for name, value in left.items()]
    return tuple(rows)


def _shown(name: str, value: object) -> str | None:
    text = said.safe(name, value)
    return sanitize(text) if text is not None else None


def known_flags(survey: Survey) -> tuple[FlagRow, ...]:
    """Every flag that the installed engine takes, with its help."""
    return tuple(
        FlagRow(sanitize(flag.name), None, None, help=sanitize(" ".join(flag.help.split())))
        for flag in said.table(survey)
        if flag.name.startswith("--") and not flag.deprecated
    )


def server_view(state: WatchState) -> ServerView:
    """What the server itself answers, and what it is busy with."""
    survey = state.survey
    if survey is None:
        return ServerView()
    info, engine = survey.server.value, survey.engine.value
    version = (info.version if info is not None else None) or (engine.version if engine is not None else None)
    algorithm = said.by_server(survey, "--speculative-algorithm").value
    algorithm = algorithm or said.by_process(survey, "--speculative-algorithm").value
    loads = state.loads
    return ServerView(
        version=sanitize(version) if version else None,
        algorithm=sanitize(algorithm) if algorithm else None,
        running=loads.running if loads is not None else None,
        queued=loads.waiting if loads is not None else None,
        problem=survey.server.problem,
        read_at=state.loads_at,
    )


_layer_views = _Kept(lambda survey: (*survey.readings, survey.service), layer_views)
_flag_rows = _Kept(lambda survey: survey.readings, flag_rows)
_known_flags = _Kept(lambda survey: (survey.engine,), known_flags)
