"""The HTTP API: SGLang's own paths. Shapes, status codes and sentences are those of the captured 0.5.11."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import secrets
import time
from collections.abc import Awaitable
from datetime import datetime, timezone
from typing import Any, Callable

import sglang
from sglang.simulation.answers import GenerateStream, MetaInfo, Whole, dumps, whole_answer
from sglang.simulation.http1 import Connection, HttpRequest, Response, json_response
from sglang.simulation.intake import Intake, Refused, TokenOutOfRange
from sglang.simulation.journal import log
from sglang.simulation.machine import Machine
from sglang.simulation.metrics import Metrics
from sglang.simulation.openai import OpenAI
from sglang.simulation.scheduler import Scheduler
from sglang.simulation.switches import SWITCHES

Route = Callable[[HttpRequest, Connection], Awaitable["Response | None"]]
LIVE_CHANGES = (
    "pp_max_micro_batch_size",
    "speculative_accept_threshold_single",
    "speculative_accept_threshold_acc",
)
ADMIN_PATHS = ("/flush_cache", "/abort_request", "/set_internal_state")
HEALTH_TIMEOUT = 20  # in units of the time that a healthy answer takes


def bad_json(path: str, error: str) -> Response:
    """FastAPI's answer to a body that is no JSON, in SGLang's wrapping."""
    problem = (
        "{'type': 'json_invalid', 'loc': ('body', 1), 'msg': 'JSON decode error', 'input': {}, "
        f"'ctx': {{'error': {error!r}}}}}"
    )
    message = (
        f"1 validation error:\n  {problem}\n\n"
        '  File "/opt/sglang/sglang/srt/entrypoints/http_server.py", line 701, in generate_request'
        f"\n    POST {path} [{problem}]"
    )
    return json_response(
        {"object": "error", "message": message, "type": "Bad Request", "param": None, "code": 400}, 400
    )


class Api:
    def __init__(
        self,
        machine: Machine,
        scheduler: Scheduler,
        intake: Intake,
        metrics: Metrics,
        crash: Callable[[], None],
    ) -> None:
        self.machine, self.scheduler, self.intake, self.metrics = machine, scheduler, intake, metrics
        self.args, self._crash = machine.server_args, crash
        self.ready = self.draining = False
        openai = OpenAI(machine, scheduler, intake, crash)
        self._routes: dict[tuple[str, str], Route] = {}
        for methods, path, route in (
            ("GET", "/", self.root),
            ("GET", "/ping", self.empty),
            ("GET", "/health", self.health),
            ("GET", "/health_generate", self.health),
            ("GET", "/model_info", self.model_info),
            ("GET", "/get_model_info", self.model_info),
            ("GET", "/server_info", self.server_info),
            ("GET", "/get_server_info", self.server_info),
            ("GET", "/get_load", self.get_load),
            ("GET", "/v1/loads", self.loads),
            ("GET", "/v1/models", self.models),
            ("POST PUT", "/generate", self.generate),
            ("GET POST", "/flush_cache", self.flush_cache),
            ("POST", "/abort_request", self.abort_request),
            ("POST PUT", "/set_internal_state", self.set_internal_state),
            ("POST", "/tokenize", self.tokenize),
            ("POST", "/v1/tokenize", self.tokenize),
            ("POST", "/detokenize", self.detokenize),
            ("POST", "/v1/detokenize", self.detokenize),
            ("POST", "/v1/completions", openai.completions),
            ("POST", "/v1/chat/completions", openai.chat),
            *([("GET", "/metrics", self.metrics_text)] if self.args.enable_metrics else []),
        ):
            for method in methods.split():
                self._routes[method, path] = route
        self._paths = {path for _, path in self._routes}

    async def __call__(self, request: HttpRequest, connection: Connection) -> Response | None:
        denied = self._denied(request)
        if denied is not None:
            return denied
        route = self._routes.get((request.method, request.path))
        if route is None:
            if request.path in self._paths:
                return json_response({"detail": "Method Not Allowed"}, 405)
            return json_response({"detail": "Not Found"}, 404)
        return await route(request, connection)

    def _denied(self, request: HttpRequest) -> Response | None:
        if request.path.startswith(("/health", "/metrics")):
            return None
        api_key, admin_key = self.args.api_key, self.args.admin_api_key
        wanted = (admin_key or api_key) if request.path in ADMIN_PATHS else api_key
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if wanted and not (scheme.lower() == "bearer" and secrets.compare_digest(given, wanted)):
            return json_response({"error": "Unauthorized"}, 401)
        return None

    # --- reading ------------------------------------------------------------------------------------

    async def root(self, request: HttpRequest, connection: Connection) -> Response:
        return json_response("SGLang is running")

    async def empty(self, request: HttpRequest, connection: Connection) -> Response:
        return Response()

    async def health(self, request: HttpRequest, connection: Connection) -> Response:
        if self.draining:
            log("Health check request received during shutdown. Returning 503.")
            return Response(503)
        if not self.ready:
            return Response(503)
        if request.path == "/health" and not SWITCHES.health_generates:
            return Response()
        asked = time.time()
        if self.scheduler.idle:
            probe = self.intake.make(
                f"HEALTH_CHECK_{asked}", [0], {"max_new_tokens": 1, "temperature": 0}, counted=False
            )
            self.scheduler.submit(probe)
        for _ in range(HEALTH_TIMEOUT):
            await asyncio.sleep(SWITCHES.health_seconds)
            if self.scheduler.last_receive_ts > asked:
                return Response()
        log(
            "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds. "
            f"tic start time: {time.strftime('%H:%M:%S', time.localtime(asked))}. last_heartbeat time: "
            f"{time.strftime('%H:%M:%S', time.localtime(self.scheduler.last_receive_ts))}"
        )
        return Response(503)

    def _deprecated(self, request: HttpRequest, new: str) -> None:
        if request.path != new:
            log(
                f"Endpoint '{request.path}' is deprecated and will be removed in a future version. "
                f"Please use '{new}' instead."
            )

    async def model_info(self, request: HttpRequest, connection: Connection) -> Response:
        self._deprecated(request, "/model_info")
        target = self.machine.target
        return json_response(
            {
                "model_path": self.args.model_path,
                "tokenizer_path": self.args.tokenizer_path,
                "is_generation": True,
                "preferred_sampling_params": self.args.preferred_sampling_params,
                "weight_version": self.args.weight_version,
                "has_image_understanding": target.is_multimodal,
                "has_audio_understanding": False,
                "model_type": target.model_type,
                "architectures": target.architectures,
            }
        )

    async def _while_hung(self) -> None:
        """What the scheduler has to answer never comes while it hangs."""
        if self.scheduler.hung:
            await asyncio.Event().wait()

    async def server_info(self, request: HttpRequest, connection: Connection) -> Response:
        self._deprecated(request, "/server_info")
        await self._while_hung()
        arguments = dataclasses.asdict(self.args)
        state = {
            **arguments,
            "use_mla_backend": self.machine.target.use_mla,
            "last_gen_throughput": self.scheduler.last_gen_throughput,
            "memory_usage": {
                "weight": round(self.machine.weight_gb, 2),
                "kvcache": round(self.machine.kv_gb, 2),
                "token_capacity": self.machine.max_total_num_tokens,
                "graph": round(self.machine.graph_gb, 2),
            },
            "effective_max_running_requests_per_dp": self.scheduler.max_running_requests,
        }
        average = self.scheduler.average_accept_length
        if average is not None:
            state["avg_spec_accept_length"] = average
        return json_response(
            {
                **arguments,
                "status": "ready",
                "max_total_num_tokens": self.machine.max_total_num_tokens,
                "max_req_input_len": self.machine.target.context_len - 6,
                "internal_states": [state],
                "version": sglang.__version__,
            }
        )

    async def get_load(self, request: HttpRequest, connection: Connection) -> Response:
        self._deprecated(request, "/v1/loads")
        await self._while_hung()
        scheduler = self.scheduler
        pending = scheduler.pending_tokens
        return json_response(
            [
                {
                    "dp_rank": None,
                    "num_reqs": len(scheduler.requests()),
                    "num_waiting_reqs": len(scheduler.waiting),
                    "num_tokens": scheduler.used_tokens + pending,
                    "num_pending_tokens": pending,
                    "ts_tic": time.perf_counter(),
                }
            ]
        )

    async def loads(self, request: HttpRequest, connection: Connection) -> Response:
        """As the source of 0.5.11 has it; the captured server answered 500, for reasons of its set-up."""
        await self._while_hung()
        include = set(filter(None, request.query.get("include", "core").split(",")))
        scheduler, gauges = self.scheduler, self.metrics.gauges
        running, waiting = len(scheduler.running), len(scheduler.waiting)
        used = scheduler.used_tokens
        load: dict[str, Any] = {
            "num_running_reqs": running,
            "num_waiting_reqs": waiting,
            "num_used_tokens": used,
            "num_total_tokens": used + scheduler.pending_tokens,
            "max_total_num_tokens": self.machine.max_total_num_tokens,
            "token_usage": round(scheduler.token_usage, 4),
            "gen_throughput": round(gauges["gen_throughput"], 2),
            "cache_hit_rate": round(gauges["cache_hit_rate"], 4),
            "utilization": 0.0,
            "max_running_requests": scheduler.max_running_requests,
        }
        if include & {"memory", "all"}:
            load["memory"] = {
                "weight_gb": round(self.machine.weight_gb, 3),
                "kv_cache_gb": round(self.machine.kv_gb, 3),
                "graph_gb": round(self.machine.graph_gb, 3),
                "token_capacity": self.machine.max_total_num_tokens,
            }
        average = scheduler.average_accept_length
        if include & {"spec", "all"} and average is not None:
            load["speculative"] = {"accept_length": average, "accept_rate": gauges["spec_accept_rate"]}
        if include & {"queues", "all"}:
            load["queues"] = {"waiting": waiting, "grammar": 0, "paused": 0, "retracted": 0}
        load["num_total_reqs"] = running + waiting
        aggregate = {
            "total_running_reqs": running,
            "total_waiting_reqs": waiting,
            "total_reqs": running + waiting,
            "total_used_tokens": used,
            "total_tokens": load["num_total_tokens"],
            "avg_token_usage": load["token_usage"],
            "avg_throughput": load["gen_throughput"],
            "avg_utilization": 0.0,
        }
        return json_response(
            {
                "timestamp": datetime.now(timezone.utc).isoformat(),
                "version": sglang.__version__,
                "dp_rank_count": 1,
                "loads": [load],
                "aggregate": aggregate,
            }
        )

    async def models(self, request: HttpRequest, connection: Connection) -> Response:
        name = self.args.served_model_name
        card = {
            "id": name,
            "object": "model",
            "created": int(time.time()),
            "owned_by": "sglang",
            "root": name,
        }
        card |= {"parent": None, "max_model_len": self.machine.target.context_len}
        return json_response({"object": "list", "data": [card]})

    async def metrics_text(self, request: HttpRequest, connection: Connection) -> Response:
        return Response(200, self.metrics.text().encode(), "text/plain; version=0.0.4; charset=utf-8")

    # --- acting -------------------------------------------------------------------------------------

    def _body(self, request: HttpRequest) -> dict[str, Any] | Response:
        try:
            body = json.loads(request.body)
        except ValueError as e:
            return bad_json(request.path, getattr(e, "msg", str(e)))
        return (
            body if isinstance(body, dict) else bad_json(request.path, "Input should be a valid dictionary")
        )

    async def flush_cache(self, request: HttpRequest, connection: Connection) -> Response:
        await self._while_hung()
        until = time.monotonic() + float(request.query.get("timeout", 0) or 0)
        while not self.scheduler.idle and time.monotonic() < until:  # noqa: ASYNC110 (a state, not an event)
            await asyncio.sleep(0.02)
        if self.scheduler.flush_cache():
            return Response(
                200,
                b"Cache flushed.\nPlease check backend logs for more details. "
                b"(When there are running or waiting requests, the operation will not be performed.)\n",
            )
        return Response(400, b"Flush cache failed.\n")

    async def abort_request(self, request: HttpRequest, connection: Connection) -> Response:
        body = self._body(request)
        if isinstance(body, Response):
            return body
        self.intake.abort(str(body.get("rid") or ""), bool(body.get("abort_all")))
        return Response()

    async def set_internal_state(self, request: HttpRequest, connection: Connection) -> Response:
        body = self._body(request)
        if isinstance(body, Response):
            return body
        await self._while_hung()
        changes = body.get("server_args") or {}
        ranks = self.scheduler.ranks
        for name in changes:
            if name not in LIVE_CHANGES:
                ranks.every(f"Updating {name} is not supported.")
                return json_response([True])
        average = self.scheduler.average_accept_length
        if average is not None:
            ranks.every(f"avg_spec_accept_length={average}")
        self.scheduler.reset_accept_average()
        for name, value in changes.items():
            setattr(self.args, name, value)
        ranks.every(f"Global server args updated! get_global_server_args()={self.args!r}")
        return json_response([True])

    async def tokenize(self, request: HttpRequest, connection: Connection) -> Response:
        body = self._body(request)
        if isinstance(body, Response):
            return body
        prompt = body.get("prompt")
        texts = prompt if isinstance(prompt, list) else [prompt or ""]
        tokens = [self.intake.tokenizer.encode(str(text)) for text in texts]
        counts = list(map(len, tokens))
        single = not isinstance(prompt, list)
        return json_response(
            {
                "tokens": tokens[0] if single else tokens,
                "count": counts[0] if single else counts,
                "max_model_len": self.machine.target.context_len,
            }
        )

    async def detokenize(self, request: HttpRequest, connection: Connection) -> Response:
        body = self._body(request)
        if isinstance(body, Response):
            return body
        tokens = body.get("tokens") or []
        nested = bool(tokens) and isinstance(tokens[0], list)
        decode = self.intake.tokenizer.decode
        return json_response({"text": [decode(one) for one in tokens] if nested else decode(tokens)})

    # --- generating ---------------------------------------------------------------------------------

    async def generate(self, request: HttpRequest, connection: Connection) -> Response | None:
        body = self._body(request)
        if isinstance(body, Response):
            return body
        stream = bool(body.get("stream"))
        sampling = body.get("sampling_params") or {}
        sampling = sampling[0] if isinstance(sampling, list) else sampling
        try:
            prompts, batch = self.intake.prompts(body)
            rids = self.intake.rids(body.get("rid"), len(prompts))
            for rid, ids in zip(rids, prompts):
                self.intake.check(rid, ids, sampling)
                self.intake.check_algorithm(rid, body, sampling)
            return await self._generate(connection, rids, prompts, sampling, stream, batch)
        except Refused as e:
            log(f"[http_server] Error: {e}")
            error = {"error": {"message": str(e)}}
            if not stream:
                return json_response(error, 400)
            connection.start_stream()
            connection.write_chunk(b"data: ", dumps(error), b"\n\n")
            self._end(connection)
            return None
        except TokenOutOfRange:
            self._crash()
            await asyncio.Event().wait()  # no answer ever comes: the process is about to end
            return None

    async def _generate(
        self,
        connection: Connection,
        rids: list[str],
        prompts: list[list[int]],
        sampling: dict[str, Any],
        stream: bool,
        batch: bool,
    ) -> Response | None:
        requests, metas = [], []
        sinks: list[GenerateStream | Whole] = []
        proposed = max((self.args.speculative_num_draft_tokens or 1) - 1, 0)
        for rid, ids in zip(rids, prompts):
            request = self.intake.make(rid, ids, sampling)
            meta = MetaInfo(request, self.args.weight_version, proposed)
            sink: GenerateStream | Whole = Whole()
            if stream:
                interval, incremental = self.args.stream_interval, self.args.incremental_streaming_output
                sink = GenerateStream(connection, meta, interval, incremental)
            request.on_tokens = sink
            requests.append(request)
            metas.append(meta)
            sinks.append(sink)

        def gone() -> None:
            for request in requests:
                self.scheduler.abort(request)

        connection.on_disconnect = gone
        if stream:
            connection.start_stream()
        for request in requests:
            self.scheduler.submit(request)
        await asyncio.gather(*(sink.done for sink in sinks))
        if stream:
            self._end(connection)
            return None
        answers = [whole_answer(request, meta) for request, meta in zip(requests, metas)]
        return json_response(answers if batch else answers[0])

    @staticmethod
    def _end(connection: Connection) -> None:
        connection.write_chunk(b"data: [DONE]\n\n")
        connection.end_stream()
