"""Quick A/B and calibration: what is measured, and what it takes, before it starts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from ddtui.bench import contrast, experiment, grid
from ddtui.bench.experiment import PROMPTS, ExperimentPlan, Finish, Order, Setting
from ddtui.desk import said
from ddtui.profile import Bench
from ddtui.screens.base import Dialog, Work
from ddtui.screens.burst import counts
from ddtui.screens.waiting import InPlace
from ddtui.tuning import telling
from ddtui.tuning.forecast import Forecast
from ddtui.widgets.pick_line import PickLine
from ddtui.widgets.words_view import Words
from ddtui.words import tokens

Forecasts = Callable[[ExperimentPlan], Awaitable[Forecast]]


class TrialDialog(Dialog[Forecast]):
    """Fields, the forecast below them, and Start once there is one. Gives the forecast that was agreed to."""

    TITLE_WORDS: ClassVar[str] = ""
    BINDINGS: ClassVar[list[BindingType]] = [("ctrl+s", "start", "start")]
    DEFAULT_CSS = """
    TrialDialog {
        & > .box { width: 78; }
        .field { margin-top: 0; }
        .about { margin-bottom: 1; height: auto; }
        #takes { margin-top: 1; min-height: 3; }
    }
    """

    def __init__(self, bench: Bench, forecasts: Forecasts, calibrated: int) -> None:
        super().__init__()
        self._bench, self._forecasts, self._calibrated = bench, forecasts, calibrated
        self._made: Forecast | None = None
        self._waiting = InPlace(
            lambda words: self.query_one("#takes", Words).show(words),
            lambda: self.query_one("#takes").size.width,
        )

    def about(self) -> Content:
        """What this does."""
        raise NotImplementedError

    def fields(self) -> Iterator[tuple[str, Widget]]:
        """The fields of its own, with their labels."""
        raise NotImplementedError

    def plan(self) -> ExperimentPlan:
        """The plan as it is set. Raises ValueError with a sentence."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        bench = self._bench
        shared: list[tuple[str, Widget]] = [
            ("concurrency", Input(",".join(map(str, bench.concurrency)), id="concurrency", compact=True)),
            ("context", Input(",".join(map(tokens, bench.context)), id="context", compact=True)),
            ("prompts", Input(str(PROMPTS), id="prompts", placeholder="of a cell", compact=True)),
        ]
        with Vertical(classes="box") as box:
            box.border_title = Content(self.TITLE_WORDS)
            box.border_subtitle = Content("tab next field   ‹ › with ← →")
            yield Static(self.about(), classes="about", markup=False)
            for label, widget in (*self.fields(), *shared):
                with Horizontal(classes="field"):
                    yield Static(Content(label), markup=False)
                    yield widget
            yield Words(id="takes")
            with Horizontal(classes="buttons"):
                yield Button("Cancel  esc", id="no", compact=True)
                yield Button("Start  ^s", id="start", compact=True, variant="primary", disabled=True)

    def on_mount(self) -> None:
        self.query_one("#no").focus()
        self._changed()

    def load(self) -> dict[str, object]:
        """The part of the plan that the shared fields say. Raises ValueError."""
        bench = self._bench
        text = {field.id: field.value for field in self.query(Input)}
        prompts = counts("prompts", text["prompts"], 4, 100_000)
        return {
            "cells": grid.cells(
                counts("concurrency", text["concurrency"], 1, bench.max_concurrency),
                counts("context", text["context"], 16, None),
                bench.workload,
            ),
            "requests": prompts[0],
            "output": bench.output,
            "at": bench.at,
            "temperature": bench.temperature,
            "max_seconds": bench.max_seconds,
        }

    @on(Input.Changed)
    @on(PickLine.Changed)
    def _changed(self) -> None:
        self._made = None
        self.query_one("#start", Button).disabled = True
        work: Work = self._forecast
        self.run_worker(work, group="forecast", exclusive=True, exit_on_error=False)

    async def _forecast(self) -> None:
        takes = self.query_one("#takes", Words)
        try:
            wanted = self.plan()
            await asyncio.sleep(0.05)  # while it is typed
            made = await self._waiting.wait("working out what it takes", self._forecasts(wanted))
        except Exception as error:
            takes.show(Content.styled(said(error), "$error"))
            return
        self._made = made
        takes.show(Content("\n").join([*self._words(made)]))
        self.query_one("#start", Button).disabled = False

    def _words(self, made: Forecast) -> Iterator[Content]:
        for at, line in enumerate(telling.forecast(made)):
            yield Content.styled(line, "bold" if at == 1 else "")
        yield from (Content.styled(line, "$warning") for line in telling.skipped(made))

    @on(Input.Submitted)
    @on(Button.Pressed, "#start")
    def action_start(self) -> None:
        if self._made is not None:
            self.dismiss(self._made)

    @on(Button.Pressed, "#no")
    def _cancel(self) -> None:
        self.dismiss(None)


class ABDialog(TrialDialog):
    """A is what is in force; B are the turned knobs."""

    TITLE_WORDS = "Quick A/B"

    def __init__(self, bench: Bench, forecasts: Forecasts, calibrated: int, b: Setting, a: str) -> None:
        super().__init__(bench, forecasts, calibrated)
        self._b, self._a = b, a

    def about(self) -> Content:
        return Content.assemble(
            ("A  ", "bold $series-a"), f"in force now: {self._a}\n", ("B  ", "bold $series-b"),
            (experiment.name(self._b), "bold"),
        )  # fmt: skip

    def fields(self) -> Iterator[tuple[str, Widget]]:
        yield "runs", PickLine((("ab", "A B"), ("abba", "A B B A, to confirm")), id="order")
        yield (
            "at the end",
            PickLine((("best", "the winner stays"), ("first", "A is put back")), id="finish"),
        )

    def plan(self) -> ExperimentPlan:
        finish: Finish = "first" if self.query_one("#finish", PickLine).value == "first" else "best"
        order = Order(self.query_one("#order", PickLine).value)
        return ExperimentPlan(settings=(self._b,), order=order, finish=finish, **self.load())  # type: ignore[arg-type]

    def _words(self, made: Forecast) -> Iterator[Content]:
        yield from super()._words(made)
        if self._calibrated < contrast.LEAST_RUNS:
            known = f"{self._calibrated} of {contrast.LEAST_RUNS}"
            yield Content.styled(
                f"the verdict will be a preview: {known} A/A runs are known; calibrating makes them",
                "$warning",
            )


class CalibrateDialog(TrialDialog):
    """The setting in force, again and again after restarts."""

    TITLE_WORDS = "Calibrate"

    def about(self) -> Content:
        return Content(
            "Restarts and measures the setting in force again and again. What moves then is the noise of "
            f"restarts, which every verdict must beat. Known so far: {self._calibrated} A/A runs."
        )

    def fields(self) -> Iterator[tuple[str, Widget]]:
        yield "restarts", PickLine(tuple((n, n) for n in ("3", "5", "7", "10")), id="runs")

    def plan(self) -> ExperimentPlan:
        runs = int(self.query_one("#runs", PickLine).value)
        return ExperimentPlan(settings=(), order=Order.CALIBRATE, finish="stay", trials=runs, **self.load())  # type: ignore[arg-type]
