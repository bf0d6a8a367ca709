"""Whether ddtui's drop-in still rests on what it was made from."""

from __future__ import annotations

from ddtui.host.unit import drop_in, environment, specifiers
from ddtui.host.unit.analysis import Analysis
from ddtui.host.unit.environment import Environment
from ddtui.host.unit.syntax import Assignment


def below(found: Analysis) -> Environment:
    """The variables of Environment= lines without those of ddtui's drop-in."""
    fragment = found.merged.fragment.path if found.merged.fragment else None
    table = specifiers.table(found.merged.unit, found.scope, found.facts, fragment)
    variables: Environment = {}
    for setting in found.merged.settings("Environment"):
        if not drop_in.is_ours(setting.file):
            variables |= {v.name: v for v in environment.of_assignment(setting, table)[0]}
    return variables


def judge(found: Analysis) -> str | None:
    """That something below ddtui's drop-in has changed since it was made, in a sentence; None: nothing."""
    file = drop_in.find(found.merged)
    if file is None:
        return None
    behind = found.merged.drop_ins[found.merged.drop_ins.index(file) + 1 :]
    later = [f.path for f in behind if f.of("Service", "ExecStart") or f.of("Service", "Environment")]
    if later:
        return f"{later[0]} comes after {file.path} and overrides it, until ddtui's drop-in is made anew"
    for what, origin in drop_in.parse(file).origins.items():
        exec_start = what == "ExecStart"
        now = _below_exec(found) if exec_start else drop_in.origin_of_variable(below(found), what)
        if now.digest != origin.digest:
            name = "ExecStart=" if exec_start else f"the variable {what}"
            place = now.where or origin.where or "the unit"
            return (
                f"{file.path} was made when {name} in {place} was another: what changed there has no "
                "effect until ddtui's drop-in is made anew from it"
            )
    return None


def _below_exec(found: Analysis) -> drop_in.Origin:
    counted: list[Assignment] = []
    for file in found.merged.files:
        if drop_in.is_ours(file.path):
            continue
        for setting in file.of("Service", "ExecStart"):
            counted = [*counted, setting] if setting.value else []
    return drop_in.origin_of(counted)
