"""A change as it goes: a line per phase and a bar on stderr, the end on stdout, the exit code."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

from ddtui.commands.output import emit_json, note
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
        bar.show(progress)
        last = progress
    bar.end()
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


class _Bar:
    """On a terminal one line that is drawn over; elsewhere a line at each new phase."""

    def __init__(self) -> None:
        self.live = sys.stderr.isatty()
        self.drawn = False
        self.phase: Phase | None = None

    def show(self, progress: Progress) -> None:
        if progress.phase is not self.phase:
            self.end()
            self.phase = progress.phase
            if not self.live:
                note(f"{progress.phase.value}: {progress.text}")
        if not self.live:
            return
        parts = [f"{progress.phase.value}: {progress.text}"]
        if progress.fraction is not None:
            filled = round(20 * progress.fraction)
            parts.append("▓" * filled + "░" * (20 - filled) + f" {progress.fraction:4.0%}")
        if progress.eta_seconds is not None:
            parts.append(f"eta {clock(progress.eta_seconds)}")
        sys.stderr.write("\r\x1b[2K" + "  ".join(parts))
        sys.stderr.flush()
        self.drawn = True

    def end(self) -> None:
        if self.drawn:
            sys.stderr.write("\n")
            self.drawn = False
