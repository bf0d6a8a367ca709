"""What verdicts share: whether the service runs, what is pending, which steps to take. Pure."""

from __future__ import annotations

import re

from ddtui.tuning import said
from ddtui.tuning.model import Evidence, NextAction, Status
from ddtui.tuning.said import Said
from ddtui.tuning.survey import Survey

RESTART = NextAction("restart", "restart the service")
RELOAD = NextAction("restart", "reload systemd and restart the service")
START = NextAction("restart", "start the service")


def open_log(line: Evidence) -> NextAction:
    return NextAction("open-log", "open the line in the journal", {"line": line.text, "time": line.source})


def open_unit(survey: Survey) -> NextAction:
    unit = survey.unit.value
    return NextAction("open-unit", "look at the unit", {"file": (unit.file if unit else None) or ""})


def clock(time: str | None) -> str:
    """The time of day of a log line, as its source."""
    return time.rpartition(" ")[2] if time else "journal"


def name_of(survey: Survey) -> str:
    """The engine in two words: SGLang 0.5.11."""
    engine = survey.engine.value
    return f"SGLang {engine.version}" if engine and engine.version else "the installed SGLang"


def needs_reload(survey: Survey) -> bool:
    return survey.reload_pending is not None or bool(survey.status and survey.status.need_daemon_reload)


def not_running(survey: Survey) -> str | None:
    """A sentence if systemd says that the service does not run; None: it runs, or that is not known."""
    status = survey.status
    if status is None:
        return None
    if status.sub_state == "auto-restart":
        return (
            f"the service is not running: its last start failed ({status.result}) and systemd will try again"
        )
    if status.active_state in ("active", "activating", "reloading", "deactivating"):
        return None
    result = f", result {status.result}" if status.result not in ("", "success") else ""
    return f"the service is not running: {status.active_state} ({status.sub_state}{result})"


def pending(survey: Survey, flag: str, unit: Said, process: Said) -> tuple[Status, str, NextAction] | None:
    """The unit says one thing and the running process was started with another."""
    if not (unit.known and process.known) or said.same(unit.value, process.value):
        return None
    words = f"the unit says {said.show(unit.value)}, the running process has {said.show(process.value)}"
    if needs_reload(survey):
        return Status.RELOAD_PENDING, f"{words}; systemd has not loaded the unit's files yet", RELOAD
    return Status.RESTART_PENDING, f"{words}; {why_other(survey)}", RESTART


def why_other(survey: Survey) -> str:
    """Why the process is not what the unit says, as far as the files' times tell. A file that was taken away
    has none, so that a process younger than all that are left may still be older than the unit.
    """
    unit, process = survey.unit.value, survey.process.value
    times = [survey.changed_at.get(path, 0.0) for path in (unit.files if unit else ())]
    if process is None or process.started_at is None or max(times, default=0.0) > process.started_at:
        return "it was started before that"
    return "it was started before that, or what starts it sets another value"


def engine_moved(survey: Survey) -> str | None:
    """Why the server does not run the SGLang that is installed now, in a sentence; None: nothing says so.

    By the server's own version, and by the times of the source files: a package's folder is younger than a
    first start anyway, which writes its compiled modules there.
    """
    engine, info, process = survey.engine.value, survey.server.value, survey.process.value
    if engine is None or process is None:
        return None
    runs, installed = _release(info.version if info else None), _release(engine.version)
    if runs and installed and runs != installed:
        return f"the server runs SGLang {runs}, and {installed} is installed now"
    if process.started_at is not None and (engine.changed_at or 0.0) > process.started_at:
        return f"the SGLang in {engine.location} was changed after the server had started"
    return None


def drafter_moved(survey: Survey) -> str | None:
    """Why the drafter's config is not the one that the server has read, in a sentence; None: it is."""
    drafter, process = survey.drafter.value, survey.process.value
    if drafter is None or process is None or process.started_at is None:
        return None
    if survey.changed_at.get(drafter.path, 0.0) > process.started_at:
        return f"{drafter.path} was changed after the server had started"
    return None


def _release(version: str | None) -> str | None:
    """A version without its local part, by which checkouts of one state differ; None: it says nothing."""
    plain = re.split(r"[+_-]", version or "")[0]
    return None if plain.startswith("0.0.0") else plain or None


def settle(survey: Survey) -> str:
    return survey.process.problem or survey.unit.problem or "reading the unit and the process"
