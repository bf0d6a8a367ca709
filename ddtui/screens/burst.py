"""Choosing what a burst measures."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.suggester import SuggestFromList
from textual.widgets import Button, Input, Static

from ddtui.bench.model import BurstSpec, Cell, Place
from ddtui.burst_words import link_warning, load_place
from ddtui.profile import Bench
from ddtui.screens.base import Dialog
from ddtui.widgets.pick_line import PickLine
from ddtui.words import duration, parse_count, plural, tokens

WORKLOADS = ("code", "chat", "completion", "document")
PLACES: tuple[Place, ...] = ("here", "host")


class BurstDialog(Dialog[BurstSpec]):
    """The spec of a burst, from the profile's own, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [("ctrl+s", "start", "start")]
    DEFAULT_CSS = """
    BurstDialog {
        & > .box { width: 66; }
        #sum { margin-top: 1; height: 3; color: $muted; }
        #sum.-bad { color: $error; }
    }
    """

    def __init__(self, bench: Bench, step: int | None, *, rtt_ms: float | None = None) -> None:
        super().__init__()
        self._bench, self._step, self._rtt_ms = bench, step, rtt_ms

    def compose(self) -> ComposeResult:
        bench = self._bench
        fields = (
            ("concurrency", ",".join(map(str, bench.concurrency)), "1,8,32"),
            ("context", ",".join(map(tokens, bench.context)), "512,8k"),
            ("output", str(bench.output), "tokens per request"),
            ("workload", bench.workload, ", ".join(WORKLOADS)),
        )
        with Vertical(classes="box") as box:
            step = f"step {self._step}" if self._step is not None else "this setting"
            box.border_title = Content(f"Burst on {step}")
            box.border_subtitle = Content("tab next field")
            for name, value, hint in fields:
                with Horizontal(classes="field"):
                    yield Static(Content(name), markup=False)
                    suggester = SuggestFromList(WORKLOADS) if name == "workload" else None
                    yield Input(value, id=name, placeholder=hint, compact=True, suggester=suggester)
            with Horizontal(classes="field"):
                yield Static(Content("load"), markup=False)
                yield PickLine([(place, load_place(place, self._rtt_ms)) for place in PLACES], id="at")
            yield Static(id="sum", markup=False)
            with Horizontal(classes="buttons"):
                yield Button("Cancel  esc", id="no", compact=True)
                yield Button("Start  ↵", id="start", compact=True, variant="primary")

    def on_mount(self) -> None:
        self.query_one("#at", PickLine).pick(self._bench.at)
        self.query_one("#start").focus()
        self._sum()

    def _spec(self) -> BurstSpec:
        """The spec as typed. Raises ValueError with a sentence."""
        text = {field.id: field.value for field in self.query(Input)}
        concurrency = counts("concurrency", text["concurrency"], 1, self._bench.max_concurrency)
        contexts = counts("context", text["context"], 16, None)
        output = counts("output", text["output"], 2, 65536)
        if len(output) != 1:
            raise ValueError("output: one number")
        workload = text["workload"].strip()
        if not workload:
            raise ValueError(f"workload: one of {', '.join(WORKLOADS)}, or a JSONL file")
        at: Place = "host" if self.query_one("#at", PickLine).value == "host" else "here"
        cells = tuple(Cell(c, n, workload) for n in contexts for c in concurrency)
        return BurstSpec(
            cells,
            output[0],
            at,
            max_seconds=self._bench.max_seconds,
            precision=self._bench.precision,
            temperature=self._bench.temperature,
        )

    @on(Input.Changed)
    @on(PickLine.Changed)
    def _sum(self) -> None:
        word = self.query_one("#sum", Static)
        button = self.query_one("#start", Button)
        try:
            spec = self._spec()
        except ValueError as error:
            word.add_class("-bad")
            word.update(Content(str(error)))
            button.disabled = True
            return
        button.disabled = False
        word.remove_class("-bad")
        limit = duration(len(spec.cells) * spec.max_seconds)
        warning = link_warning(spec.at, self._rtt_ms)
        word.update(
            Content.assemble(
                f"{plural(len(spec.cells), 'cell')}, at most {limit}", (f"\n{warning}", "$warning")
            )
        )

    @on(Input.Submitted)
    @on(Button.Pressed, "#start")
    def action_start(self) -> None:
        try:
            self.dismiss(self._spec())
        except ValueError:
            return

    @on(Button.Pressed, "#no")
    def _cancel(self) -> None:
        self.dismiss(None)


def counts(name: str, text: str, least: int, most: int | None) -> tuple[int, ...]:
    """Counts separated by commas or blanks, each once, in their order. Raises ValueError with a sentence."""
    words = text.replace(",", " ").split()
    if not words:
        raise ValueError(f"{name}: at least one number")
    found: list[int] = []
    for word in words:
        count = parse_count(word)
        if count < least or (most is not None and count > most):
            limits = f"{least} to {most}" if most is not None else f"{least} or more"
            raise ValueError(f"{name}: {word} is not allowed, {limits}")
        if count not in found:
            found.append(count)
    return tuple(found)
