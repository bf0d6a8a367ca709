"""What every function of the tuning room is given: which host, which service, on whose behalf, and whether it
may write."""

from __future__ import annotations

import getpass
import os
import socket
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ddtui.host import supervisors
from ddtui.host.base import Asker, Host, NobodyToAsk, NotPermitted
from ddtui.host.supervisors import Supervisor
from ddtui.profile import Profile, Service

if TYPE_CHECKING:
    from ddtui.store.history import History


def whoami() -> str:
    """user@machine:pid of this ddtui, as locks and records name it."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}:{os.getpid()}"


@dataclass(frozen=True, slots=True)
class Tuning:
    """One host and service to tune, by one operator. Frozen: `with_read_only` gives a new one."""

    profile: Profile
    host: Host
    history: History | None = None
    asker: Asker = field(default_factory=NobodyToAsk)
    read_only: str | None = None  # why nothing may be written; None: it may
    who: str = field(default_factory=whoami)

    @property
    def service(self) -> Service:
        return self.profile.service

    @property
    def unit(self) -> str:
        return self.profile.service.unit

    @property
    def supervisor(self) -> Supervisor:
        """What keeps the server running."""
        return supervisors.of(self.profile.service)

    @property
    def root(self) -> bool:
        """Whether changing the service takes root's rights: system units do, user units do not."""
        return self.supervisor.root

    @property
    def api_key(self) -> str | None:
        """The server's API key from the local environment variable that the profile names."""
        name = self.profile.service.api_key_env
        return (os.environ.get(name) or None) if name else None

    def with_read_only(self, why: str | None) -> Tuning:
        return replace(self, read_only=why)

    def must_write(self) -> None:
        """Raises NotPermitted when this context is read-only. Every path that writes calls it first."""
        why = self.read_only or ("the profile says read_only" if self.profile.read_only else None)
        if why:
            raise NotPermitted(f"ddtui is read-only here: {why}", "nothing was changed")
