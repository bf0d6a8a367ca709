"""The host's clock: `date +%s.%N`."""

from __future__ import annotations

from ddtui.host.base import Command, Host, HostError

NOW = Command(("date", "+%s.%N"))


async def now(host: Host) -> float:
    """Unix time by the host's clock. Raises HostError where it cannot be read."""
    done = await host.run(NOW.argv, timeout=10)
    try:
        return float(done.out)
    except ValueError:
        raise HostError(f"the clock of {host.name} cannot be read") from None
