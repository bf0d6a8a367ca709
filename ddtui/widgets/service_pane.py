"""The service: its knobs across the layers, and every flag it is started with."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ddtui.messages import KnobEdit
from ddtui.profile import Knob
from ddtui.view import FlagRow, View
from ddtui.widgets.cells import LONG, cut, cut_value, label
from ddtui.widgets.choices import Choices
from ddtui.widgets.knob_table import KnobTable
from ddtui.widgets.pane import Pane
from ddtui.widgets.words_view import Words


class ServicePane(Pane):
    """Knob table above, all flags below."""

    DEFAULT_CSS = """
    ServicePane {
        #service-word { height: auto; display: none; color: $warning; }
        #service-word.-shown { display: block; }
        #flags-head { color: $muted; height: 1; margin-top: 1; }
        #flags { height: 1fr; min-height: 1; }
        &.-short #flags-head { margin-top: 0; }
    }
    """

    def __init__(self) -> None:
        super().__init__("Service", id="service")
        self._view: View | None = None
        self._flags: tuple[FlagRow, ...] = ()
        self._flags_width = 0

    def compose(self) -> ComposeResult:
        yield Words(id="service-word")
        yield KnobTable(id="knobs")
        yield Words(id="flags-head")
        yield Choices(id="flags")

    def show(self, view: View) -> None:
        self._view = view
        service = view.tune.service
        words = [word for word in (service.problem, *service.warnings) if word]
        word = self.query_one("#service-word", Words)
        word.set_class(bool(words), "-shown")
        word.show(Content("\n".join(f"! {text}" for text in words)))
        table = self.query_one(KnobTable)
        shown = table.view
        if shown is None or (shown.tune.knobs, shown.turns) != (view.tune.knobs, view.turns):
            table.view = view
        self._draw_flags()
        self._draw_state()

    def on_resize(self) -> None:
        self.set_class(self.size.height < 12, "-short")
        self._draw_flags()
        self._draw_state()

    def _draw_flags(self) -> None:
        if self._view is None:
            return
        flags = self._view.tune.service.flags
        width = max(20, self.content_size.width - 1)
        if flags == self._flags and width == self._flags_width:
            return
        self._flags, self._flags_width = flags, width
        head = f"all flags ({len(flags)})" if flags else "flags: not read yet"
        self.query_one("#flags-head", Words).show(Content(head))
        options = self.query_one("#flags", OptionList)
        kept = options.highlighted
        name = min(max((len(row.flag) - 2 for row in flags), default=0), max(12, width // 2))
        options.set_options(Option(flag_line(row, name, width)) for row in flags)
        if flags and kept is not None:
            options.highlighted = min(kept, len(flags) - 1)

    def on_knob_table_cursor_moved(self) -> None:
        self._draw_state()

    def _draw_state(self) -> None:
        name = self.query_one(KnobTable).knob
        knob = self._view.knob_of(name) if self._view is not None and name else None
        self.set_state(describe(knob, max(10, self.size.width - 6)) if knob is not None else "")

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.post_message(KnobEdit(self._flags[event.option_index].flag))


def describe(knob: Knob, width: int) -> str:
    """The knob's flag and its allowed range."""
    target = knob.flag or f"${knob.env}"
    limits = allowed(knob)
    text = f"{target}  {limits}" if limits else target
    room = width - len(limits) - 2
    if len(text) <= width or room < LONG:
        return cut(text, width)
    return f"{label(target, LONG, room)}  {limits}".rstrip()


def allowed(knob: Knob) -> str:
    """The allowed range in words; empty where any value goes."""
    if knob.min is not None and knob.max is not None:
        return f"{knob.min:g} to {knob.max:g}"
    if knob.min is not None:
        return f"{knob.min:g} or more"
    return f"{knob.max:g} or less" if knob.max is not None else ""


def flag_line(row: FlagRow, name: int, width: int) -> Content:
    """One flag, its name in `name` cells: the value in the unit, and in the process where that differs."""
    differ = row.in_unit != row.running and row.running is not None
    running = f"  running: {_value(row.running)}" if differ or row.in_unit is None else ""
    value = _value(row.in_unit)
    shown = label(row.flag.removeprefix("--"), name, width - 2 - len(running) - len(value))
    room = max(8, width - len(shown) - 2 - len(running))
    return Content.assemble(
        (shown, "$muted"),
        "  ",
        (cut_value(value, room), "$foreground" if row.in_unit is not None else "$muted"),
        (running, "$warning"),
    ).truncate(width, ellipsis=True)


def _value(value: str | None) -> str:
    return "–" if value is None else value or "on"
