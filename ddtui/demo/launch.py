"""Start the demo host's process and give the profile that leads to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ddtui.profile import Profile


@dataclass(frozen=True, slots=True)
class Access:
    """What leads to a running demo host: the JSON line that its process prints."""

    host: str
    port: int
    user: str
    identity_file: Path
    known_hosts: Path
    unit: str
    users: tuple[str, ...]  # root, tuner, limited, asker: one key for all
    asker_password: str  # what sudo wants from the user `asker`
    root: Path  # the folder on this machine that holds the host's files
    pid: int  # of the demo host's process


@dataclass(frozen=True, slots=True)
class DemoHost:
    """A running demo host. `attached`: it was already running for another ddtui, and goes on for both."""

    profile: Profile
    access: Access
    attached: bool = False


class DemoError(Exception):
    """The demo host could not be started: one sentence."""


@contextmanager
def start(*, keep: bool = False, delay_ms: float = 0.0) -> Iterator[DemoHost]:
    """A running demo host, ended when the context is left.

    `keep`: its files live on under ddtui's state folder, so that the next start finds them, as after a reboot; if
    such a host runs already, this attaches to it. Otherwise everything is in a temporary folder that is removed.
    `delay_ms`: latency each way. Raises DemoError.
    """
    raise NotImplementedError
    yield
