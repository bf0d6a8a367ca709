"""The web server of `ddtui serve`: loopback only, a token in front of everything, consoles that end with it.

textual-serve brings the page's script and what is said between page and console. It has no login and no check
of where a request comes from; both are here, in front of every path:
- Host must name the loopback: a foreign name that was made to resolve here (DNS rebinding) is refused;
- Origin, where the browser sends it, must be this very server; a websocket must have it;
- the token, once in the address that was printed, then as a cookie. A browser sends cookies to every port of
  a host, so the cookie is tied to a path that no other server knows.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import jinja2
import textual_serve
from aiohttp import WSCloseCode, web
from textual_serve.server import Server, to_int

from ddtui.serve.console import ServedConsole

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
MOST = 8  # consoles at once: each is a process with a link of its own
FONT_SIZES = range(6, 41)
HERE = Path(__file__).parent
STATIC = Path(textual_serve.__file__).parent / "static"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class WebConsole(Server):
    """Serves the console that `argv` runs. `start` gives its address, token and all."""

    def __init__(self, argv: Sequence[str], *, port: int = 0, title: str, allow_changes: bool) -> None:
        super().__init__("", host=LOOPBACK, port=port, title=title)
        self.argv = tuple(argv)
        self.allow_changes = allow_changes
        self.token = secrets.token_urlsafe(32)
        self.path = f"/{secrets.token_hex(8)}"
        self.consoles: dict[ServedConsole, web.WebSocketResponse] = {}
        self._page = jinja2.Environment(autoescape=True).from_string(
            (HERE / "page.html").read_text(encoding="utf-8")
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        """Serve within this context; gives the address. Raises OSError if the port is taken.

        Leaving it ends every console before the server.
        """
        runner = web.AppRunner(await self._make_app(), access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, LOOPBACK, self.port)
            await site.start()
            port = runner.addresses[0][1]
            yield f"http://{LOOPBACK}:{port}{self.path}/?token={self.token}"
        finally:
            await runner.cleanup()

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        app.add_routes(
            [
                web.get(f"{self.path}/", self.handle_index),
                web.get(f"{self.path}/ws", self.handle_websocket),
                web.get(f"{self.path}/download/{{key}}", self.handle_download),
                web.static(f"{self.path}/static", STATIC),
            ]
        )
        app.on_shutdown.append(self.on_shutdown)
        return app

    async def on_shutdown(self, app: web.Application) -> None:
        """End every console, all at once."""
        consoles, self.consoles = self.consoles, {}
        await asyncio.gather(*(console.stop() for console in consoles), return_exceptions=True)
        for socket in consoles.values():
            with suppress(Exception):
                await socket.close(code=WSCloseCode.GOING_AWAY)

    # who may come in

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        why = self._why_not(request)
        if why is not None:
            raise web.HTTPForbidden(text=f"{why}\n", headers=PLAIN)
        if "token" in request.query and request.path == f"{self.path}/":
            return self._let_in(request)
        return await handler(request)

    def _why_not(self, request: web.Request) -> str | None:
        """Why this request is refused; None: it is not."""
        host = request.headers.get("Host", "")
        name = urlsplit(f"//{host}").hostname
        if name not in LOOPBACK_NAMES:
            return "This console answers on this machine's loopback address only."
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"http://{host}":
            return "This request comes from another site."
        if origin is None and request.path == f"{self.path}/ws":
            return "A websocket needs an Origin."
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return "This request comes from another site."
        if request.path == f"{self.path}/" and "token" in request.query:
            given = request.query["token"]
        else:
            given = request.cookies.get(COOKIE, "")
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return "Open the address that `ddtui serve` printed, with its token."
        return None

    def _let_in(self, request: web.Request) -> web.Response:
        """The token becomes a cookie, and leaves the address."""
        rest = request.rel_url.query.copy()
        rest.popall("token")
        headers = {**PLAIN, "Location": str(request.rel_url.with_query(rest))}
        response = web.Response(status=303, headers=headers)
        response.set_cookie(COOKIE, self.token, path=f"{self.path}/", httponly=True, samesite="Strict")
        return response

    # what they get

    async def handle_index(self, request: web.Request) -> web.Response:
        nonce = secrets.token_urlsafe(16)
        size = to_int(request.query.get("fontsize", "14"), 14)
        page = self._page.render(
            title=self.title,
            allow_changes=self.allow_changes,
            nonce=nonce,
            websocket=f"ws://{request.host}{self.path}/ws",
            font_size=min(max(size, FONT_SIZES[0]), FONT_SIZES[-1]),
        )
        policy = (
            f"default-src 'none'; script-src 'self' 'nonce-{nonce}'; style-src 'self' 'unsafe-inline'; "
            f"font-src 'self'; img-src 'self' data: blob:; connect-src ws://{request.host}; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        headers = {**PLAIN, "Content-Security-Policy": policy}
        return web.Response(text=page, content_type="text/html", headers=headers)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """A tab: its console runs as long as the socket is open."""
        socket = web.WebSocketResponse(heartbeat=15)
        await socket.prepare(request)
        if len(self.consoles) >= MOST:
            await socket.close(code=WSCloseCode.TRY_AGAIN_LATER, message=b"too many consoles")
            return socket
        console = ServedConsole(
            self.argv,
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=lambda: _close(socket),
            download_manager=self.download_manager,
        )
        self.consoles[console] = socket
        try:
            width, height = (to_int(request.query.get(name, ""), 80) for name in ("width", "height"))
            await console.start(width, height)
            await self._process_messages(socket, console)
        except Exception:
            log.exception("a console in the browser ended by a fault")
        finally:
            await asyncio.shield(console.stop())
            self.consoles.pop(console, None)
            await socket.close()
        return socket


COOKIE = "ddtui"
PLAIN = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


async def _close(socket: web.WebSocketResponse) -> None:
    await socket.close()


async def serve(console: WebConsole, tell: Callable[[str], None]) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP; `tell` is given the address. Raises OSError."""
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None:
            with suppress(NotImplementedError):
                loop.add_signal_handler(number, over.set)
    async with console.running() as address:
        tell(address)
        await over.wait()
