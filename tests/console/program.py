"""A console on a scripted session as a program: for tests in a real terminal.

With the word `pick` it begins at the list of profiles, and connecting asks for everything that it can.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # tests, not tests/console

from console.fakes import NOW, FakeSession, journal, make_burst  # noqa: E402
from console.harness import make_app  # noqa: E402

from ddtui.app import DdtuiApp  # noqa: E402
from ddtui.host.base import HostKey  # noqa: E402
from ddtui.screens.pick import Offer  # noqa: E402
from ddtui.widgets.colours import by_terminfo, of_terminal  # noqa: E402


def main(words: list[str], folder: Path) -> int:
    session = FakeSession()
    session.earlier = [make_burst("b7", 7)]
    session.lines.put_nowait(journal())
    colours = of_terminal(os.environ, by_terminfo(os.environ.get("TERM", "")))
    if "pick" in words:
        from console.histories import make_past

        session.past = make_past(folder)
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
    app.run()
    return app.return_code or 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as kept:
        sys.exit(main(sys.argv[1:], Path(kept)))
