"""Who is logged in on the host: `who`. Who holds no terminal, as ddtui itself, is not in it."""

from __future__ import annotations

import re

from ddtui.host.base import Completed, Host
from ddtui.sanitize import line

WHO = ("who",)
TIMEOUT = 5.0
_ROW = re.compile(r"(?P<user>\S+)\s.*?(?:\((?P<origin>[^()]*)\))?\s*$")


async def logins(host: Host) -> tuple[str, ...]:
    """`ann from 10.0.0.5`, each once, in the order of their names; none where it cannot be told."""
    return parse(await host.run(WHO, timeout=TIMEOUT))


def parse(done: Completed) -> tuple[str, ...]:
    rows = (_ROW.match(line(row)) for row in done.out.splitlines()) if done.ok else ()
    people = {(row["user"], row["origin"]) for row in rows if row}
    return tuple(f"{user} from {origin}" if origin else user for user, origin in sorted(people, key=str))
