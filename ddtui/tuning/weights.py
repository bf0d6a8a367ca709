"""How far the weights are loaded, by GPU memory: the journal shows SGLang's own bar only when it has ended.

Commands: `ls -1A -- DIR`, `stat -L -c %s -- FILE…`, host/gpu's nvidia-smi.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ddtui.host import gpu
from ddtui.tuning.context import Tuning

MIB = 1 << 20


async def size_of(ctx: Tuning, folder: str) -> int | None:
    """Bytes of all weight files of a model. None: it is no folder that we can look at."""
    if not folder.startswith("/"):
        return None
    listed = await ctx.host.run(("ls", "-1A", "--", folder))
    names = (
        [n for n in listed.out.splitlines() if n.endswith((".safetensors", ".bin", ".pt"))]
        if listed.ok
        else []
    )
    if not names:
        return None
    sizes = await ctx.host.run(
        ("stat", "-L", "-c", "%s", "--", *(f"{folder.rstrip('/')}/{n}" for n in names))
    )
    return sum(int(word) for word in sizes.out.split() if word.isdigit()) or None


@dataclass(slots=True)
class Weights:
    """The growth of GPU memory since the weights began to load, against their size on disk."""

    ctx: Tuning
    total: int  # bytes
    _before: int | None = field(default=None, init=False)

    async def share(self) -> float | None:
        """0..1; None at the first look, and where there is no nvidia-smi. One round trip."""
        used = (await gpu.read(self.ctx.host)).memory_used_mib
        if used is None:
            return None
        if self._before is None:
            self._before = used
            return None
        return max(used - self._before, 0) * MIB / self.total
