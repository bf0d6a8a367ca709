"""The strip at the top: which host, which service, what it runs, and what is going on. Always visible."""

from __future__ import annotations

from collections.abc import Callable

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from ddtui.host.base import Link, LinkState
from ddtui.tuning.model import Phase, Progress
from ddtui.tuning.survey import usual_seconds
from ddtui.view import Decode, View
from ddtui.widgets.progress_bar import bar
from ddtui.words import clock, duration, time_of_day

LINK_LOOK: dict[LinkState, tuple[str, str]] = {
    LinkState.CONNECTED: ("●", "$success"),
    LinkState.CONNECTING: ("◌", "$warning"),
    LinkState.RETRYING: ("◌", "$warning"),
    LinkState.LOST: ("○", "$error"),
    LinkState.REFUSED: ("✗", "$error"),
    LinkState.CLOSED: ("○", "$muted"),
}
GAP = 3


class StatusStrip(Widget):
    """One line. What does not fit goes, least important first; the link and the badges never go."""

    DEFAULT_CSS = """
    StatusStrip { height: 1; background: $panel; padding: 0 1; }
    StatusStrip.-production { background: $production 40%; }
    """

    view: reactive[View | None] = reactive(None, repaint=False)

    def __init__(
        self, now: Callable[[], float], decoding: Callable[[float], Decode | None], *, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self._now, self._decoding = now, decoding
        self._shown = Content()

    def look(self) -> None:
        """Time goes on, or there is a new view: paint again only if that makes a difference."""
        if self.screen in self.app.screen_stack and not self._shown.is_same(self._strip()):
            self.refresh()

    def watch_view(self, view: View | None) -> None:
        self.set_class(view is not None and view.profile.production, "-production")
        if self.is_mounted:
            self.look()

    def _strip(self) -> Content:
        now = self._now()
        return (
            strip(self.view, self.size.width, now, self._decoding(now))
            if self.view is not None
            else Content("")
        )

    def render(self) -> Content:
        self._shown = self._strip()
        return self._shown


def strip(view: View, width: int, now: float, decoding: Decode | None = None) -> Content:
    """The strip for this width. `decoding`: what the journal says of the load right now."""
    tune = view.tune
    left: list[tuple[int, Content]] = [(9, Content.styled("ddtui", "bold $primary"))]
    left.append((0, link(tune.link, view.profile.name, now)))
    if view.profile.connection.host != view.profile.name:
        left.append((10, Content.styled(view.profile.connection.host, "$muted")))
    service = tune.service
    left.append((5, Content.styled(service.unit or view.profile.service.unit, "$foreground")))
    if service.active is not None:
        colour = {"active": "$success", "failed": "$error"}.get(service.active, "$warning")
        if not view.connected:
            colour = "$muted"
        word = service.active if service.sub in ("", "running", service.active) else service.sub
        state = Content.styled(word, colour)
        if not view.connected:
            state += Content.styled(
                f" at {time_of_day(service.read_at)}" if service.read_at else "", "$muted"
            )
        elif service.since is not None and service.active in ("active", "failed"):
            state += Content.styled(f" {duration(now - service.since)}", "$muted")
        left.append((1, state))
    if service.pid:
        left.append((7, Content.styled(f"pid {service.pid}", "$muted")))
    if tune.server.version:
        left.append((6, Content.styled(f"SGLang {tune.server.version}", "$muted")))
    if tune.server.algorithm:
        left.append((4, Content(tune.server.algorithm)))
    if tune.step is not None:
        left.append((3, Content.styled(f"step {tune.step}", "bold")))
    running, waiting = tune.server.running, tune.server.queued
    if running is not None and decoding is not None and decoding.whole and decoding.running is not None:
        running, waiting = decoding.running, decoding.queued  # as the journal pane has it, and newer
    if running is not None and view.connected:
        queued = f" +{waiting} queued" if waiting else ""
        left.append((8, Content.styled(f"{running} running{queued}", "$muted")))
    if tune.people and view.connected:
        names = list(dict.fromkeys(person.partition(" ")[0] for person in tune.people))
        more = f" +{len(names) - 3}" if len(names) > 3 else ""
        left.append((6, Content.styled(f"also here: {', '.join(names[:3])}{more}", "$muted")))
    for other in tune.others:
        left.append((2, Content.styled(other, "$warning")))
    right = [*reading(view, now), *activity(view), *badges(view)]
    tail = Content("  ").join(right) if right else Content("")
    while True:
        head = Content(" " * GAP).join(part for _, part in left)
        room = width - head.cell_length - tail.cell_length - (2 if right else 0)
        if room >= 0 or len(left) == 1:
            break
        left.remove(max(left, key=lambda part: part[0]))
    if room < 0:
        head = head.truncate(max(0, width - tail.cell_length - 2), ellipsis=True)
    return Content.assemble(head, " " * max(1, width - head.cell_length - tail.cell_length), tail)


def reading(view: View, now: float) -> list[Content]:
    """How far the first reading of every layer is, by what it takes and how long the way to the host is."""
    if view.tune.surveyed or not view.connected:
        return []
    waited = now - view.tune.link.since
    usual = usual_seconds(view.tune.link)
    left = usual - waited
    return [
        bar(
            48,
            min(0.95, waited / usual),
            left if left > 0 else None,
            label="reading every layer",
            elapsed=waited,
        )
    ]


def link(link: Link, name: str, now: float) -> Content:
    """Host, state of the link, round-trip time."""
    glyph, colour = LINK_LOOK[link.state]
    if link.state is LinkState.CONNECTED:
        word = f"{link.rtt_ms:.0f} ms" if link.rtt_ms is not None else "connected"
        state = Content.styled(f" {word}", "$muted")
    elif link.state is LinkState.RETRYING and link.retry_at is not None:
        state = Content.styled(f" link lost, again in {clock(link.retry_at - now)}", colour)
    else:
        state = Content.styled(f" {link.state}", colour)
    return Content.assemble((name, "bold"), " ", (glyph, colour), state)


OUTCOMES = {
    Phase.VERIFIED: ("✓", "$success"),
    Phase.UNVERIFIED: ("!", "$warning"),
    Phase.ROLLED_BACK: ("↶", "$warning"),
}
TRIES = {"ab": "A/B", "abba": "A/B", "calibrate": "calibration"}


def activity(view: View) -> list[Content]:
    """The change or burst that is going on."""
    found: list[Content] = []
    if view.change is not None and view.changing:
        found.append(doing(view.change.progress))
    if view.experiment is not None and view.trying:
        state = view.experiment
        kind = TRIES.get(state.plan.order, "sweep")
        found.append(
            Content.styled(f"⇄ {kind} {state.done}/{max(state.expected, len(state.trials))}", "bold $warning")
        )
    burst = view.burst
    if burst is not None:
        found.append(Content.styled(f"▶ burst {burst.fraction:.0%}", "bold $primary"))
    return found


def doing(progress: Progress) -> Content:
    """Where a change is; over, it has an outcome and no share."""
    if progress.phase.final:
        glyph, colour = OUTCOMES.get(progress.phase, ("✗", "$error"))
        return Content.styled(f"{glyph} {progress.phase}", f"bold {colour}")
    share = f" {progress.fraction:.0%}" if progress.fraction is not None else ""
    return Content.styled(f"↻ {progress.phase}{share}", "bold $warning")


def badges(view: View) -> list[Content]:
    """What must never be overlooked."""
    found: list[Content] = []
    if view.profile.production:
        found.append(Content.styled(" PROD ", "bold $text on $production"))
    if view.tune.simulated:
        found.append(Content.styled(" SIMULATED ", "bold $background on $accent"))
    if view.tune.read_only is not None:
        found.append(Content.styled(" READ-ONLY ", "bold $background on $secondary"))
    return found
