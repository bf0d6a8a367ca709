"""Any flag of the server: find it, give it a value, or take it away."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ddtui.screens.base import Dialog
from ddtui.tuning.model import Op, Turn
from ddtui.view import FlagRow, View
from ddtui.widgets.cells import cut
from ddtui.widgets.choices import Choices


class FlagDialog(Dialog[Turn]):
    """The wish for one flag, or None. Flags that the installed engine knows are offered."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("down", "choose(1)", "next"),
        ("up", "choose(-1)", "previous"),
        ("ctrl+t", "unset", "take away"),
    ]
    DEFAULT_CSS = """
    FlagDialog {
        & > .box { width: 78; }
        #found { height: 8; margin-top: 1; }
    }
    """

    def __init__(self, view: View, flag: str | None) -> None:
        super().__init__()
        self._view, self._flag = view, flag
        self._known = known_flags(view)
        self._found: list[FlagRow] = []  # those that are listed

    def compose(self) -> ComposeResult:
        with Vertical(classes="box") as box:
            box.border_title = Content("Any flag")
            box.border_subtitle = Content("↵ set   ↑↓ choose   ^t take away   esc cancel")
            with Horizontal(classes="field"):
                yield Static("flag", markup=False)
                yield Input(self._flag or "--", id="flag", placeholder="--flag", select_on_focus=False)
            yield Choices(id="found")
            with Horizontal(classes="field"):
                yield Static("value", markup=False)
                yield Input(self._value_now(self._flag), id="value", placeholder="empty for a switch")
            yield Static(classes="fault", id="fault", markup=False)

    def on_mount(self) -> None:
        self.query_one("#found").can_focus = False
        self._find()
        self.query_one("#value" if self._flag else "#flag").focus()

    def _value_now(self, flag: str | None) -> str:
        turn = self._view.turns.get(flag or "")
        if turn is not None:
            return turn.value or ""
        return (self._view.flag_in_unit(flag) or "") if flag else ""

    @on(Input.Changed, "#flag")
    def _find(self) -> None:
        typed = self.query_one("#flag", Input).value.strip().lstrip("-").lower()
        words = typed.replace("_", "-").split()
        found = [row for row in self._known if all(word in row.flag.lower() for word in words)]
        found.sort(key=lambda row: (not row.flag.startswith(f"--{typed}"), row.in_unit is None, row.flag))
        options = self.query_one("#found", Choices)
        options.set_options(Option(flag_offer(row, max(30, options.size.width - 2))) for row in found[:100])
        self._found = found
        options.highlighted = 0 if found else None

    def action_choose(self, by: int) -> None:
        options = self.query_one("#found", Choices)
        if by > 0:
            options.action_cursor_down()
        else:
            options.action_cursor_up()

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self._take(self._found[event.option_index].flag)

    def _take(self, flag: str) -> None:
        field = self.query_one("#flag", Input)
        field.value = flag
        value = self.query_one("#value", Input)
        value.value = self._value_now(flag)
        value.focus()

    @on(Input.Submitted, "#flag")
    def _flag_chosen(self) -> None:
        options = self.query_one("#found", Choices)
        typed = self.query_one("#flag", Input).value.strip()
        highlighted = options.highlighted
        exact = any(row.flag == typed for row in self._known)
        self._take(typed if exact or highlighted is None else self._found[highlighted].flag)

    @on(Input.Submitted, "#value")
    def _set(self, event: Input.Submitted) -> None:
        flag = self._checked_flag()
        if flag is not None:
            self.dismiss(Turn(flag, Op.SET, event.value.strip() or None))

    def action_unset(self) -> None:
        flag = self._checked_flag()
        if flag is not None:
            self.dismiss(Turn(flag, Op.UNSET))

    def _checked_flag(self) -> str | None:
        flag = self.query_one("#flag", Input).value.strip()
        good = (
            flag.startswith("--") and len(flag) > 2 and flag[2:].replace("-", "").replace("_", "").isalnum()
        )
        word = self.query_one("#fault", Static)
        word.set_class(not good, "-shown")
        word.update(Content("" if good else f"{flag!r} is no flag: write --name"))
        return flag if good else None


def known_flags(view: View) -> list[FlagRow]:
    """Flags that can be chosen: those in the unit, and those that the installed engine knows."""
    rows = {row.flag: row for row in view.tune.known_flags}
    for row in view.tune.service.flags:
        known = rows.get(row.flag)
        rows[row.flag] = FlagRow(
            row.flag, row.in_unit, row.running, row.source, known.help if known else row.help
        )
    return list(rows.values())


def flag_offer(row: FlagRow, width: int) -> Content:
    """A flag in the list of offers: its name, its value if it is set, what it does."""
    value = f" = {row.in_unit or 'on'}" if row.in_unit is not None else ""
    room = max(0, width - len(row.flag) - len(value) - 2)
    return Content.assemble(
        cut(row.flag, width - 10), (value, "$accent"), "  ", (cut(row.help, room), "$muted")
    )
