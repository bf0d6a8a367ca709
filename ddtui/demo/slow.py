"""A slow link: a relay on loopback that holds every byte for a while, each way."""

from __future__ import annotations

import asyncio
from contextlib import suppress


async def slow_link(port: int, delay: float, listen_port: int = 0) -> int:
    """Relay to 127.0.0.1:port with `delay` seconds each way; the port to connect to."""

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(
            _late(reader, far_writer, delay), _late(far_reader, writer, delay), return_exceptions=True
        )

    server = await asyncio.start_server(relay, "127.0.0.1", listen_port)
    return int(server.sockets[0].getsockname()[1])


async def _late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    loop = asyncio.get_running_loop()
    line: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=4096)

    async def deliver() -> None:
        while True:
            at, data = await line.get()
            await asyncio.sleep(max(0.0, at - loop.time()))
            if not data:
                break
            writer.write(data)
            await writer.drain()

    delivering = asyncio.ensure_future(deliver())
    try:
        while data := await reader.read(65536):
            await line.put((loop.time() + delay, data))
        await line.put((loop.time() + delay, b""))
        await delivering
    except (ConnectionError, OSError):
        pass
    finally:
        delivering.cancel()
        with suppress(OSError):
            writer.close()
