"""Turning one knob: its value, its presets, its range, and what every layer says now."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Static

from ddtui.desk import fault
from ddtui.profile import Knob, KnobKind
from ddtui.screens.base import Dialog
from ddtui.tuning.model import KnobRow, Op, Turn
from ddtui.view import View, next_value
from ddtui.widgets.service_pane import allowed


class KnobDialog(Dialog[Turn]):
    """The wish for one knob, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("up", "preset(1)", "next preset"),
        ("down", "preset(-1)", "previous preset"),
        ("ctrl+t", "unset", "unset"),
    ]
    DEFAULT_CSS = """
    KnobDialog {
        & > .box { width: 64; }
        #preset-row { height: 1; }
        #preset-word { width: 14; color: $muted; }
        #presets { width: 1fr; height: 1; }
    }
    """

    def __init__(self, view: View, knob: Knob, row: KnobRow | None) -> None:
        super().__init__()
        self._knob, self._row = knob, row
        self._now = next_value(view, row) if row is not None else None

    def compose(self) -> ComposeResult:
        knob = self._knob
        with Vertical(classes="box") as box:
            box.border_title = Content(f"{knob.name}")
            box.border_subtitle = Content("↵ set   ↑↓ presets   ^t unset   esc cancel")
            limits = allowed(knob)
            yield Static(
                Content.assemble(
                    (knob.flag or f"${knob.env}", "$primary"), (f"   {limits}" if limits else "", "$muted")
                ),
                markup=False,
            )
            if knob.meaning:
                yield Static(Content(knob.meaning), classes="note", markup=False)
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

    def on_mount(self) -> None:
        self.query_one("#value").focus()

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
