"""Asking for a line of text: a note, a file's name."""

from __future__ import annotations

from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Input, Static

from ddtui.screens.base import Dialog
from ddtui.widgets.pick_line import PickLine


class AskText(Dialog[str]):
    """A line of text, never empty; None: given up."""

    def __init__(self, title: str, about: str, *, value: str = "", hint: str = "", yes: str = "OK") -> None:
        super().__init__()
        self._title, self._about = title, about
        self._value, self._hint, self._yes = value, hint, yes

    def compose(self) -> ComposeResult:
        with Vertical(classes="box") as box:
            box.border_title = Content(self._title)
            yield Static(Content(self._about), classes="note", markup=False)
            yield Input(self._value, placeholder=self._hint, id="text", compact=True)
            with Horizontal(classes="buttons"):
                yield Button("Cancel  esc", id="no", compact=True)
                yield Button(Content(f"{self._yes}  ↵"), id="yes", compact=True, variant="primary")

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    @on(Input.Submitted)
    @on(Button.Pressed, "#yes")
    def _answer(self) -> None:
        text = self.query_one(Input).value.strip()
        if text:
            self.dismiss(text)

    @on(Button.Pressed, "#no")
    def _cancel(self) -> None:
        self.dismiss(None)


@dataclass(frozen=True, slots=True)
class ExportWish:
    """Where an export goes and what is in it."""

    path: str
    everywhere: bool
    records: bool


class ExportDialog(Dialog[ExportWish]):
    """The file, which hosts, and whether the raw records go with it."""

    def __init__(self, path: str, host: str) -> None:
        super().__init__()
        self._path, self._host = path, host

    def compose(self) -> ComposeResult:
        with Vertical(classes="box") as box:
            box.border_title = Content("Export the history")
            yield Static(
                Content("JSON lines, which `ddtui history --import` and i here take in."), classes="note"
            )
            with Horizontal(classes="field"):
                yield Static(Content("file"), markup=False)
                yield Input(self._path, id="path", compact=True)
            with Horizontal(classes="field"):
                yield Static(Content("hosts"), markup=False)
                yield PickLine((("one", f"only {self._host}"), ("all", "all hosts")), id="hosts")
            with Horizontal(classes="field"):
                yield Static(Content("raw records"), markup=False)
                yield PickLine((("no", "without them"), ("yes", "with every request's record")), id="records")
            with Horizontal(classes="buttons"):
                yield Button("Cancel  esc", id="no", compact=True)
                yield Button("Export  ↵", id="yes", compact=True, variant="primary")

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    @on(Input.Submitted)
    @on(Button.Pressed, "#yes")
    def _answer(self) -> None:
        path = self.query_one(Input).value.strip()
        if path:
            everywhere = self.query_one("#hosts", PickLine).value == "all"
            records = self.query_one("#records", PickLine).value == "yes"
            self.dismiss(ExportWish(path, everywhere, records))

    @on(Button.Pressed, "#no")
    def _cancel(self) -> None:
        self.dismiss(None)
