"""Runs a burst: prompts, load in processes of its own, points as they come, raw records on disk."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from ddtui import locations
from ddtui.bench import jobs, kept, load, metrics, server_log, server_side, workload
from ddtui.bench.gpu_use import GpuWatch
from ddtui.bench.growing import Prompts
from ddtui.bench.model import Burst, BurstSpec, BurstState, Cell, Point, RequestRecord, ServerSide
from ddtui.bench.server_side import Limits, Watch
from ddtui.bench.target import BenchError, Target
from ddtui.engine.api import Api, ApiError
from ddtui.host.base import Host, HostError

EVERY = 0.4  # s between snapshots of a running cell
QUIET = 3.0  # s without a byte that are worth a word
SHARDS_ON_HOST = 2  # a host follows few commands at a time
IDLE_TRIES, IDLE_PAUSE = 5, 0.5  # how often, and after how many s, an idle server is waited for
READY = 90.0  # s for the first token of all


def new_id() -> str:
    """Sortable: UTC time and a random tail."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + "-" + secrets.token_hex(3)


async def run(
    spec: BurstSpec,
    target: Target,
    *,
    burst_id: str | None = None,
    step: int | None = None,
    keep: Path | None = None,
    cancel: asyncio.Event | None = None,
    on_keep: Callable[[Burst], None] | None = None,
) -> AsyncGenerator[Burst]:
    """Measure; yields a snapshot at every change, the last one DONE, CANCELLED or FAILED.

    `burst_id`: None: a new one. `keep`: folder for `<burst_id>.jsonl`; None: `data_dir()/bursts`. Setting
    `cancel`, or closing the iterator, cancels: running requests are aborted by rid, and what was measured
    is on disk; with `cancel` the last snapshot holds it as well. `on_keep` gets the burst at its beginning,
    after each cell and at its end: as it is to be kept should ddtui be killed before the next time.
    Raises BenchError for a spec that must not be sent at all (more requests at once than the target allows,
    no cells).
    """
    _check(spec, target)
    started = time.time()
    folder = keep or locations.data_dir() / "bursts"
    made = _Running(spec, target, burst_id or new_id(), step, folder, started, on_keep)
    work = asyncio.create_task(made.work())
    stop = asyncio.create_task(cancel.wait()) if cancel is not None else None
    try:
        while not work.done():
            changed = asyncio.create_task(made.changed.wait())
            await asyncio.wait(
                {work, changed, *([stop] if stop else [])}, return_when=asyncio.FIRST_COMPLETED
            )
            changed.cancel()
            if made.changed.is_set():
                made.changed.clear()
                yield made.burst
            if stop is not None and stop.done():
                work.cancel()
                await asyncio.wait({work})
        with suppress(asyncio.CancelledError):
            await work
        yield made.burst
    finally:
        if stop is not None:
            stop.cancel()
        if not work.done():
            work.cancel()
            await asyncio.wait({work})
        if on_keep is not None:
            on_keep(made.burst)


def _check(spec: BurstSpec, target: Target) -> None:
    if not spec.cells:
        raise BenchError("a burst needs at least one cell: a concurrency and a context length")
    most = max(cell.concurrency for cell in spec.cells)
    if most > target.max_concurrency:
        raise BenchError(
            f"{most} requests at once are more than the {target.max_concurrency} that the profile allows "
            "(bench.max_concurrency)"
        )
    if spec.output < 2:
        raise BenchError("a burst needs 2 output tokens per request or more")
    if min(cell.context for cell in spec.cells) < 16 or min(cell.concurrency for cell in spec.cells) < 1:
        raise BenchError("a cell needs a concurrency of at least 1 and a context of at least 16 tokens")
    if spec.at == "host" and (target.host is None or target.address is None):
        raise BenchError("the load can run on the host only through a profile, not with a URL alone")


class _Running:
    """A burst while it runs."""

    def __init__(
        self,
        spec: BurstSpec,
        target: Target,
        burst_id: str,
        step: int | None,
        folder: Path,
        started: float,
        on_keep: Callable[[Burst], None] | None,
    ) -> None:
        self.changed = asyncio.Event()
        self._on_keep = on_keep
        self._api = Api(target.endpoint, target.api_key)
        self._spec = spec
        self._target = target
        self._folder = folder
        self._salt = spec.salt if spec.salt is not None else secrets.token_hex(8)
        self._known: dict[str, Sequence[int]] = {}  # texts that the server has tokenized
        self._longest: int | None = None
        self._spent: list[float] = []  # s that finished cells took
        self.burst = Burst(
            id=burst_id,
            step=step,
            spec=spec,
            state=BurstState.WAITING,
            simulated=target.simulated,
            started_at=started,
            raw=str(folder / f"{burst_id}.jsonl"),
            rtt_ms=target.rtt_ms,
        )

    def _publish(self, **what: Any) -> None:
        self.burst = replace(self.burst, **what)
        self.changed.set()

    def _warn(self, text: str | None) -> None:
        if text and text not in self.burst.warnings:
            self._publish(warnings=(*self.burst.warnings, text))

    def _keep(self) -> None:
        if self._on_keep is not None:
            self._on_keep(kept.unfinished(self.burst))

    async def work(self) -> None:
        """All cells. Ends with a final state; never raises but for a fault of ddtui's own."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with open(self.burst.raw, "a", encoding="utf-8") as raw:  # noqa: ASYNC230 (small appends)
                _append(raw, {"kind": "burst", **kept.to_plain(self.burst)})
                self._keep()
                await self._all_cells(raw)
                _append(raw, {"kind": "done", **kept.to_plain(self.burst)})
        except asyncio.CancelledError:
            self._publish(state=BurstState.CANCELLED, text="cancelled", eta_seconds=None)
            await self.abort()
            raise
        except (BenchError, ApiError, HostError) as problem:
            self._publish(state=BurstState.FAILED, text=str(problem), eta_seconds=None)
        except OSError as problem:
            text = f"{problem.filename or self.burst.raw}: {problem.strerror or problem}"
            self._publish(state=BurstState.FAILED, text=text, eta_seconds=None)
        finally:
            await self._api.close()

    async def _all_cells(self, raw: TextIO) -> None:
        self._publish(state=BurstState.PREPARING, text="asking the server for a token")
        await self._ready()
        tokenize = await self._tokenizer()
        limits = await server_side.limits(self._api, self._target.vocab_size, self._longest)
        for number, cell in enumerate(self._spec.cells):
            began = time.monotonic()
            self._publish(
                state=BurstState.PREPARING,
                cell=cell,
                text="making prompts",
                fraction=number / len(self._spec.cells),
            )
            point = await self._cell(raw, number, cell, tokenize, limits)
            self._spent.append(time.monotonic() - began)
            _append(
                raw, {"kind": "point", **kept.to_plain(replace(self.burst, points=(point,)))["points"][0]}
            )
            self._publish(points=(*self._final_points(), point))
            self._keep()
        self._publish(state=BurstState.DONE, text="", cell=None, fraction=1.0, eta_seconds=None)

    def _final_points(self) -> tuple[Point, ...]:
        return tuple(point for point in self.burst.points if point.final)

    async def _ready(self) -> None:
        """A server may answer long before it generates, or no more."""
        try:
            await self._api.generate_one(
                text="The", max_new_tokens=2, rid=f"{self.burst.id}-probe", timeout=READY
            )
        except ApiError as problem:
            if problem.status not in (404, 405) or self._spec.endpoint == "generate":
                raise BenchError(f"the server does not generate: {problem}") from None

    async def _tokenizer(self) -> workload.Tokenize | None:
        async def tokenize(text: str) -> Sequence[int]:
            if text not in self._known:
                self._known[text] = (await self._api.tokenize(text)).ids
            return self._known[text]

        try:
            self._longest = (await self._api.tokenize("x")).max_model_len
        except ApiError:
            return None
        return tokenize

    async def _cell(
        self, raw: TextIO, number: int, cell: Cell, tokenize: workload.Tokenize | None, limits: Limits
    ) -> Point:
        spec = self._spec
        problem = limits.problem(spec, cell)
        if problem is None:
            prompts = await workload.build(
                cell,
                cell.concurrency + jobs.measured_requests(spec, cell),
                api=spec.endpoint,
                tokenize=tokenize,
                salt=self._salt,
                seed=spec.seed,
            )
            self._warn(prompts.note)
            problem = limits.problem(spec, cell, prompts)
        if problem is not None:
            self._warn(problem)
            run = metrics.Run(cell, time.time(), 0.0, [], None, None, spec.output, final=True)
            return replace(metrics.point(run), marks=(problem,))
        self._warn(limits.warning(spec, cell))
        flushed, others = await self._flush()
        watch = Watch(self._api, cell.concurrency, flushed, others)
        await watch.begin()
        loading = _Loading(self, cell, raw, number, watch, prompts)
        point = await loading.run()
        self._warn_of_link(point)
        return point

    async def _flush(self) -> tuple[bool, str]:
        """Whether the prefix cache is empty now; and who else uses the server."""
        others = ""
        for left in reversed(range(IDLE_TRIES)):  # what just ended may still be counted
            others = await self._others()
            if not others and await self._flushed():
                return True, ""
            if left:
                await asyncio.sleep(IDLE_PAUSE)
        self._warn("the prefix cache was not flushed: requests run on the server")
        return False, others

    async def _flushed(self) -> bool:
        with suppress(ApiError):
            return await self._api.flush_cache()
        return False

    async def _others(self) -> str:
        with suppress(ApiError):
            loads = await self._api.loads()
            if loads.running and "metrics" not in loads.source:
                were = "request was" if loads.running == 1 else "requests were"
                return f"{loads.running} {were} running before the first of ours"
        return ""

    def _warn_of_link(self, point: Point) -> None:
        rtt, step = self._target.rtt_ms, point.step_ms
        if self._spec.at == "here" and rtt and point.ttft_ms and rtt > 0.1 * point.ttft_ms.value:
            self._warn(
                f"the link's {rtt:.0f} ms are in every TTFT: run the load on the host to be without them"
            )
        if self._spec.at == "here" and rtt and step and rtt > step.value:
            self._warn(
                f"the link's {rtt:.0f} ms exceed a step ({step.value:.0f} ms): its jitter is in the gaps"
            )

    # what a cell's load needs of its burst

    async def abort(self) -> None:
        """End what of ours still runs on the server, by rid."""
        with suppress(ApiError, TimeoutError):
            await self._api.abort(f"{self.burst.id}-")

    @property
    def host(self) -> Host | None:
        return self._target.host

    @property
    def log(self) -> Callable[[float], Awaitable[Sequence[tuple[float, str]]]] | None:
        return self._target.log

    def jobs(self, cell: Cell, number: int, prompts: Prompts) -> list[dict[str, Any]]:
        target = self._target
        if self._spec.at == "host":
            assert target.address is not None
            address: dict[str, Any] = {"host": target.address[0], "port": target.address[1]}
            processes = SHARDS_ON_HOST
        else:
            end = target.endpoint
            address = {"uds": end.uds, "host": end.host, "port": end.port}
            processes = load.cores()
        return jobs.make(
            self._spec,
            cell,
            prompts,
            address=address,
            rid=f"{self.burst.id}-{number}",
            api_key=target.api_key,
            processes=processes,
        )

    async def send(self, job: dict[str, Any], sink: load.Sink) -> None:
        target = self._target
        if self._spec.at == "host":
            assert target.host is not None
            await load.on_host(target.host, target.python or "python3", job, sink)
        else:
            await load.here(job, sink)

    def progress(self, point: Point, part: float, elapsed: float, left: float | None, text: str) -> None:
        """A running cell: its part that is done, 0..1, seconds so far and, where it can be told, to go."""
        cells, done = len(self._spec.cells), len(self._spent)
        eta = None
        if left is not None:
            typical = sum(self._spent) / done if done else elapsed + left
            eta = max(0.0, left) + (cells - done - 1) * typical
        self._publish(
            state=BurstState.RUNNING,
            text=text,
            points=(*self._final_points(), point),
            fraction=min(0.999, (done + part) / cells),
            eta_seconds=eta,
        )


class _Loading:
    """One cell's load, from the first request to the final point."""

    def __init__(
        self,
        burst: _Running,
        cell: Cell,
        raw: TextIO,
        number: int,
        watch: Watch,
        prompts: Prompts,
    ) -> None:
        self._burst = burst
        self._cell = cell
        self._raw = raw
        self._watch = watch
        self._prompts = prompts
        self._jobs = burst.jobs(cell, number, prompts)
        self._records: list[RequestRecord] = []
        self._gpus = GpuWatch(burst.host)
        self._unfilled: float | None = None
        self._lag: float | None = None
        self._quiet = 0.0  # s since the last byte of all
        self._why: list[str] = []
        self._ahead = 0.0  # s that our clock is ahead of the worker's
        self._began = time.monotonic()
        self._started_at = time.time()

    async def run(self) -> Point:
        """The final point. Cancelled: all records are on disk, and the burst's last point holds them."""
        try:
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(self._watch.run())
                looking = group.create_task(self._gpus.run())
                drawing = group.create_task(self._draw())
                loads = [group.create_task(self._burst.send(job, self._see)) for job in self._jobs]
                await asyncio.wait(loads)
                watching.cancel()
                looking.cancel()
                drawing.cancel()
        except asyncio.CancelledError:
            point = metrics.point(self._state(final=True))
            self._burst.progress(point, 1.0, time.monotonic() - self._began, None, "")
            raise
        except ExceptionGroup as problems:
            problem = problems.exceptions[0]
            await self._burst.abort()  # the worker is gone, or nobody hears it
            if not isinstance(problem, BenchError | HostError) or not self._records:
                raise problem from None
            self._why.append(str(problem))
        answered = sum(record.first is not None for record in self._records)
        server = await self._watch.result(self._wall(), answered)
        server = await self._with_log(server)
        point = await asyncio.to_thread(metrics.point, replace(self._state(final=True), server=server))
        failed = [why for why in self._why if why not in ("all sent", "enough", "time is up")]
        return replace(point, marks=(*point.marks, *dict.fromkeys(failed)))

    async def _with_log(self, server: ServerSide) -> ServerSide:
        """With what the server's own log says of the steady window."""
        window, ask = metrics.steady_window(self._state(final=True)), self._burst.log
        if window is None or ask is None:
            return server
        now = time.monotonic()  # "ago" is from when it was asked, however long the answer took
        try:
            said = await ask(now - self._began + 1.0)
        except (HostError, TimeoutError):
            return server
        lines = server_log.decodes((now - ago, text) for ago, text in said)
        logged = server_log.summary(lines, window[0] + self._ahead, window[1] + self._ahead)
        if logged is None:
            return server
        return replace(
            server,
            log_rate=logged.rate,
            log_rate_error=logged.rate_error,
            log_accept=logged.accept,
            log_accept_error=logged.accept_error,
            log_lines=logged.lines,
        )

    def _see(self, told: dict[str, Any]) -> None:
        """A worker's message."""
        match told["kind"]:
            case "hello":
                self._ahead = time.monotonic() - told["at"] / 1e9
            case "record":
                _append(
                    self._raw,
                    {**told, "cell": [self._cell.concurrency, self._cell.context, self._cell.workload]},
                )
                self._records.append(jobs.record(told, self._cell))
            case "unfilled":
                at = told["at"] / 1e9
                self._unfilled = at if self._unfilled is None else min(at, self._unfilled)
            case "tick" | "end":
                self._quiet = told.get("quiet_s", 0.0)
                if told["lag_p99_ms"] is not None:
                    self._lag = (
                        max(self._lag or 0.0, told["lag_p99_ms"])
                        if told["kind"] == "end"
                        else told["lag_p99_ms"]
                    )
                if told["kind"] == "end":
                    self._why.append(told["why"])

    def _state(self, *, final: bool) -> metrics.Run:
        return metrics.Run(
            cell=self._cell,
            started_at=self._started_at,
            seconds=time.monotonic() - self._began,
            records=tuple(self._records),
            unfilled=self._unfilled,
            lag_p99_ms=self._lag,
            output=self._burst.burst.spec.output if self._burst.burst.spec.ignore_eos else 0,
            final=final,
            place=self._burst.burst.spec.at,
            prompts=self._prompts.identity,
            others=self._watch.others,
            gpus=self._gpus.uses(),
            gpus_unknown=self._gpus.unknown,
        )

    async def _draw(self) -> None:
        """Points as they come."""
        spec = self._burst.burst.spec
        point, drawn, steady = metrics.point(self._state(final=False)), 0, 0.0
        while True:
            state = self._state(final=False)
            count = len(state.records)
            if count != drawn:
                point, drawn = await asyncio.to_thread(metrics.point, state), count
            warm = min(count, self._cell.concurrency)
            need = spec.requests or metrics.least_samples(self._cell.concurrency)
            done = max(0, count - self._cell.concurrency)
            if done and not steady:
                steady = state.seconds
            spent = (state.seconds - steady) / spec.max_seconds if steady else 0.0
            part = min(1.0, max(count / (self._cell.concurrency + need), spent))
            left = None
            if done and point.e2e_ms:
                each = point.e2e_ms.value / 1e3 / self._cell.concurrency
                left = min(spec.max_seconds - (state.seconds - steady), max(0, need - done) * each)
            text = (
                f"first wave: {warm} of {self._cell.concurrency}"
                if not done
                else f"{done} requests measured" + (f", {point.failed} failed" if point.failed else "")
            )
            if self._quiet > QUIET:
                text += f", nothing has come for {self._quiet:.0f} s"
            self._burst.progress(point, part, state.seconds, left, text)
            await asyncio.sleep(EVERY)

    def _wall(self) -> float:
        ends = [record.ended for record in self._records if record.ended is not None]
        return max(ends) - min(record.sent for record in self._records) if ends else 0.0


def _append(raw: TextIO, value: dict[str, Any]) -> None:
    raw.write(json.dumps(value, separators=(",", ":")) + "\n")
    raw.flush()
