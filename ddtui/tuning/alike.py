"""Whether hosts are of one kind: those that share a sweep must differ in nothing that moves the numbers."""

from __future__ import annotations

from ddtui.host import gpu
from ddtui.host.base import Host
from ddtui.store.model import Setting
from ddtui.tuning import steps
from ddtui.tuning.context import Tuning
from ddtui.tuning.survey import Survey


async def kind(ctx: Tuning, survey: Survey) -> Setting | None:
    """What a host is, as the history names it, with its GPUs. None: no server runs there."""
    return steps.setting_of(ctx, survey, await _gpus(ctx.host))


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


async def _gpus(host: Host) -> gpu.GpuReading | None:
    found = await gpu.read(host)
    return found if found.gpus else None
