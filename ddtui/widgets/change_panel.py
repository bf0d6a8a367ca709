"""The change that runs, or how the last one ended: never in the way, and nothing of it hidden."""

from __future__ import annotations

import textwrap

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content

from ddtui.tuning.model import Phase, Progress
from ddtui.tuning.stages import STAGES, done_by
from ddtui.view import ChangeView
from ddtui.widgets.cells import cut
from ddtui.widgets.progress_bar import bar
from ddtui.widgets.words_view import Words
from ddtui.words import STATUS_LOOK, clock

LOOK: dict[Phase, tuple[str, str]] = {
    Phase.VERIFIED: ("✓", "$success"),
    Phase.UNVERIFIED: ("≠", "$warning"),
    Phase.FAILED: ("✗", "$error"),
    Phase.STRANDED: ("✗", "$error"),
    Phase.ROLLED_BACK: ("↶", "$warning"),
    Phase.ROLLING_BACK: ("↶", "$warning"),
}


class ChangePanel(VerticalScroll):
    """Shown from the start of a change until the operator has seen how it ended (`p`)."""

    DEFAULT_CSS = """
    ChangePanel {
        height: auto; max-height: 50%; display: none; padding: 0 2;
        background: $panel; border-left: thick $primary;
        &.-shown { display: block; }
        &.-good { border-left: thick $success; }
        &.-bad { border-left: thick $error; }
        &.-warn { border-left: thick $warning; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="change", can_focus=False)
        self._change: ChangeView | None = None

    def compose(self) -> ComposeResult:
        yield Words()

    def show(self, change: ChangeView | None, *, hidden: bool) -> None:
        if change is self._change and hidden is not self.has_class("-shown"):
            return
        self._change = change
        self.set_class(change is not None and not hidden, "-shown")
        phase = change.progress.phase if change is not None else None
        self.set_class(phase is Phase.VERIFIED, "-good")
        self.set_class(phase in (Phase.FAILED, Phase.STRANDED), "-bad")
        self.set_class(phase in (Phase.UNVERIFIED, Phase.ROLLED_BACK, Phase.ROLLING_BACK), "-warn")
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        if self._change is not None:
            width = max(20, self.scrollable_content_region.width)
            self.query_one(Words).show(panel(self._change, width))


def panel(change: ChangeView, width: int) -> Content:
    """The change as lines of at most `width` cells."""
    progress = change.progress
    phase = progress.phase
    head = f"{change.kind}: {change.title}" if change.title else change.kind
    if not change.done:
        lines = [_heading(head, progress.text or phase.value, width, *LOOK.get(phase, ("↻", "$primary")))]
        stages = _stages(progress) if width >= 90 and progress.stages else Content("")
        room = width - stages.cell_length - 3 if stages else width
        line = bar(room, progress.fraction, progress.eta_seconds, elapsed=progress.elapsed)
        lines.append(Content.assemble(stages, "   ", line) if stages else line)
    else:
        glyph, colour = LOOK.get(phase, ("·", "$muted"))
        text = f"{phase.value} after {clock(progress.elapsed)}" + (
            f": {progress.text}" if progress.text else ""
        )
        lines = [_heading(head, text, width, glyph, colour)]
    if progress.failure:
        lines += _wrapped(progress.failure, width, "$error")
    if progress.advice:
        lines += _wrapped(f"→ {progress.advice}", width, "$foreground")
    lines += [Content.styled(cut(f"│ {line}", width), "$muted") for line in progress.evidence[-8:]]
    for verdict in progress.verdicts if change.done else ():
        look, colour = STATUS_LOOK[verdict.status]
        value = f" {verdict.value}" if verdict.value else ""
        text = cut(f"{verdict.title}{value}: {verdict.status}", width - 2)
        lines.append(Content.assemble((f"{look} ", colour), text))
    if phase is Phase.STRANDED:
        lines += [Content.styled("to undo it in a shell on the host:", "$muted")]
        lines += [Content.styled(cut(f"  {command}", width), "bold") for command in progress.way_back]
    if change.done:
        keys = "p hides this" if phase is Phase.VERIFIED else "p hides this   u roll back   2 journal"
        lines.append(Content.styled(cut(keys, width), "$faint"))
    return Content("\n").join(lines)


def _heading(head: str, text: str, width: int, glyph: str, colour: str) -> Content:
    head = cut(head, max(10, width // 2))
    return Content.assemble(
        (f"{glyph} ", f"bold {colour}"),
        (head, "bold"),
        "  ",
        (cut(text, width - len(head) - 4), "$foreground"),
    )


def _stages(progress: Progress) -> Content:
    """The stages of a change: done, now, to come."""
    done = done_by(progress.stages, progress.phase)
    parts: list[Content | str] = []
    for index, name in enumerate(progress.stages):
        if done is None:
            parts.append(Content.styled(name, "$faint"))
        elif index < done:
            parts.append(Content.styled(f"✓{name}", "$success"))
        elif progress.phase in STAGES[name]:
            parts.append(Content.styled(f"●{name}", "bold $primary"))
        else:
            parts.append(Content.styled(f"○{name}", "$faint"))
    return Content(" ").join(parts)


def _wrapped(text: str, width: int, colour: str) -> list[Content]:
    return [Content.styled(line, colour) for line in textwrap.wrap(text, width) or [""]]
