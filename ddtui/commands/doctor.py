"""`ddtui doctor PROFILE`: what ddtui needs on this host, what is missing, and the lines that grant it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ddtui.commands.opened import tuning, wait
from ddtui.commands.output import emit
from ddtui.commands.status_line import Waiting
from ddtui.tuning import doctor
from ddtui.tuning.doctor import Diagnosis


def run(args: argparse.Namespace) -> int:
    return wait(_run(args))


async def _run(args: argparse.Namespace) -> int:
    async with tuning(args) as ctx:
        async with Waiting("looking at what is there"):
            diagnosis = await doctor.examine(ctx)
    emit(args.json, "doctor", {"profile": ctx.profile.name, **_report(diagnosis)}, _lines(diagnosis))
    return 1 if any(check.ok is False for check in diagnosis.checks) else 0


def _report(diagnosis: Diagnosis) -> dict[str, object]:
    return {
        "checks": diagnosis.checks,
        "read_only": diagnosis.read_only,
        "sudoers": diagnosis.sudoers,
        "sudoers_least": diagnosis.sudoers_least,
    }


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    width = max((len(check.name) for check in diagnosis.checks), default=0)
    for check in diagnosis.checks:
        yield f"{ {True: '✓', False: '✗', None: '·'}[check.ok] } {check.name:<{width}}  {check.found}"
        if check.need:
            yield f"  {'':<{width}}  → {check.need}"
    yield ""
    yield f"Read-only: {diagnosis.read_only}" if diagnosis.read_only else "Changes are possible."
    if diagnosis.read_only:
        for title, text in (
            ("Full rights, for a file in /etc/sudoers.d (check it with visudo -cf FILE):", diagnosis.sudoers),
            ("Least rights, where the flags live in a file that the group owns:", diagnosis.sudoers_least),
        ):
            if text:
                yield ""
                yield title
                yield from text
