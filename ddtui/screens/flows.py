"""What takes a question before it is done: review and apply, restart, roll back, burst, quit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ddtui.bench.model import BurstSpec
from ddtui.desk import Desk
from ddtui.host.base import HostError, HostKey
from ddtui.screens.base import Dialog, title_of
from ddtui.screens.dialogs import Confirm, Problem, Secret, Trust
from ddtui.screens.waiting import Patience, Stopped
from ddtui.tuning.model import Plan, Progress, Turn
from ddtui.view import ChangeKind
from ddtui.widgets import journal_file
from ddtui.words import duration

T = TypeVar("T")


class Asks(Protocol):
    """Who can show a dialog and wait for its answer."""

    def __call__(self, dialog: Dialog[T]) -> Awaitable[T | None]: ...


class OperatorAsker:
    """Answers the host's questions with dialogs."""

    def __init__(self, ask: Asks) -> None:
        self._ask = ask

    async def secret(self, prompt: str, *, purpose: str) -> str | None:
        return await self._ask(Secret(prompt, purpose))

    async def trust(self, key: HostKey) -> bool:
        trusted: bool | None = await self._ask(Trust(key))
        return bool(trusted)


class Flows:
    """The flows of one console, each a worker's body. `ask` shows a dialog, `spawn` starts a worker."""

    def __init__(
        self, desk: Desk, ask: Asks, spawn: Callable[[str, Coroutine[Any, Any, None]], None]
    ) -> None:
        self._desk, self._ask, self._spawn = desk, ask, spawn
        self._patience = Patience(ask)

    @property
    def _type_name(self) -> str | None:
        """What must be typed before a production host is touched."""
        profile = self._desk.view.profile
        return profile.connection.host if profile.production else None

    async def _problem(self, title: str, error: Exception) -> None:
        hint = error.hint if isinstance(error, HostError) else ""
        await self._ask(Problem(title, str(error) or type(error).__name__, hint))

    async def kill(self, text: str) -> bool:
        """Whether to kill a server that does not stop."""
        dialog = Confirm("The server does not stop", text, yes="Kill it", no="Wait on", danger=True)
        agreed: bool | None = await self._ask(dialog)
        return bool(agreed)

    async def _take_over(self) -> bool:
        """Whether nobody else's lock is in the way, or it was left behind and is knowingly taken over."""
        stale = self._desk.view.tune.stale_lock
        if stale is None:
            return True
        text = f"{stale}.\n\nIts change may be half done. Take the lock over?"
        dialog = Confirm("A lock was left behind", text, yes="Take over", danger=True)
        agreed: bool | None = await self._ask(dialog)
        return bool(agreed)

    def _change(self, kind: ChangeKind, title: str, steps: AsyncIterator[Progress]) -> None:
        self._spawn("change", self._desk.change(kind, title, steps))

    async def _reviewed(self, make: Awaitable[Plan], title: str) -> Plan | None:
        """The plan, once it was read and confirmed."""
        from ddtui.screens.review import Review

        try:
            plan = await self._patience.wait("Making the plan", make)
        except Stopped:
            return None
        except Exception as error:
            await self._problem(title, error)
            return None
        profile = self._desk.view.profile
        review = Review(plan, profile.connection.host, title=title, type_name=self._type_name)
        return plan if await self._ask(review) else None

    async def review(self) -> None:
        """Plan the turned knobs; apply the plan if it is confirmed."""
        if not await self._take_over():
            return
        turns = tuple(self._desk.view.turns.values())
        title = title_of(turns) or "ddtui's drop-in, made anew"
        plan = await self._reviewed(self._desk.session.plan(turns), f"Review: {title}")
        if plan is not None:
            self._change("apply", title, self._desk.session.apply(plan, self.kill))

    async def roll_back(self) -> None:
        """Plan the way back; go it if it is confirmed."""
        if not await self._take_over():
            return
        plan = await self._reviewed(self._desk.session.plan_back(), "Roll back")
        if plan is not None:
            self._change("roll back", title_of(plan.turns), self._desk.session.apply(plan, self.kill))

    async def restart(self) -> None:
        if not await self._take_over():
            return
        view = self._desk.view
        running, queued = view.tune.server.running, view.tune.server.queued
        if running is None:
            load = "Whether requests are running is not known."
        elif running or queued:
            load = f"{running} running and {queued or 0} queued requests: running ones are drained first."
        else:
            load = "No request is running."
        lines = [f"Restart {view.profile.service.unit} on {view.profile.connection.host}?", load]
        if view.turns:
            lines.append("Turned knobs are not applied by this: ↵ reviews and applies them.")
        dialog = Confirm("Restart", "\n".join(lines), yes="Restart", danger=True, type_name=self._type_name)
        if await self._ask(dialog):
            self._change("restart", "", self._desk.session.restart(self.kill))

    async def resume(self) -> None:
        """A change that was cut was found: finish it, undo it, or leave it."""
        cut = self._desk.view.tune.cut
        if cut is None:
            return
        finish = Confirm("A change was cut", f"{cut}\n\nFinish it now?", yes="Finish", no="Do not finish")
        if await self._ask(finish):
            self._change(
                "finish", "the change that was cut", self._desk.session.resume(undo=False, ask_kill=self.kill)
            )
            return
        undo = Confirm(
            "A change was cut", "Undo it then, back to what was before?", yes="Undo", no="Leave it"
        )
        if await self._ask(undo):
            self._change(
                "undo", "the change that was cut", self._desk.session.resume(undo=True, ask_kill=self.kill)
            )

    async def may_stop(self) -> bool:
        """Whether to stop the change that runs."""
        change = self._desk.view.change
        if change is None:
            return False
        text = f"It has been running for {duration(self._desk.now() - change.started_at)}: "
        text += f"{change.progress.text or change.progress.phase}.\n"
        if change.kind == "restart":
            text += "The host goes on with what it has begun; ddtui looks at it no more."
        else:
            text += "Files and server stay as they are now; whether to finish or to undo it is asked then."
        dialog = Confirm("Stop the change?", text, yes="Stop it", no="Let it run", danger=True)
        agreed: bool | None = await self._ask(dialog)
        return bool(agreed)

    async def read_again(self) -> None:
        """Read every layer now."""
        with suppress(Stopped):
            await self._patience.wait("Reading every layer", self._desk.session.refresh())

    async def mark(self, text: str) -> None:
        """Write a marker with both clocks into the journal."""
        with suppress(Stopped):
            await self._patience.wait("Asking for the host's time", self._desk.mark_by_hand(text))

    async def save(self, path: Path, rows: Sequence[tuple[float, str]], what: str) -> None:
        """Write lines of the journal to a new file; `what` they are: "lines"."""
        done, stopped = 0.0, False

        def go_on(part: float) -> bool:
            nonlocal done
            done = part
            return not stopped

        try:
            work = asyncio.to_thread(journal_file.save, path, rows, go_on)
            count = await self._patience.wait("Saving the journal", work, lambda: done)
        except Stopped:
            stopped = True  # the thread ends by that, and takes the file away
        except OSError as error:
            self._desk.tell("error", "not saved", f"{path}: {error.strerror or type(error).__name__}")
        else:
            self._desk.tell("information", "saved", f"{count:,} {what} in {path}")

    async def burst(self, contexts: Sequence[int] = ()) -> None:
        """Choose a burst and run it; `contexts` instead of the profile's, where something asks for them."""
        from ddtui.screens.burst import BurstDialog

        view = self._desk.view
        bench = view.profile.bench
        if contexts:
            bench = bench.model_copy(update={"context": tuple(contexts)})
        dialog = BurstDialog(bench, view.tune.step, rtt_ms=view.tune.link.rtt_ms)
        spec: BurstSpec | None = await self._ask(dialog)
        if spec is None or not await self._may_load():
            return
        self._spawn("burst", self._desk.burst(spec))

    async def _may_load(self) -> bool:
        """In production a burst slows real users down: asked once more."""
        if self._type_name is None:
            return True
        text = f"{self._desk.view.profile.name} is in production, and a burst slows its users down."
        agreed: bool | None = await self._ask(
            Confirm("Run it?", text, yes="Run", danger=True, type_name=self._type_name)
        )
        return bool(agreed)

    async def check_output(self) -> None:
        """Whether the output of what is in force is right, once that is agreed to."""
        from ddtui.screens.output import OutputCheck

        text = (
            "The coding tasks are sent, four at a time, and answered greedily. The answers are compared with "
            "a reference step's, and their unit tests run in a sandbox on this machine. "
            "It takes a minute or more."
        )
        if await self._ask(Confirm("Check the output?", text, yes="Check", type_name=self._type_name)):
            await self._ask(OutputCheck(self._desk.session.check_output))

    async def edit(self, name: str | None) -> None:
        """Edit a knob, or any flag."""
        from ddtui.screens.flag import FlagDialog
        from ddtui.screens.knob import KnobDialog

        view = self._desk.view
        knob = view.knob_of(name) if name is not None else None
        if knob is None and name is not None:
            knob = next((one for one in view.profile.knobs if one.flag == name), None)
        turn: Turn | None
        if knob is not None:
            turn = await self._ask(KnobDialog(view, knob, view.row_of(knob.name)))
        else:
            turn = await self._ask(FlagDialog(view, name))
        if turn is not None:
            self._desk.turn(turn)

    async def look(self, place: str, arguments: Mapping[str, str]) -> None:
        """Where a verdict's evidence stands: "open-unit", or "open-log" with the line."""
        from ddtui.screens.text import TextDialog

        unit = self._desk.view.profile.service.unit
        try:
            if place == "open-unit":
                text = self._desk.session.unit_text(arguments.get("file", ""))
                lines = await self._patience.wait("Reading the unit", text)
                dialog = TextDialog(unit, lines, place_of(lines, f"# {arguments.get('file', '')}"))
            else:
                text = self._desk.session.start_lines()
                lines = await self._patience.wait("Reading the journal of this start", text)
                at = place_of(lines, arguments.get("line", ""))
                dialog = TextDialog(f"Journal of this start of {unit}", lines, at)
        except Stopped:
            return
        except Exception as error:
            await self._problem("Cannot be read", error)
            return
        if not lines:
            await self._problem("Cannot be read", HostError("the journal has no line of this start any more"))
            return
        await self._ask(dialog)

    async def may_quit(self) -> bool:
        """Whether to leave although something is running."""
        view = self._desk.view
        if view.change is not None and view.changing:
            since = duration(self._desk.now() - view.change.started_at)
            text = (
                f"{view.change.kind} {view.change.title} has been running for {since}.\n"
                "The server goes on with what it does; ddtui finds the change at its next start."
            )
            dialog = Confirm("A change is running", text, yes="Leave", danger=True)
        elif view.trying:
            text = "It stops where it is; what was measured is kept, and it can be gone on with."
            dialog = Confirm("A sweep is running", text, yes="Stop it and leave")
        elif view.burst is not None:
            text = "Its requests are aborted, and what was measured is kept."
            dialog = Confirm("A burst is running", text, yes="Stop it and leave")
        else:
            return True
        agreed: bool | None = await self._ask(dialog)
        return bool(agreed)


def place_of(lines: Sequence[str], words: str) -> int:
    """The first line that holds these words, for evidence is quoted shortened; 0: none does."""
    part = words.removesuffix("…").strip()
    return next((at for at, line in enumerate(lines) if part and part in line), 0)
