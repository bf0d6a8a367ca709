"""Sweeps, A/B and calibrations: asked about with what they take, then run in the background."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from ddtui.desk import Desk, said
from ddtui.host.base import HostError
from ddtui.screens.dialogs import Confirm, Problem
from ddtui.screens.waiting import Patience, Stopped
from ddtui.tuning.model import Op
from ddtui.words import duration

if TYPE_CHECKING:
    from ddtui.bench.experiment import ExperimentPlan, Setting
    from ddtui.profile import Profile
    from ddtui.screens.flows import Asks
    from ddtui.tuning.experiments import ExperimentState
    from ddtui.tuning.forecast import Forecast

EXPERIMENT = "experiment"  # the group of the worker that runs it


class TrialFlows:
    """The flows of one console, each a worker's body. `ask` shows a dialog, `spawn` starts a worker."""

    def __init__(
        self, desk: Desk, ask: Asks, spawn: Callable[[str, Coroutine[Any, Any, None]], None]
    ) -> None:
        self._desk, self._ask, self._spawn = desk, ask, spawn
        self._patience = Patience(ask)

    async def ab(self) -> None:
        """Measure what is in force against the turned knobs."""
        from ddtui.screens.ab import ABDialog

        view = self._desk.view
        b: Setting = tuple(
            (turn.knob, "off" if turn.op is Op.UNSET else turn.value or "on") for turn in view.turns.values()
        )
        rows = [row for row in view.tune.knobs if row.name in view.turns]
        a = ", ".join(f"{row.name} {row.in_unit or 'off'}" for row in rows) or "without it"
        known = await self._calibrated()
        made = await self._ask(ABDialog(view.profile.bench, self._desk.session.forecast, known, b, a))
        if made is not None and await self._really("A/B", made):
            self._start("A/B", self._desk.session.experiment(made.plan))

    async def calibrate(self) -> None:
        """Measure the setting in force again and again."""
        from ddtui.screens.ab import CalibrateDialog

        known = await self._calibrated()
        made = await self._ask(
            CalibrateDialog(self._desk.view.profile.bench, self._desk.session.forecast, known)
        )
        if made is not None and await self._really("calibration", made):
            self._start("calibration", self._desk.session.experiment(made.plan))

    async def try_out(self, what: ExperimentPlan | str, also: Sequence[Profile] = ()) -> None:
        """Run a sweep that was set up, or go on with the one of that id. `also`: hosts that share it."""
        from ddtui.screens.flows import OperatorAsker
        from ddtui.tuning import telling

        session, asker = self._desk.session, OperatorAsker(self._ask)
        shared = f"Shared with {', '.join(one.name for one in also)}." if also else ""
        production = next((one.connection.host for one in also if one.production), None)
        type_name = self._type_name or production
        if isinstance(what, str):
            text = f"Go on with {what} where it was? What is measured is not measured again. {shared}"
            if await self._ask(Confirm("Go on", text, yes="Go on", danger=True, type_name=type_name)):
                self._start("sweep", session.experiment(what, also=also, asker=asker))
            return
        try:
            making = session.forecast(what, hosts=1 + len(also))
            made = await self._patience.wait("Making the sweep ready", making)
        except Stopped:
            return
        except Exception as error:
            hint = error.hint if isinstance(error, HostError) else ""
            await self._ask(Problem("Sweep", said(error), hint))
            return
        lines = list(telling.forecast(made))
        if made.plan.skipped:
            lines.append(
                f"{len(made.plan.skipped)} settings are skipped: the screen lists them with the reasons"
            )
        if shared:
            lines.append(shared)
        lines.append("It runs unattended, in the background. X stops it.")
        dialog = Confirm("Run the sweep?", "\n".join(lines), yes="Run it", danger=True, type_name=type_name)
        if await self._ask(dialog):
            running = session.experiment(made.plan, also=also, asker=asker)
            self._start(telling.NAMES[made.plan.order], running)

    async def may_stop(self) -> bool:
        """Whether to stop what runs."""
        state = self._desk.view.experiment
        if state is None:
            return False
        left = f", about {duration(state.eta_seconds)} before its end" if state.eta_seconds else ""
        text = (
            f"{state.done} of {max(state.expected, len(state.trials))} trials are done{left}.\n"
            "What was measured is kept, and it can be gone on with. The host stays in its present setting."
        )
        agreed: bool | None = await self._ask(Confirm("Stop it?", text, yes="Stop", no="Let it run"))
        return bool(agreed)

    def _start(self, title: str, states: AsyncIterator[ExperimentState]) -> None:
        self._spawn(EXPERIMENT, self._desk.experiment(title, states))

    @property
    def _type_name(self) -> str | None:
        """What must be typed before a production host is touched."""
        profile = self._desk.view.profile
        return profile.connection.host if profile.production else None

    async def _really(self, title: str, made: Forecast) -> bool:
        """Ask once more where it is production."""
        if self._type_name is None:
            return True
        text = f"{made.restarts} restarts of a production server."
        dialog = Confirm(title, text, yes="Run it", danger=True, type_name=self._type_name)
        agreed: bool | None = await self._ask(dialog)
        return bool(agreed)

    async def _calibrated(self) -> int:
        past = self._desk.session.past
        return await past.calibrated() if past is not None else 0
