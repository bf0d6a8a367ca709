"""What widgets tell the screens above them. State comes down by attribute, these go up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textual.message import Message

from ddtui.tuning.model import NextAction, Verdict


class ActionChosen(Message):
    """The operator chose an action other than by its key: in the footer, in the palette."""

    def __init__(self, action: str) -> None:
        super().__init__()
        self.action = action


class KnobEdit(Message):
    """The operator wants to edit a knob, or any flag by its long name."""

    def __init__(self, knob: str) -> None:
        super().__init__()
        self.knob = knob


class KnobNudge(Message):
    """One preset up (+1) or down (-1)."""

    def __init__(self, knob: str, by: int) -> None:
        super().__init__()
        self.knob = knob
        self.by = by


class NextStepChosen(Message):
    """The operator takes a verdict's next step."""

    def __init__(self, verdict: Verdict, step: NextAction) -> None:
        super().__init__()
        self.verdict = verdict
        self.step = step


class PaneChosen(Message):
    """A pane's tab was chosen."""

    def __init__(self, pane: str) -> None:
        super().__init__()
        self.pane = pane


class JournalChanged(Message):
    """The journal view's state changed: following, waiting lines, matches."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, JournalChanged)


class MarkWanted(Message):
    """A marker of the operator's own is to be written into the journal."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class EarlierStopped(Message):
    """They are wanted no more."""


class EarlierWanted(Message):
    """The journal's lines before the oldest one are wanted; back to a time (unix), if one is given."""

    def __init__(self, until: float | None = None) -> None:
        super().__init__()
        self.until = until


class SaveWanted(Message):
    """Lines of the journal (unix time, text) are to be written to a new file; `what` they are: "lines"."""

    def __init__(self, path: Path, rows: Sequence[tuple[float, str]], what: str) -> None:
        super().__init__()
        self.path, self.rows, self.what = path, rows, what
