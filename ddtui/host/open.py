"""Opening a host from a profile's connection."""

from __future__ import annotations

from ddtui.host.base import Asker, Host
from ddtui.host.local import LocalHost
from ddtui.host.ssh import SshHost
from ddtui.profile import Connection


def open_host(connection: Connection, asker: Asker) -> Host:
    """The host of a profile, not yet connected: this machine for `host: local`, else over SSH."""
    return LocalHost(asker) if connection.host == "local" else SshHost(connection, asker)
