"""The demo host's users and groups: the same five as on the real test host."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

ASKER_PASSWORD = "correct horse"


class Sudo(Enum):
    """What sudo does for a user."""

    FREE = "NOPASSWD: ALL"
    ASKS = "ALL"
    NEVER = ""


@dataclass(frozen=True, slots=True)
class User:
    """One account. `groups` has the primary group first."""

    name: str
    uid: int
    groups: tuple[int, ...]
    home: str
    shell: str = "/bin/bash"
    sudo: Sudo = Sudo.NEVER
    greets: bool = False  # its shell prints something before every command

    @property
    def gid(self) -> int:
        return self.groups[0]

    @property
    def is_root(self) -> bool:
        return self.uid == 0

    @property
    def reads_journal(self) -> bool:
        return self.is_root or GROUPS["systemd-journal"] in self.groups


GROUPS = {
    "root": 0,
    "adm": 4,
    "systemd-journal": 101,
    "sglang": 999,
    "tuner": 1000,
    "limited": 1001,
    "asker": 1002,
    "noisy": 1003,
}

ROOT = User("root", 0, (0,), "/root")

USERS = {
    user.name: user
    for user in (
        ROOT,
        User("sglang", 999, (999,), "/opt/sglang", "/usr/sbin/nologin"),
        User("tuner", 1000, (1000, 101), "/home/tuner", sudo=Sudo.FREE),
        User("limited", 1001, (1001,), "/home/limited"),
        User("asker", 1002, (1002, 101), "/home/asker", sudo=Sudo.ASKS),
        User("noisy", 1003, (1003, 101), "/home/noisy", sudo=Sudo.FREE, greets=True),
    )
}

LOGINS = ("root", "tuner", "limited", "asker", "noisy")


def user_name(uid: int) -> str:
    """The name of a uid, or the number where it has none."""
    return next((user.name for user in USERS.values() if user.uid == uid), str(uid))


def group_name(gid: int) -> str:
    """The name of a gid, or the number where it has none."""
    return next((name for name, number in GROUPS.items() if number == gid), str(gid))
