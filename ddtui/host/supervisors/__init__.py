"""What keeps the server running, by one interface: systemd, docker compose, or commands of the operator's."""

from ddtui.host.supervisors.base import Supervisor, restart_orders
from ddtui.host.supervisors.commands import PlainCommands
from ddtui.host.supervisors.compose import DockerCompose
from ddtui.host.supervisors.systemd import Systemd
from ddtui.profile import Service

__all__ = ["Supervisor", "of", "restart_orders"]


def of(service: Service) -> Supervisor:
    """The supervisor that a profile's service names."""
    if service.compose is not None:
        return DockerCompose(service, service.compose)
    if service.commands is not None:
        return PlainCommands(service, service.commands)
    return Systemd(service)
