"""A profile for a host that none names yet: asks for the host, looks, tries what it found, saves it."""

from __future__ import annotations

import asyncio
import importlib
import time
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import Worker

from ddtui import profile as profiles
from ddtui.host.base import Host, HostError
from ddtui.profile import Connection, Profile, ProfileError
from ddtui.screens.base import Console, Dialog
from ddtui.screens.flows import OperatorAsker
from ddtui.widgets.cells import cut
from ddtui.widgets.choices import Choices
from ddtui.widgets.pick_line import PickLine
from ddtui.widgets.progress_bar import bar
from ddtui.widgets.words_view import Words

if TYPE_CHECKING:
    from ddtui.tuning.discovery import Found, Tested

STEPS = ("connecting", "looking for services that run SGLang", "reading every layer")
PRODUCTION = (("no", "no"), ("yes", "yes: PROD on every screen, a restart asks for the host's name"))


class FirstRun(Dialog[str]):
    """The name of the profile that was made, or None."""

    WRITES_HERE = True
    BINDINGS: ClassVar[list[BindingType]] = [("escape", "back", "back")]
    DEFAULT_CSS = """
    FirstRun {
        & > .box { width: 92; overflow-y: auto; scrollbar-size: 1 1; }
        &.-tested .note { display: none; }
        PickLine { padding: 0 1; }
        #units { height: auto; max-height: 8; margin-top: 1; }
        .later { display: none; }
        &.-found .later.of-found, &.-tested .later.of-tested { display: block; }
        #state { height: auto; margin-top: 1; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._host: Host | None = None
        self._connection: Connection | None = None
        self._units: tuple[Found, ...] = ()
        self._tested: Tested | None = None
        self._work: Worker[None] | None = None
        self._step, self._began = 0, 0.0

    def compose(self) -> ComposeResult:
        with Vertical(classes="box") as box:
            box.border_title = Content("A profile for your host")
            yield Static(
                Content(
                    "ddtui looks on the host over SSH for systemd units and docker compose services that run "
                    "SGLang, and changes nothing there. Your ~/.ssh/config, agent and known_hosts are used."
                ),
                classes="note",
            )
            with Horizontal(classes="field"):
                yield Static(Content("host"), markup=False)
                yield Input(
                    placeholder="gpu-1, tuner@gpu-1:2222, a Host of ~/.ssh/config, or local", id="host"
                )
            yield Words(id="state")
            yield Static(classes="fault", id="fault", markup=False)
            yield Choices(id="units")
            yield Words(id="tested")
            with Horizontal(classes="field later of-tested"):
                yield Static(Content("name"), markup=False)
                yield Input(id="name")
            with Horizontal(classes="field later of-tested"):
                yield Static(Content("production"), markup=False)
                yield PickLine(PRODUCTION, id="production")
            with Horizontal(classes="buttons"):
                yield Button("Back  esc", id="back", compact=True)
                yield Button("Look  ↵", id="next", compact=True, variant="primary")

    def on_mount(self) -> None:
        self.query_one("#units").display = False
        self.query_one("#host").focus()
        self.set_interval(0.25, self._tick)

    async def on_unmount(self) -> None:
        await self._hang_up()

    # what it is doing

    @property
    def busy(self) -> bool:
        return self._work is not None and not self._work.is_finished

    def _start(self, step: int) -> None:
        self._step = step
        self._show_fault(None)
        self._tick()

    def _tick(self) -> None:
        if self.busy:
            label = f"{STEPS[self._step]} …"
            width = max(20, self.query_one("#state").size.width)
            passed = time.monotonic() - self._began
            line = bar(width, (self._step + 0.5) / len(STEPS), label=label, elapsed=passed)
            self.query_one("#state", Words).show(line)

    def _show_fault(self, error: Exception | str | None) -> None:
        fault = self.query_one("#fault", Static)
        fault.set_class(error is not None, "-shown")
        hint = error.hint if isinstance(error, HostError) else ""
        fault.update(Content(f"{error or ''}" + (f"\n→ {hint}" if hint else "")))

    async def _hang_up(self) -> None:
        host, self._host = self._host, None
        if host is not None:
            with suppress(Exception):  # leaving: what does not close in time is left to the system
                async with asyncio.timeout(3):
                    await host.close()

    # host → units

    @on(Input.Submitted, "#host")
    def _look(self) -> None:
        try:
            self._connection = profiles.connection_from(self.query_one("#host", Input).value)
        except ProfileError as error:
            self._show_fault(error)
            return
        self._forget()
        self._began = time.monotonic()
        self._work = self.run_worker(self._find(self._connection), group="ssh", exclusive=True)

    def _forget(self) -> None:
        """What an earlier look found."""
        self._units, self._tested = (), None
        self.set_class(False, "-found")
        self.set_class(False, "-tested")
        self.query_one("#units").display = False
        self.query_one("#tested", Words).show(Content(""))
        self.query_one("#next", Button).label = "Look  ↵"

    async def _find(self, connection: Connection) -> None:
        try:
            self._start(0)
            for needed in ("ddtui.host.open", "ddtui.tuning.discovery"):
                await asyncio.to_thread(importlib.import_module, needed)
            from ddtui.host.open import open_host
            from ddtui.tuning import discovery

            await self._hang_up()
            self._host = open_host(connection, OperatorAsker(cast(Console, self.app).ask))
            await self._host.connect()
            self._start(1)
            findings = await discovery.find(self._host)
        except (HostError, TimeoutError, OSError) as error:
            await self._hang_up()
            self.query_one("#state", Words).show(Content(""))
            self._show_fault(error)
            return
        self._units = findings.units
        lines = [Content.styled(f"{len(self._units)} found" if self._units else "nothing found", "$muted")]
        lines += [Content.assemble(("! ", "$warning"), note) for note in findings.notes]
        self.query_one("#state", Words).show(Content("\n").join(lines))
        if not self._units:
            self._show_fault(discovery.NOTHING)
            return
        choices = self.query_one(Choices)
        choices.set_options(Option(unit_line(one)) for one in self._units)
        choices.display = True
        choices.highlighted = 0
        choices.focus()
        self.query_one("#next", Button).label = "Try   ↵"
        if len(self._units) == 1:
            self._try(self._units[0])

    # unit → tried

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self._try(self._units[event.option_index])

    def _try(self, found: Found) -> None:
        self._began = time.monotonic()
        self._work = self.run_worker(self._test(found), group="probe", exclusive=True)

    async def _test(self, found: Found) -> None:
        from ddtui.tuning import discovery

        assert self._connection is not None and self._host is not None
        self._start(2)
        name = profiles.name_for(self._connection.host)
        try:
            self._tested = await discovery.test(self._host, discovery.draft(name, self._connection, found))
        except (HostError, TimeoutError, ValueError) as error:
            self.query_one("#state", Words).show(Content(""))
            self._show_fault(error)
            return
        self.query_one("#state", Words).show(Content(""))
        self.query_one("#tested", Words).show(tested_words(found, self._tested))
        self.query_one("#name", Input).value = name
        self.set_class(True, "-tested")
        self.query_one("#next", Button).label = "Save  ↵"
        self.query_one("#name").focus()

    # tried → saved

    @on(Input.Submitted, "#name")
    def _save(self) -> None:
        from ddtui.tuning import written

        if self._tested is None:
            return
        name = self.query_one("#name", Input).value.strip()
        production = self.query_one("#production", PickLine).value == "yes"
        try:
            profiles.new_path(name)
            made: Profile = self._tested.profile.model_copy(update={"name": name, "production": production})
            profiles.save_new(name, written.as_yaml(made))
        except ProfileError as error:
            self._show_fault(error)
            return
        self.dismiss(name)

    # keys and buttons

    @on(Button.Pressed, "#next")
    def _next(self) -> None:
        if self.busy:
            return
        if self._tested is not None:
            self._save()
        elif self._units:
            self._try(self._units[self.query_one(Choices).highlighted or 0])
        else:
            self._look()

    @on(Button.Pressed, "#back")
    async def action_back(self) -> None:
        """One step back: stop what runs; then the host again; then away."""
        if self.busy and self._work is not None:
            self._work.cancel()
            self.query_one("#state", Words).show(Content.styled("stopped", "$muted"))
        elif not self._units and self._tested is None:
            self.dismiss(None)
            return
        await self._hang_up()
        self._forget()
        self.query_one("#host").focus()


def unit_line(found: Found) -> Content:
    """A unit in the list."""
    state = "● " if found.running else "○ "
    drafts = found.algorithm or "no speculative decoding"
    return Content.assemble(
        (state, "$success" if found.running else "$muted"),
        (cut(found.unit, 32).ljust(32), "bold"),
        (f" {found.by:<8}", "$muted"),
        (cut(drafts, 12).ljust(12), "$primary"),
        (
            cut(found.problem or f" port {found.port}  {found.model or ''}", 30),
            "$error" if found.problem else "$muted",
        ),
    )


def tested_words(found: Found, tested: Tested) -> Content:
    """What was found and read, line by line."""
    lines = [
        Content.assemble(("drafter  ", "$muted"), found.drafter or "none"),
        Content.assemble(("knobs    ", "$muted"), ", ".join(knob.name for knob in tested.profile.knobs)),
        *(Content.assemble(("✓ ", "$success"), text) for text in tested.good),
        *(Content.assemble(("! ", "$warning"), text) for text in tested.problems),
    ]
    return Content("\n").join(lines)
