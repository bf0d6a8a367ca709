"""The setting in force as the history knows it: what makes a step, and which number it has."""

from __future__ import annotations

from dataclasses import asdict

from ddtui.host.gpu import GpuReading
from ddtui.redact import environment
from ddtui.store.model import Setting, Step
from ddtui.tuning import said
from ddtui.tuning.context import Tuning
from ddtui.tuning.grounds import engine_moved
from ddtui.tuning.model import Verdict
from ddtui.tuning.survey import Survey


def setting_of(ctx: Tuning, survey: Survey) -> Setting | None:
    """The complete setting that runs now. None: no process runs, or too little of it could be read."""
    running, engine, drafter = said.resolved(survey), survey.engine.value, survey.drafter.value
    if running is None:
        return None
    info, unit = survey.server.value, survey.unit.value
    knobs = {}
    for knob in ctx.profile.knobs:
        if knob.flag:
            knobs[knob.name] = said.by_process(survey, knob.flag).value
        else:
            knobs[knob.name] = unit.environment.get(knob.env or "") if unit else None
    names = [knob.env for knob in ctx.profile.knobs if knob.env]
    flags = (
        dict(info.arguments)
        if info
        else {name.removeprefix("--").replace("-", "_"): value for name, value in running.values.items()}
    )
    version = (engine.version if engine else None) or (info.version if info else None) or ""
    return Setting(
        knobs=knobs,
        flags=flags,
        engine=_engine(survey, version),
        drafter=drafter.path if drafter else "",
        target=said.by_process(survey, "--model-path").value or "",
        gpu=gpu_text(survey.gpus) if survey.gpus else "",
        environment=environment({n: unit.environment[n] for n in names if n in unit.environment})
        if unit
        else {},
    )


def _engine(survey: Survey, version: str) -> str:
    """The code that runs: what is measured while another is installed by now belongs to no step of that."""
    engine, info = survey.engine.value, survey.server.value
    if engine is None:
        return version
    if engine_moved(survey) is not None:
        runs = (info.version if info else None) or version
        return f"{runs} (as started, before {engine.location} was changed)"
    commit = f", commit {engine.commit[:12]}" if engine.commit else ""
    return f"{version} ({engine.location}{commit}, {engine.digest[:12]})"


def gpu_text(gpus: GpuReading) -> str:
    """The GPUs in words: "8 x NVIDIA B200"."""
    names = [gpu.name for gpu in gpus.gpus]
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))


def keep(ctx: Tuning, survey: Survey, verdicts: tuple[Verdict, ...]) -> Step | None:
    """The step of the setting in force, made if it is new. None: no history, or nothing runs."""
    setting = setting_of(ctx, survey)
    if ctx.history is None or setting is None:
        return None
    return ctx.history.step(
        ctx.host.name,
        ctx.unit,
        setting,
        verdicts=[asdict(verdict) for verdict in verdicts],
        simulated=ctx.profile.simulated,
    )
