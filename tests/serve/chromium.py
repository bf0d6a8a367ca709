"""Headless Chromium, driven by its own DevTools protocol: go to an address, look, type, take a picture."""

from __future__ import annotations

import asyncio
import base64
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pyte

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
START_SECONDS = 40.0


def find() -> str | None:
    """The browser's program; None: there is none on this machine."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One tab. `screen` is what the console in it drew, from the frames that the tab received."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, columns: int = 240, rows: int = 80) -> None:
        self._socket = socket
        self._next = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.requested: list[str] = []  # every address that the page asked for
        self.closed = False  # the console's websocket

    @property
    def screen(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    async def listen(self) -> None:
        async for message in self._socket:
            told = message.json()
            if "id" in told:
                self._answers.pop(told["id"]).set_result(told)
                continue
            what = told["params"]
            match told["method"]:
                case "Network.webSocketFrameReceived" if what["response"]["opcode"] == 2:
                    self._stream.feed(base64.b64decode(what["response"]["payloadData"]))
                case "Network.webSocketClosed":
                    self.closed = True
                case "Network.requestWillBeSent":
                    self.requested.append(what["request"]["url"])
                case "Page.javascriptDialogOpening":
                    self._dialog = asyncio.ensure_future(self.do("Page.handleJavaScriptDialog", accept=True))

    async def do(self, method: str, **params: Any) -> dict[str, Any]:
        self._next += 1
        answer = self._answers[self._next] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._next, "method": method, "params": params})
        told = await asyncio.wait_for(answer, 30)
        assert "error" not in told, (method, told["error"])
        return told["result"]

    async def go(self, address: str) -> None:
        await self.do("Page.navigate", url=address)

    async def value(self, expression: str) -> Any:
        """What a JavaScript expression gives in the page."""
        told = await self.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return told["result"].get("value")

    async def type(self, text: str) -> None:
        for letter in text:
            await self.do("Input.dispatchKeyEvent", type="keyDown", text=letter, key=letter)
            await self.do("Input.dispatchKeyEvent", type="keyUp", key=letter)

    async def picture(self) -> bytes:
        """A PNG of the page."""
        return base64.b64decode((await self.do("Page.captureScreenshot", format="png"))["data"])

    async def until(self, state: Callable[[], object], seconds: float = 60.0) -> None:
        """Wait for a state. The deadline is for a test that hangs, not a measure."""
        try:
            async with asyncio.timeout(seconds):
                while not state():  # noqa: ASYNC110 -- a page, not a task of this loop
                    await asyncio.sleep(0.2)
        except TimeoutError:
            raise AssertionError(f"not within {seconds:.0f} s; the page shows:\n{self.screen}") from None


def _port(file: Path) -> int | None:
    """Where the browser listens, once it has written that down."""
    lines = file.read_text().splitlines() if file.exists() else []
    return int(lines[0]) if len(lines) > 1 else None


@asynccontextmanager
async def opened(width: int = 1400, height: int = 900) -> AsyncIterator[Page]:
    """A fresh browser with one tab."""
    program = find()
    assert program is not None
    with tempfile.TemporaryDirectory(prefix="ddtui-chromium-", ignore_cleanup_errors=True) as profile:
        browser = await asyncio.create_subprocess_exec(
            program,
            "--headless=new",
            "--no-sandbox",  # tests run as root
            "--disable-dev-shm-usage",
            "--disable-extensions",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--mute-audio",
            "--remote-debugging-port=0",
            f"--user-data-dir={profile}",
            f"--window-size={width},{height}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            port_file = Path(profile, "DevToolsActivePort")
            async with asyncio.timeout(START_SECONDS):
                while (port := _port(port_file)) is None:
                    assert browser.returncode is None, "the browser ended at once"
                    await asyncio.sleep(0.05)
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    tab = next(tab for tab in await answer.json() if tab["type"] == "page")
                async with session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    page = Page(socket)
                    listening = asyncio.ensure_future(page.listen())
                    for domain in ("Page", "Network", "Runtime"):
                        await page.do(f"{domain}.enable")
                    await page.do(
                        "Emulation.setDeviceMetricsOverride",
                        width=width,
                        height=height,
                        deviceScaleFactor=1,
                        mobile=False,
                    )
                    try:
                        yield page
                    finally:
                        listening.cancel()
                        await asyncio.gather(listening, return_exceptions=True)
        finally:
            with suppress(ProcessLookupError):
                browser.kill()
            await browser.wait()
