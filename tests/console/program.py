"""A console on a scripted session as a program: for tests in a real terminal.

With the word `pick` it begins at the list of profiles, and connecting asks for everything that it can. With
`trouble` it is in production, and all goes wrong that asks something. SCREENS_SEEN in the environment: a file
that takes the class of each screen that comes to the top, a line each.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # tests, not tests/console

from console.fakes import (  # noqa: E402
    NOW,
    STARTING,
    FakeSession,
    journal,
    make_burst,
    make_profile,
    make_view,
)
from console.harness import make_app  # noqa: E402
from textual.pilot import Pilot  # noqa: E402
from textual.screen import Screen  # noqa: E402

from ddtui.app import DdtuiApp  # noqa: E402
from ddtui.bench.model import BurstState  # noqa: E402
from ddtui.host.base import Asker, HostError, HostKey, Unreachable  # noqa: E402
from ddtui.screens.pick import Offer  # noqa: E402
from ddtui.session import AskKill  # noqa: E402
from ddtui.tuning.model import Plan, Progress, Turn  # noqa: E402
from ddtui.widgets.colours import by_terminfo, of_terminal  # noqa: E402


class Trouble(FakeSession):
    """A host in production that refuses at first, on which a change was cut and a lock was left behind."""

    def __init__(self) -> None:
        super().__init__(make_profile(production=True))
        self.bursts.put_nowait(make_burst("b8", 7, state=BurstState.RUNNING, fraction=0.3))

    async def connect(self, asker: Asker) -> None:
        refused = Unreachable("ct200 port 22: connection refused")
        self.connect_error = None if "connect" in self.calls else refused
        await super().connect(asker)
        cut = "the change 20260528T120000-ab12 was cut while writing"
        self.view = make_view(cut=cut, stale_lock="bea@desk:77 left the lock behind 12 min ago")

    async def refresh(self) -> None:
        await asyncio.Event().wait()

    async def plan(self, turns: Sequence[Turn]) -> Plan:
        raise HostError("the unit cannot be read")

    async def restarting(self, ask_kill: AskKill) -> AsyncIterator[Progress]:
        yield STARTING
        await ask_kill("pid 41210 has not stopped for 2 min.")
        await asyncio.Event().wait()

    def restart(self, ask_kill: AskKill) -> AsyncIterator[Progress]:
        return self.restarting(ask_kill)


async def note_screens(pilot: Pilot[object]) -> None:
    """Write down what comes to the top."""
    seen = os.environ.get("SCREENS_SEEN")
    if seen:

        def note(screen: Screen[object]) -> None:
            with Path(seen).open("a") as file:
                file.write(f"{type(screen).__name__}\n")

        note(pilot.app.screen)
        pilot.app.screen_change_signal.subscribe(pilot.app, note, immediate=True)


def main(words: list[str], folder: Path) -> int:
    session = Trouble() if "trouble" in words else FakeSession()
    session.earlier = [make_burst("b7", 7)]
    session.lines.put_nowait(journal())
    colours = of_terminal(os.environ, by_terminfo(os.environ.get("TERM", "")))
    if words:
        os.chdir(folder)
        from console.histories import make_past, running_sweep

        session.past = make_past(folder)
        session.states.put_nowait(running_sweep())
    if "pick" in words:
        session.key = HostKey("ct200", 22, "ssh-ed25519", "SHA256:Zm9vYmFy")
        session.secret = ("[sudo] password for tuner: ", "sudo")
        app = DdtuiApp(
            None,
            open_session=lambda profile: session,
            offers=[
                Offer("ct200", "ct200", "Kimi K2.6"),
                Offer("broken", "", problem="broken.yaml:3: no host"),
            ],
            load_profile=lambda name: session.profile,
            now=lambda: NOW,
            colours=colours,
        )
    else:
        app = make_app(session, colours=colours)
    app.run(auto_pilot=note_screens)
    return app.return_code or 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as kept:
        sys.exit(main(sys.argv[1:], Path(kept)))
