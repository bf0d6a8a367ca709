"""The files whose times tell that a layer must be read again, and those times by the host's clock."""

from __future__ import annotations

from collections.abc import Sequence

from ddtui.engine.installation import Installation
from ddtui.host.base import Completed
from ddtui.tuning.context import Tuning
from ddtui.tuning.survey import Survey

STAT = ("stat", "-L", "-c", "%F|%s|%.9Y|%n", "--")


def watched(survey: Survey) -> list[str]:
    """The files and folders whose times tell that a layer must be read again."""
    paths = [*(survey.unit.value.files if survey.unit.value else ()), *unit_folders(survey)]
    if survey.drafter.value:
        paths += drafter_files(survey)
    if survey.engine.value and not (survey.unit.value and survey.unit.value.inside):
        paths += engine_files(survey.engine.value)
    return list(dict.fromkeys(path for path in paths if path.startswith("/")))


def unit_folders(survey: Survey) -> list[str]:
    """The folders where a new drop-in would appear."""
    unit = survey.unit.value
    if unit is None or unit.unit is None:
        return []
    folders = [f"{base}/{unit.unit}.d" for base in ("/etc/systemd/system", "/run/systemd/system")]
    if unit.scope == "user" and unit.fragment:
        folders = [f"{unit.fragment}.d"]
    return folders


def drafter_files(survey: Survey) -> list[str]:
    """The files that decide what was read of the drafter: its config, and which snapshot of a repo counts."""
    path = survey.drafter.value.path if survey.drafter.value else ""
    cache, snapshot, _ = path.partition("/snapshots/")
    refs = [known for known in survey.stamps if snapshot and known.startswith(f"{cache}/refs/")]
    return [path, *refs]


def engine_files(engine: Installation) -> list[str]:
    """The files of an installation that decide what was read in it."""
    base = engine.location
    return [base, f"{base}/version.py", f"{base}/srt/server_args.py", *engine.files, *engine.ddtree.files]


async def stat(ctx: Tuning, paths: Sequence[str]) -> dict[str, float]:
    """When each file was last changed, by the host's clock: path -> unix time; 0 if it is not there."""
    if not paths:
        return {}
    return parse_stat(await ctx.host.run((*STAT, *paths)), paths)


def parse_stat(done: Completed, paths: Sequence[str]) -> dict[str, float]:
    found = dict.fromkeys(paths, 0.0)
    for line in done.out.splitlines():
        parts = line.split("|", 3)
        if len(parts) == 4 and parts[3] in found:
            found[parts[3]] = float(parts[2])
    return found
