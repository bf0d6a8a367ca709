"""The review of a plan: the exact diff and commands, what it interrupts, and whether it may be applied."""

from __future__ import annotations

import shlex
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ddtui.sanitize import sanitize
from ddtui.screens.question import Question
from ddtui.tuning.model import Op, Plan
from ddtui.words import duration


class Review(Question):
    """True: apply it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "yes", "apply"),
        ("down,j", "scroll(1)", "down"),
        ("up,k", "scroll(-1)", "up"),
        ("pagedown", "scroll(10)", "page down"),
        ("pageup", "scroll(-10)", "page up"),
    ]
    DEFAULT_CSS = """
    Review {
        & > .box { width: 110; height: auto; max-height: 94%; }
        #plan { height: auto; max-height: 100%; scrollbar-size: 1 1; }
        #plan-scroll { height: auto; scrollbar-size: 1 1; }
    }
    """

    def __init__(self, plan: Plan, host: str, *, title: str, type_name: str | None = None) -> None:
        super().__init__()
        self._plan, self._host, self._title = plan, host, title
        self._to_type = type_name

    def compose(self) -> ComposeResult:
        blocked = bool(self._plan.problems)
        with Vertical(classes="box" + (" -danger" if blocked else "")) as box:
            box.border_title = Content(f"{self._title}")
            box.border_subtitle = Content(f"{self._plan.unit} on {self._host}")
            with VerticalScroll(id="plan-scroll", can_focus=False):
                yield Static(plan_lines(self._plan), id="plan", markup=False)
            yes = None if blocked else "Apply and restart"
            yield from self.answers(yes, "Cancel", "warning", type_name=self._to_type)

    def on_resize(self) -> None:
        room = self.size.height - 8 - (2 if self._type_name is not None else 0)
        self.query_one("#plan-scroll").styles.max_height = max(4, room)

    def action_scroll(self, by: int) -> None:
        self.query_one("#plan-scroll", VerticalScroll).scroll_relative(y=by, animate=False)


def plan_lines(plan: Plan) -> Content:
    """The plan as it is read: first what must be known, then the change itself."""
    lines: list[Content] = []
    for problem in plan.problems:
        lines.append(Content.assemble(("✗ ", "bold $error"), (problem, "$error")))
    for warning in plan.warnings:
        lines.append(Content.assemble(("! ", "bold $warning"), (warning, "$warning")))
    for turn in plan.turns:
        value = "taken away" if turn.op is Op.UNSET else (turn.value if turn.value is not None else "on")
        lines.append(Content.assemble(("→ ", "$accent"), (turn.knob, "bold"), f"  {value}"))
    lines.append(Content.assemble(("interrupts  ", "$muted"), plan.interrupts))
    if plan.last_starts:
        starts = ", ".join(duration(seconds) for seconds in plan.last_starts[:3])
        lines.append(Content.assemble(("last starts ", "$muted"), f"ready after {starts}"))
    else:
        lines.append(Content.assemble(("last starts ", "$muted"), "not known yet"))
    lines.append(Content(""))
    lines += [diff_line(line) for line in sanitize(plan.diff, newlines=True).rstrip("\n").split("\n")]
    lines += [Content(""), Content.styled("commands", "$muted")]
    lines += [
        Content.assemble(("$ ", "$faint"), sanitize(" ".join(shlex.quote(word) for word in command)))
        for command in plan.commands
    ]
    return Content("\n").join(lines)


def diff_line(line: str) -> Content:
    """One line of a unified diff, coloured; the signs say the same without colour."""
    if line.startswith(("+++", "---")):
        return Content.styled(line, "bold")
    if line.startswith("+"):
        return Content.styled(line, "$success")
    if line.startswith("-"):
        return Content.styled(line, "$error")
    return Content.styled(line, "$primary" if line.startswith("@@") else "$muted")
