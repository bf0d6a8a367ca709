"""The web server in front of the consoles: who gets in, and that no console outlives its tab or its server."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from ddtui.serve import console as consoles
from ddtui.serve.server import MOST, WebConsole
from serve.processes import alive, gone

STUB = Path(__file__).with_name("stub_console.py")


@dataclass
class Visit:
    """A running server and a browser's worth of cookies."""

    server: WebConsole
    address: str
    client: aiohttp.ClientSession

    @property
    def page(self) -> str:
        return self.address.partition("?")[0]

    @property
    def origin(self) -> str:
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}"

    async def status(self, path: str, **headers: str) -> int:
        async with self.client.get(path, headers=headers, allow_redirects=False) as answer:
            return answer.status

    async def socket(self, **headers: str) -> aiohttp.ClientWebSocketResponse:
        return await self.client.ws_connect(f"{self.page}ws", headers={"Origin": self.origin, **headers})


@asynccontextmanager
async def visit(*words: str, enter: bool = True, allow_changes: bool = False) -> AsyncIterator[Visit]:
    server = WebConsole([sys.executable, str(STUB), *words], title="ddtui <b>", allow_changes=allow_changes)
    jar = aiohttp.CookieJar(unsafe=True)  # cookies of an address in numbers
    async with aiohttp.ClientSession(cookie_jar=jar) as client, server.running() as address:
        one = Visit(server, address, client)
        if enter:
            assert await one.status(address) == 303
        yield one


async def pid(socket: aiohttp.ClientWebSocketResponse) -> int:
    found = re.search(rb"pid (\d+) ", await socket.receive_bytes(timeout=20))
    assert found is not None
    return int(found[1])


# who gets in


async def test_the_token_opens_the_page_once_and_leaves_the_address() -> None:
    async with visit(enter=False) as one:
        async with one.client.get(one.address, allow_redirects=False) as answer:
            assert answer.status == 303
            assert answer.headers["Location"] == urlsplit(one.page).path
            cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        assert f"Path={urlsplit(one.page).path}" in cookie  # no other server of this host is sent it
        async with one.client.get(one.page) as answer:
            assert answer.status == 200
            text = await answer.text()
        assert one.server.token not in text
        assert "ddtui &lt;b&gt;" in text


PLACES = ["", "ws", "download/k1", "static/js/textual.js", "nothing"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("token", [None, "", "x" * 43, "\u00e9"], ids=["none", "empty", "wrong", "not-ascii"])
async def test_without_the_right_token_nothing_answers(place: str, token: str | None) -> None:
    async with visit(enter=False) as one:
        query = {} if token is None else {"token": token}
        async with one.client.get(one.page + place, params=query, headers={"Origin": one.origin}) as answer:
            assert answer.status == 403
        assert one.server.consoles == {}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "192.0.2.1"])
async def test_a_foreign_name_that_leads_here_is_refused_with_the_token_too(place: str, host: str) -> None:
    async with visit() as one:
        assert await one.status(one.page + place, Host=host, Origin=f"http://{host}") == 403


@pytest.mark.parametrize("place", PLACES)
async def test_another_site_is_refused_with_the_token_too(place: str) -> None:
    async with visit() as one:
        for origin in ("http://evil.example", "null", one.origin.replace("127.0.0.1", "localhost")):
            assert await one.status(one.page + place, Origin=origin) == 403
        assert await one.status(one.page + place, **{"Sec-Fetch-Site": "same-site"}) == 403


async def test_a_websocket_needs_an_origin() -> None:
    async with visit() as one:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await one.client.ws_connect(f"{one.page}ws")
        assert refused.value.status == 403


async def test_a_forwarded_port_is_no_foreign_name() -> None:
    async with visit() as one:
        assert await one.status(one.page, Host="localhost:9000") == 200


async def test_nothing_is_loaded_from_outside() -> None:
    async with visit() as one:
        async with one.client.get(one.page) as answer:
            policy = answer.headers["Content-Security-Policy"]
            text = await answer.text()
        assert not re.search(r"https?://", text)
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert set(re.findall(r"wss?://[^ ;]+", policy)) == {f"ws://{urlsplit(one.page).netloc}"}


async def test_it_listens_on_the_loopback_only() -> None:
    async with visit() as one:
        assert urlsplit(one.address).hostname == "127.0.0.1"
        port = f"{urlsplit(one.address).port:04X}"
        assert {place for place in listening() if place.endswith(f":{port}")} == {f"0100007F:{port}"}


def listening() -> set[str]:
    """The addresses, in the kernel's form, that something on this machine listens on."""
    text = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    rows = [line.split() for line in text.splitlines()]
    return {row[1] for row in rows if row[3] == "0A"}


async def test_a_download_goes_to_who_has_the_token_only() -> None:
    async with visit() as one:
        async with await one.socket() as socket:
            await pid(socket)
            await socket.send_json(["stdin", "d"])
            while (message := await socket.receive(timeout=20)).type is not aiohttp.WSMsgType.TEXT:
                pass
            assert message.json() == ["deliver_file_start", "k1"]
            async with aiohttp.ClientSession() as stranger:
                async with stranger.get(f"{one.page}download/k1") as answer:
                    assert answer.status == 403
            async with one.client.get(f"{one.page}download/k1") as answer:
                assert answer.status == 200
                assert await answer.read() == b"the journal"


async def test_the_page_warns_before_a_tab_is_closed_where_changes_are_allowed() -> None:
    for allowed in (False, True):
        async with visit(allow_changes=allowed) as one:
            async with one.client.get(one.page) as answer:
                assert ("beforeunload" in await answer.text()) is allowed


async def test_so_many_consoles_and_no_more() -> None:
    async with visit() as one:
        sockets = [await one.socket() for _ in range(MOST)]
        await asyncio.gather(*(pid(socket) for socket in sockets))
        async with await one.socket() as refused:
            assert (await refused.receive(timeout=20)).type is aiohttp.WSMsgType.CLOSE
        await asyncio.gather(*(socket.close() for socket in sockets))


# no console outlives its tab or its server


async def test_a_console_is_told_what_is_typed_and_ends_with_its_tab() -> None:
    async with visit() as one:
        async with await one.socket() as socket:
            number = await pid(socket)
            await socket.send_json(["stdin", "j"])
            assert await socket.receive_bytes(timeout=20) == b"told j"
            assert alive(number)
        await gone(number)


async def test_a_tab_is_closed_when_its_console_ends_by_itself() -> None:
    async with visit() as one, await one.socket() as socket:
        number = await pid(socket)
        (console,) = one.server.consoles
        await console.send_meta({"type": "quit"})
        await gone(number)
        assert (await socket.receive(timeout=20)).type is aiohttp.WSMsgType.CLOSE


@pytest.mark.parametrize("words", [(), ("stubborn",)], ids=["that-listens", "that-ignores-all-wishes"])
async def test_no_console_outlives_its_server(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if words:
        monkeypatch.setattr(consoles, "QUIT_SECONDS", 0.2)
        monkeypatch.setattr(consoles, "TERM_SECONDS", 0.2)
    async with visit(*words) as one:
        tabs = [await one.socket() for _ in range(2)]
        numbers = [await pid(tab) for tab in tabs]
        assert all(alive(number) for number in numbers)
    assert not any(alive(number) for number in numbers)
