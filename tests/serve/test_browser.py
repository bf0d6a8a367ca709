"""`ddtui serve` as a person uses it: the address opened in headless Chromium, the tune screen in it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import numpy as np
import pytest

from serve import chromium
from serve.picture import pixels
from serve.processes import gone

PROFILE = """\
name: nowhere
connection: {host: 127.0.0.1, port: 9, config: /dev/null}
service: {unit: sglang.service}
knobs: [{name: budget, flag: --speculative-ddtree-budget}]
"""


@asynccontextmanager
async def served(*words: str) -> AsyncIterator[tuple[Process, str]]:
    """A running `ddtui … serve …` and its address."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ddtui", *words, stdout=PIPE, start_new_session=True
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            while not (found := re.search(r"http://\S+", (await process.stdout.readline()).decode())):
                assert process.returncode is None and not process.stdout.at_eof()
        yield process, found[0]
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        async with asyncio.timeout(30):
            await process.wait()


def consoles_of(process: Process) -> list[int]:
    """The console processes of a running server."""
    found = []
    for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        with suppress(FileNotFoundError):
            if b"console" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(int(child))
    return found


async def test_the_tune_screen_in_chromium(tmp_path: Path) -> None:
    if chromium.find() is None:
        why = "NO BROWSER: needs Chromium on PATH; `make test` installs it with root on Debian or Ubuntu"
        if os.environ.get("CI"):
            pytest.fail(f"{why}; under CI it must be there", pytrace=False)
        pytest.skip(why)
    async with served("demo", "serve") as (server, address), chromium.opened() as page:
        await page.go(address)
        await page.until(lambda: "ignores it" in page.screen)
        await page.until(lambda: "no burst yet" in page.screen and "batch, #" in page.screen)
        for text in ("SIMULATED", "READ-ONLY", "budget", "2048", "Journal", "Checks"):
            assert text in page.screen
        assert await page.value("document.title") == "ddtui demo"
        assert "token" not in await page.value("location.href")
        assert {address_.partition("/")[2].split("/")[1] for address_ in page.requested} == {
            address.partition("/")[2].split("/")[1]
        }  # nothing from another server

        # it is drawn, not only sent
        await page.value("document.fonts.ready.then(() => 1)")
        picture = await page.picture()
        folder = Path(os.environ.get("DDTUI_SCREENSHOTS") or tmp_path)
        (folder / "browser.png").write_bytes(picture)
        seen = pixels(picture)
        rows, columns, _ = seen.shape
        assert (columns, rows) == (1400, 900)
        badge = np.all(np.abs(seen[:30].astype(int) - (0xF2, 0xB4, 0x5C)) < 12, axis=2)
        assert badge[:, columns // 2 :].sum() > 500, "the SIMULATED badge stands at the top on the right"
        inked = np.abs(seen.astype(int) - seen[rows // 2, 3].astype(int)).max(axis=2) > 60
        assert 0.03 < inked.mean() < 0.5, "text and lines on a calm ground"
        for quarter in (inked[: rows // 2, : columns // 2], inked[: rows // 2, columns // 2 :],
                        inked[rows // 2 :, : columns // 2], inked[rows // 2 :, columns // 2 :]):  # fmt: skip
            assert quarter.mean() > 0.01, "each quarter of the page shows something"

        # read-only unless told
        await page.type("r")
        await page.until(lambda: re.search(r"read-only", page.screen))
        await page.type("2")
        await page.until(lambda: "ignores it" not in page.screen)

        (console,) = consoles_of(server)
        await page.go("about:blank")
        await gone(console)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=["term", "int", "kill"])
async def test_no_console_outlives_its_server_however_that_ends(how: int, tmp_path: Path) -> None:
    profile = tmp_path / "nowhere.yaml"
    profile.write_text(PROFILE)
    async with served("serve", str(profile)) as (server, address):
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as client:
            async with client.get(address) as page:
                assert page.status == 200
            origin = re.match(r"http://[^/]+", address)
            assert origin is not None
            where = f"{address.partition('?')[0]}ws?width=100&height=30"
            async with client.ws_connect(where, headers={"Origin": origin[0]}) as socket:
                text = b""
                while b"nowhere" not in text:
                    text += (await socket.receive_bytes(timeout=60)) or b""
                (console,) = consoles_of(server)
                server.send_signal(how)
                await server.wait()
                await gone(console)
