"""A sweep as it is picked: values of the knobs, cells, order, and what is left in force at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from ddtui.bench import grid
from ddtui.bench.experiment import OFF, ON, ExperimentPlan, Finish, Objective, Order, Setting
from ddtui.bench.target import BenchError
from ddtui.profile import Bench, Knob, KnobKind
from ddtui.tuning.model import KnobRow
from ddtui.widgets.pane import Pane
from ddtui.widgets.pick_line import PickLine, ValuePicks
from ddtui.words import parse_count, plural, tokens

WORKLOADS = ("code", "chat", "completion", "document")
CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64, 128)
CONTEXTS = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
ORDERS = (
    ("grid", "all, with full bursts"),
    ("halving", "halving: short for all, long for the best"),
    ("model", "model: where it sees most promise"),
)
FINISHES = (("best", "leave the best"), ("first", "put back what was"), ("stay", "leave the last"))
OBJECTIVES = (("throughput", "throughput"), ("per-user", "speed per user"))


class SweepForm(Pane):
    """The form. `Changed` tells that another sweep is wanted; `plan` is that sweep."""

    DEFAULT_CSS = """
    SweepForm {
        .field { height: 1; }
        .field > Static { width: 12; color: $muted; }
        Input { border: none; height: 1; padding: 0 1; background: $panel; width: 1fr; }
        Input:focus { border: none; background: $block-cursor-background; }
        Input.more { width: 13; }
        ValuePicks { margin-right: 1; }
    }
    """

    class Changed(Message):
        """Another sweep is wanted."""

    def __init__(self, knobs: Sequence[Knob], bench: Bench) -> None:
        super().__init__("Sweep: what to try", id="sweep-form", tab="Set up")
        self._knobs, self._bench = knobs, bench
        self._listed: tuple[Setting, ...] = ()  # settings that are no grid: meant while no value is picked
        self._rest = ExperimentPlan(  # what there is no field for
            (), (), at=bench.at, temperature=bench.temperature, max_seconds=bench.max_seconds
        )

    def compose(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            for label, *widgets in self._fields():
                with Horizontal(classes="field"):
                    yield Static(Content(label), markup=False)
                    yield from widgets

    def _fields(self) -> Iterator[tuple[str, *tuple[Widget, ...]]]:
        bench = self._bench
        for knob in self._knobs:
            more = Input(id=f"more-{knob.name}", classes="more", placeholder="others", compact=True)
            if knob.kind is KnobKind.SWITCH:
                yield knob.name, ValuePicks((ON, OFF), id=f"knob-{knob.name}")
            else:
                yield knob.name, ValuePicks(presets(knob, None), id=f"knob-{knob.name}"), more
        yield "any flags", Input(id="flags", placeholder="--flag=a,b --other=on,off", compact=True)
        yield (
            "concurrency",
            ValuePicks(
                map(
                    str,
                    sorted({c for c in CONCURRENCIES if c <= bench.max_concurrency} | set(bench.concurrency)),
                ),
                picked=map(str, bench.concurrency),
                id="concurrency",
            ),
        )
        yield (
            "context",
            ValuePicks(
                map(tokens, sorted({*CONTEXTS, *bench.context})),
                picked=map(tokens, bench.context),
                id="context",
            ),
        )
        workloads = dict.fromkeys((bench.workload, *WORKLOADS))
        yield "workload", PickLine([(name, name) for name in workloads], id="workload")
        yield (
            "output",
            Input(str(bench.output), id="output", placeholder="tokens", compact=True),
            Input(id="requests", placeholder="prompts", classes="more", compact=True),
        )
        yield (
            "order",
            PickLine(ORDERS, id="order"),
            Input(id="trials", placeholder="trials", classes="more", compact=True),
        )
        yield "best is", PickLine(OBJECTIVES, id="objective")
        yield "at the end", PickLine(FINISHES, id="finish")
        yield "hosts too", ValuePicks((), id="hosts")
        yield "note", Input(id="why", placeholder="why this sweep", compact=True)

    def on_mount(self) -> None:
        self._show_trials()
        self.offer_hosts(())

    def offer(self, rows: Sequence[KnobRow]) -> None:
        """What the unit says now: it is among the values, underlined."""
        for knob in self._knobs:
            row = next((row for row in rows if row.name == knob.name), None)
            now = OFF if row is None or row.in_unit is None else row.in_unit or ON
            picks = self.query_one(f"#knob-{knob.name}", ValuePicks)
            picks.offer((ON, OFF) if knob.kind is KnobKind.SWITCH else presets(knob, now), now)

    def offer_hosts(self, names: Sequence[str]) -> None:
        """The profiles of other hosts that may share the sweep; what was picked stays picked."""
        picks = self.query_one("#hosts", ValuePicks)
        picks.offer(names, None)
        assert isinstance(picks.parent, Widget)
        picks.parent.display = bool(names)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The profiles of the other hosts that are to share it."""
        return self.query_one("#hosts", ValuePicks).chosen

    def take(self, plan: ExperimentPlan) -> None:
        """Show this sweep."""
        values = grid.values_of(plan.settings)
        if values is None or any(set(", ") & set(value) for found in values.values() for value in found):
            values = {}
        self._rest, self._listed = plan, () if values else plan.settings
        for knob in self._knobs:
            given = values.pop(knob.name, ())
            picks = self.query_one(f"#knob-{knob.name}", ValuePicks)
            picks.set_picked(given)
            for more in self.query(f"#more-{knob.name}").results(Input):
                more.value = ",".join(value for value in given if value not in picks.values)
        self._type("flags", " ".join(f"{flag}={','.join(given)}" for flag, given in values.items()))
        self._pick("concurrency", [str(cell.concurrency) for cell in plan.cells])
        self._pick("context", [tokens(cell.context) for cell in plan.cells])
        for name, word in (
            ("workload", plan.cells[0].workload),
            ("order", plan.order),
            ("objective", plan.objective),
            ("finish", plan.finish),
        ):
            self.query_one(f"#{name}", PickLine).pick(str(word))
        for name, count in (("output", plan.output), ("requests", plan.requests), ("trials", plan.trials)):
            self._type(name, "" if count is None else str(count))
        self._type("why", plan.why)

    def _type(self, name: str, text: str) -> None:
        self.query_one(f"#{name}", Input).value = text

    def _pick(self, name: str, values: Sequence[str]) -> None:
        """Pick these counts; one that is not offered yet is from now on."""
        picks = self.query_one(f"#{name}", ValuePicks)
        picks.offer(sorted({*picks.values, *values}, key=parse_count), None)
        picks.set_picked(values)

    @on(Input.Changed)
    @on(PickLine.Changed)
    @on(ValuePicks.Changed)
    def _changed(self, event: Message) -> None:
        event.stop()
        self._show_trials()
        with suppress(BenchError):  # half typed
            listed = f"{plural(len(self._listed), 'listed setting')} until a value is picked"
            self.set_state(listed if self._listed and not self._values() else "")
        self.post_message(self.Changed())

    def _show_trials(self) -> None:
        self.query_one("#trials", Input).display = self.query_one("#order", PickLine).value == "model"

    def plan(self) -> ExperimentPlan:
        """The sweep that is picked. Raises ValueError or BenchError with a sentence."""
        text, picked = self._text, self._picked
        settings = grid.expand(values) if (values := self._values()) else self._listed
        if not settings:
            raise ValueError("pick values of a knob: space picks the value under the cursor, a all")
        concurrency = [int(value) for value in picked["concurrency"]]
        context = [parse_count(value) for value in picked["context"]]
        if not concurrency or not context:
            raise ValueError("pick at least one concurrency and one context length")
        return replace(
            self._rest,
            settings=settings,
            cells=grid.cells(concurrency, context, self.query_one("#workload", PickLine).value),
            order=Order(self.query_one("#order", PickLine).value),
            output=_count("output", text["output"]) or self._bench.output,
            requests=_count("prompts", text["requests"]),
            finish=_finish(self.query_one("#finish", PickLine).value),
            objective=_objective(self.query_one("#objective", PickLine).value),
            trials=_count("trials", text["trials"]) if self.query_one("#trials").display else None,
            why=text["why"],
        )

    @property
    def _text(self) -> dict[str, str]:
        return {field.id or "": field.value.strip() for field in self.query(Input)}

    @property
    def _picked(self) -> dict[str, tuple[str, ...]]:
        return {picks.id or "": picks.chosen for picks in self.query(ValuePicks)}

    def _values(self) -> dict[str, tuple[str, ...]]:
        """The grid: what is picked and typed, by knob and flag. Raises BenchError."""
        text, picked = self._text, self._picked
        values: dict[str, tuple[str, ...]] = {}
        for knob in self._knobs:
            more = text.get(f"more-{knob.name}", "").replace(",", " ").split()
            if chosen := tuple(dict.fromkeys([*picked[f"knob-{knob.name}"], *more])):
                values[knob.name] = chosen
        return values | grid.parse(text["flags"].split())


def presets(knob: Knob, now: str | None) -> list[str]:
    """The values that are offered for a knob: its presets, what it is now, and off."""
    found = [f"{one:g}" if isinstance(one, (int, float)) else one for one in knob.presets]
    if now is not None and now not in (*found, OFF):
        found.append(now)
    if knob.kind in (KnobKind.INT, KnobKind.FLOAT):
        found.sort(key=_number)
    return [*dict.fromkeys(found), OFF]


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return float("inf")


def _count(name: str, text: str) -> int | None:
    if not text:
        return None
    try:
        return parse_count(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _finish(value: str) -> Finish:
    return "first" if value == "first" else "stay" if value == "stay" else "best"


def _objective(value: str) -> Objective:
    return "per-user" if value == "per-user" else "throughput"
