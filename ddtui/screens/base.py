"""What all screens of the console share: the strip above, the keys below, and the view that comes down."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, cast

from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingsMap
from textual.geometry import Size
from textual.reactive import reactive
from textual.screen import ModalScreen, Screen
from textual.timer import Timer
from textual.widgets import Input

from ddtui.actions.action import Action, Where
from ddtui.actions.knobs import knob_actions
from ddtui.actions.table import BY_ID, at
from ddtui.bindings import of
from ddtui.desk import Desk
from ddtui.messages import ActionChosen
from ddtui.painting import NearCompositor
from ddtui.tuning.model import Turn
from ddtui.view import ChangeKind, View
from ddtui.widgets.change_panel import ChangePanel
from ddtui.widgets.key_bar import KeyBar
from ddtui.widgets.status_strip import StatusStrip

Work = Coroutine[Any, Any, None] | Callable[[], Coroutine[Any, Any, None]]

if TYPE_CHECKING:
    from ddtui.bench.experiment import ExperimentPlan
    from ddtui.profile import Profile

T = TypeVar("T")
BEHIND = 2.0  # seconds from one painting of what lies behind a dialog to the next
SETTLES = 1.5  # seconds after a dialog came up, or the size changed, in which it is painted as ever


class Console(Protocol):
    """What screens ask of the app."""

    @property
    def desk(self) -> Desk: ...

    def act(self, action: str) -> None:
        """Do a named action where the focus is."""
        ...

    def measure(self, contexts: Sequence[int] = ()) -> None:
        """Choose a burst and run it, at these context lengths where some are given."""
        ...

    def review(self) -> None:
        """Plan the turned knobs, show the plan, apply it if it is confirmed."""
        ...

    def change(self, kind: ChangeKind) -> None:
        """Restart, roll back, or finish or undo a change that was cut; asks first."""
        ...

    def edit(self, knob: str | None) -> None:
        """Edit a knob or flag; None: ask which flag."""
        ...

    def look(self, place: str, arguments: Mapping[str, str]) -> None:
        """Show where a verdict's evidence stands: "open-unit", "open-log"."""
        ...

    def refresh_layers(self) -> None: ...

    def reconnect(self) -> None: ...

    def give_up(self) -> None:
        """Stop connecting."""
        ...

    def spawn(self, group: str, work: Work, *, exclusive: bool = False) -> None:
        """Run this in the background; what it raises is told."""
        ...

    def ask(self, dialog: Dialog[T]) -> Awaitable[T | None]:
        """Show a dialog and wait for its answer."""
        ...

    def go(self, mode: str) -> None:
        """To another screen."""
        ...

    async def other_profiles(self) -> Mapping[str, Profile]:
        """The profiles of other hosts, by name."""
        ...

    def try_out(self, what: ExperimentPlan | str, also: Sequence[Profile] = ()) -> None:
        """Run a sweep, or go on with the one of that id; shows what it takes, and asks first. `also`: further
        hosts that share it.
        """
        ...

    def quick_ab(self) -> None:
        """Measure what is in force against the turned knobs; shows what it takes, and asks first."""
        ...

    def calibrate(self) -> None:
        """Choose a calibration and run it."""
        ...

    def choose_profile(self, name: str) -> None: ...

    def choose_theme(self, name: str) -> None:
        """This theme from now on, in later sessions too."""
        ...


class ConsoleScreen(Screen[None]):
    """A screen of the console. Its parts get every new view by `show_view`."""

    PLACE: ClassVar[Where]
    PARTS: ClassVar[tuple[Where, ...]] = ()  # further places whose keys answer here
    KNOB_KEYS: ClassVar[bool] = False
    CHANGE_PANEL: ClassVar[bool] = True
    ALLOW_IN_MAXIMIZED_VIEW = "StatusStrip, ChangePanel, KeyBar"

    change_hidden: reactive[bool] = reactive(False, init=False)

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._compositor = NearCompositor()
        self.desk = desk
        self._composed = False
        self._painted_size, self._settles, self._paints_next = Size(), 0.0, 0.0
        self._paints_later: Timer | None = None
        self._possible: object = None  # what the footer's greys rest on
        self.knob_actions = knob_actions(desk.view.profile.knobs, desk.keymap) if self.KNOB_KEYS else ()
        bindings = of(self.knob_actions)
        self._bindings = BindingsMap.merge([self._bindings, BindingsMap(bindings)])

    def _compositor_refresh(self) -> None:
        """Behind a dialog, now and then: each time, all that is seen of this screen is drawn anew."""
        now = time.monotonic()
        if self is self.app.screen or self.size != self._painted_size:
            self._painted_size, self._settles = self.size, now + SETTLES
        if self._settles <= now < self._paints_next:
            self._dirty_widgets.clear()  # the compositor keeps what is to be painted
            if self._paints_later is None:
                self._paints_later = self.set_timer(self._paints_next - now, self._paint_behind)
            return
        self._paints_next = now + BEHIND
        super()._compositor_refresh()

    def _paint_behind(self) -> None:
        self._paints_later = None
        self._compositor_refresh()

    @property
    def console(self) -> Console:
        return cast(Console, self.app)

    def compose(self) -> ComposeResult:
        yield StatusStrip(self.desk.now, self.desk.store.decoding)
        yield from self.body()
        if self.CHANGE_PANEL:
            yield ChangePanel()
        yield KeyBar(self.footer_keys)

    def _post_register(self, app: App[Any]) -> None:
        """A new screen is styled as it is mounted: without this, Textual parses all sheets twice more."""
        super()._post_register(app)
        self._css_update_count = app._css_update_count

    def body(self) -> ComposeResult:
        yield from ()

    def show_view(self, view: View) -> None:
        """Give the parts of this screen what they show."""

    def on_mount(self) -> None:
        self._composed = True
        self._clock = self.set_interval(1.0, self._tick)
        self.present(self.desk.view)

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        event.refresh_styles = False  # they are of now: a new theme is counted, and caught up with by that
        self.present(self.desk.view)

    def present(self, view: View) -> None:
        """Show this from now on."""
        if not self._composed:
            return
        self._clock.resume()
        with self.app.batch_update():
            self.query_one(StatusStrip).view = view
            for panel in self.query(ChangePanel):
                panel.show(view.change, hidden=self.change_hidden)
            self.show_view(view)
            possible = view.possible
            if possible != self._possible:
                self._possible = possible
                self.query_one(KeyBar).refresh()

    def _tick(self) -> None:
        """Time goes on, as long as this screen is shown."""
        if self in self.app.screen_stack:
            self.query_one(StatusStrip).look()
        else:
            self._clock.pause()

    def watch_change_hidden(self) -> None:
        self.present(self.desk.view)

    # keys

    def actions_here(self) -> tuple[Action, ...]:
        """Every action whose key answers somewhere on this screen."""
        return (*self.knob_actions, *at(self.PLACE, *self.PARTS))

    def footer_keys(self) -> list[tuple[Action, str, str | None]]:
        """The actions whose keys answer where the focus is, how the key is written, and why not now."""
        known = {**BY_ID, **{action.id: action for action in self.knob_actions}}
        keys: dict[str, list[str]] = {}
        for active in self.active_bindings.values():
            action = known.get(active.binding.id or "")
            if (
                action is not None
                and action.footer
                and active.enabled
                and not self._typed(active.binding.key)
            ):
                keys.setdefault(action.id, []).append(active.binding.key)
        found = []
        for name, answering in keys.items():
            action = known[name]
            key = next((one for one in action.key_names if one in answering), answering[0])
            written = action.shown if key == action.key_names[0] and action.shown else written_key(key)
            found.append((action, written, self.why_not(action)))
        if isinstance(self.focused, Input):  # what ends the typing; a click on it does nothing
            for active in self.active_bindings.values():
                binding = active.binding
                if active.node is self.focused and binding.show:
                    ends = Action("", "", binding.key, binding.description, "", footer=1)
                    found.append((ends, written_key(binding.key), None))
        return found

    def _typed(self, key: str) -> bool:
        """Whether the key is only a character, where something is typed; Textual knows most, not `/`."""
        written = written_key(key)
        return isinstance(self.focused, Input) and len(written) == 1 and written.isascii()

    def on_action_chosen(self, event: ActionChosen) -> None:
        event.stop()
        self.console.act(event.action)

    def why_not(self, action: Action) -> str | None:
        """Why this action cannot be done here and now; None: it can."""
        return self.desk.why_not(action)

    def may(self, action: str) -> bool:
        """Whether the action can be done now; says why not."""
        found = BY_ID.get(action) or next(a for a in self.knob_actions if a.id == action)
        why = self.why_not(found)
        if why is not None:
            self.notify(why, title=found.label, severity="warning", timeout=4, markup=False)
        return why is None


class Dialog(ModalScreen[T]):
    """A box over the screen. Escape is the safe answer: None."""

    WRITES_HERE: ClassVar[bool] = False  # its yes writes on the machine that ddtui runs on
    BINDINGS: ClassVar = [("escape", "dismiss_none", "cancel")]
    DEFAULT_CSS = """
    Dialog {
        align: center middle;
        & > .box {
            width: 72; max-width: 96%; height: auto; max-height: 96%;
            border: round $border; background: $surface; padding: 0 2 0 2;
            border-title-color: $primary; border-title-style: bold; border-subtitle-color: $muted;
        }
        & > .box.-danger { border: round $error; border-title-color: $error; }
        & > .box > .buttons { height: 1; margin-top: 1; align-horizontal: right; width: 1fr; }
        .buttons Button { margin-left: 2; }
        .note { color: $muted; height: auto; }
        .fault { color: $error; height: auto; display: none; }
        .fault.-shown { display: block; }
        Input { border: none; height: 1; padding: 0 1; background: $panel; width: 1fr; }
        Input:focus { border: none; background: $block-cursor-background; }
        .field { height: 1; margin-top: 1; }
        .field Static { width: 14; color: $muted; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._compositor = NearCompositor()

    def action_dismiss_none(self) -> None:
        self.dismiss(None)


def title_of(turns: list[Turn] | tuple[Turn, ...]) -> str:
    """Turns in a few words: "window 2048, budget unset"."""
    words = [f"{turn.knob} {turn.value if turn.value is not None else turn.op}" for turn in turns]
    return ", ".join(words).replace(" set", " on")


NAMED_KEYS = {
    "question_mark": "?", "slash": "/", "colon": ":", "plus": "+", "minus": "-", "equals_sign": "=",
    "left_square_bracket": "[", "right_square_bracket": "]", "enter": "↵", "backspace": "⌫", "left": "←",
    "right": "→", "up": "↑", "down": "↓", "exclamation_mark": "!", "at": "@", "left_curly_bracket": "{",
    "right_curly_bracket": "}",
}  # fmt: skip


def written_key(key: str) -> str:
    """A key as it is written on the screen: ^p, ?, ↵."""
    return NAMED_KEYS.get(key, key.replace("ctrl+", "^"))
