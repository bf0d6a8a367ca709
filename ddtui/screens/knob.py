"""Turning one knob: its value, its presets, its range, and what every layer says now."""

from __future__ import annotations

from typing import ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from ddtui.bench.effect import Effects, best_of
from ddtui.desk import fault, nudged
from ddtui.profile import Knob, KnobKind
from ddtui.screens.base import Console, Dialog
from ddtui.store.model import HistoryError
from ddtui.tuning.model import KnobRow, Op, Turn
from ddtui.view import View, next_value
from ddtui.widgets.cells import cut
from ddtui.widgets.service_pane import allowed
from ddtui.widgets.words_view import Words
from ddtui.words import number, tokens


class KnobDialog(Dialog[Turn]):
    """The wish for one knob, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("up", "preset(1)", "next preset"),
        ("down", "preset(-1)", "previous preset"),
        ("ctrl+t", "unset", "unset"),
        Binding("plus", "more(1)", "one more", priority=True),
        Binding("minus", "more(-1)", "one less", priority=True),
    ]
    DEFAULT_CSS = """
    KnobDialog {
        & > .box { width: 72; }
        #preset-row { height: 1; }
        #preset-word { width: 14; color: $muted; }
        #presets { width: 1fr; height: 1; }
        #effect { height: auto; }
    }
    """

    def __init__(self, view: View, knob: Knob, row: KnobRow | None) -> None:
        super().__init__()
        self._knob, self._row = knob, row
        self._now = next_value(view, row) if row is not None else None
        self._effects: Effects | None = None
        flags = {one.flag: one.help for one in view.tune.known_flags}
        self._help = flags.get(knob.flag or "", "")

    def compose(self) -> ComposeResult:
        knob = self._knob
        with Vertical(classes="box") as box:
            box.border_title = Content(f"{knob.name}")
            box.border_subtitle = Content("↵ set   +- one   ↑↓ presets   ^t unset   esc cancel")
            limits = allowed(knob)
            why = range_words(knob, self._help)
            yield Static(
                Content.assemble(
                    (knob.flag or f"${knob.env}", "$primary"), (f"   {limits}" if limits else "", "$muted")
                ),
                markup=False,
            )
            for words in (knob.meaning, why):
                if words:
                    yield Static(Content(words), classes="note", markup=False)
            yield Static(layers(self._row), markup=False)
            value = self._now or ""
            if knob.kind is KnobKind.SWITCH:
                value = "off" if self._now is None else "on"
            with Horizontal(classes="field"):
                yield Static("next", markup=False)
                yield Input(value, id="value", select_on_focus=True)
            with Horizontal(id="preset-row"):
                yield Static("presets", id="preset-word", markup=False)
                yield Static(self._presets(), id="presets", markup=False)
            yield Static(classes="fault", id="fault", markup=False)
            yield Words(id="effect")

    def on_mount(self) -> None:
        self.query_one("#value").focus()
        self.run_worker(self._look_back(), group="history", exit_on_error=False)

    async def _look_back(self) -> None:
        """What its values gave so far."""
        past = cast(Console, self.app).desk.session.past
        if past is None:
            return
        try:
            self._effects = await past.effect(self._knob.name)
        except HistoryError as error:
            self.query_one("#effect", Words).show(Content.styled(str(error), "$error"))
            return
        self._show_effect()

    def _show_effect(self) -> None:
        typed = self.query_one("#value", Input).value
        self.query_one("#effect", Words).show(effect_words(self._effects, typed, self._now))

    @property
    def choices(self) -> list[str]:
        if self._knob.kind is KnobKind.SWITCH:
            return ["off", "on"]
        return [f"{preset:g}" if not isinstance(preset, str) else preset for preset in self._knob.presets]

    def _presets(self) -> Content:
        parts: list[Content | str] = []
        typed = self.query_one("#value", Input).value if self.is_mounted else (self._now or "")
        for choice in self.choices:
            here = choice == typed
            parts += [
                Content.styled(f"[{choice}]" if here else f" {choice} ", "bold $accent" if here else ""),
                " ",
            ]
        return Content.assemble(*parts)

    def action_preset(self, by: int) -> None:
        choices = self.choices
        if not choices:
            return
        field = self.query_one("#value", Input)
        index = choices.index(field.value) + by if field.value in choices else (0 if by > 0 else -1)
        field.value = choices[index % len(choices)]
        field.cursor_position = len(field.value)

    @on(Input.Changed)
    def _changed(self) -> None:
        self.query_one("#presets", Static).update(self._presets())
        self._show_fault(None)
        if self._effects is not None:
            self._show_effect()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "more":  # a text may hold the sign, and a number below 0 begins with one
            counted = self._knob.kind in (KnobKind.INT, KnobKind.FLOAT)
            return counted and (parameters != (-1,) or (self._knob.min is not None and self._knob.min >= 0))
        return super().check_action(action, parameters)

    def action_more(self, by: int) -> None:
        """One more or one less, within the range."""
        field = self.query_one("#value", Input)
        plain = self._knob.model_copy(update={"presets": ()})
        turn = nudged(plain, field.value.strip() or None, by)
        if turn is None or turn.value is None:
            self._show_fault(f"{self._knob.name} goes no further: {allowed(self._knob)}")
            return
        field.value = turn.value
        field.cursor_position = len(field.value)

    def action_unset(self) -> None:
        self.dismiss(Turn(self._knob.name, Op.UNSET))

    @on(Input.Submitted)
    def _set(self, event: Input.Submitted) -> None:
        text = event.value.strip()
        if not text:
            self._show_fault("type a value; ^t takes the flag away")
            return
        why = fault(self._knob, text)
        if why is not None:
            self._show_fault(why)
        elif self._knob.kind is KnobKind.SWITCH:
            self.dismiss(Turn(self._knob.name, Op.SET if text == "on" else Op.UNSET))
        else:
            self.dismiss(Turn(self._knob.name, Op.SET, text))

    def _show_fault(self, why: str | None) -> None:
        word = self.query_one("#fault", Static)
        word.set_class(why is not None, "-shown")
        word.update(Content(why or ""))


MOST_VALUES = 8
HELP = 160  # characters of SGLang's own words


def range_words(knob: Knob, engine: str) -> str:
    """Where the range comes from, and what SGLang itself says of the flag."""
    limits = "the profile sets the range" if allowed(knob) else "the profile sets no range"
    said = f"; SGLang: {cut(engine, HELP)}" if engine else ""
    return f"{limits}, SGLang's own rules are checked in the plan{said}"


def effect_words(effects: Effects | None, typed: str, now: str | None) -> Content:
    """The values that were measured, with rate, interval and samples; the typed one stands out."""
    if effects is None or not effects.rows:
        return Content.styled("\nnot measured yet: x measures what is in force", "$muted")
    best = best_of(effects.rows)
    where = f"C={effects.concurrency} ctx={tokens(effects.context)} {effects.workload}"
    with_others = ", ".join(f"{name} {value or 'unset'}" for name, value in effects.others)
    head = f"{where}, {with_others}" if with_others else where
    lines = [Content(""), Content.assemble(("so far  ", "$muted"), head)]
    for row in effects.rows[-MOST_VALUES:]:
        value = "unset" if row.value is None else row.value
        rate = row.rate
        half = max(rate.high - rate.value, rate.value - rate.low)
        mark = "best" if row is best else "now" if row.value == now else ""
        accept = f"  accept {number(row.accept_length)}" if row.accept_length is not None else ""
        text = (
            f"{value:>6}  {number(rate.value):>7} tok/s ±{number(half)} (n={rate.n}){accept}  step {row.step}"
        )
        style = "bold $accent" if value == typed else ""
        doubt = f"  ? {row.doubt}" if row.doubt else ""
        lines.append(Content.assemble((text, style), (f"  {mark}", "$success"), (doubt, "$warning")))
    if best is None and len(effects.rows) > 1:
        top = max(effects.rows, key=lambda row: row.rate.value)
        why = "the fastest is doubtful" if top.doubt else "their intervals touch"
        lines.append(Content.styled(f"{why}: no value is surely the best", "$muted"))
    return Content("\n").join(lines)


def layers(row: KnobRow | None) -> Content:
    """What every layer says of the knob, in one line."""
    if row is None:
        return Content.styled("no layer has been read yet", "$muted")
    parts: list[Content | str | tuple[str, str]] = []
    named = (("unit", row.in_unit), ("running", row.running), ("server", row.server))
    for name, value in named:
        parts += [(f"{name} ", "$muted"), "–" if value is None else value or "on", "   "]
    if row.default is not None:
        parts += [("default ", "$muted"), row.default]
    return Content.assemble(*parts)
