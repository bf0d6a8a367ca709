"""A console on a scripted session as a program: for tests in a real terminal."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # tests, not tests/console

from console.fakes import FakeSession, journal, make_burst  # noqa: E402
from console.harness import make_app  # noqa: E402

if __name__ == "__main__":
    session = FakeSession()
    session.earlier = [make_burst("b7", 7)]
    session.lines.put_nowait(journal())
    app = make_app(session)
    app.run()
    sys.exit(app.return_code or 0)
