"""The stages of a change, as its supervisor takes them: what is shown as done, now and to come."""

from __future__ import annotations

from ddtui.host.supervisors import Supervisor, restart_orders
from ddtui.tuning.model import Phase

STAGES: dict[str, frozenset[Phase]] = {
    "write": frozenset({Phase.PLANNED, Phase.LOCKING, Phase.WRITING}),
    "reload": frozenset({Phase.RELOADING}),
    "check": frozenset({Phase.CHECKING}),
    "drain": frozenset({Phase.DRAINING}),
    "stop": frozenset({Phase.STOPPING}),
    "start": frozenset({Phase.STARTING}),
    "verify": frozenset({Phase.VERIFYING}),
}


def stages(supervisor: Supervisor, *, writes: bool) -> tuple[str, ...]:
    """The stages of a change under this supervisor; `writes`: whether it writes files.

    A supervisor that reads its definitions at each start (plain commands, compose) has no reload.
    """
    orders = restart_orders(supervisor)
    taken = {
        "write": writes,
        "reload": supervisor.reload is not None,
        "drain": bool(orders),
        "stop": supervisor.restart in orders or supervisor.stop in orders,
        "start": supervisor.restart in orders or supervisor.start in orders,
    }
    return tuple(stage for stage in STAGES if taken.get(stage, True))


def done_by(stages: tuple[str, ...], phase: Phase) -> int | None:
    """How many of these stages are done in this phase. None: it is none of a change that goes forward."""
    order = list(STAGES)
    place = next((order.index(stage) for stage, phases in STAGES.items() if phase in phases), None)
    return None if place is None else sum(order.index(stage) < place for stage in stages)
