"""The launcher: loads, listens, warms up, serves, drains, and ends as SGLang does."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from sglang.simulation import traffic
from sglang.simulation.api import Api
from sglang.simulation.http1 import Connection
from sglang.simulation.intake import Intake
from sglang.simulation.journal import access, log
from sglang.simulation.machine import Machine
from sglang.simulation.metrics import Metrics
from sglang.simulation.process import Children, end_with_stdin, kill_process_tree
from sglang.simulation.requests import Request
from sglang.simulation.scheduler import Scheduler
from sglang.simulation.startup import SchedulerDied, Startup
from sglang.simulation.switches import SWITCHES
from sglang.simulation.tokenizer import Tokenizer
from sglang.srt.server_args import ServerArgs

WARMUP_PROMPT = "The capital city of France is"
CUDA_ASSERT = (
    "RuntimeError: CUDA error: device-side assert triggered\n"
    "CUDA kernel errors might be asynchronously reported at some other API call, "
    "so the stacktrace below might be incorrect.\n"
)


def launch_server(server_args: ServerArgs) -> None:
    startup = Startup(server_args)
    children = Children(server_args.tp_size)
    end_with_stdin()
    startup.announce()
    try:
        machine = startup.load()
    except SchedulerDied:
        kill_process_tree(children)
        return
    asyncio.run(Server(machine, children).run())


class Server:
    def __init__(self, machine: Machine, children: Children) -> None:
        self.machine, self.args, self.children = machine, machine.server_args, children
        eos = machine.target.hf_text_config.get("eos_token_id", machine.target.hf_config.get("eos_token_id"))
        self.tokenizer = Tokenizer(machine.target.vocab_size, eos if isinstance(eos, int) else None)
        self.metrics = Metrics(machine, str(self.args.served_model_name))

    async def run(self) -> None:
        self.scheduler = Scheduler(self.machine, self.tokenizer, self.metrics)
        self.intake = Intake(self.machine, self.scheduler, self.tokenizer)
        self.api = Api(self.machine, self.scheduler, self.intake, self.metrics, self.crash)
        loop = asyncio.get_running_loop()
        for line in (f"Started server process [{os.getpid()}]", "Waiting for application startup."):
            log(f"INFO:     {line}")
        log("INFO:     Application startup complete.")
        await self._listen()
        loop.add_signal_handler(signal.SIGTERM, self.terminate)
        loop.add_signal_handler(signal.SIGINT, self.terminate)
        log(f"INFO:     Uvicorn running on {self.args.url()} (Press CTRL+C to quit)")
        await asyncio.gather(self.scheduler.run(), self._watch_children(), self._warm_up())

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()

        def connection() -> Connection:
            return Connection(self.api, self.metrics.http)

        try:
            if SWITCHES.uds:
                self._free_socket_path(SWITCHES.uds)
                await loop.create_unix_server(connection, SWITCHES.uds, backlog=2048)
            else:
                await loop.create_server(connection, self.args.host, self.args.port, backlog=2048)
        except OSError as e:
            if e.errno != errno.EADDRINUSE:
                raise
            log(
                f"ERROR:    [Errno {errno.EADDRINUSE}] error while attempting to bind on address "
                f"('{self.args.host}', {self.args.port}): address already in use"
            )
            log("INFO:     Waiting for application shutdown.")
            await asyncio.Event().wait()  # alive and holding the GPUs: the real one hangs here too

    @staticmethod
    def _free_socket_path(path: str) -> None:
        """Remove a socket that nobody listens on. Raises OSError(EADDRINUSE) where somebody does."""
        probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            probe.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            with suppress(FileNotFoundError):
                Path(path).unlink()
        else:
            raise OSError(errno.EADDRINUSE, "address already in use")
        finally:
            probe.close()

    # --- the first request ----------------------------------------------------------------------------

    async def _warm_up(self) -> None:
        await asyncio.sleep(SWITCHES.scaled(1.0))
        self._access("GET /model_info")
        if not self.args.skip_server_warmup:
            path = "/v1/chat/completions" if self.machine.target.is_multimodal else "/generate"
            if SWITCHES.fails("hang_warmup"):
                await asyncio.Event().wait()
            if SWITCHES.fails("warmup_error"):
                log(
                    "Initialization failed. warmup error: Traceback (most recent call last):\n"
                    '  File "/opt/sglang/sglang/srt/entrypoints/http_server.py", line 1984, in '
                    "_execute_server_warmup\n"
                    '    assert res.status_code == 200, f"{res.text}"\n'
                    "           ^^^^^^^^^^^^^^^^^^^^^^\n"
                    "AssertionError: Internal Server Error\n"
                )
                self._end()
            done = asyncio.get_running_loop().create_future()

            def on_tokens(request: Request) -> None:
                if request.finish_reason is not None and not done.done():
                    done.set_result(None)

            ids = self.tokenizer.encode(WARMUP_PROMPT)
            sampling = {"max_new_tokens": 8, "temperature": 0, "ignore_eos": True}
            request = self.intake.make("warmup", ids, sampling, counted=False)
            request.on_tokens = on_tokens
            self.scheduler.submit(request)
            await done
            self._access(f"POST {path}")
        self.api.ready, self.scheduler.in_no_time = True, False
        log("The server is fired up and ready to roll!")
        self.scheduler.hung = SWITCHES.fails("hang")
        if SWITCHES.fails("crash_after"):
            seconds = float(SWITCHES.failures["crash_after"] or 0)
            asyncio.get_running_loop().call_later(seconds, self.crash)
        if SWITCHES.traffic > 0 and not self.scheduler.hung:
            await traffic.run(self.scheduler, self.intake)

    def _access(self, request_line: str) -> None:
        access(f"127.0.0.1:{random.randint(32768, 60999)}", f"{request_line} HTTP/1.1", 200, "OK")

    # --- the end --------------------------------------------------------------------------------------

    def crash(self) -> None:
        """The scheduler dies of a CUDA error, and the server with it."""
        self.scheduler.hung = True
        self.scheduler.ranks.first(
            "Scheduler hit an exception: Traceback (most recent call last):\n"
            '  File "/opt/sglang/sglang/srt/managers/scheduler.py", line 3945, in run_scheduler_process\n'
            "    dispatch_event_loop(scheduler)\n"
            '  File "/opt/sglang/sglang/srt/managers/scheduler.py", line 1523, in event_loop_normal\n'
            "    result = self.run_batch(batch)\n"
            "             ^^^^^^^^^^^^^^^^^^^^^\n"
            f"{CUDA_ASSERT}"
        )
        self._sigquit()

    def _sigquit(self) -> NoReturn:
        log("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
        self._end()

    async def _watch_children(self) -> None:
        while True:
            await asyncio.sleep(max(SWITCHES.scaled(1.0), 0.05))
            dead = self.children.dead()
            if dead is not None:
                name, pid, code = dead
                log(
                    f"Subprocess {name} (pid={pid}) crashed with exit code {code}. "
                    "Triggering SIGQUIT for cleanup..."
                )
                self._sigquit()

    def terminate(self) -> None:
        if self.api.draining:
            return
        log("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
        self.api.draining = True
        self._draining = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        """The real server looks every five seconds, on a clock that SIGTERM does not start."""
        period = max(SWITCHES.scaled(5.0), 0.2)
        await asyncio.sleep(period * (time.monotonic() / period % 1.0))
        while True:
            if SWITCHES.force_shutdown:
                log("Signal SIGTERM received while force shutdown flag set. Force exiting.")
                self._end()
            remaining_rids = list(self.intake.rid_to_state)
            if SWITCHES.fails("stop_hangs") and not remaining_rids:
                remaining_rids = ["0f4bd1c8a9de4e52b1d7f3a26c5e9b70"]
            log(
                f"Gracefully exiting... Remaining number of requests {len(remaining_rids)}. "
                f"Remaining requests {remaining_rids=}."
            )
            if not remaining_rids:
                self._end()
            await asyncio.sleep(period)

    def _end(self) -> NoReturn:
        if SWITCHES.uds:
            with suppress(FileNotFoundError):
                Path(SWITCHES.uds).unlink()
        kill_process_tree(self.children)
        raise SystemExit(137)
