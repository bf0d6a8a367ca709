"""Whether hosts are of one kind: those that share a sweep must differ in nothing that moves the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from ddtui.bench.target import BenchError
from ddtui.store.model import Setting
from ddtui.tuning import steps
from ddtui.tuning import survey as surveys
from ddtui.tuning.context import Tuning
from ddtui.tuning.survey import Survey


async def must_be_alike(contexts: Sequence[Tuning], first: Survey) -> None:
    """Raise BenchError for hosts that cannot share a sweep: the numbers could not be told apart from the
    settings'. `first` is the survey of the first one.
    """
    if len(contexts) == 1:
        return
    one = steps.setting_of(contexts[0], first)
    seen = {contexts[0].host.name: contexts[0].profile.name}
    for ctx in contexts[1:]:
        name = ctx.host.name
        if name in seen:
            raise BenchError(f"the profiles {seen[name]} and {ctx.profile.name} both lead to {name}")
        seen[name] = ctx.profile.name
        other = steps.setting_of(ctx, await surveys.read(ctx))
        if one is None or other is None:
            idle = contexts[0].profile.name if one is None else ctx.profile.name
            raise BenchError(f"{idle}: no server runs there, so it is not known to be of the same kind")
        if found := differences(one, other):
            names = f"{contexts[0].profile.name} and {ctx.profile.name}"
            raise BenchError(f"{names} are not of one kind, so they cannot share a sweep: {'; '.join(found)}")


def differences(one: Setting, other: Setting) -> list[str]:
    """What tells two hosts apart, each in words: "GPU: 8 x NVIDIA B200 and 8 x NVIDIA H200"."""
    found = []
    for what, a, b in (
        ("GPU", one.gpu, other.gpu),
        ("model", one.target, other.target),
        ("SGLang", one.engine, other.engine),
        ("drafter", one.drafter, other.drafter),
    ):
        if a != b:
            found.append(f"{what}: {a or 'unknown'} and {b or 'unknown'}")
    return found
