"""A scripted session: a GPU host as the console sees it, without a host. Tests drive it step by step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

from ddtui.bench.experiment import ExperimentPlan, Order
from ddtui.bench.model import Burst, BurstSpec, BurstState, Cell, Estimate, Point
from ddtui.bench.quality import Quality
from ddtui.host.base import Asker, HostKey, Link, LinkState, LoggedCommand
from ddtui.host.gpu import GpuLoad
from ddtui.past import Past
from ddtui.profile import Bench, Connection, Knob, Profile, Service
from ddtui.session import AskKill, JournalLine
from ddtui.tuning.experiments import ExperimentState
from ddtui.tuning.forecast import Forecast
from ddtui.tuning.model import (
    Evidence,
    FileEdit,
    Fingerprint,
    KnobRow,
    Layer,
    NextAction,
    Op,
    Phase,
    Plan,
    Progress,
    Status,
    Turn,
    Verdict,
)
from ddtui.tuning.stages import STAGES
from ddtui.view import (
    Decode,
    DrafterView,
    Fact,
    FlagRow,
    ServerView,
    ServiceView,
    TuneView,
)

NOW = 1_780_000_000.0  # a fixed clock: 2026-05-28


def make_profile(**changes: object) -> Profile:
    given: dict[str, object] = {
        "name": "ct200",
        "about": "Kimi K2.6 with a DFlash drafter and DDTree",
        "connection": Connection(host="ct200"),
        "service": Service(unit="sglang-k26-ddtree.service"),
        "knobs": (
            Knob(
                name="budget",
                flag="--speculative-ddtree-budget",
                key="b",
                min=1,
                max=256,
                presets=(4, 8, 16, 32, 64),
                meaning="nodes of the draft tree that are verified per step",
            ),
            Knob(
                name="topk",
                flag="--speculative-ddtree-topk-cap",
                key="t",
                min=1,
                max=16,
                presets=(1, 2, 4, 8),
                meaning="children considered per position",
            ),
            Knob(
                name="window",
                flag="--speculative-dflash-draft-window-size",
                key="w",
                min=16,
                max=262144,
                presets=(512, 1024, 2048, 4096),
                meaning="recent tokens that the drafter's attention sees",
            ),
        ),
        "bench": Bench(concurrency=(1, 8, 32), context=(512, 8192)),
    }
    return Profile.model_validate({**given, **changes})


FLAGS = (
    FlagRow("--model-path", "/data/models/Kimi-K2.6", "/data/models/Kimi-K2.6"),
    FlagRow("--tp-size", "8", "8"),
    FlagRow("--speculative-algorithm", "DDTREE", "DDTREE"),
    FlagRow(
        "--speculative-draft-model-path", "/data/models/Kimi-K2.6-DFlash", "/data/models/Kimi-K2.6-DFlash"
    ),
    FlagRow("--speculative-ddtree-budget", "8", "8"),
    FlagRow("--speculative-ddtree-topk-cap", "4", "4"),
    FlagRow("--mem-fraction-static", "0.85", "0.88"),
    FlagRow("--attention-backend", "triton", "triton"),
    FlagRow("--trust-remote-code", "", ""),
    FlagRow("--enable-metrics", "", None),
    FlagRow("--host", "0.0.0.0", "0.0.0.0"),
    FlagRow("--port", "30000", "30000"),
)

VERDICTS = (
    Verdict(
        "window.layers",
        "draft window: the config's own sliding layers",
        Status.NOT_IN_FORCE,
        "2048",
        "The config slides 5 of 6 layers at 2048 tokens; SGLang 0.5.11 does not read that.",
        (
            Evidence(
                Layer.DRAFTER,
                "sliding_window 2048, layer_types 5 sliding and 1 full",
                "/data/models/Kimi-K2.6-DFlash/config.json",
            ),
            Evidence(Layer.ENGINE, "0.5.11 does not read layer_types of a DFlash drafter", "/opt/sglang"),
            Evidence(Layer.JOURNAL, "no line says a draft window", "12:00:41"),
        ),
        next=(NextAction("turn", "set the window flag to 2048", {"knob": "window", "value": "2048"}),),
    ),
    Verdict(
        "budget",
        "budget",
        Status.IN_FORCE,
        "8",
        "Unit, process and server agree.",
        (
            Evidence(Layer.UNIT, "--speculative-ddtree-budget 8", "sglang-k26-ddtree.service:14"),
            Evidence(Layer.SERVER, "speculative_ddtree_budget = 8", "GET /server_info"),
        ),
    ),
    Verdict(
        "topk",
        "topk",
        Status.IN_FORCE,
        "4",
        "Unit, process and server agree.",
        (Evidence(Layer.SERVER, "speculative_ddtree_topk_cap = 4", "GET /server_info"),),
    ),
    Verdict(
        "window.flag",
        "draft window: the flag",
        Status.UNKNOWN,
        None,
        "The flag is absent and nothing was measured.",
        (Evidence(Layer.UNIT, "--speculative-dflash-draft-window-size is absent"),),
        settle="a burst at long context, with and without the flag",
        next=(NextAction("burst", "run a burst"),),
    ),
)


def make_view(**changes: object) -> TuneView:
    """A host in good order, with the finding that every new user sees first."""
    given: dict[str, object] = {
        "link": Link(LinkState.CONNECTED, "root@ct200:22", rtt_ms=11.2, since=NOW - 600),
        "gpus": tuple(GpuLoad(i, 120_832, 143_360, 80 + i, 500.0 + i, 700.0, 1980, 1980) for i in range(8)),
        "drafter": DrafterView(
            "Kimi-K2.6-DFlash",
            "/data/models/Kimi-K2.6-DFlash/config.json",
            (
                Fact("family", "DFLASH"),
                Fact("layers", "6"),
                Fact("block_size", "16"),
                Fact("sliding_window", "2048", warn=True),
                Fact("layer_types", "5 sliding, 1 full"),
                Fact("use_sliding_window", "true"),
                Fact("max_position", "262144", "yarn ×64"),
                Fact("dtype", "bfloat16"),
                Fact("target layers", None),
            ),
            read_at=NOW - 4,
        ),
        "service": ServiceView(
            "sglang-k26-ddtree.service", "active", "running", NOW - 7980, 41210, flags=FLAGS, read_at=NOW - 2
        ),
        "server": ServerView("0.5.11", "DDTREE", 3, 0, read_at=NOW - 2),
        "knobs": (
            KnobRow("budget", "--speculative-ddtree-budget", "8", "8", "8"),
            KnobRow("topk", "--speculative-ddtree-topk-cap", "4", "4", "4"),
            KnobRow("window", "--speculative-dflash-draft-window-size", None, None, None),
        ),
        "verdicts": VERDICTS,
        "known_flags": (
            FlagRow("--max-running-requests", None, None, help="The maximum number of running requests."),
            FlagRow(
                "--mem-fraction-static", None, None, help="Fraction of the memory used for static allocation."
            ),
        ),
        "step": 7,
        "surveyed": True,
    }
    return TuneView(**{**given, **changes})  # type: ignore[arg-type]


def decode_line(at: float, rate: float, accept: float, running: int = 8) -> JournalLine:
    text = (
        f"[2026-05-28 12:00:00 TP0] Decode batch, #running-req: {running}, #full token: 18213, token usage: 0.04, "
        f"accept len: {accept:.2f}, accept rate: 0.31, cuda graph: True, "
        f"gen throughput (token/s): {rate:.2f}, #queue-req: 0"
    )
    return JournalLine(at, text, decode=Decode(at, rate, accept, running, 0))


def journal(count: int = 60) -> list[JournalLine]:
    lines = [
        JournalLine(NOW - 7980, "Started sglang-k26-ddtree.service - SGLang with DDTree."),
        JournalLine(
            NOW - 7970,
            "[2026-05-28 09:47:10] Attention backend not specified. Use triton backend by default.",
        ),
        JournalLine(
            NOW - 7969,
            "[2026-05-28 09:47:11] WARNING  Overlap scheduler is disabled when using DFLASH speculative decoding.",
        ),
        JournalLine(
            NOW - 7900,
            "[2026-05-28 09:48:10] KV Cache is allocated. #tokens: 1551735, K size: 34.73 GB, V size: 34.73 GB",
        ),
        JournalLine(NOW - 7850, "[2026-05-28 09:49:10] The server is fired up and ready to roll!"),
    ]
    for i in range(count):
        lines.append(decode_line(NOW - count + i, 640 + 180 * ((i * 7) % 11) / 11, 4.0 + ((i * 5) % 13) / 10))
    return lines


def estimate(value: float, spread: float = 0.05, n: int = 40) -> Estimate:
    return Estimate(value, value * (1 - spread), value * (1 + spread), n)


def make_point(cell: Cell, rate: float, accept: float, *, final: bool = True) -> Point:
    return Point(
        cell,
        NOW - 300,
        12.0,
        40,
        0,
        estimate(rate),
        rate * 0.9,
        estimate(rate / cell.concurrency),
        estimate(120.0 + cell.context / 40),
        estimate(1000 * cell.concurrency / rate),
        estimate(38.0),
        estimate(accept, 0.03),
        estimate(4000.0),
        0.4,
        0,
        final,
        not final,
    )


def make_burst(id: str, step: int, lift: float = 1.0, **changes: object) -> Burst:
    cells = tuple(Cell(c, n) for n in (512, 8192) for c in (1, 8, 32))
    points = tuple(
        make_point(
            cell,
            lift * 110 * cell.concurrency**0.72 * (1.0 if cell.context == 512 else 0.84),
            lift * (4.9 if cell.context == 512 else 4.1),
        )
        for cell in cells
    )
    burst = Burst(id, step, BurstSpec(cells), BurstState.DONE, points=points, fraction=1.0)
    return replace(burst, **changes)  # type: ignore[arg-type]


DIFF = """\
--- /dev/null
+++ /etc/systemd/system/sglang-k26-ddtree.service.d/90-ddtui.conf
@@ -0,0 +1,4 @@
+# written by ddtui; remove this file to undo
+[Service]
+ExecStart=
+ExecStart=/opt/sglang/bin/python -m sglang.launch_server --speculative-dflash-draft-window-size 2048
"""


def make_plan(turns: Sequence[Turn], **changes: object) -> Plan:
    path = "/etc/systemd/system/sglang-k26-ddtree.service.d/90-ddtui.conf"
    plan = Plan(
        "sglang-k26-ddtree.service",
        tuple(turns),
        (FileEdit(path, None, b"[Service]\n", True),),
        ("python", "-m", "sglang.launch_server"),
        ("python", "-m", "sglang.launch_server", "--speculative-dflash-draft-window-size", "2048"),
        (
            ("tee", "--", f"{path}.new"),
            ("mv", "-T", "--", f"{path}.new", path),
            ("systemctl", "daemon-reload"),
            ("systemctl", "restart", "--no-block", "sglang-k26-ddtree.service"),
        ),
        DIFF,
        Fingerprint({path: ""}, "0f3c", "0.5.11 /opt/sglang"),
        "3 running requests, 0 queued",
        (271.0, 268.0, 290.0),
    )
    return replace(plan, **changes)  # type: ignore[arg-type]


def make_forecast(wanted: ExperimentPlan, **changes: object) -> Forecast:
    """Starts of 4 min 31 s and bursts of 20 s a cell."""
    trials = len(wanted.settings) or (wanted.trials or 0)
    if wanted.order in (Order.AB, Order.ABBA):
        trials = len(wanted.order)
    forecast = Forecast(wanted, trials, trials, 271.0, 20.0 * trials * len(wanted.cells), len(wanted.cells))
    return replace(forecast, **changes)  # type: ignore[arg-type]


class FakeSession:
    """A Session whose streams are queues: a test puts what comes next, None ends a stream."""

    def __init__(self, profile: Profile | None = None, view: TuneView | None = None) -> None:
        self.profile = profile or make_profile()
        self.view = view or make_view()
        self.calls: list[object] = []
        self.lines: asyncio.Queue[Sequence[JournalLine]] = asyncio.Queue()
        self.older: dict[str, list[JournalLine]] = {}  # before the line with this cursor
        self.clock = NOW  # the host's
        self.progress: asyncio.Queue[Progress | Exception | None] = asyncio.Queue()
        self.bursts: asyncio.Queue[Burst | Exception | None] = asyncio.Queue()
        self.checks: asyncio.Queue[Quality | Exception] = asyncio.Queue()
        self.earlier: list[Burst] = []
        self.connect_error: Exception | None = None
        self.key: HostKey | None = None  # asks to trust this on connecting
        self.secret: tuple[str, str] | None = None  # asks for this secret on connecting
        self.answers: list[object] = []
        self.gate: asyncio.Event | None = None  # connecting waits for this
        self.plan_changes: dict[str, object] = {}
        self.burst_closed = False
        self.past: Past | None = None
        self.forecasts: list[Forecast | Exception] = []  # what the next forecasts are; else made of the plan
        self.states: asyncio.Queue[ExperimentState | Exception | None] = asyncio.Queue()
        self.experiment_closed = False
        self.closed = False
        self._callback: Callable[[TuneView], None] = lambda view: None
        self._on_command: Callable[[LoggedCommand], None] = lambda command: None

    @property
    def now(self) -> TuneView:
        return self.view

    def on_view(self, callback: Callable[[TuneView], None]) -> None:
        self._callback = callback

    def on_command(self, callback: Callable[[LoggedCommand], None]) -> None:
        self._on_command = callback

    def show(self, **changes: object) -> None:
        """What is known changes."""
        self.view = replace(self.view, **changes)  # type: ignore[arg-type]
        self._callback(self.view)

    def ran(self, *argv: str, code: int | None = 0) -> None:
        self._on_command(LoggedCommand(NOW, argv, False, code, 0.012))

    async def connect(self, asker: Asker) -> None:
        self.calls.append("connect")
        if self.gate is not None:
            await self.gate.wait()
        if self.key is not None:
            self.answers.append(await asker.trust(self.key))
        if self.secret is not None:
            self.answers.append(await asker.secret(self.secret[0], purpose=self.secret[1]))
        if self.connect_error is not None:
            raise self.connect_error

    async def watch(self) -> None:
        self._callback(self.view)
        await asyncio.Event().wait()

    async def refresh(self) -> None:
        self.calls.append("refresh")

    async def journal(self) -> AsyncIterator[Sequence[JournalLine]]:
        while True:
            yield await self.lines.get()

    async def earlier_lines(self, before: str, count: int) -> Sequence[JournalLine]:
        self.calls.append(("earlier", before, count))
        return self.older.pop(before, [])

    async def host_time(self) -> float:
        return self.clock

    async def unit_text(self, file: str) -> Sequence[str]:
        self.calls.append(("unit_text", file))
        return ["# /etc/systemd/system/sglang.service", "[Service]", f"# {file}", "ExecStart=[/usr/bin/x]"]

    async def start_lines(self) -> Sequence[str]:
        self.calls.append("start_lines")
        return [
            "12:00:00 server_args=…",
            "12:00:01 Initialized draft runner. draft_window_size=2048",
            "12:00:02 y",
        ]

    async def plan(self, turns: Sequence[Turn]) -> Plan:
        self.calls.append(("plan", tuple(turns)))
        return make_plan(turns, **self.plan_changes)

    async def plan_back(self) -> Plan:
        self.calls.append("plan_back")
        return make_plan((Turn("window", Op.UNSET),), **self.plan_changes)

    async def _progress(self) -> AsyncIterator[Progress]:
        while True:
            progress = await self.progress.get()
            if progress is None:
                return
            if isinstance(progress, Exception):
                raise progress
            yield progress

    def apply(self, plan: Plan, ask_kill: AskKill) -> AsyncIterator[Progress]:
        self.calls.append(("apply", plan.turns))
        return self._progress()

    def restart(self, ask_kill: AskKill) -> AsyncIterator[Progress]:
        self.calls.append("restart")
        return self._progress()

    def resume(self, *, undo: bool, ask_kill: AskKill) -> AsyncIterator[Progress]:
        self.calls.append(("resume", undo))
        return self._progress()

    async def burst(self, spec: BurstSpec) -> AsyncIterator[Burst]:
        self.calls.append(("burst", spec))
        try:
            while True:
                burst = await self.bursts.get()
                if burst is None:
                    return
                if isinstance(burst, Exception):
                    raise burst
                yield burst
        finally:
            self.burst_closed = True

    async def check_output(self, tell: Callable[[str, float], None]) -> Quality:
        self.calls.append("check_output")
        tell("3 of 45 answers", 0.05)
        found = await self.checks.get()
        if isinstance(found, Exception):
            raise found
        return found

    async def forecast(self, wanted: ExperimentPlan, *, hosts: int = 1) -> Forecast:
        self.calls.append(("forecast", wanted))
        if self.forecasts:
            found = self.forecasts.pop(0)
            if isinstance(found, Exception):
                raise found
            return found
        return make_forecast(wanted)

    async def experiment(
        self, what: ExperimentPlan | str, *, also: Sequence[Profile] = (), asker: Asker | None = None
    ) -> AsyncIterator[ExperimentState]:
        self.calls.append(("experiment", what))
        self.shared = [one.name for one in also]
        try:
            while (state := await self.states.get()) is not None:
                if isinstance(state, Exception):
                    raise state
                yield state
        finally:
            self.experiment_closed = True

    async def earlier_bursts(self) -> Sequence[Burst]:
        return self.earlier

    async def close(self) -> None:
        self.closed = True


STARTING = Progress(
    Phase.STARTING,
    "capturing CUDA graphs, batch size 24",
    0.62,
    4.0,
    elapsed=7.0,
    change="20260528T120000-ab12",
    stages=tuple(STAGES),
)
FAILED = Progress(
    Phase.ROLLED_BACK,
    "the setting before is in force again",
    1.0,
    0.0,
    elapsed=41.0,
    failure="The draft window must be at least the block size: window_size=8, block_size=16.",
    evidence=(
        "ValueError: DFLASH --speculative-dflash-draft-window-size must be >= --speculative-num-draft-tokens (block_size).",
        "sglang-k26-ddtree.service: Main process exited, code=exited, status=1/FAILURE",
    ),
    advice="set the window to 16 or more",
)
