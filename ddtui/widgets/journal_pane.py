"""The journal with its live strip above and its filter below."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.suggester import SuggestFromList
from textual.timer import Timer
from textual.widgets import Input, Static

from ddtui.actions.action import Where
from ddtui.bindings import bindings
from ddtui.messages import EarlierWanted, JournalChanged, MarkWanted, SaveWanted
from ddtui.widgets.decode_strip import DecodeStrip
from ddtui.widgets.journal_filter import FilterError, parse_filter
from ddtui.widgets.journal_lines import LEVELS
from ddtui.widgets.journal_memory import JournalMemory
from ddtui.widgets.journal_store import JournalStore, Pin, Reading, day
from ddtui.widgets.journal_time import EXAMPLES, parse_time
from ddtui.widgets.journal_view import JournalView
from ddtui.widgets.pane import Pane
from ddtui.widgets.words_view import Words
from ddtui.words import clock

PINNED_AT_ONCE = 10_000  # lines that are counted before the loop gets its turn again
LEVEL_WORDS = {"debug": "", "info": "≥ info", "warning": "≥ warning", "error": "errors"}


class FilterInput(Input):
    """The filter as it is typed; escape gives up, enter goes to the lines."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "keep it", show=True),
        Binding("escape", "leave", "clear it", show=True),
        Binding("up", "earlier(-1)", "filter before", show=False),
        Binding("down", "earlier(1)", "filter after", show=False),
    ]
    recent: list[str]
    _place = 0  # in `recent`, from its end

    def action_leave(self) -> None:
        self.value = ""
        self.post_message(self.Submitted(self, ""))

    def action_earlier(self, by: int) -> None:
        """A filter that was used before."""
        self._place = max(-len(self.recent), min(0, self._place + by))
        self.value = self.recent[self._place] if self._place else ""
        self.cursor_position = len(self.value)

    def on_focus(self) -> None:
        self._place = 0


class Question(Input):
    """A line of text that the pane asks for; escape gives up."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "do it", show=True),
        Binding("escape", "leave", "give up", show=True),
    ]

    class Left(Message):
        pass

    def action_leave(self) -> None:
        self.post_message(self.Left())


class JournalPane(Pane):
    """A view of the journal's store that the operator can follow, hold, filter and search."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.JOURNAL)
    DEFAULT_CSS = """
    JournalPane {
        JournalView { height: 1fr; }
        #filter-bar { height: 1; display: none; }
        &.-filtering #filter-bar { display: block; }
        #question-bar { height: 1; display: none; }
        &.-asking #question-bar { display: block; }
        #question-label { width: auto; color: $footer-key-foreground; padding-right: 1; }
        #question-fault { width: auto; max-width: 60%; color: $error; padding-left: 1; }
        #pins { display: none; color: $muted; height: 1; }
        &.-pinned #pins { display: block; }
        FilterInput, Question { width: 1fr; border: none; padding: 0; height: 1; background: transparent; }
        #filter-mark { width: auto; color: $footer-key-foreground; }
        #filter-word { width: auto; max-width: 60%; color: $muted; padding-left: 1; }
        #filter-word.-bad { color: $error; }
        #journal-empty { display: none; color: $muted; }
        &.-empty #journal-empty { display: block; }
    }
    """

    def __init__(
        self,
        store: JournalStore,
        *,
        memory: JournalMemory | None = None,
        now: Callable[[], float] = time.time,
        id: str = "journal",
    ) -> None:
        super().__init__("Journal", id=id)
        self._store = store
        self._memory = memory or JournalMemory()
        self._now = now
        self._live = True
        self._seen = -1  # version of the memory that the filter is of
        self._aim: float | None = None  # a time whose lines are still being read
        self._answer: Callable[[str], str | None] | None = None
        self._looking: Timer | None = None  # how far a reading is, is said again then

    def compose(self) -> ComposeResult:
        yield DecodeStrip(self._store, self._now)
        yield Words(id="pins")
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
        with Horizontal(id="question-bar"):
            yield Words(id="question-label")
            yield Question(compact=True)
            yield Words(id="question-fault")

    @property
    def view(self) -> JournalView:
        return self.query_one(JournalView)

    def show_link(self, live: bool) -> None:
        """Whether new lines can come; those that came while the screen was hidden are shown."""
        if self.is_mounted:
            self.view.sync()
        if live != self._live:
            self._live = live
            self._describe()

    def on_mount(self) -> None:
        known = {pin.text for pin in self._store.pins}
        for text in self._memory.pins:
            if text not in known:
                self._pin(text)
        self._recall()

    def _still_reading(self) -> None:
        self._looking = None
        self._describe()

    def _recall(self) -> None:
        """The filter that is remembered, or was set in the other view of the same journal."""
        wanted = self.query_one(FilterInput)
        if self._seen == self._memory.version or wanted.has_focus:
            return
        self._seen = self._memory.version
        with self.prevent(Input.Changed):
            wanted.value = self._memory.filter
        self.set_class(bool(wanted.value), "-filtering")
        self._apply_filter()

    # filter

    def start_filter(self) -> None:
        """Open the filter and put the cursor in it."""
        self.add_class("-filtering")
        wanted = self.query_one(FilterInput)
        wanted.recent = self._memory.recent
        wanted.focus()

    @on(Input.Changed, "FilterInput")
    def _filter_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._apply_filter()

    @on(Input.Submitted, "FilterInput")
    def _filter_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.view.focus()
        wanted = self.query_one(FilterInput).value.strip()
        self.set_class(bool(wanted), "-filtering")
        self._memory.use(wanted)
        self._seen = self._memory.version

    def action_invert(self) -> None:
        """Lines that do not match, or that do again."""
        wanted = self.query_one(FilterInput)
        text = wanted.value.strip()
        if not text:
            self.start_filter()
            return
        if text.startswith(("! ", "!/")):
            text = text[1:].lstrip()
        else:
            text = f"!{text}" if text.startswith("/") else f"! {text}"
        wanted.value = text
        self._memory.use(text)
        self._seen = self._memory.version

    def _apply_filter(self) -> None:
        try:
            wanted = parse_filter(self.query_one(FilterInput).value, LEVELS[self._memory.level])
        except FilterError as error:
            self._complain(str(error))
            return
        self.query_one("#filter-word", Words).remove_class("-bad")
        if wanted != self.view.filter:
            self.view.set_filter(wanted)
        self._describe()

    def _complain(self, fault: str) -> None:
        word = self.query_one("#filter-word", Words)
        word.add_class("-bad")
        word.show(Content(fault))

    def action_level(self) -> None:
        """The next least level."""
        order = tuple(LEVEL_WORDS)
        self._memory.use_level(order[(order.index(self._memory.level) + 1) % len(order)])
        self._seen = self._memory.version
        self.set_class(bool(self.query_one(FilterInput).value), "-filtering")
        self._apply_filter()

    # what it says about itself

    @on(JournalChanged)
    def _journal_changed(self, event: JournalChanged) -> None:
        event.stop()
        self.query_one(DecodeStrip).sync()
        self._recall()
        self._keep_aim()
        self._describe()

    def _describe(self) -> None:
        view = self.view
        self.set_class(not len(self._store), "-empty")
        if view.following:
            state = "▶ follow" if self._live else "✗ no link"
        elif view.paused:
            state = f"⏸ held, {view.waiting:,} waiting"
        else:
            state = f"↑ scrolled, {view.waiting:,} new below"
        number = view.here()
        if number is not None and number >= self._store.base and not view.following:
            of_line = day(self._store.times[number - self._store.base])
            if of_line != day(self._now() + self._store.ahead):
                state = f"{of_line}   {state}"
        if view.selected_from is not None:
            state = f"{len(view.selected_lines()):,} selected   {state}"
        if view.wrap:
            state += "  wrap"
        elif view.scroll_x:
            state = f"from column {int(view.scroll_x) + 1}   {state}"
        if self._store.reading is not None:
            self._looking = self._looking or self.set_timer(0.5, self._still_reading)
            state = f"{reading_words(self._store.reading, self._now())}   {state}"
        elif self._store.whole and not view.scroll_y and not view.following:
            state = f"begin of the journal   {state}"
        self._show_pins()
        if level := LEVEL_WORDS[self._memory.level]:
            state = f"{level}   {state}"
        self.set_state(state)
        if not view.filter.searching:
            self.query_one("#filter-word", Words).show(Content(""))
            return
        if view.filter.regex is not None and view.filter.regex.gave_up:
            self._complain("a line takes this expression too long: make it simpler")
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

    def action_next_error(self) -> None:
        self._to(self.view.errors(), 1, "no error in the journal")

    def action_previous_error(self) -> None:
        self._to(self.view.errors(), -1, "no error in the journal")

    def action_next_bookmark(self) -> None:
        self._to(self._store.bookmarks, 1, "no bookmark; B sets one")

    def action_previous_bookmark(self) -> None:
        self._to(self._store.bookmarks, -1, "no bookmark; B sets one")

    def _to(self, numbers: list[int], by: int, none: str) -> None:
        if not self.view.next_of(numbers, by):
            self.notify(none, timeout=2, markup=False)
        self._describe()

    def action_bookmark(self) -> None:
        number = self.view.here()
        if number is not None:
            self._store.toggle_bookmark(number)
            self.view.go_to(number)

    def action_fold(self) -> None:
        if not self.view.toggle_fold():
            self.notify("no traceback here: click one, or e goes to the next error", timeout=3, markup=False)

    # what it asks

    def _ask(self, label: str, hint: str, value: str, answer: Callable[[str], str | None]) -> None:
        """Ask for a line of text. `answer` takes it, and gives what is wrong with it."""
        self._answer = answer
        self.query_one("#question-label", Words).show(Content(label))
        self.query_one("#question-fault", Words).show(Content(""))
        question = self.query_one(Question)
        question.placeholder, question.value = hint, value
        self.add_class("-asking")
        question.focus()

    @on(Input.Submitted, "Question")
    def _answered(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value.strip()
        fault = self._answer(text) if text and self._answer is not None else None
        self.query_one("#question-fault", Words).show(Content(fault or ""))
        if fault is None:
            self._asked()

    @on(Question.Left)
    def _asked(self) -> None:
        self._answer = None
        self.remove_class("-asking")
        self.view.focus()

    def action_time_jump(self) -> None:
        self._ask("go to", EXAMPLES, "", self._go_to_time)

    def _go_to_time(self, text: str) -> str | None:
        store, number = self._store, self.view.here()
        if number is None:
            return "there are no lines"
        try:
            at = parse_time(text, now=self._now() + store.ahead, here=store.times[number - store.base])
        except ValueError as error:
            return str(error)
        if at < store.times[0] and not store.whole:
            self._aim = at
            self.post_message(EarlierWanted(at))
        self.view.go_to(store.number_at(at))
        return None

    def _keep_aim(self) -> None:
        """Go on to the time that was asked for, once the lines of it have been read."""
        store = self._store
        if self.view.following or not store.times:
            self._aim = None
        if self._aim is not None and (store.times[0] <= self._aim or store.whole or not store.room):
            at, self._aim = self._aim, None
            self.view.go_to(store.number_at(at))

    def action_mark(self) -> None:
        self._ask("mark", "what happens here: it is written into this view with both clocks", "", self._mark)

    def _mark(self, text: str) -> None:
        self.post_message(MarkWanted(text))

    def action_save(self) -> None:
        name = time.strftime("journal-%Y%m%d-%H%M%S.log")
        self._ask("save as", "a new file", name, self._save)

    def _save(self, text: str) -> str | None:
        path = Path(text).expanduser()
        if path.exists():
            return f"{path} exists; give another name"
        store, view = self._store, self.view
        rows = [(store.times[n - store.base], view.text_of(n)) for n in view.shown_numbers()]
        what = "lines that match" if view.narrowed and view.filter.searching else "lines"
        self.post_message(SaveWanted(path, rows, what))
        return None

    # pinned patterns

    def action_pin(self) -> None:
        value = self.query_one(FilterInput).value.strip()
        hint = "a filter whose lines are counted; one that is pinned is taken off"
        self._ask("pin", hint, value, self._toggle_pin)

    def _toggle_pin(self, text: str) -> str | None:
        pins = self._store.pins
        if any(pin.text == text for pin in pins):
            self._store.pins = [pin for pin in pins if pin.text != text]
        else:
            try:
                self._pin(text)
            except FilterError as error:
                return str(error)
        self._memory.pins = [pin.text for pin in self._store.pins]
        self._memory.keep()
        self._show_pins()
        return None

    def _pin(self, text: str) -> None:
        """Count this pattern from now on, and bit by bit in what is there."""
        pin = Pin(text, parse_filter(text))
        self._store.pins.append(pin)
        self._count(pin, self._store.end)

    def _count(self, pin: Pin, high: int) -> None:
        low = max(self._store.base, high - PINNED_AT_ONCE)
        pin.count += len(self._store.scan(pin.filter, range(low, high)))
        if low > self._store.base and pin in self._store.pins:
            self.call_later(self._count, pin, low)
        else:
            self._show_pins()

    def _show_pins(self) -> None:
        pins = self._store.pins
        self.set_class(bool(pins), "-pinned")
        parts = [
            Content.assemble(
                (f"• {pin.text} ", "$muted"), (f"{pin.count:,}", "bold $accent" if pin.count else "")
            )
            for pin in pins
        ]
        self.query_one("#pins", Words).show(Content("   ").join(parts))

    def action_only_matches(self) -> None:
        self.view.only_matches = not self.view.only_matches
        self._describe()

    def action_wrap(self) -> None:
        self.view.wrap = not self.view.wrap
        self._describe()

    def action_copy(self) -> None:
        lines = self.view.selected_lines()
        if lines:
            self.app.copy_to_clipboard("\n".join(lines))
            what = "line copied" if len(lines) == 1 else f"{len(lines):,} lines copied"
            self.notify(what, timeout=2, markup=False)
        self.view.select_none()

    def action_select(self) -> None:
        if self.view.selected_from is None:
            self.view.select()
        else:
            self.view.select_none()

    def action_left(self) -> None:
        self.view.scroll_relative(x=-16, animate=False)

    def action_right(self) -> None:
        self.view.scroll_relative(x=16, animate=False)


def reading_words(reading: Reading, now: float) -> str:
    """How far the reading of earlier lines is: by the way back in time, else by how long it took before."""
    words = "reading earlier lines"
    passed = now - reading.began
    if passed < 1:
        return f"{words} …"
    part = reading.part or (min(0.95, passed / reading.usual) if reading.usual else 0.0)
    if not part:
        return f"{words} {clock(passed)}   esc stops"
    left = passed / part * (1 - part)
    return f"{words} {'▓' * round(part * 10):░<10} {part:.0%}  eta {clock(left)}   esc stops"
