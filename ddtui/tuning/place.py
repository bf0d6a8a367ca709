"""Where ddtui keeps its lock and its change record on a host: one folder per unit, outside systemd's sight.

System units: /var/lib/ddtui/UNIT, made through sudo on first use, or by root for a group of operators (then
no sudo is needed for it). User units: ~/.local/state/ddtui/UNIT.

    lock/owner, lock/renewed     who changes the unit now, and when that owner last said so
    changes.jsonl                the change record
    CHANGE/N.before, N.after     the files of a change, with the rights of the files themselves

Commands: `printenv HOME`, `test -w DIR`, `test -d DIR`, `mkdir -p -- DIR`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ddtui.host.base import Command
from ddtui.tuning.context import Tuning
from ddtui.tuning.steady import demand

SYSTEM = "/var/lib/ddtui"


@dataclass(frozen=True, slots=True)
class Place:
    """ddtui's folder for one unit. `sudo`: writing there takes root's rights."""

    path: str
    sudo: bool
    exists: bool

    def __truediv__(self, name: str) -> str:
        return f"{self.path}/{name}"


async def home(ctx: Tuning) -> str:
    """The home folder of the user we are on the host. Raises CommandFailed."""
    done = demand(await ctx.host.run(("printenv", "HOME")), "the home folder on the host is not known")
    return done.out.strip()


async def find(ctx: Tuning) -> Place:
    """Where the folder is and whether it takes sudo. Makes nothing."""
    base = SYSTEM if ctx.root else f"{await home(ctx)}/.local/state/ddtui"
    path = f"{base}/{ctx.unit}"
    there, mine = await ctx.host.batch([Command(("test", "-d", path)), Command(("test", "-w", path))])
    return Place(path, sudo=ctx.root and not mine.ok, exists=there.ok)


async def make(ctx: Tuning) -> Place:
    """The folder, made if it is missing. Raises NotPermitted, CommandFailed."""
    ctx.must_write()
    place = await find(ctx)
    if place.exists:
        return place
    done = await ctx.host.run(("mkdir", "-p", "--", place.path), sudo=place.sudo)
    demand(done, f"{place.path} on {ctx.host.name} cannot be made")
    return Place(place.path, place.sudo, exists=True)
