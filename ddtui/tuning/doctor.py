"""What ddtui needs on a host, what is missing, and the lines that grant it."""

from __future__ import annotations

from dataclasses import dataclass

from ddtui.tuning.context import Tuning


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that ddtui needs."""

    name: str  # "link", "journal", "restart", …
    ok: bool | None  # None: not known, or only a remark
    found: str  # what there is, in a sentence
    need: str = ""  # what to do when it is missing


@dataclass(frozen=True, slots=True)
class Diagnosis:
    checks: tuple[Check, ...]
    read_only: str | None  # why changes are not possible; None: they are
    sudoers: tuple[str, ...]  # exact lines for a file in /etc/sudoers.d, for full rights
    sudoers_least: tuple[str, ...]  # for flags that live in a file which the operators' group owns


async def examine(ctx: Tuning) -> Diagnosis:
    """Look at link, rights, tools, journal and versions. Changes nothing; raises nothing but for a cancelled task."""
    raise NotImplementedError


async def rights(ctx: Tuning) -> str | None:
    """Why nothing can be changed on this host; None: changes are possible. One round trip."""
    raise NotImplementedError
