"""The journal with its live strip above and its filter below."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static

from ddtui.actions import Where
from ddtui.bindings import bindings
from ddtui.messages import JournalChanged
from ddtui.widgets.decode_strip import DecodeStrip
from ddtui.widgets.journal_filter import FilterError, parse_filter
from ddtui.widgets.journal_lines import Level
from ddtui.widgets.journal_store import JournalStore
from ddtui.widgets.journal_view import JournalView
from ddtui.widgets.pane import Pane
from ddtui.widgets.words_view import Words

LEVEL_ORDER = (Level.DEBUG, Level.INFO, Level.WARNING, Level.ERROR)
LEVEL_WORDS = {
    Level.DEBUG: "all levels",
    Level.INFO: "≥ info",
    Level.WARNING: "≥ warning",
    Level.ERROR: "errors",
}


class FilterInput(Input):
    """The filter as it is typed; escape gives up, enter goes to the lines."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "clear filter", show=True)]

    def action_leave(self) -> None:
        self.value = ""
        self.post_message(self.Submitted(self, ""))


class JournalPane(Pane):
    """A view of the journal's store that the operator can follow, hold, filter and search."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.JOURNAL)
    DEFAULT_CSS = """
    JournalPane {
        JournalView { height: 1fr; }
        #filter-bar { height: 1; display: none; }
        &.-filtering #filter-bar { display: block; }
        FilterInput { width: 1fr; border: none; padding: 0; height: 1; background: transparent; }
        #filter-mark { width: auto; color: $footer-key-foreground; }
        #filter-word { width: auto; max-width: 60%; color: $muted; padding-left: 1; }
        #filter-word.-bad { color: $error; }
        #journal-empty { display: none; color: $muted; }
        &.-empty #journal-empty { display: block; }
    }
    """

    def __init__(self, store: JournalStore, *, id: str = "journal") -> None:
        super().__init__("Journal", id=id)
        self._store = store
        self._level = Level.INFO  # what ddtui itself asks of the server is logged, and less than that

    def compose(self) -> ComposeResult:
        yield DecodeStrip(self._store)
        yield Static("no lines yet: they come as the service writes them", id="journal-empty", markup=False)
        yield JournalView(self._store)
        with Horizontal(id="filter-bar"):
            yield Static("/", id="filter-mark", markup=False)
            yield FilterInput(
                placeholder="text  /regex/  !not  >=warning",
                compact=True,
                suggester=SuggestFromList([">=warning", ">=error", "!Decode", "accept"]),
            )
            yield Words(id="filter-word")

    @property
    def view(self) -> JournalView:
        return self.query_one(JournalView)

    def on_mount(self) -> None:
        self._apply_filter()

    # filter

    def start_filter(self) -> None:
        """Open the filter and put the cursor in it."""
        self.add_class("-filtering")
        self.query_one(FilterInput).focus()

    @on(Input.Changed)
    def _filter_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._apply_filter()

    @on(Input.Submitted)
    def _filter_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.view.focus()
        self.set_class(bool(self.query_one(FilterInput).value), "-filtering")

    def _apply_filter(self) -> None:
        word = self.query_one("#filter-word", Words)
        try:
            wanted = parse_filter(self.query_one(FilterInput).value, self._level)
        except FilterError as error:
            word.add_class("-bad")
            word.show(Content(str(error)))
            return
        word.remove_class("-bad")
        if wanted != self.view.filter:
            self.view.set_filter(wanted)
        self._describe()

    def action_level(self) -> None:
        """The next least level."""
        self._level = LEVEL_ORDER[(LEVEL_ORDER.index(self._level) + 1) % len(LEVEL_ORDER)]
        self.set_class(bool(self.query_one(FilterInput).value), "-filtering")
        self._apply_filter()

    # what it says about itself

    @on(JournalChanged)
    def _journal_changed(self, event: JournalChanged) -> None:
        event.stop()
        self.query_one(DecodeStrip).sync()
        self._describe()

    def _describe(self) -> None:
        view = self.view
        self.set_class(not len(self._store), "-empty")
        if view.following:
            state = "▶ follow"
        elif view.paused:
            state = f"⏸ held, {view.waiting:,} waiting"
        else:
            state = f"↑ scrolled, {view.waiting:,} new below"
        if view.wrap:
            state += "  wrap"
        if self._level > Level.DEBUG:
            state = f"{LEVEL_WORDS[self._level]}   {state}"
        self.set_state(state)
        if not view.filter.searching:
            self.query_one("#filter-word", Words).show(Content(""))
            return
        at = view.position
        count = f"{len(view.matches):,}{'+' if view.scanning else ''} of {len(self._store):,}"
        words = [f"match {at} of {len(view.matches):,}" if at is not None else count]
        if not view.only_matches:
            words.append("all lines")
        self.query_one("#filter-word", Words).show(Content("  ".join(words)))

    # keys

    def action_pause(self) -> None:
        self.view.toggle_pause()

    def action_follow(self) -> None:
        self.view.follow()

    def action_top(self) -> None:
        self.view.go_to_top()

    def action_next_match(self) -> None:
        self._to_match(1)

    def action_previous_match(self) -> None:
        self._to_match(-1)

    def _to_match(self, by: int) -> None:
        if not self.view.next_match(by):
            what = "no match" if self.view.filter.searching else "no error in the journal"
            self.notify(what, timeout=2, markup=False)
        self._describe()

    def action_only_matches(self) -> None:
        self.view.only_matches = not self.view.only_matches
        self._describe()

    def action_wrap(self) -> None:
        self.view.wrap = not self.view.wrap
        self._describe()

    def action_copy(self) -> None:
        text = self.view.line_under_cursor()
        if text is not None:
            self.app.copy_to_clipboard(text)
            self.notify("line copied", timeout=2, markup=False)

    def action_left(self) -> None:
        self.view.scroll_relative(x=-16, animate=False)

    def action_right(self) -> None:
        self.view.scroll_relative(x=16, animate=False)
