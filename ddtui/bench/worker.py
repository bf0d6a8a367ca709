"""The load itself: sends requests and stamps what arrives. One worker, run here and on the inference host.

`run(job)` keeps `job["slots"]` requests in flight until the job's requests are sent, its time is up or its
numbers are tight enough, and writes JSON lines to stdout: `hello`, `tick` twice a second, `record` for
every request as it ends, `unfilled` when the first slot found nothing more to send, and `end`. SIGTERM,
SIGINT, SIGHUP, a closed stdout, or a stdin that is silent for `job["patience"]` seconds cancel: requests in
flight are aborted by rid and reported with what had come.

Arrival is stamped in `data_received` before anything else happens; bytes are only kept (`exchange`). Framing
is undone when a response seems to end, events are read in idle moments. Needs Python 3.9 and the standard
library; takes uvloop and orjson when they are there. `ddtui/bench/load.py` sends it, with what it imports, to
a Python's stdin.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import platform
import queue
import select
import signal
import socket
import sys
import threading
import time
from collections import deque
from typing import Any

from ddtui.bench.exchange import Exchange
from ddtui.bench.http_stream import ResponseReader

now = time.monotonic_ns
END = b"\r\n\r\n"  # a chunked response ends so; so may other data, which is looked at then
SLICE = 400_000  # ns of reading what has come at a time
PAUSE = 0.003  # s between such slices while there is more to read
PULSE = 0.1  # s else: waking up costs as much as several chunks
FEW = 8  # arrivals that are not worth reading before the end
TICK = 0.5
LOOK = 2_000_000  # ns between turns of the loop that are timed: a timing costs as much as two chunks
BUCKET = 50_000  # ns, width of the lag histogram's buckets
GRACE = 2.0  # s for aborted requests to end by themselves


class Wire(asyncio.Protocol):
    """One connection; carries one exchange at a time."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._transport: Any = None
        self._exchange: Exchange | None = None
        self._over: Any = None  # the future of the exchange
        self.open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.open = True

    async def carry(self, exchange: Exchange, request: bytes) -> None:
        """Send the request and return when its response is over, one way or another."""
        self._over = self._load.loop.create_future()
        self._exchange = exchange
        exchange.sent = now()
        if self.open:
            self._transport.write(request)
        else:
            self._end("the connection was closed before the request was sent")
        await self._over

    def data_received(self, data: bytes) -> None:
        at = now()
        load = self._load
        if at > load.look_again:  # now and then: how long does all that is ready keep the loop
            load.look_again, load.turn = at + LOOK, at
            load.loop.call_soon(load.turn_over)
        exchange = self._exchange
        if exchange is None:
            self.close()  # nothing was asked
            return
        raw = exchange.raw
        raw.append((at, data))
        if not exchange.streaming or len(data) < 8 or data.endswith(END):
            self._look(exchange)
        elif not len(raw) & 63 and exchange.heavy():
            exchange.digest()

    def _look(self, exchange: Exchange) -> None:
        exchange.frame()
        if exchange.reader.malformed:
            self.close()
            self._end("")
        elif exchange.reader.complete:
            if not exchange.reader.keep_alive or exchange.reader.leftover:
                self.close()
            self._end("")

    def connection_lost(self, problem: Exception | None) -> None:
        self.open = False
        exchange = self._exchange
        if exchange is None:
            return
        exchange.frame()
        exchange.reader.end()
        self._end(
            "" if exchange.reader.complete else _why(problem, "the connection was closed by the server")
        )

    def _end(self, lost: str) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.ended = now()
            exchange.lost = exchange.lost or lost
            self._over.set_result(None)

    def close(self) -> None:
        self.open = False
        if self._transport is not None:
            self._transport.close()

    def give_up(self, why: str) -> None:
        """End the exchange now."""
        if self._exchange is not None:
            self._exchange.lost = why
        self.open = False
        self._transport.abort()
        self._end(why)


class Load:
    """Keeps the slots filled."""

    def __init__(self, job: dict[str, Any], loop: asyncio.AbstractEventLoop, out: Out) -> None:
        self.job = job
        self.loop = loop
        self.out = out
        self.look_again = 0  # when a turn of the loop is to be timed next
        self.turn = 0  # when the timed turn began to take in data
        self.stopping = ""  # why no more is sent
        self._waiting = deque(job["requests"])
        self._pieces = [piece.encode() for piece in job["pieces"]]
        self._live: dict[Exchange, Wire] = {}
        self._finished: deque[Exchange] = deque()
        self._pulsing: asyncio.TimerHandle | None = None
        self._due = 0  # when the next pulse should come at the latest
        self._lags: dict[int, int] = {}  # turns of the loop, by the buckets that they took
        self._late: dict[int, int] = {}  # timers, by the buckets that they came late
        self._steady = 0  # when the first wave was over: the time limit counts from there
        self._warming = sum(bool(request.get("warm_up")) for request in job["requests"])
        self._unfilled = False
        self._failures = 0  # in a row
        self._samples: list[float] = []  # s per token of measured requests
        self._cpu_first = self._cpu_last = 0.0  # CPU time of this process at the first and the last answer
        self._slots: list[asyncio.Task[None]] = []
        self._ending: asyncio.Task[None] | None = None

    async def run(self) -> None:
        self.out.put({"kind": "hello", "at": now(), "pid": os.getpid(), **_what_runs(self.loop)})
        watch = self.loop.create_task(self._watch())
        self._slots = [self.loop.create_task(self._slot()) for _ in range(self.job["slots"])]
        self._pulse()
        try:
            await asyncio.gather(*self._slots)
            if self._ending is not None:
                await self._ending
        finally:
            watch.cancel()
            if self._pulsing is not None:
                self._pulsing.cancel()
        while self._finished:
            self._report(self._finished.popleft())
        self.out.put(
            {
                "kind": "end",
                "at": now(),
                "why": self.stopping or "all sent",
                "lag_p99_ms": self._lag(),
                "cpu_s": round(self._cpu_last - self._cpu_first, 4),
            }
        )

    def cancel(self) -> None:
        """Send no more, and end what is in flight."""
        if self.stopping == "cancelled":
            return
        self.stopping = "cancelled"
        for exchange in self._live:
            exchange.cancelled = True
        self._ending = self.loop.create_task(self._end_all())

    async def _slot(self) -> None:
        wire: Wire | None = None
        while True:
            if self._waiting and not self.stopping:
                request = self._waiting.popleft()
            else:
                if not self._unfilled:
                    self._unfilled = True
                    self.out.put({"kind": "unfilled", "at": now()})
                break
            exchange = Exchange(request, self.job["api"])
            self._cpu_first = self._cpu_first or time.process_time()
            wire = await self._send(exchange, wire)
            self._live.pop(exchange, None)
            self._cpu_last = time.process_time()
            self._warming -= bool(request.get("warm_up"))
            if not self._warming and not self._steady:
                self._steady = now()
            if exchange.reader.complete and exchange.reader.status == 200:
                self._finished.append(exchange)  # to be read in an idle moment
            else:
                self._report(exchange)  # at once: a dead server must not be asked again and again
        if wire is not None:
            wire.close()

    async def _send(self, exchange: Exchange, wire: Wire | None) -> Wire | None:
        """Carry the exchange out; the connection if it can be used again."""
        request = self._request(exchange.request)
        reused = wire is not None
        while True:
            if wire is None or not wire.open:
                exchange.sent = now()
                try:
                    wire = await self._connect()
                except (OSError, asyncio.TimeoutError) as problem:  # noqa: UP041 (two classes before 3.11)
                    exchange.lost = _why(problem, "no connection")
                    exchange.ended = now()
                    return None
            self._live[exchange] = wire
            await wire.carry(exchange, request)
            unheard = not exchange.reader.received and not exchange.stalled
            if not (reused and unheard) or self.stopping:
                return wire if wire.open else None
            # a server may close an idle connection just when it is used again: once more, on a new one
            reused, wire = False, None
            exchange.retried, exchange.lost = True, ""
            exchange.reader = ResponseReader()

    async def _connect(self) -> Wire:
        address = self.job["address"]
        if address.get("uds"):
            connecting = self.loop.create_unix_connection(lambda: Wire(self), address["uds"])
        else:
            connecting = self.loop.create_connection(lambda: Wire(self), address["host"], address["port"])
        _, wire = await asyncio.wait_for(connecting, 30)
        return wire

    def _request(self, request: dict[str, Any]) -> bytes:
        job = self.job
        head = job["head"].replace("%rid%", request["rid"])
        body = job["separator"].encode().join(self._pieces[at] for at in request["pieces"])
        return _http(job, job["path"], head.encode() + body + job["tail"].encode())

    # what happens beside the slots

    async def _watch(self) -> None:
        """Ticks, time limits and the end of the run."""
        job = self.job
        while True:
            await asyncio.sleep(TICK)
            at = now()
            for exchange, wire in list(self._live.items()):
                quiet, age = (at - exchange.heard) / 1e9, (at - exchange.sent) / 1e9
                limit = job["idle"] if exchange.heard > exchange.sent else job["first"]
                if quiet > limit or age > job["deadline"]:
                    exchange.stalled = True
                    wire.give_up(
                        f"nothing came for {quiet:.0f} s"
                        if quiet > limit
                        else f"not finished after {age:.0f} s"
                    )
            if not self.stopping and self._steady and (at - self._steady) / 1e9 > job["max_seconds"]:
                self.stopping = "time is up"
            self.out.put(
                {
                    "kind": "tick",
                    "at": at,
                    "running": len(self._live),
                    "quiet_s": min(((at - exchange.heard) / 1e9 for exchange in self._live), default=0.0),
                    "lag_p99_ms": self._lag(),
                }
            )
            if self.out.closed:
                self.cancel()

    def _pulse(self) -> None:
        """How late the loop comes to a timer, beyond the 1 ms that a timer may be off; and a slice of
        reading.
        """
        if self._due:
            _count(self._late, now() - self._due)
        pause = PAUSE if self._read() else PULSE
        self._due = now() + int(pause * 1e9) + 1_000_000
        self._pulsing = self.loop.call_later(pause, self._pulse)

    def turn_over(self) -> None:
        """The loop has taken in all that was ready: the last chunk waited that long for its stamp."""
        _count(self._lags, now() - self.turn)

    def _lag(self) -> float | None:
        lags = [lag for lag in (_p99(self._lags), _p99(self._late)) if lag is not None]
        return max(lags) if lags else None

    def _read(self) -> bool:
        """A slice of reading: answers that are over, and the framing of those that run, so that little is
        left to do when they end, which may be just when other answers come. Whether there is more.
        """
        until = now() + SLICE
        while self._finished:
            self._report(self._finished.popleft())
            if now() > until:
                return True
        for exchange in self._live:
            if len(exchange.raw) > FEW:
                exchange.frame()
                if now() > until:
                    return True
        return False

    def _report(self, exchange: Exchange) -> None:
        record = exchange.record()
        self.out.put(record)
        if record["outcome"] == "ok":
            self._failures = 0
            if not exchange.request.get("warm_up") and record["output_tokens"]:
                self._samples.append((exchange.ended - exchange.sent) / record["output_tokens"])
                self._enough()
        else:
            self._failures += 1
            if self._failures >= self.job["give_up_after"] and not self.stopping:
                self.stopping = f"{self._failures} requests in a row failed"

    def _enough(self) -> None:
        """Stop when there are enough samples and the mean's 95 % interval is as narrow as asked."""
        precision, n = self.job.get("precision"), len(self._samples)
        if not precision or self.stopping or n < max(self.job["minimum"], 8):
            return
        mean = sum(self._samples) / n
        deviation = (sum((sample - mean) ** 2 for sample in self._samples) / (n - 1)) ** 0.5
        if 1.96 * deviation / n**0.5 <= precision * mean:
            self.stopping = "enough"

    # cancelling

    async def _end_all(self) -> None:
        await self._abort()
        await asyncio.wait(self._slots, timeout=GRACE)
        for wire in list(self._live.values()):
            wire.give_up("cancelled")

    async def _abort(self) -> None:
        """Ask the server to abort by rid; rids match by prefix. Closing the connections does the rest."""
        if not self.job.get("abort"):
            return
        try:
            wire = await self._connect()
            exchange = Exchange({"rid": "", "index": -1}, self.job["api"])
            body = json.dumps({"rid": self.job["abort"]}).encode()
            await asyncio.wait_for(wire.carry(exchange, _http(self.job, "/abort_request", body)), GRACE)
            wire.close()
        except (OSError, asyncio.TimeoutError):  # noqa: UP041
            pass


class Out:
    """Writes JSON lines from a thread of its own, so that a slow reader never holds up the loop.

    `patience`: whoever reads them writes to our stdin at least that often, in seconds.
    """

    def __init__(self, fd: int, patience: float | None = None) -> None:
        self.closed = False  # nobody reads any more
        self._fd = fd
        self._lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()
        if patience is not None:
            threading.Thread(target=self._listen, args=(patience,), daemon=True).start()

    def put(self, value: dict[str, Any]) -> None:
        self._lines.put(value)

    def finish(self) -> None:
        self._lines.put(None)
        self._thread.join(1 if self.closed else 30)

    def _listen(self, patience: float) -> None:
        while select.select([0], [], [], patience)[0] and os.read(0, 4096):
            pass
        self.closed = True

    def _write(self) -> None:
        while True:
            value = self._lines.get()
            if value is None:
                return
            data = json.dumps(value, separators=(",", ":")).encode() + b"\n"
            while data and not self.closed:
                try:
                    data = data[os.write(self._fd, data) :]
                except OSError:
                    self.closed = True


def _http(job: dict[str, Any], path: str, body: bytes) -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        f"host: {job['host_header']}",
        "content-type: application/json",
        "accept-encoding: identity",
        f"content-length: {len(body)}",
        *job["headers"],
    ]
    return "\r\n".join(lines).encode("latin-1") + END + body


def _count(histogram: dict[int, int], ns: int) -> None:
    bucket = max(0, ns) // BUCKET
    histogram[bucket] = histogram.get(bucket, 0) + 1


def _p99(histogram: dict[int, int]) -> float | None:
    """ms; None without samples."""
    left = sum(histogram.values()) * 0.01
    for bucket in sorted(histogram, reverse=True):
        left -= histogram[bucket]
        if left < 0:
            return round((bucket + 1) * BUCKET / 1e6, 3)
    return None


def _why(problem: BaseException | None, otherwise: str) -> str:
    if problem is None:
        return otherwise
    if isinstance(problem, asyncio.TimeoutError):
        return "no connection within 30 s"
    if isinstance(problem, OSError) and problem.errno and not isinstance(problem, socket.gaierror):
        return os.strerror(problem.errno).lower() if problem.errno > 0 else str(problem)
    return str(problem) or type(problem).__name__


def _what_runs(loop: asyncio.AbstractEventLoop) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "loop": type(loop).__module__.split(".")[0],
        "orjson": "orjson" in sys.modules,
        "machine": platform.node(),
    }


def run(job: dict[str, Any]) -> None:
    """Carry the job out and write its JSON lines to stdout."""
    out = Out(1, job.get("patience"))
    try:
        import uvloop

        loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    except ImportError:
        loop = asyncio.new_event_loop()
    load = Load(job, loop, out)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, load.cancel)
    gc.collect()
    gc.disable()  # nothing here makes cycles in number, and a collection would show as a gap
    try:
        loop.run_until_complete(load.run())
    finally:
        out.finish()
        loop.close()
