"""A change as it goes: a line per phase and a bar on stderr, the end on stdout, the exit code."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ddtui.commands.output import emit_json, note
from ddtui.commands.status_line import StatusLine, filled
from ddtui.tuning.model import Phase, Progress
from ddtui.words import clock

EXIT = {
    Phase.VERIFIED: 0,
    Phase.UNVERIFIED: 1,
    Phase.FAILED: 5,
    Phase.ROLLED_BACK: 5,
    Phase.STRANDED: 6,
}


async def follow(change: AsyncIterator[Progress], command: str, as_json: bool, simulated: bool) -> int:
    """Follow a change to its end; its exit code."""
    last: Progress | None = None
    bar = _Bar()
    async for progress in change:
        if as_json:
            emit_json(f"{command}-progress", _report(progress, simulated))
        bar.of(progress)
        last = progress
    bar.end(keep=True)
    if last is None:
        note("nothing was done")
        return 1
    if as_json:
        emit_json(command, _report(last, simulated))
    else:
        for line in _closing(last):
            print(line)
    return EXIT.get(last.phase, 6)


def _report(progress: Progress, simulated: bool) -> dict[str, object]:
    return {
        "change": progress.change,
        "phase": progress.phase,
        "text": progress.text,
        "fraction": progress.fraction,
        "eta_seconds": progress.eta_seconds,
        "elapsed": round(progress.elapsed, 2),
        "failure": progress.failure,
        "evidence": progress.evidence,
        "advice": progress.advice,
        "simulated": simulated,
    }


def _closing(last: Progress) -> list[str]:
    lines = [f"{last.phase.value}: {last.text}" + (f" (change {last.change})" if last.change else "")]
    if last.failure:
        lines.append(f"cause: {last.failure}")
        lines += [f"  | {line}" for line in last.evidence]
    if last.advice:
        lines.append(f"try: {last.advice}")
    return lines


class _Bar(StatusLine):
    """A change's progress: a line that stays for each phase; without a terminal its first words."""

    def __init__(self) -> None:
        super().__init__()
        self.phase: Phase | None = None

    def of(self, progress: Progress) -> None:
        if progress.phase is not self.phase:
            self.end(keep=True)
            self.phase = progress.phase
            if not self.live:
                note(f"{progress.phase.value}: {progress.text}")
        if not self.live:
            return
        parts = [f"{progress.phase.value}: {progress.text}"]
        if progress.fraction is not None:
            parts.append(filled(progress.fraction))
        if progress.eta_seconds is not None:
            parts.append(f"eta {clock(progress.eta_seconds)}")
        self.show("  ".join(parts))
