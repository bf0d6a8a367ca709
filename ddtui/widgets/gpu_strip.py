"""The host's GPUs in one line beside the charts: each one's memory and load as a bar, the rest as a span."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from ddtui.host.gpu import GpuLoad

BARS = " ▁▂▃▄▅▆▇█"
Part = tuple[int, Content]  # how soon it goes where there is little room, and what it says


class GpuStrip(Widget):
    """One line; what does not fit goes, least important first."""

    DEFAULT_CSS = """
    GpuStrip { height: 1; padding: 0 1; }
    """

    known: reactive[tuple[tuple[GpuLoad, ...], str]] = reactive(((), ""))

    def render(self) -> Content:
        return line(*self.known, self.size.width)


def line(gpus: Sequence[GpuLoad], unknown: str, width: int) -> Content:
    """The GPUs in this width."""
    if not gpus:
        return Content.styled(f"GPU  {unknown or 'not read yet'}", "$muted").truncate(width, ellipsis=True)
    parts: list[Part] = [(0, Content.styled(f"{len(gpus)} GPU{'s' if len(gpus) > 1 else ''}", "bold"))]
    memory = [_share(one.memory_used_mib, one.memory_total_mib) for one in gpus]
    used = [one.memory_used_mib / 1024 for one in gpus if one.memory_used_mib is not None]
    most = max(
        (one.memory_total_mib / 1024 for one in gpus if one.memory_total_mib is not None), default=None
    )
    if used:
        parts.append(
            (3, _figure("memory", memory, f"{_span(used)}" + (f" of {most:.0f}" if most else ""), "GiB"))
        )
    busy = [float(one.utilization) for one in gpus if one.utilization is not None]
    if busy:
        bars = [one.utilization / 100 if one.utilization is not None else None for one in gpus]
        parts.append((1, _figure("busy", bars, _span(busy), "%")))
    power = [one.power_w for one in gpus if one.power_w is not None]
    limit = max((one.power_limit_w for one in gpus if one.power_limit_w is not None), default=None)
    if power:
        parts.append((2, _figure("power", (), _span(power) + (f" of {limit:.0f}" if limit else ""), "W")))
    clocks = [float(one.clock_mhz) for one in gpus if one.clock_mhz is not None]
    if clocks:
        parts.append((4, _figure("clock", (), _span(clocks), "MHz")))
    held: dict[str, int] = {}
    for one in gpus:
        for name in one.throttles:
            held[name] = held.get(name, 0) + 1
    for name, count in held.items():
        where = f" on {count}" if len(gpus) > 1 else ""
        parts.append((0, Content.styled(f"! held by {name}{where}", "$warning")))
    while len(parts) > 1 and _joined(parts).cell_length > width and any(rank for rank, _ in parts):
        parts.remove(max(parts, key=lambda part: part[0]))
    return _joined(parts).truncate(width, ellipsis=True)


def _joined(parts: Iterable[Part]) -> Content:
    return Content("   ").join(part for _, part in parts)


def _figure(name: str, shares: Sequence[float | None], value: str, unit: str) -> Content:
    """A name, a bar for each GPU, and the numbers."""
    bars = "".join("·" if share is None else BARS[max(1, min(8, round(share * 8)))] for share in shares)
    return Content.assemble(
        (f"{name} ", "$muted"), (f"{bars} " if bars else "", "$primary"), value, (f" {unit}", "$muted")
    )


def _share(used: float | None, total: float | None) -> float | None:
    return used / total if used is not None and total else None


def _span(values: Sequence[float]) -> str:
    low, high = f"{min(values):,.0f}", f"{max(values):,.0f}"
    return low if low == high else f"{low}–{high}"
