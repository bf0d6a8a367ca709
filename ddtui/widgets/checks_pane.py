"""The verdicts: glyph, word and value; the evidence of a verdict line by line, and what to do next."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.style import Style
from textual.widgets.option_list import Option

from ddtui.actions.action import Where
from ddtui.bindings import bindings
from ddtui.messages import ActionChosen, NextStepChosen
from ddtui.tuning.model import Layer, NextAction, Status, Verdict
from ddtui.view import LayerView, View
from ddtui.widgets.cells import cut
from ddtui.widgets.choices import Choices
from ddtui.widgets.pane import Pane
from ddtui.widgets.words_view import Words
from ddtui.words import STATUS_LOOK, ago

AGES_EVERY = 5.0  # s
OPENING = ("open-log", "open-unit")
NO_BREAK = "\u00a0"  # keeps the words of a status on one line


class CheckList(Choices):
    """One verdict an option. Verdicts that are not fine are expanded until the operator closes them."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.CHECKS)

    def __init__(self) -> None:
        super().__init__(id="check-list")
        self.verdicts: tuple[Verdict, ...] = ()
        self._toggled: dict[str, bool] = {}
        self._drawn_width = 0

    def show(self, verdicts: tuple[Verdict, ...]) -> None:
        if verdicts == self.verdicts and self._drawn_width == self._room:
            return
        self.verdicts = verdicts
        self._draw()

    @property
    def _room(self) -> int:
        return max(20, self.scrollable_content_region.width)

    def _draw(self) -> None:
        kept = self.highlighted
        scroll = self.scroll_y
        self._drawn_width = self._room
        self.set_options(
            Option(verdict_lines(verdict, self._room, expanded=self.expanded(verdict)))
            for verdict in self.verdicts
        )
        if self.verdicts:
            self.highlighted = min(kept or 0, len(self.verdicts) - 1)
            self.scroll_to(y=scroll, animate=False)

    def on_resize(self) -> None:
        if self._drawn_width != self._room:
            self._draw()

    def expanded(self, verdict: Verdict) -> bool:
        return self._toggled.get(verdict.subject, not verdict.fine)

    @property
    def verdict(self) -> Verdict | None:
        """The verdict under the cursor."""
        return self.verdicts[self.highlighted] if self.highlighted is not None and self.verdicts else None

    def action_expand(self) -> None:
        if self.verdict is not None:
            self._toggled[self.verdict.subject] = not self.expanded(self.verdict)
            self._draw()

    def action_next_step(self) -> None:
        verdict = self.verdict
        if verdict is None:
            return
        if verdict.next:
            self.post_message(NextStepChosen(verdict, verdict.next[0]))
        else:
            self.action_expand()

    def action_other_step(self) -> None:
        verdict = self.verdict
        other = other_step(verdict) if verdict is not None else None
        if verdict is not None and other is not None:
            self.post_message(NextStepChosen(verdict, other))
        elif verdict is not None:
            self.notify("this check offers no other step", timeout=3, markup=False)

    def action_open_evidence(self) -> None:
        if self.verdict is not None:
            self.post_message(NextStepChosen(self.verdict, opening(self.verdict)))

    def on_click(self, event: events.Click) -> None:
        """A click on a step takes it; anywhere else it only moves the cursor."""
        at, step = event.style.meta.get("option"), event.style.meta.get("step")
        if at is None or step is None or at >= len(self.verdicts):
            return
        verdict = self.verdicts[at]
        if step < len(verdict.next):
            self.post_message(NextStepChosen(verdict, verdict.next[step]))


def other_step(verdict: Verdict) -> NextAction | None:
    """The step after the first one that no key of its own takes."""
    return next((step for step in verdict.next[1:] if step.action not in OPENING), None)


def opening(verdict: Verdict) -> NextAction:
    """What opens the place that a verdict rests on: its own step, else its journal line, else the unit."""
    offered = next((step for step in verdict.next if step.action in OPENING), None)
    line = next((one for one in verdict.evidence if one.layer is Layer.JOURNAL and one.source), None)
    if offered is not None:
        return offered
    if line is not None:
        return NextAction("open-log", "open the line in the journal", {"line": line.text})
    unit = next((one.source for one in verdict.evidence if one.layer is Layer.UNIT), "")
    return NextAction("open-unit", "look at the unit", {"file": unit.rpartition(":")[0] or unit})


ROOMY = 14  # rows from which on each layer's age is said


class ChecksPane(Pane):
    """All verdicts, and how many of them are fine."""

    DEFAULT_CSS = """
    ChecksPane #check-list { height: 1fr; }
    ChecksPane #layer-ages { color: $muted; max-height: 8; }
    """

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__("Checks", id="checks")
        self._now = now
        self._layers: tuple[LayerView, ...] = ()

    def compose(self) -> ComposeResult:
        yield CheckList()
        yield Words(id="layer-ages")

    def on_mount(self) -> None:
        self.set_interval(AGES_EVERY, self._show_ages)

    def on_click(self, event: events.Click) -> None:
        """The ages lead to the layers themselves."""
        if event.widget is not None and event.widget.id == "layer-ages":
            self.post_message(ActionChosen("layers"))

    def _show_ages(self) -> None:
        low = self.content_size.height < ROOMY
        self.query_one("#layer-ages", Words).show(ages(self._layers, self._now(), brief=low))

    def on_resize(self) -> None:
        self._show_ages()

    def show(self, view: View) -> None:
        self._layers = view.tune.layers
        self._show_ages()
        verdicts = view.tune.verdicts
        self.query_one(CheckList).show(verdicts)
        wrong = [verdict for verdict in verdicts if not verdict.fine]
        if not verdicts:
            self.set_state("reading every layer …" if view.connected else "")
        elif wrong:
            counts = Counter(verdict.status for verdict in wrong)
            bad = any(status is not Status.UNKNOWN for status in counts)
            self.set_state(", ".join(f"{count} {status}" for status, count in counts.items()), bad=bad)
        else:
            self.set_state(f"all {len(verdicts)} in force")


def ages(layers: tuple[LayerView, ...], now: float, *, brief: bool = False) -> Content:
    """How old the readings are, the newest first, and why one could not be read. `brief`: only the span."""
    known = sorted((now - one.read_at, one.name) for one in layers if one.read_at and not one.problem)
    groups: dict[str, list[str]] = {}
    for age, name in known:
        groups.setdefault(ago(max(0.0, age)), []).append(name)
    if brief and groups:
        spans = list(dict.fromkeys((next(iter(groups)), list(groups)[-1])))
        parts = [Content(f"layers read {' to '.join(spans)}")]
    else:
        parts = [Content(f"{', '.join(names)} {age}") for age, names in groups.items()]
        parts[:1] = [Content(f"read: {parts[0]}")] if parts else []
    parts += [
        Content.styled(f"✗ {one.name}: {one.problem}", "$warning")
        for one in layers
        if one.problem and one.name != Layer.MEASURED  # no burst yet is no failure
    ]
    return Content("; ").join(parts)


def verdict_lines(verdict: Verdict, width: int, *, expanded: bool) -> Content:
    """A verdict as lines of at most `width` cells."""
    glyph, colour = STATUS_LOOK[verdict.status]
    value = f" {verdict.value}" if verdict.value else ""
    word = verdict.status.value.replace(" ", NO_BREAK)
    text = f"{verdict.title}{value}: {word}"
    wrapped = textwrap.wrap(text, max(10, width - 2), break_on_hyphens=False) or [text]
    lines = [Content.assemble(("  ", ""), (line, "")) for line in wrapped]
    lines[0] = Content.assemble((glyph, f"bold {colour}"), " ", wrapped[0])
    start = len(lines[-1]) - len(word)
    lines[-1] = lines[-1].stylize(colour, max(2, start))
    if expanded:
        lines += _indented(verdict.summary, width, "$foreground", hang="")
        lines += _steps(verdict, width)
        for evidence in verdict.evidence:
            source = f"  {evidence.source}" if evidence.source else ""
            lines += _indented(f"{evidence.layer}: {evidence.text}", width, "$muted", tail=source)
        if verdict.settle:
            lines += _indented(f"to settle it: {verdict.settle}", width, "$muted")
    return Content("\n").join(lines)


def _steps(verdict: Verdict, width: int) -> list[Content]:
    """What can be done from here, each with its key; a click does it too."""
    other = other_step(verdict)
    lines = []
    for at, step in enumerate(verdict.next):
        key = "↵" if at == 0 else "n" if step is other else "o" if step.action in OPENING else ""
        words = textwrap.wrap(step.label, max(10, width - 4), break_on_hyphens=False) or [""]
        for place, part in enumerate(words):
            head = (f"{key or ' '} " if place == 0 else "  ", "$footer-key-foreground")
            line = Content.assemble(head, (part, "underline"))
            lines.append(Content("  ") + line.stylize(Style.from_meta({"step": at})))
    return lines


def _indented(text: str, width: int, colour: str, *, tail: str = "", hang: str = "  ") -> list[Content]:
    """The text wrapped below the glyph; the tail after it if it fits, else on its own line."""
    lines = textwrap.wrap(text, max(10, width - 2), subsequent_indent=hang, break_on_hyphens=True) or [""]
    shown = [Content.assemble("  ", (line, colour)) for line in lines]
    if tail and len(lines[-1]) + len(tail) + 2 <= width:
        shown[-1] = Content.assemble(shown[-1], (tail, "$faint"))
    elif tail:
        shown.append(Content.assemble("    ", (cut(tail.strip(), width - 4), "$faint")))
    return shown
