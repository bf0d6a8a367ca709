"""What the console costs while nobody touches it: CPU of its process, on every screen.

    .venv/bin/python benchmarks/idle.py [SECONDS] [SCREEN…]        # of each screen; 60 if not given

The console runs in a pty of 160x45 on a demo host, through a real SSH link. Somebody asks the server a thing
now and again, which is a line in its journal each, so that with the demo's own traffic one comes a second.
The lines that came are counted in the host's journal. CPU is user and system time of the console's process,
from /proc. The target is under 2 % of a core with one line a second.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from pty_terminal import Terminal  # noqa: E402

from ddtui.demo import launch  # noqa: E402
from ddtui.engine.api import Api  # noqa: E402
from ddtui.host import journal  # noqa: E402
from ddtui.host.base import NobodyToAsk  # noqa: E402
from ddtui.host.open import open_host  # noqa: E402
from ddtui.profile import Profile  # noqa: E402

PORT = 30000  # of the demo host's server
ASKING = 1.5  # seconds from one asking to the next
SETTLE = 20.0  # seconds after the first survey: what is loaded late and read once is over
SCREENS = {
    "tune": "1", "logs": "2", "bursts": "3", "compare": "4", "sweep": "5", "history": "6", "hosts": "H",
    "layers": "L", "commands": "C",
}  # fmt: skip


def spent(pid: int) -> float:
    """Seconds of CPU of the process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def pass_time(terminal: Terminal, profile: Profile, seconds: float) -> tuple[int, int]:
    """Take what is painted for so long, with a line a second: how many bytes, and how many lines."""
    host = open_host(profile.connection, NobodyToAsk())
    await host.connect()
    try:
        before, began = len(terminal.raw), time.time()
        async with Api(await host.endpoint(PORT)) as api:
            while (passed := time.time() - began) < seconds:
                await api.model_info()
                await asyncio.to_thread(pump, terminal, began + (passed // ASKING + 1) * ASKING)
        service = profile.service
        lines = await journal.read(host, service.unit, service.scope, since=began)
        return len(terminal.raw) - before, len(lines)
    finally:
        await host.close()


def pump(terminal: Terminal, until: float) -> None:
    while (left := until - time.time()) > 0:
        terminal.pump(left)


def main(seconds: float, screens: Sequence[str]) -> None:
    with launch.start() as demo, tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "demo.yaml"
        profile.write_text(demo.profile.model_dump_json(exclude_defaults=True))
        homes = {f"XDG_{name}_HOME": folder for name in ("CONFIG", "DATA", "STATE", "CACHE")}
        with Terminal([sys.executable, "-m", "ddtui", str(profile)], 160, 45, homes) as terminal:
            terminal.wait_for("Decode batch")
            pid = terminal.process.pid
            for place, screen in enumerate(screens):
                terminal.press(SCREENS[screen])
                asyncio.run(pass_time(terminal, demo.profile, SETTLE if place == 0 else SETTLE / 4))
                began, before = time.time(), spent(pid)
                painted, lines = asyncio.run(pass_time(terminal, demo.profile, seconds))
                share = (spent(pid) - before) / (time.time() - began)
                print(
                    f"{screen}: {100 * share:.2f} % of a core, {lines / seconds:.1f} lines a second, "
                    f"{painted / seconds / 1000:.1f} kB painted a second"
                )
                if screen in ("hosts", "layers", "commands"):
                    terminal.press("escape")
                    terminal.settle()
            terminal.press("q")
            terminal.wait_end()


if __name__ == "__main__":
    seconds, screens = sys.argv[1:2] or ["60"], sys.argv[2:] or list(SCREENS)
    main(float(seconds[0]), screens)
